"""Waiting until an index knows what was written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from phronesis_contracts import Unavailable
from phronesis_memory.constitution import projection
from phronesis_memory.constitution.projection import ConstitutionVectors


async def _nothing(*_: object) -> list[str]:
    return []


def _vectors(told: list[bool]) -> ConstitutionVectors:
    """Vectors on an index that says in turn whether it was told everything; the last answer stays."""

    async def settle_all(tenant: str) -> bool:
        return told.pop(0) if len(told) > 1 else told[0]

    unused = dict.fromkeys(("nearest", "worded", "cosines", "scan", "sample", "state", "populating"))
    index = SimpleNamespace(settle_all=settle_all, **unused)
    queue, following = SimpleNamespace(hurrying=_nothing), SimpleNamespace(catch_up=_nothing)
    parts: tuple[Any, ...] = (index, None, queue, following)
    return ConstitutionVectors(*cast(Any, parts))


async def test_an_index_that_takes_a_while_is_waited_for() -> None:
    told = [False, False, True]
    await _vectors(told).settled("acme")
    assert told == [True]


@pytest.mark.req("O-308")
async def test_an_index_that_is_not_told_in_time_is_no_consistent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "_SETTLE_WAIT", 0.05)
    with pytest.raises(Unavailable):
        await _vectors([False]).settled("acme")
