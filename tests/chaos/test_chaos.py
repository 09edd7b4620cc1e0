"""The short chaos runs: two kills, ten more with one of each part, and cut event streams. `make chaos` kills on for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cuts import cut_streams
from .gates import POINTS, RETRIEVAL
from .kills import EVERY, Kill, plan
from .run import run

TWO = (Kill("orchestrator", POINTS[0], "after"), Kill("postgres", RETRIEVAL, "during"))

OF_EACH = 2812
"""A seed whose first ten kills are one of each service and server."""


@pytest.mark.timeout(300)
@pytest.mark.req("D-122", "D-123")
async def test_two_kills_lose_no_accepted_turn_and_double_nothing(tmp_path: Path) -> None:
    """A service at a durable step, and one of the servers below all of them."""
    outcome = await run(tmp_path / "data", TWO, seed=29)
    assert [(kill.victim, kill.when) for kill in outcome.kills] == [(kill.victim, kill.when) for kill in TWO]
    assert outcome.found.accepted >= 4
    assert outcome.found.kept, outcome.found


@pytest.mark.verify
@pytest.mark.timeout(420)
@pytest.mark.req("D-122", "D-123")
async def test_ten_kills_lose_no_accepted_turn_and_double_nothing(tmp_path: Path) -> None:
    """Every accepted turn ends once, with one reply; no write of ours and no journalled call is made twice."""
    outcome = await run(tmp_path / "data", plan(10, seed=OF_EACH), seed=23, purge_at=5)
    assert len(outcome.kills) == 10
    assert {kill.victim for kill in outcome.kills} == {kill.victim for kill in EVERY}
    assert outcome.found.accepted >= 20
    assert outcome.found.kept, outcome.found


@pytest.mark.verify
@pytest.mark.timeout(240)
async def test_forty_cut_event_streams_give_their_readers_every_event_once(tmp_path: Path) -> None:
    """Whoever comes back with the id of the last event reads on behind it, to the end, also after the gateway was killed."""
    watched = await cut_streams(tmp_path / "data", 40, seed=7)
    assert watched.made >= 40
    assert watched.events > 0
    assert watched.kept, watched
