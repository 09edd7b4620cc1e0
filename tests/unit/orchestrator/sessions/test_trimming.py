"""What is left out of a part that is over its budget, and in which order."""

from __future__ import annotations

import pytest

import phronesis_tokens as tokens
from phronesis_contracts.constitution.lists import VisionNode
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention
from phronesis_orchestrator.sessions.start import part_size, trim

WORDS = "candour before comfort, and comfort before haste; "


def node(id: str, description: int = 0, **more: object) -> ConstitutionNode:
    stated = {"id": id, "type": "value", "layer": "foundation", "title": f"Value {id}", "status": "active"} | more
    if description:
        stated["description"] = WORDS * description
    return ConstitutionNode.model_validate(stated)


def link(id: str) -> ConstitutionLink:
    return ConstitutionLink(id=id, type="ENFORCED_BY", from_id="a", to_id="b")


def test_what_fits_is_told_as_it_is() -> None:
    nodes, links = (node("a", 3), node("b")), (link("r"),)
    found = trim(nodes, links, 1_000)
    assert (found.nodes, found.links, found.left_out, found.tokens) == (nodes, links, (), part_size(nodes, links))


def test_tokens_are_those_of_the_nodes_and_relationships_as_they_are_sent() -> None:
    one, joined = node("a", 3), link("r")
    expected = tokens.count(f"[{one.model_dump_json()}]") + tokens.count(f"[{joined.model_dump_json()}]")
    assert part_size((one,), (joined,)) == expected


@pytest.mark.req("O-334")
def test_the_longest_description_goes_first_and_no_more_than_it_takes() -> None:
    nodes = (node("a", 5), node("b", 40), node("c", 10))
    found = trim(nodes, (link("r"),), part_size(nodes, (link("r"),)) - 100)
    assert [one.description is None for one in found.nodes] == [False, True, False]
    assert (found.links, found.left_out) == ((link("r"),), ("descriptions (1)",))


@pytest.mark.req("O-334")
def test_free_properties_go_before_descriptions() -> None:
    nodes = (node("a", 5, properties={"note": WORDS * 20}, metadata={"from": "x"}, provenance={"actor": "ann"}),)
    found = trim(nodes, (), part_size(nodes, ()) - 60)
    assert (found.nodes[0].properties, found.nodes[0].description, found.left_out) == (
        None,
        WORDS * 5,
        ("free properties (1)",),
    )


@pytest.mark.req("O-334")
def test_the_order_is_kept_to_the_end_and_every_node_stays() -> None:
    nodes = tuple(
        VisionNode.model_validate(
            {
                "id": f"n{at}",
                "type": "goal",
                "layer": "vision",
                "title": f"Goal {at}",
                "status": "active",
                "summary": WORDS * 2,
                "description": WORDS * 3,
                "narrative": WORDS,
                "createdAt": "2026-11-22T10:00:00Z",
                "parents": [Mention(id="p", type="value", title="Parent").model_dump()],
            }
        )
        for at in range(10)
    )
    found = trim(nodes, (link("r1"), link("r2")), 1)
    assert [one.model_dump(mode="json") for one in found.nodes] == [
        {"id": f"n{at}", "type": "goal", "layer": "vision", "title": f"Goal {at}", "status": "active"} for at in range(10)
    ]
    assert found.links == ()
    assert found.left_out == (
        *("descriptions (10)", "typed texts (10)", "times and versions (10)", "relationships (12)", "summaries (10)"),
    )
    assert found.tokens > 1


@pytest.mark.req("O-334")
@pytest.mark.parametrize("budget", range(100, 2_000, 190))
def test_whatever_the_budget_it_is_kept_where_titles_alone_fit(budget: int) -> None:
    nodes = tuple(node(f"n{at}", at, summary=WORDS) for at in range(3))
    links = tuple(link(f"r{at}") for at in range(20))
    found = trim(nodes, links, budget)
    assert found.tokens == part_size(found.nodes, found.links)
    assert found.tokens <= budget
    assert [one.id for one in found.nodes] == ["n0", "n1", "n2"]
