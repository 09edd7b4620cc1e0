"""Drawings of the constitutional graph: places that do not overlap, lines that join what is joined, and nothing that runs."""

from __future__ import annotations

import re
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts.constitution.paths import SubgraphFound
from phronesis_contracts.constitution.registry import Layer, types_of_layer
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_gateway.console.constitution.drawing import HEIGHT, WIDTH, lay_out, render_graph


def node(id: str, layer: Layer, title: str = "A title") -> ConstitutionNode:
    """A node of a layer."""
    return ConstitutionNode(id=id, type=types_of_layer(layer)[0].name, layer=layer, title=title)


def link(source: str, target: str, type: str = "SERVES") -> ConstitutionLink:
    """A relationship."""
    return ConstitutionLink(id=f"{source}-{target}", type=type, from_id=source, to_id=target)


GRAPHS = st.lists(st.sampled_from(list(Layer)), max_size=25).flatmap(
    lambda layers: st.tuples(
        st.just([node(f"n{at}", layer) for at, layer in enumerate(layers)]),
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40),
    )
)


@given(GRAPHS)
def test_every_node_has_a_place_of_its_own_inside_the_picture(
    graph: tuple[list[ConstitutionNode], list[tuple[int, int]]],
) -> None:
    nodes, pairs = graph
    made = lay_out(nodes, [link(f"n{a}", f"n{b}") for a, b in pairs])
    assert {box.node.id for box in made.boxes} == {each.id for each in nodes}
    for one, other in combinations(made.boxes, 2):
        assert one.x + WIDTH <= other.x or other.x + WIDTH <= one.x or one.y + HEIGHT <= other.y or other.y + HEIGHT <= one.y
    assert all(0 <= box.x <= made.width - WIDTH and 0 <= box.y <= made.height - HEIGHT for box in made.boxes)
    assert len(made.lines) == sum(a < len(nodes) and b < len(nodes) for a, b in pairs)


def test_layers_stand_in_their_order_and_those_without_a_node_take_no_room() -> None:
    made = lay_out([node("m", Layer.MIND), node("v", Layer.VISION), node("t", Layer.TACTICS)], [])
    assert [column.layer for column in made.columns] == [Layer.VISION, Layer.TACTICS, Layer.MIND]
    assert [column.x for column in made.columns] == [28, 260, 492]


def test_what_is_joined_stands_side_by_side_so_that_lines_do_not_cross() -> None:
    goals = [node(f"g{n}", Layer.VISION) for n in range(4)]
    tasks = [node(f"t{n}", Layer.EXECUTION) for n in reversed(range(4))]
    made = lay_out([*goals, *tasks], [link(f"t{n}", f"g{n}") for n in range(4)])
    place = {box.node.id: box.y for box in made.boxes}
    assert all(place[f"t{n}"] == place[f"g{n}"] for n in range(4))


def test_a_title_that_holds_markup_is_text_and_a_long_one_is_cut_to_two_lines() -> None:
    hostile = node("a", Layer.VISION, "<script>alert(1)</script> " + "a very long title " * 10)
    found = SubgraphFound.model_validate({"nodes": (hostile,), "relationships": (), "stats": {}})
    written = str(render_graph(found, "a"))
    assert "<script" not in written
    assert "&lt;script&gt;" in written
    assert len(re.findall(r"<text x=", written)) == 2
    assert 'class="box vision marked"' in written


def test_a_contradiction_looks_other_than_a_support() -> None:
    nodes = (node("a", Layer.VISION), node("b", Layer.VISION))
    found = SubgraphFound.model_validate({"nodes": nodes, "relationships": (link("a", "b", "CONTRADICTS"),), "stats": {}})
    assert 'class="line CONTRADICTS"' in str(render_graph(found))
