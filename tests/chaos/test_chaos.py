"""The short chaos runs: four kills, twenty with every part of the stack and every moment among them, and cut event streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from .cuts import cut_streams
from .gates import POINTS, RETRIEVAL
from .kills import Kill, plan
from .run import run

FOUR = (
    Kill("orchestrator", POINTS[0], "after"),
    Kill("memory", RETRIEVAL, "during"),
    Kill("nats", POINTS[-1], "before"),
    Kill("postgres", RETRIEVAL, "during"),
)


@pytest.mark.timeout(300)
@pytest.mark.req("D-122", "D-123")
async def test_four_kills_lose_no_accepted_turn_and_double_nothing(tmp_path: Path) -> None:
    """A service at a durable step and while it works, and two of the servers below all of them."""
    outcome = await run(tmp_path / "data", FOUR, seed=29)
    assert [(kill.victim, kill.when) for kill in outcome.kills] == [(kill.victim, kill.when) for kill in FOUR]
    assert outcome.found.accepted >= 8
    assert outcome.found.kept, outcome.found


@pytest.mark.verify
@pytest.mark.timeout(420)
@pytest.mark.req("D-122", "D-123")
async def test_twenty_kills_lose_no_accepted_turn_and_double_nothing(tmp_path: Path) -> None:
    """Every accepted turn ends once, with one reply; no write of ours and no journalled call is made twice."""
    outcome = await run(tmp_path / "data", plan(20, seed=23), seed=23, purge_at=10)
    assert len(outcome.kills) == 20
    assert outcome.found.accepted >= 40
    assert outcome.found.kept, outcome.found


@pytest.mark.verify
@pytest.mark.timeout(240)
async def test_forty_cut_event_streams_give_their_readers_every_event_once(tmp_path: Path) -> None:
    """Whoever comes back with the id of the last event reads on behind it, to the end, also after the gateway was killed."""
    watched = await cut_streams(tmp_path / "data", 40, seed=7)
    assert watched.made >= 40
    assert watched.events > 0
    assert watched.kept, watched
