"""The start of a session: three parts side by side, what is kept of them, and what happens when one cannot be had."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest

import phronesis_tokens as tokens
from phronesis_bus import Call, News
from phronesis_contracts import TimedOut, Unavailable
from phronesis_contracts.constitution.lists import (
    LIST_FOUNDATION,
    LIST_VISION,
    LISTS,
    FoundationListed,
    LayerListed,
    ListFoundation,
    ListLayer,
    ListVision,
    VisionNode,
)
from phronesis_contracts.constitution.paths import DUE_WORK, DueWork
from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_contracts.constitution.session import SessionStarted, StartSession
from phronesis_contracts.constitution.values import READERS, ConstitutionNode, ListStats
from phronesis_contracts.constitution.writes import ConstitutionChanged, NodeNews, Operation
from phronesis_orchestrator.metrics import STARTS
from phronesis_orchestrator.sessions import start as start_module
from tests.support.logs import logged
from tests.support.personas import Persona
from tests.unit.orchestrator.sessions.fakes import DUE, FOUNDATION, VISION, Clock, Diary, Owners, Stage, at, caller

THREE = (LIST_FOUNDATION, LIST_VISION, DUE_WORK)
V1 = {layer: LISTS[layer].rpc for layer in (Layer.FOUNDATION, Layer.VISION)}


async def start(stage: Stage, call: Call | None = None, **request: Any) -> SessionStarted:
    return await stage.sessions.start(call or caller(), StartSession(**request))


async def tell(stage: Stage, tenant: str, *news: NodeNews) -> None:
    await stage.sessions.on_constitution_changed(News(tenant, "n", 1), ConstitutionChanged(nodes=news))


def wrote(id: str, type: str, layer: Layer, operation: Operation = Operation.UPDATE, *changed: str) -> NodeNews:
    return NodeNews(id=id, type=type, layer=layer, operation=operation, version=2, changed=changed)


@pytest.mark.req("O-006", "O-007", "O-237", "O-239", "O-240", "O-241", "O-330")
async def test_a_session_begins_with_three_questions_and_their_stated_arguments() -> None:
    stage, who = Stage(), caller()
    stage.give_calendar(who)
    await start(stage, who)
    heavy = ("properties", "metadata", "embedding", "provenance")
    assert sorted(stage.owners.asked, key=lambda asked: asked[0]) == sorted(
        [
            (DUE_WORK.subject, DueWork(start_date="2026-11-23", end_date="2026-11-30T00:00:00Z", limit=0)),
            (
                LIST_FOUNDATION.subject,
                ListFoundation(exclude_fields=heavy, include_relationships=True, status=Lifecycle.ACTIVE),
            ),
            (
                LIST_VISION.subject,
                ListVision(exclude_fields=(*heavy, "description"), include_hierarchy=True, status=Lifecycle.ACTIVE),
            ),
        ],
        key=lambda asked: asked[0],
    )
    assert stage.owners.callers == [who.who] * 3
    assert [form for form, _ in stage.diary.read_forms] == ["ics"]


@pytest.mark.req("O-238", "O-433", "C-56")
async def test_the_three_parts_are_loaded_side_by_side() -> None:
    stage = Stage(owners=Owners(delay=1.0), diary=Diary(delay=1.0))
    who = caller()
    stage.give_calendar(who)
    began = time.monotonic()
    found = await start(stage, who)
    assert (found.warnings, 1.0 <= time.monotonic() - began < 2.0) == ((), True)


@pytest.mark.req("O-006", "O-007", "O-242", "O-243", "O-244", "O-245", "O-434", "C-57", "C-59")
async def test_the_context_is_whole_and_its_tokens_are_those_that_are_sent() -> None:
    stage, who = Stage(diary=Diary((at(1, 9, 4),))), caller()
    stage.give_calendar(who)
    found = await start(stage, who, session_id="s1")
    assert (found.session_id, found.foundation, found.foundation_relationships, found.vision) == (
        *("s1", FOUNDATION.items, FOUNDATION.relationships, VISION.items),
    )
    assert found.workload is not None
    assert (found.workload.capacity.scheduled_hours, found.workload.calendar.total_hours) == (24.0, 4.0)
    sent = found.model_dump(mode="json")
    assert (found.stats.total_nodes, found.stats.foundation_tokens, found.stats.vision_tokens) == (
        3,
        _tokens(sent["foundation"]) + _tokens(sent["foundationRelationships"]),
        _tokens(sent["vision"]) + _tokens([]),
    )
    assert found.stats.workload_tokens == 2_000 > found.workload.token_estimate > 0
    assert found.stats.total_tokens == found.stats.foundation_tokens + found.stats.vision_tokens + 2_000
    assert (found.warnings, found.left_out, found.stats.cached) == ((), (), ())


def _tokens(value: object) -> int:
    import json

    return tokens.count(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


@pytest.mark.req("O-244", "C-58")
async def test_the_load_s_time_is_measured_from_its_beginning() -> None:
    ticks = iter([10.0, 10.0, 10.0, 10.25] + [10.25] * 20)
    stage = Stage(seconds=lambda: next(ticks))
    assert (await start(stage)).stats.load_time == 250.0


@pytest.mark.req("O-008", "O-251", "O-330")
async def test_nothing_of_the_other_layers_is_asked_for_or_told() -> None:
    stage = Stage()
    found = await start(stage)
    assert {subject for subject, _ in stage.owners.asked} == {rpc.subject for rpc in THREE}
    assert {node.layer for node in (*found.foundation, *found.vision)} == {Layer.FOUNDATION, Layer.VISION}


@pytest.mark.req("O-252")
@pytest.mark.parametrize("role", [Persona.ADMIN, *sorted(map(Persona, READERS))])
async def test_every_agent_may_begin_a_session(role: Persona) -> None:
    found = await start(Stage(), caller(role))
    assert (found.warnings, len(found.foundation)) == ((), 2)


@pytest.mark.req("O-250", "O-416")
@pytest.mark.parametrize(
    ("missing", "warning"),
    [
        (LIST_FOUNDATION, "foundation: it could not be loaded (unavailable)"),
        (LIST_VISION, "vision: it could not be loaded (unavailable)"),
        (DUE_WORK, "workload: it could not be loaded (unavailable)"),
    ],
)
async def test_without_one_part_the_others_arrive_and_it_is_named(missing: Any, warning: str) -> None:
    stage = Stage()
    del stage.owners.answers[missing.subject]
    found = await start(stage)
    arrived = {
        LIST_FOUNDATION.subject: bool(found.foundation),
        LIST_VISION.subject: bool(found.vision),
        DUE_WORK.subject: found.workload is not None,
    }
    assert (found.warnings, [subject for subject, came in arrived.items() if not came]) == ((warning,), [missing.subject])
    assert stage.metrics.registry.get_sample_value(f"{STARTS.name}_total", {"outcome": "partial"}) == 1.0


@pytest.mark.req("O-250", "O-358")
async def test_without_the_calendar_the_workload_is_that_of_tasks_and_a_warning_says_so() -> None:
    stage, who = Stage(diary=Diary(failure=Unavailable("away"))), caller()
    stage.give_calendar(who)
    found = await start(stage, who)
    assert found.workload is not None
    assert (found.workload.degraded, found.warnings) == (("calendar",), ("workload: the calendar could not be read",))
    again = await start(stage, who)
    assert "workload" not in again.stats.cached


async def test_with_no_part_at_all_the_start_fails() -> None:
    stage = Stage(owners=Owners({}))
    with pytest.raises(Unavailable):
        await start(stage)
    assert stage.metrics.registry.get_sample_value(f"{STARTS.name}_total", {"outcome": "failed"}) == 1.0


async def test_a_part_that_hangs_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_module, "_LIMIT", 0.05)
    stage = Stage()
    real = stage.owners

    async def hanging(who: Any, rpc: Any, request: Any, limit: float) -> Any:
        if rpc is LIST_VISION:
            await asyncio.Event().wait()
        return await real(who, rpc, request, limit)

    stage.sessions._parts._ask = hanging
    assert (await start(stage)).warnings == ("vision: it could not be loaded (timed_out)",)


@pytest.mark.req("O-248", "O-249", "O-416", "O-418")
async def test_with_two_faults_in_a_hundred_nearly_every_start_is_whole() -> None:
    chance = random.Random(7)

    def faulty(answer: Any) -> Any:
        return lambda request: Unavailable("a fault") if chance.random() < 0.02 else answer

    owners = Owners({rpc.subject: faulty(answer) for rpc, answer in zip(THREE, (FOUNDATION, VISION, DUE), strict=True)})
    stage = Stage(owners=owners)
    starts = [await start(stage, caller()) for _ in range(200)]
    whole = sum(not found.warnings for found in starts)
    delivered = sum(len(found.foundation) + len(found.vision) for found in starts)
    assert whole / 200 > 0.95
    assert delivered / (200 * 3) > 0.98


@pytest.mark.req("O-363")
async def test_where_the_second_version_fails_the_first_serves_and_its_size_is_told(caplog: pytest.LogCaptureFixture) -> None:
    whole = tuple(
        ConstitutionNode(
            id=f"v{n}",
            type="value",
            layer="foundation",
            title=f"Value {n}",
            description="Why it matters. " * 30,
            metadata={"a": "b" * 200},
        )
        for n in range(3)
    )
    pages = [
        LayerListed(items=whole[:2], stats=ListStats(), next_cursor="more"),
        LayerListed(items=whole[2:], stats=ListStats()),
    ]
    asked: list[ListLayer] = []

    def page(request: ListLayer) -> LayerListed:
        asked.append(request)
        return pages[len(asked) - 1]

    stage = Stage()
    stage.owners.answers[LIST_FOUNDATION.subject] = TimedOut("slow")
    stage.owners.answers[V1[Layer.FOUNDATION].subject] = page
    found = await start(stage)
    assert [node.id for node in found.foundation] == ["v0", "v1", "v2"]
    assert [(request.status, request.cursor) for request in asked] == [(Lifecycle.ACTIVE, None), (Lifecycle.ACTIVE, "more")]
    assert found.warnings == (
        "foundation: version 1 of its list, without relationships, "
        f"{found.stats.foundation_tokens} tokens before anything was left out",
    )
    assert stage.owners.times(LIST_FOUNDATION, V1[Layer.FOUNDATION]) == (2, 2)


async def test_what_the_first_version_told_of_the_vision_has_no_parents_and_is_not_kept() -> None:
    goal = ConstitutionNode(id="g", type="goal", layer="vision", title="Goal", target="1")
    stage, who = Stage(), caller()
    stage.owners.answers[LIST_VISION.subject] = Unavailable("away")
    stage.owners.answers[V1[Layer.VISION].subject] = LayerListed(items=(goal,), stats=ListStats())
    first, second = await start(stage, who), await start(stage, who)
    assert first.vision == (VisionNode(id="g", type="goal", layer="vision", title="Goal", target="1"),)
    assert (first.vision == second.vision, second.stats.cached) == (True, ("foundation", "workload"))


@pytest.mark.req("O-003", "O-246", "O-333", "O-334", "O-376", "O-436")
async def test_a_constitution_that_is_too_large_is_brought_within_the_budget_and_what_went_is_told() -> None:
    words = "We say what we know, what we do not know, and how we came to know it; "
    nodes = tuple(
        ConstitutionNode(
            id=f"v{n}", type="value", layer="foundation", title=f"Value {n}", summary=words, description=words * (20 + n % 7)
        )
        for n in range(100)
    )
    goals = tuple(
        VisionNode(id=f"g{n}", type="goal", layer="vision", title=f"Goal {n}", narrative=words * 40) for n in range(25)
    )
    stage = Stage()
    stage.owners.answers[LIST_FOUNDATION.subject] = FoundationListed(items=nodes, stats=ListStats())
    stage.owners.answers[LIST_VISION.subject] = VISION.model_copy(update={"items": goals})
    found = await start(stage)
    assert _tokens([node.model_dump(mode="json") for node in nodes]) > 30_000
    assert found.stats.foundation_tokens <= 15_000
    assert found.stats.vision_tokens <= 8_000
    assert found.stats.total_tokens <= 25_000
    assert [node.id for node in found.foundation] == [node.id for node in nodes]
    assert all(node.summary for node in found.foundation)
    assert [line.split(" (")[0] for line in found.left_out] == ["foundation: descriptions", "vision: typed texts"]


@pytest.mark.req("O-322", "O-323")
async def test_a_second_session_asks_nobody_until_a_write_however_long_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_module, "SAFETY", float("inf"))
    clock = Clock()
    stage, who = Stage(clock=clock), caller()
    first = await start(stage, who)
    clock.seconds = 36_000.0
    second = await start(stage, who)
    assert (second.foundation, second.vision, second.workload) == (first.foundation, first.vision, first.workload)
    assert (second.stats.cached, stage.owners.times(*THREE)) == (("foundation", "vision", "workload"), (1, 1, 1))
    changed = FOUNDATION.model_copy(update={"items": FOUNDATION.items[:1]})
    stage.owners.answers[LIST_FOUNDATION.subject] = changed
    await tell(stage, who.who.tenant, wrote("g1", "guardrail", Layer.FOUNDATION, Operation.UPDATE, "summary"))
    third = await start(stage, who)
    assert (third.foundation, third.stats.cached, stage.owners.times(*THREE)) == (
        *(changed.items, ("vision", "workload"), (2, 1, 1)),
    )


@pytest.mark.req("O-323")
async def test_after_the_safety_time_everything_is_loaded_anew() -> None:
    stage, who = Stage(), caller()
    await start(stage, who)
    stage.clock.seconds = start_module.SAFETY
    await start(stage, who)
    assert (start_module.SAFETY, stage.owners.times(*THREE)) == (600.0, (2, 2, 2))


@pytest.mark.req("O-323")
@pytest.mark.parametrize(
    ("news", "asked"),
    [
        (wrote("x", "value", Layer.FOUNDATION, Operation.CREATE), (2, 1, 1)),
        (wrote("x", "goal", Layer.VISION, Operation.CREATE), (1, 2, 1)),
        (wrote("v1", "value", Layer.FOUNDATION, Operation.UPDATE, "title"), (2, 2, 1)),
        (wrote("x", "value", Layer.FOUNDATION, Operation.UPDATE, "title"), (2, 1, 1)),
        (wrote("x", "task", Layer.EXECUTION, Operation.UPDATE, "effortHours"), (1, 1, 2)),
        (wrote("x", "task", Layer.EXECUTION, Operation.UPDATE, "description"), (1, 1, 1)),
        (wrote("x", "insight", Layer.MIND, Operation.CREATE), (1, 1, 1)),
    ],
)
async def test_a_write_drops_the_parts_that_it_touches_and_no_other(news: NodeNews, asked: tuple[int, ...]) -> None:
    stage, who = Stage(), caller()
    await start(stage, who)
    await tell(stage, who.who.tenant, news)
    await start(stage, who)
    assert stage.owners.times(*THREE) == asked


async def test_another_tenant_s_writes_drop_nothing() -> None:
    stage, who = Stage(), caller()
    await start(stage, who)
    await tell(stage, "another", wrote("v1", "value", Layer.FOUNDATION, Operation.DELETE))
    await start(stage, who)
    assert stage.owners.times(*THREE) == (1, 1, 1)


@pytest.mark.req("O-324")
async def test_nothing_is_kept_for_another_tenant_or_for_other_rights_and_no_workload_for_another_user() -> None:
    stage, ann = Stage(), caller(Persona.DISCUSS)
    await start(stage, ann)
    for other, asked in (
        (caller(Persona.EXECUTE, tenant=ann.who.tenant), (2, 2, 2)),
        (caller(Persona.DISCUSS, tenant=ann.who.tenant, user="bob"), (2, 2, 3)),
        (caller(Persona.DISCUSS), (3, 3, 4)),
    ):
        await start(stage, other)
        assert stage.owners.times(*THREE) == asked


async def test_a_calendar_that_is_set_anew_changes_the_next_session() -> None:
    stage, who = Stage(), caller()
    assert (await start(stage, who)).stats.cached == ()
    stage.give_calendar(who, source="none", ics=None, hours=(1.0,) * 7)
    found = await start(stage, who)
    assert found.workload is not None
    assert (found.workload.capacity.available_hours, found.stats.cached) == (7.0, ("foundation", "vision"))


async def test_the_next_day_has_another_workload() -> None:
    stage, who = Stage(), caller()
    await start(stage, who)
    stage.clock.moment = stage.clock.moment.replace(day=24)
    assert (await start(stage, who)).stats.cached == ("foundation", "vision")


async def test_after_the_broker_was_away_everything_is_loaded_anew() -> None:
    stage, who = Stage(), caller()
    await start(stage, who)
    stage.sessions.forget()
    assert (await start(stage, who)).stats.cached == ()


@pytest.mark.req("O-335")
async def test_each_list_is_logged_with_its_nodes_and_tokens(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="phronesis_orchestrator.sessions.start"):
        found = await start(Stage())
    assert sorted(record.getMessage() for record in logged(caplog, "orchestrator")) == [
        f"foundation.list.v2: 2 nodes, {found.stats.foundation_tokens} tokens",
        f"vision.list.v2: 1 nodes, {found.stats.vision_tokens} tokens",
    ]
