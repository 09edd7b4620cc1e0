"""How nodes, chains and figures are put into words, each node with its id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from phronesis_contracts.constitution.paths import Step

_LEADS = {
    "SERVES": ("serves", "is served by"),
    "ALIGNS_WITH": ("aligns with", "is what it is aligned with by"),
    "SUPPORTED_BY": ("rests on", "supports"),
    "ENFORCED_BY": ("is enforced by", "enforces"),
    "PART_OF": ("is part of", "contains"),
    "LEADS_TO": ("led to", "came of"),
    "MEASURES": ("measures", "is measured by"),
    "THREATENS": ("threatens", "is threatened by"),
    "CONTRADICTS": ("contradicts", "contradicts"),
}
"""What a relationship says, along it and against it."""
_SHOWN = 8
"""Rows of a list that are told; it says how many more there are."""


class Titled(Protocol):
    """Whatever has an id and a title."""

    @property
    def id(self) -> str:
        """The node's id."""
        ...

    @property
    def title(self) -> str:
        """Its title."""
        ...


def cite(node: Titled) -> str:
    """A node by its title and its id."""
    return f"{node.title} [{node.id}]"


def joined(parts: Sequence[str]) -> str:
    """Parts as a sentence lists them."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def chain(path: Sequence[Step]) -> str:
    """A path as one sentence, from where it begins."""
    said = [f"{path[0].title} [{path[0].node_id}]"] if path else []
    for step in path[1:]:
        name = step.relationship or ""
        along, against = _LEADS.get(name, (f"leads by {name} to", f"is reached by {name} from"))
        said.append(f"{against if step.direction == 'in' else along} {step.title} [{step.node_id}]")
    return f"{said[0]} {', which '.join(said[1:])}." if len(said) > 1 else "".join(said)


def listed(rows: Iterable[str]) -> str:
    """Rows as a list; those that are left out are counted."""
    all_rows = list(rows)
    more = len(all_rows) - _SHOWN
    return "\n".join([*(f"- {row}" for row in all_rows[:_SHOWN]), *([f"- and {more} more"] if more > 0 else [])])


def hours(value: float) -> str:
    """Hours as people write them."""
    return f"{value:.1f}".rstrip("0").rstrip(".") + (" hour" if value == 1 else " hours")


def paragraphs(*parts: str) -> str:
    """The parts that there are, with a line between them."""
    return "\n\n".join(part for part in parts if part)
