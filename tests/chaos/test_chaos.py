"""The short chaos run: twenty kills, every part of the stack among them, and the promise is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from .run import run


@pytest.mark.timeout(420)
@pytest.mark.req("D-122", "D-123")
async def test_twenty_kills_lose_no_accepted_turn_and_double_nothing(tmp_path: Path) -> None:
    """Every accepted turn ends once, with one reply; no write of ours and no journalled call is made twice."""
    outcome = await run(tmp_path / "data", 20, seed=7, purge_at=10, say=True)
    assert len(outcome.kills) == 20
    assert outcome.found.accepted >= 40
    assert outcome.found.kept, outcome.found
