"""Which arm a user is in: by a hash, within the weights, whoever the users are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_instructions.releases.experiments import Standing, choose_arm, propose_arm

USERS = 10_000
SHAPES: dict[str, Callable[[int, int], str]] = {
    "numbered": lambda seed, n: f"user-{n}",
    "padded": lambda seed, n: f"u{seed}_{n:06}",
    "random ids": lambda seed, n: str(UUID(int=Random(f"{seed}/{n}").getrandbits(128), version=4)),
    "names": lambda seed, n: "".join(Random(f"{seed}-{n}").choices("abcdefghijklmnopqrstuvwxyz", k=9)),
    "hexadecimal": lambda seed, n: f"{n * 7919 + seed:x}",
}


def divided(experiment: str, users: list[str], weights: dict[str, int]) -> tuple[dict[str, str], int]:
    """The arm of each user, in order of arrival, and how many are not in the arm that the hash proposed."""
    counts: Counter[str] = Counter()
    arms, moved = {}, 0
    for user in users:
        standing = [Standing(name, weight, counts[name]) for name, weight in weights.items()]
        arm = choose_arm(experiment, "acme", user, standing)
        moved += arm != propose_arm(experiment, "acme", user, standing)
        arms[user] = arm
        counts[arm] += 1
    return arms, moved


@pytest.mark.parametrize(
    ("shape", "weights"),
    [*((shape, {"a": 50, "b": 50}) for shape in sorted(SHAPES)), ("numbered", {"a": 70, "b": 20, "c": 10})],
)
def test_ten_thousand_users_of_any_names_are_within_one_percent_of_the_weights(shape: str, weights: dict[str, int]) -> None:
    arms, _ = divided("tone", [SHAPES[shape](1, n) for n in range(USERS)], weights)
    counts = Counter(arms.values())
    shares = {name: weight / sum(weights.values()) for name, weight in weights.items()}
    assert [name for name, share in shares.items() if abs(counts[name] / USERS - share) > 0.01] == []


@given(
    weights=st.lists(st.integers(1, 1000), min_size=2, max_size=8),
    users=st.integers(1, 120),
    experiment=st.integers(),
)
@settings(deadline=None, max_examples=20)
def test_after_every_user_no_arm_is_above_its_weight_by_more_than_a_few(
    weights: list[int], users: int, experiment: int
) -> None:
    counts: Counter[str] = Counter()
    by_name = {f"arm{n}": weight for n, weight in enumerate(weights)}
    for number in range(1, users + 1):
        standing = [Standing(name, weight, counts[name]) for name, weight in by_name.items()]
        arm = choose_arm(f"e{experiment}", "acme", f"user-{number}", standing)
        counts[arm] += 1
        assert all(counts[name] - number * weight / sum(weights) <= 5 for name, weight in by_name.items())


def test_almost_everybody_is_where_the_hash_says_so_that_a_lost_record_changes_little() -> None:
    _, moved = divided("e", [SHAPES["random ids"](1, n) for n in range(USERS)], {"a": 50, "b": 50})
    assert moved < USERS * 0.03


@pytest.mark.parametrize(("experiment", "tenant", "user"), [("e", "acme", "ann"), ("e-2", "other", "ü"), ("", "", "")])
def test_the_hash_proposes_the_same_arm_each_time_and_for_each_copy(experiment: str, tenant: str, user: str) -> None:
    arms = [Standing("a", 3), Standing("b", 1)]
    first = propose_arm(experiment, tenant, user, arms)
    assert propose_arm(experiment, tenant, user, [Standing("a", 3, 900), Standing("b", 1, 7)]) == first


def test_names_that_run_into_one_another_are_told_apart() -> None:
    arms = [Standing(str(n), 1) for n in range(1000)]
    assert propose_arm("ab", "c", "d", arms) != propose_arm("a", "bc", "d", arms)


def test_two_experiments_divide_the_same_users_independently() -> None:
    users, arms = [f"user-{n}" for n in range(4000)], [Standing("a", 1), Standing("b", 1)]
    both = Counter((propose_arm("one", "acme", user, arms), propose_arm("two", "acme", user, arms)) for user in users)
    assert all(900 < count < 1100 for count in both.values())
