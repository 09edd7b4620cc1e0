"""Reading by query: what reading statements need of a guard and of a store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Found:
    """What a statement returned, as JSON has it."""

    rows: tuple[dict[str, Any], ...]
    truncated: bool


class Allowed(Protocol):
    """A statement that may be run."""

    @property
    def statement(self) -> str:
        """The text to run: the caller's, with the tenant in it."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Its parameters."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could be written better."""

    @property
    def dangerous(self) -> str | None:
        """Why a change has to be confirmed first; `None` where it has not."""


class Check(Protocol):
    """Decides whether a statement may be run; it takes some milliseconds of thinking."""

    def __call__(self, statement: str, parameters: Mapping[str, Any], tenant: str) -> Allowed:
        """The statement as it may be run.

        Raises:
            QueryRefused: it may not.
        """


class Queries(Protocol):
    """A store that runs statements."""

    async def ready(self) -> None:
        """Return when the store has been there.

        Raises:
            Unavailable: it has not come yet.
        """

    async def read(self, tenant: str, statement: str, parameters: Mapping[str, Any], most: int) -> Found:
        """Run a reading statement once, as a user who can only read.

        Raises:
            QueryRefused: the store does not take it; the detail helps to repair it.
            TimedOut: it took too long.
            TooLarge: a single row is larger than an answer may be.
            Busy: too many run already.
            Unavailable: the store is down.
        """


_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?")
_LONGEST = 500


def blanked(statement: str) -> str:
    """A statement for a log: without its literal texts, which may be anybody's words, and cut."""
    return _LITERAL.sub("'…'", statement)[:_LONGEST]
