"""The table of risks: what is at stake in a call, by its tool and, where that says more, by one of its arguments (V-067)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from phronesis_contracts import Risk
from phronesis_contracts.catalog import TOOLS

SAFE_READONLY = frozenset({"memory_query"})
"""Tools that read the caller's own memory alone: no narrowing of an agent's tools removes them (V-058)."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Raises:
        ValueError: a reading call is said to be irreversible.
    """

    tool: str
    risk: Risk
    irreversible: bool = False
    action: str = ""
    """What the call does, where one of the tool's arguments decides that."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Arguments and the very values that make it this line; every call of the tool where it is empty."""

    def __post_init__(self) -> None:
        if self.risk is Risk.READ and self.irreversible:
            raise ValueError(f"{self.tool}: what only reads changes nothing")

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments is this line's: the values have to be equal, and of one type."""
        return all(name in arguments and _same(arguments[name], value) for name, value in self.where.items())


Table = Mapping[str, tuple[Row, ...]]
"""The lines of each tool: the first one that fits a call counts."""


def table_of(rows: Iterable[Row]) -> Table:
    """Rows by tool, those that name arguments first."""
    ordered = sorted(rows, key=lambda row: (row.tool, not row.where))
    found: dict[str, tuple[Row, ...]] = {}
    for row in ordered:
        found[row.tool] = (*found.get(row.tool, ()), row)
    return found


def scoped(tools: Iterable[str], wanted: Iterable[str]) -> tuple[str, ...]:
    """An agent's tools narrowed to those that are wanted for a message, in the agent's order; what is safe stays (V-058)."""
    kept = frozenset(wanted) | SAFE_READONLY
    return tuple(name for name in tools if name in kept)


def _same(given: Any, value: Any) -> bool:
    # True equals 1 in Python; a number is no flag here.
    return type(given) is type(value) and bool(given == value)


ROWS: tuple[Row, ...] = (
    *(Row(tool.name, tool.risk, tool.irreversible) for tool in TOOLS.values() if tool.name not in SAFE_READONLY),
    *(Row(name, Risk.READ) for name in SAFE_READONLY),
    # The owner holds a statement that is said to read to that; whatever else it is may change or remove anything.
    Row("query_graph", Risk.READ, action="read", where={"read_only": True}),
    Row("backup.restore.v1", Risk.READ, action="list", where={"operation": "list"}),
    Row("backup.restore.v1", Risk.READ, action="verify", where={"operation": "verify"}),
    Row("backup.restore.v1", Risk.LOW, action="backup", where={"operation": "backup"}),
    Row("backup.restore.v1", Risk.HIGH, irreversible=True, action="restore", where={"operation": "restore"}),
    Row("retrieval.tuning.v1", Risk.READ, action="tell", where={"values": {}}),
)
TABLE: Table = table_of(ROWS)
