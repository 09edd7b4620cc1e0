"""Tasks in a made-up world that fails, stalls and lies: what each part of the loop is worth, judged by the world alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.ablation import ARMS, Arm, Ran, row, worked
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


def test_an_arms_line_has_its_share_with_wilsons_interval_and_its_steps() -> None:
    ran = [Ran(True, 4, 3, False)] * 8 + [Ran(False, 9, 4, True)] * 2
    assert row("some", ran) == "| some | 80% | 49% to 94% | 5.0 | 6.2 | 3.2 | 20% |"
