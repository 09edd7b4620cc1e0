"""The rules of the foundation's list: its order, whose description is told, and which writes make it another one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.lists import FoundationListed
from phronesis_contracts.constitution.registry import of_layer
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged
from phronesis_tokens import cut

from .cursors import cursor, place
from .fitting import Fitted
from .list_cache import Touches
from .list_ports import Row
from .pages import figures, weight

KINDS = of_layer(Layer.FOUNDATION)
_CURSOR = "foundation.v2"
_CLIPPED = 60
"""Tokens of a description that stands in for a summary (C-91)."""


def place_of(row: Row) -> tuple[str, ...]:
    """What a row is sorted by: type and age (O-130), and the id, which no two share."""
    return row["type"], row["createdAt"], row["id"]


def behind(given: str | None) -> tuple[str, ...]:
    """The place that a cursor names; before everything where there is none.

    Raises:
        BadRequest: it is no cursor of this list.
    """
    return place(given, {_CURSOR: 3})[1:] if given else ()


def shaped(row: Row, columns: Sequence[str], described: Collection[str]) -> Row:
    """A row with the columns that are told.

    A description is told of the types in `described` alone (O-127). The others have a summary: where theirs is empty, the
    beginning of the description stands there.
    """
    shown = {name: row[name] for name in columns}
    if row["type"] not in described:
        shown.pop("description", None)
        if "summary" in shown and not shown["summary"] and row["description"]:
            shown["summary"] = cut(row["description"], _CLIPPED, "…")
    return shown


def by_source(links: Iterable[ConstitutionLink], rows: Sequence[Row]) -> dict[str, list[ConstitutionLink]]:
    """Relationships by the node that they lead from, in the order of these nodes and then of ids."""
    joined: dict[str, list[ConstitutionLink]] = {row["id"]: [] for row in rows}
    for link in sorted(links, key=lambda link: link.id):
        if link.from_id in joined:
            joined[link.from_id].append(link)
    return joined


def listed(found: Fitted[ConstitutionNode], rows: Sequence[Row]) -> FoundationListed:
    """The answer; `rows` are those that it was made from."""
    answer = FoundationListed(
        items=found.nodes,
        relationships=found.links,
        stats=figures(found.nodes, 0),
        truncated=found.truncated,
        next_cursor=None if found.whole else cursor(_CURSOR, *place_of(rows[len(found.nodes) - 1])),
    )
    return answer.model_copy(update={"stats": figures(found.nodes, weight(answer))})


def touching(relationships: bool) -> Touches:
    """Which writes make the list another one: of its nodes, and, where they are told, of relationships between them."""

    def touches(event: ConstitutionChanged) -> bool:
        return any(node.layer is Layer.FOUNDATION for node in event.nodes) or (
            relationships and any(set(link.layers) == {Layer.FOUNDATION} for link in event.relationships)
        )

    return touches
