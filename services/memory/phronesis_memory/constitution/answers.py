"""Answers that are kept for an identical question, until a write of the tenant may have changed them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from phronesis_contracts import Message, Principal

KEPT = 900.0
"""Seconds that an answer is kept at most: news may be lost while the broker is away."""
MOST = 256
"""Answers that one process keeps; each has up to 15,000 tokens."""
SETTLING = 10.0
"""Seconds after news of a write in which no answer is kept: what was written is being embedded, and not found yet."""
_Key: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True)
class Place:
    """Where an answer will be kept, and what was known when its search began."""

    key: _Key
    tenant: str
    heard: int


class Answers:
    """Keeps answers by tenant, rights, tool and arguments; the one unused for longest goes first.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[_Key, tuple[Message, float]] = OrderedDict()
        self._heard: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """By tenant: how often a write was heard of, and when last."""

    def place(self, who: Principal, tool: str, arguments: str) -> Place:
        """Where the answer to this question belongs. Callers of other rights have other places (O-324)."""
        rights = f"{who.role} {' '.join(sorted(who.scopes))}"
        return Place((who.tenant, rights, tool, arguments), who.tenant, self._news(who.tenant)[0])

    def find(self, place: Place) -> Any:
        """What is kept there, if it still holds."""
        kept = self._kept.get(place.key)
        if kept is None or kept[1] <= self._clock():
            return None
        self._kept.move_to_end(place.key)
        return kept[0]

    def keep(self, place: Place, answer: Message) -> None:
        """Keep an answer, unless a write was heard of since its search began, or shortly before."""
        heard, last = self._news(place.tenant)
        if heard != place.heard or self._clock() - last < SETTLING:
            return
        self._kept[place.key] = (answer, self._clock() + KEPT)
        self._kept.move_to_end(place.key)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def drop(self, tenant: str) -> None:
        """Forget the tenant's answers: something of its graph, or of how it is searched, has changed."""
        for key in [key for key in self._kept if key[0] == tenant]:
            del self._kept[key]
        self._heard[tenant] = (self._news(tenant)[0] + 1, self._clock())
        self._heard.move_to_end(tenant)
        while len(self._heard) > MOST:
            # Whoever is forgotten here begins at 0 again; a search that began before has another count by then.
            self._heard.popitem(last=False)

    def _news(self, tenant: str) -> tuple[int, float]:
        return self._heard.get(tenant, (0, float("-inf")))
