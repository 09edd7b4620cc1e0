"""The rules of each tenant, read once and kept until one of them is written."""

from __future__ import annotations

import time

from phronesis_bus import News
from phronesis_contracts.constitution.writes import ConstitutionChanged

from .guardrails import RULES, Rule, rule
from .ports import ConstitutionRules

_TENANTS = 256
"""Tenants whose rules are kept at most."""
_SECONDS = 60.0
"""For which they are kept: news that drops them may be missed while the broker is away."""


class Ruling:
    """Rules by tenant.

    Args:
        source: where they are read.
    """

    def __init__(self, source: ConstitutionRules) -> None:
        self._source = source
        self._kept: dict[str, tuple[float, tuple[Rule, ...]]] = {}
        self._dropped = 0

    async def of(self, tenant: str) -> tuple[Rule, ...]:
        """The rules of a tenant.

        Raises:
            Unavailable: the store is down.
        """
        kept = self._kept.get(tenant)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        dropped = self._dropped
        found = tuple(one for node in await self._source.read(tenant) if (one := rule(node)) is not None)
        if dropped == self._dropped:  # otherwise a rule may have been written since it was read
            self._kept.pop(tenant, None)
            while len(self._kept) >= _TENANTS:
                del self._kept[next(iter(self._kept))]
            self._kept[tenant] = (time.monotonic() + _SECONDS, found)
        return found

    def drop(self, tenant: str) -> None:
        """Forget a tenant's rules: one of them was written."""
        self._dropped += 1
        self._kept.pop(tenant, None)

    def drop_all(self) -> None:
        """Forget everything: news may have been missed."""
        self._dropped += 1
        self._kept.clear()

    async def on_constitution_changed(self, news: News, event: ConstitutionChanged) -> None:
        """Forget the rules of a tenant one of whose rules was written, by whatever process."""
        if any(node.type in RULES for node in event.nodes):
            self.drop(news.tenant)
