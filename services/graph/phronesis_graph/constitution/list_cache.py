"""Whole layers as they were told, until a write touches them (O-322, O-323)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from phronesis_contracts import Message
from phronesis_contracts.constitution.writes import ConstitutionChanged

Told = TypeVar("Told", bound=Message)
Touches = Callable[[ConstitutionChanged], bool]
"""Whether a change may make an answer another one."""

SECONDS = 600.0
"""How long an answer is kept at most, in case the news of a change is lost (C-83)."""
SIZE = 128
"""How many answers are kept; each is at most as large as an answer may be."""


@dataclass
class _Kept:
    told: Any
    touches: Touches
    until: float


@dataclass
class _Making:
    tenant: str
    overtaken: bool = False
    """Whether news came while it was made: it may be older than the change."""


class Kept:
    """Answers by tenant and question.

    Args:
        seconds: how long one is kept at most.
        size: how many are kept; the one unused for longest goes first.
        clock: seconds that only grow.
    """

    def __init__(self, seconds: float = SECONDS, size: int = SIZE, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str, str], _Kept] = OrderedDict()
        self._making: list[_Making] = []

    async def of(
        self, tenant: str, question: Message, make: Callable[[], Awaitable[tuple[Told, Touches]]]
    ) -> tuple[Told, bool]:
        """The answer, and whether it was kept; `make` makes it where it was not. Raises what `make` raises."""
        key = (tenant, type(question).__name__, question.model_dump_json())
        kept = self._kept.get(key)
        if kept is not None and kept.until > self._clock():
            self._kept.move_to_end(key)
            return kept.told, True
        making = _Making(tenant)
        self._making.append(making)
        try:
            told, touches = await make()
        finally:
            self._making.remove(making)
        if not making.overtaken:
            self._kept[key] = _Kept(told, touches, self._clock() + self._seconds)
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return told, False

    def changed(self, tenant: str, event: ConstitutionChanged) -> None:
        """Drop what a change of a tenant's graph touches, and keep nothing that is being made for it at this moment."""
        for making in self._making:
            making.overtaken |= making.tenant == tenant
        for key in [key for key, kept in self._kept.items() if key[0] == tenant and kept.touches(event)]:
            del self._kept[key]

    def clear(self) -> None:
        """Drop everything: news may have been missed."""
        for making in self._making:
            making.overtaken = True
        self._kept.clear()
