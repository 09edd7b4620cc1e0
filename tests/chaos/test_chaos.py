"""The short chaos runs: two kills, ten with one of each part, outages, and cut event streams. `make chaos` goes on for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.production import GRAPH

from .cuts import cut_streams
from .gates import POINTS, RETRIEVAL
from .kills import EVERY, Kill, plan
from .outages import planned, weather
from .run import run

TWO = (Kill("orchestrator", POINTS[0], "after"), Kill("postgres", RETRIEVAL, "during"))

OF_EACH = 17_886
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
@pytest.mark.timeout(300)
async def test_turns_that_meet_a_graph_which_is_away_are_completed_when_it_is_back(tmp_path: Path) -> None:
    """They ask an analyst, who answers from the twin alone: some of them had to wait for it."""
    result = await weather(tmp_path / "data", [GRAPH], [], turns=8, away=8, seed=5, agents=("noor",), early=0.0)
    assert (result.outages[GRAPH], result.found.accepted) == (1, 8)
    assert result.retried > 0
    assert result.kept, result


@pytest.mark.verify
@pytest.mark.timeout(900)
async def test_outages_of_every_store_with_kills_among_them_end_no_accepted_turn(tmp_path: Path) -> None:
    result = await weather(tmp_path / "data", *planned(kills=4, outages=1, seed=3), turns=40, away=20, seed=3)
    assert result.found.accepted >= 40
    assert result.kept, result


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
