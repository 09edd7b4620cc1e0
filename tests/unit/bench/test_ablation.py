"""Tasks in a made-up world that fails, stalls and lies: what each part of the loop is worth, judged by the world alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.ablation import ARMS, Arm, Ran, at_equal_cost, cost, differences, interval, row, run, verdict, worked
from bench.ablation_world import SOURCES, SUBJECTS, Trouble, World

ALL, NO_PREFLIGHT, NO_STRATEGIES, NO_REPLANNING, NONE = ARMS
ROUNDS = 3
"""Tasks of each subject: 72 in an arm."""


async def met(arm: Arm, world: World) -> int:
    """Tasks that succeeded, of 72."""
    return sum(one.met for one in await worked(arm, world, ROUNDS))


@pytest.mark.verify
@pytest.mark.req("V-003", "V-006")
async def test_each_of_the_three_raises_the_success_of_the_same_tasks() -> None:
    whole, *less, none = [await met(arm, World(8)) for arm in ARMS]
    assert [none < count < whole for count in less] == [True, True, True]


@pytest.mark.verify
async def test_a_run_can_be_had_again_figure_for_figure() -> None:
    assert await worked(ALL, World(5), 1) == await worked(ALL, World(5), 1)


@pytest.mark.verify
async def test_where_tools_lie_a_look_ahead_has_the_lie_found() -> None:
    world = World(1, 1.0, (Trouble.LIES,))
    assert await met(ALL, world) > await met(NO_PREFLIGHT, replace(world))


@pytest.mark.verify
async def test_where_tools_fail_or_stall_a_new_plan_goes_round_them() -> None:
    world = World(1, 1.0, (Trouble.FAILS, Trouble.STALLS))
    alone = replace(NONE, replanning=True)
    assert await met(alone, world) > await met(NONE, replace(world))


@pytest.mark.verify
async def test_strategies_save_steps_on_the_tasks_after_the_first_of_their_kind() -> None:
    with_them, without = [await worked(arm, World(1, 0.0), ROUNDS) for arm in (ALL, NO_STRATEGIES)]
    first, later = slice(0, len(SUBJECTS)), slice(len(SUBJECTS), None)
    assert [one.steps for one in with_them[first]] == [one.steps for one in without[first]]
    assert sum(one.steps for one in with_them[later]) < sum(one.steps for one in without[later])


def test_a_world_is_the_same_for_its_seed_in_whatever_order_it_is_asked() -> None:
    one, other = World(3), World(3)
    asked = [(source, subject) for source in SOURCES for subject in SUBJECTS]
    assert [one.trouble(*of) for of in asked] == [other.trouble(*of) for of in reversed(asked)][::-1]


def test_of_a_subject_at_most_one_tool_is_in_trouble_and_it_is_one_that_knows_it() -> None:
    world = World(3, 1.0)
    for subject in SUBJECTS:
        [troubled] = [source for source in SOURCES if world.trouble(source, subject)]
        assert troubled in world.knowing(subject)


def test_a_document_with_one_false_figure_is_no_success() -> None:
    world = World(3)
    job = world.jobs(1)[0]
    true = [f"{thing} = {world.figure(thing)}" for thing in job.things]
    texts = ["\n".join(true), "\n".join([*true[:3], f"{job.things[3]} = 1"]), "\n".join(true[:3])]
    assert [replace(world, saved=[text]).met(job) for text in texts] == [True, False, False]


SOME = {1: [Ran(True, 4, 3, False)] * 8 + [Ran(False, 9, 4, True)] * 2, 2: [Ran(True, 4, 3, False)] * 10}
"""Tasks of two worlds."""


@pytest.mark.verify
def test_further_readings_raise_the_cost_and_stay_within_what_is_allowed() -> None:
    room = cost(run(ALL, [7], 1))
    same = at_equal_cost(NONE, [7], 1, room)
    plain, equal = cost(run(NONE, [7], 1)), cost(run(same, [7], 1))
    assert same.further > 0
    assert plain < equal <= room


def test_an_arms_line_has_its_share_its_cost_and_how_far_it_is_from_all_three() -> None:
    whole = {seed: [Ran(True, 8, 6, True)] * 10 for seed in SOME}
    line = row(replace(NONE, further=1.5), SOME, whole)
    assert line.startswith("| none of them | 1.5 | 90.0% | ")
    assert "| 4.5 | 3.1 | 7.6 | 10% | +10.0 points |" in line
    assert row(ALL, whole, whole).endswith("| 8.0 | 6.0 | 14.0 | 100% | - | - |")


def test_differences_are_those_of_the_same_task() -> None:
    one, other = {1: [Ran(True, 1, 1, False), Ran(False, 1, 1, False)]}, {1: [Ran(False, 1, 1, False), Ran(True, 1, 1, False)]}
    assert differences(one, other) == {1: [1.0, -1.0]}


def test_the_interval_of_worlds_that_differ_is_wider_than_that_of_worlds_that_are_alike() -> None:
    low, high = interval({1: [0.0, 1.0] * 20, 2: [0.0, 1.0] * 20})
    least, most = interval({1: [0.0] * 40, 2: [1.0] * 40})
    assert least < low < 0.5 < high < most


def test_a_part_pays_only_where_the_interval_says_so() -> None:
    good, bad = {1: [Ran(True, 1, 1, False)] * 9}, {1: [Ran(False, 1, 1, False)] * 9}
    assert "What it lacks pays." in verdict(NONE, good, bad)
    assert "does not pay" in verdict(NONE, bad, good)
    assert "not shown" in verdict(NONE, good, good)
