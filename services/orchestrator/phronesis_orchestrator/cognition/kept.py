"""Records of tools that were asked for a moment ago."""

from __future__ import annotations

import time
from collections import OrderedDict

from phronesis_contracts import Principal

from .remembered import ToolRecord

_FRESH = 60.0
"""Seconds for which the records of a person's tools are good: they are an estimate of many calls."""
_PEOPLE = 1_000
"""People whose records are kept at most."""


class KeptRecords:
    """The records of tools that were asked for in the last minute; a flash turn has these and asks for none (V-C01, V-C02)."""

    def __init__(self) -> None:
        self._of: OrderedDict[tuple[str, str], tuple[float, tuple[ToolRecord, ...]]] = OrderedDict()

    def get(self, who: Principal) -> tuple[ToolRecord, ...] | None:
        """A person's records; `None` where there are no fresh ones."""
        kept = self._of.get((who.tenant, who.user))
        return kept[1] if kept is not None and time.monotonic() - kept[0] < _FRESH else None

    def put(self, who: Principal, records: tuple[ToolRecord, ...]) -> None:
        """Keep a person's records."""
        self._of[who.tenant, who.user] = (time.monotonic(), records)
        self._of.move_to_end((who.tenant, who.user))
        if len(self._of) > _PEOPLE:
            self._of.popitem(last=False)
