"""The rules of the vision's list: its order, parents inline, and which writes make it another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.lists import VisionListed, VisionNode
from phronesis_contracts.constitution.registry import of_layer
from phronesis_contracts.constitution.relationships import PARENTS
from phronesis_contracts.constitution.values import Mention
from phronesis_contracts.constitution.writes import ConstitutionChanged

from .cursors import cursor, place
from .fitting import Fitted
from .horizons import horizon_place
from .list_cache import Touches
from .list_ports import Parent, Row
from .pages import figures, weight
from .records import node_of

KINDS = of_layer(Layer.VISION)
_RANK = {kind.name: str(i) for i, kind in enumerate(KINDS)}
"""Vision, business, goal, season: the registry's order (O-145)."""
_CURSOR = "vision.v2"


def place_of(row: Row) -> tuple[str, ...]:
    """What a row is sorted by: type, horizon and age (O-145), and the id, which no two share."""
    return _RANK[row["type"]], horizon_place(row["horizon"]), row["createdAt"], row["id"]


def behind(given: str | None) -> tuple[str, ...]:
    """The place that a cursor names; before everything where there is none.

    Raises:
        BadRequest: it is no cursor of this list.
    """
    return place(given, {_CURSOR: 4})[1:] if given else ()


def by_child(parents: Iterable[Parent]) -> dict[str, tuple[Mention, ...]]:
    """The active parents of each node (O-143), by kind of relationship and then by title."""
    found: dict[str, list[Mention]] = {}
    for one in sorted(parents, key=lambda one: (PARENTS.index(one.relationship), one.title, one.id)):
        if one.active:
            mention = Mention(id=one.id, type=one.type, title=one.title, relationship=one.relationship)
            found.setdefault(one.child, []).append(mention)
    return {child: tuple(mentions) for child, mentions in found.items()}


def with_parents(parents: Mapping[str, tuple[Mention, ...]]) -> Callable[[Row], VisionNode]:
    """How a row becomes a node with its parents; one without any has no such field (O-144)."""

    def make(row: Row) -> VisionNode:
        node = node_of(row)
        return VisionNode.model_validate({**dict(node), "parents": parents.get(node.id)})

    return make


def listed(found: Fitted[VisionNode], rows: Sequence[Row]) -> VisionListed:
    """The answer; `rows` are those that it was made from."""
    answer = VisionListed(
        items=found.nodes,
        stats=figures(found.nodes, 0),
        truncated=found.truncated,
        next_cursor=None if found.whole else cursor(_CURSOR, *place_of(rows[len(found.nodes) - 1])),
    )
    return answer.model_copy(update={"stats": figures(found.nodes, weight(answer))})


def touching(parents: Iterable[Parent], hierarchy: bool) -> Touches:
    """Which writes make the list another one: of its nodes, and, where parents are told, of them and of what leads to them.

    Args:
        parents: all of them, active or not: an archived one may become active.
        hierarchy: whether parents are told.
    """
    ids = frozenset(parent.id for parent in parents)

    def touches(event: ConstitutionChanged) -> bool:
        return any(node.layer is Layer.VISION or node.id in ids for node in event.nodes) or (
            hierarchy and any(Layer.VISION in link.layers and link.type in PARENTS for link in event.relationships)
        )

    return touches
