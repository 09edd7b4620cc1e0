"""What may be done with a tool call, by rules alone: the table decides, and no text does.

A model's words, media, memories and what tools gave reach these rules as nothing but the arguments of a call, and a line of
the table is chosen by exact values of typed arguments. So no text can raise what is allowed. The one thing that can is a
person's approval of the very call, which is kept elsewhere (`waiting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from phronesis_contracts import Risk

from .table import TABLE, Row, Table


class Ruling(StrEnum):
    """What becomes of a call."""

    ALLOW = "allow"
    ASK = "ask"
    """A person has to allow it first."""
    REFUSE = "refuse"


@dataclass(frozen=True)
class Verdict:
    """The ruling on one call, and what it rests on."""

    ruling: Ruling
    tool: str
    action: str
    risk: Risk
    irreversible: bool

    @property
    def recorded(self) -> bool:
        """Whether the call is entered in the audit trail before it is made."""
        return self.risk >= Risk.MEDIUM

    @property
    def reason(self) -> str:
        """The risk as a person and a model are told it (V-069)."""
        what = " ".join(filter(None, (self.tool, self.action)))
        if self.ruling is Ruling.REFUSE:
            return f"{self.risk.name} — {what} is in no table of risks"
        if self.irreversible:
            return f"{self.risk.name} — {what} is irreversible"
        if self.ruling is Ruling.ASK:
            return f"{self.risk.name} — {what} needs a person's approval"
        return f"{self.risk.name} — {what}"


def judge(tool: str, arguments: Mapping[str, Any], table: Table = TABLE) -> Verdict:
    """The ruling on a call: reading and low risk run, medium runs and is recorded, high and irreversible need a person.

    Args:
        tool: its name in the catalog.
        arguments: as they were checked against the tool's input.
        table: the risks; a tool, or an action, that has no line in it is taken for the worst and refused (V-071).
    """
    row = next((row for row in table.get(tool, ()) if row.fits(arguments)), None)
    if row is None:
        return Verdict(Ruling.REFUSE, tool, "", Risk.HIGH, irreversible=True)
    return Verdict(_ruling(row), tool, row.action, row.risk, row.irreversible)


def _ruling(row: Row) -> Ruling:
    return Ruling.ASK if row.irreversible or row.risk >= Risk.HIGH else Ruling.ALLOW


def named(said: str, names: Iterable[str]) -> bool:
    """Whether a person named something in this very message.

    Args:
        said: the text of the message as the person sent it; never what was read from media, memory or a tool.
        names: what it is called.
    """
    words = said.casefold()
    return any(name.casefold() in words for name in names)
