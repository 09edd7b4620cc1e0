"""Confidence intervals: against published figures, and against what they promise."""

from __future__ import annotations

from random import Random

import pytest

from phronesis_instructions.releases.experiments import Sample, difference_interval, mean_interval


def shares(users: int, successes: int) -> Sample:
    return Sample(users, float(successes), float(successes), True)


@pytest.mark.parametrize(
    ("successes", "users", "low", "high"),
    # R. G. Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3: the score interval
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_a_share_has_the_score_interval_of_the_published_examples(successes: int, users: int, low: float, high: float) -> None:
    found = mean_interval(shares(users, successes), 0.95, binary=True)
    assert found is not None
    assert (round(found.low, 4), round(found.high, 4), found.method) == (low, high, "Wilson score")


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    # R. G. Newcombe, Statistics in Medicine 17 (1998), 873-890, table II, method 10
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 20), 0.6791, 1.0),
    ],
)
def test_a_difference_of_shares_has_the_interval_of_the_published_examples(
    one: tuple[int, int], other: tuple[int, int], low: float, high: float
) -> None:
    found = difference_interval(shares(one[1], one[0]), shares(other[1], other[0]), 0.95, binary=True)
    assert found is not None
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_a_mean_has_its_standard_error_around_it() -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    found = mean_interval(Sample(4, sum(values), sum(value * value for value in values), False), 0.95, binary=False)
    assert found is not None
    assert (round(found.estimate, 4), round(found.low, 4), round(found.high, 4)) == (2.5, 1.2348, 3.7652)


def test_ninety_five_of_a_hundred_intervals_hold_the_true_difference() -> None:
    random, held = Random(7), 0
    for _ in range(1000):
        one, other = (shares(200, sum(random.random() < share for _ in range(200))) for share in (0.3, 0.4))
        found = difference_interval(one, other, 0.95, binary=True)
        assert found is not None
        held += found.low <= -0.1 <= found.high
    assert 925 <= held <= 975


def test_without_users_there_is_no_interval() -> None:
    nobody = Sample(0, 0.0, 0.0, True)
    assert (mean_interval(nobody, 0.95, binary=True), difference_interval(shares(5, 1), nobody, 0.95, binary=True)) == (
        None,
        None,
    )
    assert mean_interval(Sample(1, 2.5, 6.25, False), 0.95, binary=False) is None
