"""When a node is embedded, and when again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from phronesis_contracts.constitution.maintenance import EmbeddingState
from phronesis_contracts.constitution.registry import TYPES, Tier
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_memory.constitution.nodes import (
    KnownRecord,
    NodeSnapshot,
    RecordState,
    VectorRefused,
    check_vector,
    decide_state,
    is_older,
    snapshot_of,
    state_after_failure,
)
from phronesis_memory.constitution.queue import DRIFT_MONTHLY, DRIFT_WEEKLY, NIGHTLY, WEEKLY, select_runs

NOW = datetime(2026, 1, 7, 12, 0, tzinfo=UTC)
CURRENT, PENDING, FAILED, SKIPPED = EmbeddingState


def facts(type: str, title: str = "T") -> NodeSnapshot:
    node = {"id": "n", "type": type, "layer": TYPES[type].layer, "title": title, "version": 2, "createdAt": NOW}
    return snapshot_of(ConstitutionNode.model_validate(node))


def known(of: NodeSnapshot, state: EmbeddingState = CURRENT, due: datetime | None = None, embedded: bool = True) -> KnownRecord:
    return KnownRecord(of.born, of.version, of.text_hash, state, due, 0, None, of.text_hash if embedded else None)


@pytest.mark.req("O-293", "O-294", "O-295", "O-308", "C-74", "C-75")
@pytest.mark.parametrize("type", ["value", "principle", "goal", "strategy", "decision", "insight", "pattern", "policy"])
def test_the_first_three_tiers_are_embedded_at_once(type: str) -> None:
    assert decide_state(facts(type), None, NOW) == RecordState(PENDING, NOW)


@pytest.mark.req("O-296", "O-297", "C-17", "C-74", "C-75")
@pytest.mark.parametrize("type", ["task", "risk", "project", "note", "evidence", "signal"])
def test_the_others_wait_for_their_run_unless_they_are_called(type: str) -> None:
    assert decide_state(facts(type), None, NOW) == RecordState(PENDING, None)
    assert decide_state(facts(type), None, NOW, at_once=True) == RecordState(PENDING, NOW)


@pytest.mark.req("O-311", "O-321")
def test_a_node_that_failed_waits_for_its_next_try_unless_it_is_called() -> None:
    one, later = facts("goal"), NOW + timedelta(seconds=60)
    failed = replace(known(one), state=FAILED, due=later, attempts=4, embedded_hash=None)
    assert decide_state(one, failed, NOW) == RecordState(FAILED, later, 4)
    assert decide_state(one, failed, NOW, at_once=True) == RecordState(PENDING, NOW)


@pytest.mark.req("O-312", "O-315", "O-421")
def test_what_says_the_same_is_not_embedded_again() -> None:
    one = facts("goal")
    assert decide_state(one, known(one), NOW) == RecordState(CURRENT)


@pytest.mark.req("O-313", "C-74")
def test_unless_that_is_forced() -> None:
    one = facts("note")
    assert decide_state(one, known(one), NOW, force=True) == RecordState(PENDING, NOW)


def test_a_text_that_is_what_it_was_when_it_was_embedded_is_current_again() -> None:
    was, between = facts("goal"), facts("goal", "Other")
    assert decide_state(was, replace(known(between, PENDING, NOW), embedded_hash=was.text_hash), NOW) == RecordState(CURRENT)


def test_what_waits_already_goes_on_waiting_for_the_same() -> None:
    one, due = facts("goal"), NOW + timedelta(seconds=2)
    waits = replace(known(one, PENDING, due, embedded=False), attempts=2, problem="p")
    assert decide_state(one, waits, NOW) == RecordState(PENDING, due, 2, "p")


@pytest.mark.req("O-302")
def test_what_has_no_text_is_skipped() -> None:
    assert decide_state(facts("note", " "), None, NOW) == RecordState(SKIPPED)


@pytest.mark.req("O-317")
def test_an_older_state_of_a_node_is_told_from_a_node_that_is_born_again() -> None:
    one = facts("goal")
    assert not is_older(one, None)
    assert not is_older(one, known(one))
    assert is_older(replace(one, version=1), known(one))
    assert not is_older(replace(one, version=1, born=NOW + timedelta(days=1)), known(one))


@pytest.mark.req("O-309", "O-422", "C-81")
def test_three_retries_wait_about_one_two_and_four_seconds() -> None:
    for attempts, seconds in ((1, 1), (2, 2), (3, 4)):
        standing = state_after_failure(attempts, "down", NOW, for_good=False)
        assert standing.state is PENDING
        assert standing.due is not None
        assert 0.75 * seconds <= (standing.due - NOW).total_seconds() <= 1.25 * seconds
    assert state_after_failure(4, "down", NOW, for_good=False) == RecordState(FAILED, NOW + timedelta(seconds=60), 4, "down")


@pytest.mark.req("O-309")
def test_what_is_refused_for_good_is_not_tried_again_before_the_sweep() -> None:
    assert state_after_failure(1, "key", NOW, for_good=True) == RecordState(FAILED, NOW + timedelta(seconds=60), 1, "key")


@pytest.mark.req("O-090", "O-360")
@pytest.mark.parametrize("numbers", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 0.0], [1.0], [1.0, 0.0, 0.0]])
def test_a_vector_that_cannot_be_searched_by_is_refused(numbers: list[float]) -> None:
    with pytest.raises(VectorRefused):
        check_vector(np.array(numbers, np.float32), 2)


@pytest.mark.req("O-318", "O-319")
def test_the_runs_come_at_their_times() -> None:
    at = {run.name: run.after(NOW) for run in select_runs(drift=True)}
    assert at == {
        "nightly": datetime(2026, 1, 8, 2, tzinfo=UTC),
        "weekly": datetime(2026, 1, 11, 3, tzinfo=UTC),
        "drift weekly": datetime(2026, 1, 11, 4, tzinfo=UTC),
        "drift monthly": datetime(2026, 2, 1, 5, tzinfo=UTC),
    }
    assert NIGHTLY.after(datetime(2026, 1, 8, 2, tzinfo=UTC)) == datetime(2026, 1, 9, 2, tzinfo=UTC)


@pytest.mark.req("O-319", "C-82")
def test_every_tier_has_its_runs_and_the_look_for_drift_can_be_switched_off() -> None:
    assert (NIGHTLY.tiers, WEEKLY.tiers) == ((Tier.P3,), (Tier.P4,))
    assert (DRIFT_WEEKLY.tiers, DRIFT_MONTHLY.tiers) == ((Tier.P0, Tier.P1), (Tier.P2, Tier.P3, Tier.P4))
    assert select_runs(drift=False) == (NIGHTLY, WEEKLY)
