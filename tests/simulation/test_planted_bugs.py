"""Bugs that are planted in the turn core, one at a time: each is found within the number of seeds that stands beside it."""

from __future__ import annotations

import pytest

from .bugs import BUGS
from .seeds import run_batch


@pytest.mark.verify
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    with bug.plant():
        found = next((outcome for seed in range(bug.seeds) for outcome in run_batch([seed]) if outcome.violation), None)
    assert found is not None, f"{bug.what} It was not found in {bug.seeds} seeds."


def test_there_is_a_bug_for_each_place_that_matters() -> None:
    assert len(BUGS) >= 12
    assert all(bug.what and bug.seeds <= 400 for bug in BUGS.values())


@pytest.mark.parametrize("name", ["claim_out_of_order", "journal_not_looked_up", "outbox_emptied_before_sending"])
def test_a_bug_that_shows_often_is_found_at_once(name: str) -> None:
    with BUGS[name].plant():
        assert any(outcome.violation for outcome in run_batch(range(20)))
