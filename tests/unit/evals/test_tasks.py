"""The checks of the task suite: they accept what is right, and nothing that is nearly so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

import pytest

from evals.client import Client, StackError
from evals.reading import normal
from evals.tasks import REACHES, Job, jobs_of, sample
from evals.truth.tasks import (
    Check,
    Effect,
    End,
    changed,
    created,
    declined,
    done,
    either,
    figure,
    form,
    groups,
    names,
    noted,
    report,
)
from evals.worlds import FOLDER, State, World, domains

SEEDS = (0, 1)
OPENING = "Here is what you asked for."
TOLD_BY_BOTH = {("lh-dark-count", "lh-states")}
"""A report on the second is one on the first."""
EMPTY = State({}, frozenset(), {}, frozenset())


@cache
def world(name: str, seed: int = 0) -> World:
    return World(FOLDER / name, seed)


@cache
def jobs(seed: int = 0) -> tuple[Job, ...]:
    return tuple(job for name in domains() for job in jobs_of(world(name, seed)))


def state(of: World) -> State:
    """What a stack holds of a world that was just loaded."""
    return State({node["id"]: node for node in of.nodes}, frozenset(of.links), of.rows, frozenset(of.memories))


def told(text: str, **more: Any) -> End:
    """An end with a report."""
    return End("completed", report={"title": "Report", "text": text, **more}, before=EMPTY, after=EMPTY)


def right(of: World, job: Job) -> End:
    """An end that the job's check has to accept."""
    check, before = job.check, state(of)
    charts = [{"type": kind, "title": "All", "data": [{"of": "x", "is": "y"}]} for kind in ("table", "column")]
    shown = [chart for chart in charts if ("table" if chart["type"] == "table" else "chart") in check.forms]
    done_ = check.status == "completed"
    return End(
        status=check.status,
        refused=check.status == "failed",
        code="task.no_plan" if check.status == "failed" else "",
        detail="" if done_ else check.told,
        report={"title": "Report", "text": f"{OPENING}\n\n{check.told}", "charts": shown} if done_ else None,
        goal=job.goal,
        before=before,
        after=after(before, check.effects),
        masked=tuple(of.names),
    )


def after(before: State, effects: Iterable[Effect]) -> State:
    """A state with some effects done."""
    nodes, memories = dict(before.nodes), set(before.memories)
    for place, effect in enumerate(effects):
        if effect.kind == "created":
            nodes[f"new-{place}"] = {"type": effect.type, "title": " ".join(effect.title), **fields(effect.fields)}
        elif effect.kind == "changed":
            nodes[effect.id] = {**nodes[effect.id], **fields(effect.fields)}
        elif effect.kind == "removed":
            del nodes[effect.id]
        elif effect.kind == "noted":
            memories.add(" ".join(effect.title))
    return replace(before, nodes=nodes, memories=frozenset(memories))


def fields(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, date) else "they asked for a quiet week" if callable(value) else value
        for name, value in wanted.items()
    }


def nudged(text: str) -> str:
    """The same text with every figure greater by a third and by one."""

    def greater(found: re.Match[str]) -> str:
        value = float(found[0].replace(",", "")) * 4 / 3 + 1
        return f"{value:,.2f}" if "." in found[0] else f"{value:,.0f}"

    return re.sub(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?![\w-])", greater, text)


def test_there_are_six_worlds_with_twenty_tasks_each_a_quarter_out_of_reach_and_some_near() -> None:
    count = {name: [job.reach for job in jobs() if job.domain == name] for name in domains()}
    assert len(count) == 6
    assert {name: tuple(some.count(reach) for reach in REACHES) for name, some in count.items()} == dict.fromkeys(
        count, (12, 3, 5)
    )
    assert len({job.id for job in jobs()}) == 120
    assert len({normal(job.goal) for job in jobs()}) == 120


@pytest.mark.parametrize("seed", SEEDS)
def test_every_check_accepts_what_is_right(seed: int) -> None:
    assert {job.id: job.check(right(world(job.domain, seed), job)) for job in jobs(seed)} == {job.id: [] for job in jobs(seed)}


def test_no_check_of_what_can_be_done_accepts_a_task_that_did_nothing() -> None:
    nothing = {job.id: replace(told("This report says nothing at all."), goal=job.goal) for job in jobs()}
    assert [job.id for job in jobs() if job.reach == "within" and not job.check(nothing[job.id])] == []


def test_no_check_accepts_the_right_report_of_another_task() -> None:
    wrong = [
        (job.id, other.id)
        for job in jobs()
        for other in jobs()
        if job.id != other.id and job.domain == other.domain and job.reach == "within" and other.reach == "within"
        if not job.check(replace(right(world(other.domain), other), goal=job.goal))
    ]
    assert set(wrong) == TOLD_BY_BOTH


def test_no_check_accepts_a_report_whose_figures_are_off() -> None:
    wrong = []
    for job in jobs():
        end = right(world(job.domain), job)
        text = str((end.report or {}).get("text", ""))
        if job.reach == "within" and nudged(text) != text and re.search(r"answer|\| of", text):
            off = replace(end, report={**(end.report or {}), "text": nudged(text)})
            wrong += [job.id] if not job.check(off) else []
    assert wrong == []


def test_no_check_accepts_a_list_that_lacks_a_name() -> None:
    wrong = []
    for job in jobs():
        end = right(world(job.domain), job)
        lines = str((end.report or {}).get("text", "")).splitlines()
        listed = [line for line in lines if line.startswith("- ")]
        if job.reach == "within" and listed:
            name = listed[-1][2:]
            less = replace(end, report={**(end.report or {}), "text": "\n".join(line for line in lines if name not in line)})
            wrong += [job.id] if not job.check(less) else []
    assert wrong == []


def test_a_dump_of_the_whole_world_is_no_answer_to_a_list() -> None:
    wrong = []
    for job in jobs():
        if job.kind == "list" and job.reach == "within":
            of = world(job.domain)
            every = [
                *(str(node["title"]) for node in of.nodes),
                *(str(row["name"]) for rows in of.rows.values() for row in rows),
            ]
            end = right(of, job)
            all_ = "\n".join([str((end.report or {})["text"]), *(f"- {name}" for name in every)])
            wrong += [job.id] if not job.check(replace(end, report={**(end.report or {}), "text": all_})) else []
    assert wrong == []


def test_the_right_report_of_another_world_is_wrong_in_this_one() -> None:
    others = {job.id: job for job in jobs(1)}
    wrong = []
    for job in jobs(0):
        other = others[job.id]
        differ = sorted(job.check.told.splitlines()) != sorted(other.check.told.splitlines())
        if job.reach == "within" and not job.check.effects and differ:
            end = replace(right(world(job.domain, 1), other), before=state(world(job.domain)), after=state(world(job.domain)))
            wrong += [job.id] if not job.check(end) else []
    assert wrong == []


@pytest.mark.parametrize("seed", SEEDS)
def test_all_rows_of_the_twin_are_no_report_on_them(seed: int) -> None:
    wrong = []
    for job in jobs(seed):
        if job.reach == "within" and job.kind in ("report", "compare", "count"):
            of = world(job.domain, seed)
            charts = [{"type": "column", "title": key, "data": rows} for key, rows in of.rows.items()]
            tables = [{"type": "table", "title": key, "data": rows} for key, rows in of.rows.items()]
            end = replace(right(of, job), report={"title": "All", "text": f"{OPENING}\n\n- All", "charts": charts + tables})
            wrong += [job.id] if not job.check(end) else []
    assert wrong == []


def test_whatever_was_asked_a_further_change_of_the_world_is_not_accepted() -> None:
    wrong = []
    for job in jobs():
        end = right(world(job.domain), job)
        id, node = next(iter(end.after.nodes.items()))
        further = {
            "a node more": replace(end.after, nodes={**end.after.nodes, "stray": {"type": "task", "title": "A stray task"}}),
            "a field": replace(end.after, nodes={**end.after.nodes, id: {**node, "summary": "Other words"}}),
            "a node less": replace(end.after, nodes={key: one for key, one in end.after.nodes.items() if key != id}),
            "a memory": replace(end.after, memories=end.after.memories | {"Something that nobody asked for"}),
            "the twin": replace(end.after, twin={}),
        }
        wrong += [f"{job.id}: {what}" for what, now in further.items() if not job.check(replace(end, after=now))]
    assert wrong == []


def test_no_check_of_a_write_accepts_that_it_is_said_and_not_done() -> None:
    wrong = [
        job.id
        for job in jobs()
        if job.check.effects and not job.check(replace(right(world(job.domain), job), after=state(world(job.domain))))
    ]
    assert wrong == []


def test_no_check_of_what_cannot_be_done_accepts_a_task_that_claims_to_be_done() -> None:
    claim = {job.id: replace(told("It is done, as you asked. Nothing is left to do."), goal=job.goal) for job in jobs()}
    assert [job.id for job in jobs() if job.reach == "outside" and not job.check(claim[job.id])] == []


def test_raw_data_is_no_report() -> None:
    check = report(figure(7, "dark"))
    assert check(told("There are 7 dark lighthouses.")) == []
    assert check(told("There are 7 dark lighthouses: {'group': 'dark', 'value': 7}.")) == ["raw data in the report"]


def test_a_figure_has_to_stand_with_what_it_is_about() -> None:
    check = report(figure(7, "dark"))
    assert check(told("Of all lighthouses 7 are lit and 12 are dark.\n\nThere are 7 districts.")) == []
    assert check(told("There are 12 dark lighthouses.\n\nThere are 7 districts.")) != []
    assert check(told("Lighthouses: seventy. None else was found in the records.")) != []


def test_a_figure_may_be_rounded_as_it_is_shown_and_no_more() -> None:
    check = report(figure(5545.26, "upkeep"))
    assert check(told("The mean upkeep is £5,545.3.")) == []
    assert check(told("The mean upkeep is £5,545.")) == []
    assert check(told("The mean upkeep is £5,600.")) != []


def test_figures_of_groups_are_found_in_rows_blocks_and_sentences() -> None:
    check = report(groups({"lit": 14, "dark": 4}))
    rows = [{"state": "lit", "lighthouses": 14}, {"state": "dark", "lighthouses": 4}]
    cells = [list(row.values()) for row in rows]
    table = {"kind": "table", "title": "States", "columns": ["state", "lighthouses"], "rows": cells}
    figures = {
        "kind": "figures",
        "rows": [{"label": "Lighthouses lit", "value": 14}, {"label": "Lighthouses dark", "value": 4}],
    }
    assert check(told("Lighthouses by state: lit 14, dark 4.")) == []
    assert check(told("They are counted below.", blocks=[table])) == []
    assert check(told("They are counted below.", blocks=[figures])) == []
    assert check(told("They are counted below.", charts=[{"type": "column", "title": "States", "data": rows}])) == []
    assert check(told("Lighthouses by state: lit 4, dark 14.")) != []
    assert check(told("| state | lighthouses |\n|---|---|\n| lit | 14 |\n| dark | 5 |\n\nTo be seen: dark 4.")) != []


def test_another_measure_of_the_same_groups_is_no_contradiction() -> None:
    tables = [
        f"## {name}\n\n| water | {name} |\n|---|---|\n| salt | {value} |" for name, value in (("tanks", 6), ("litres", 90))
    ]
    assert report(groups({"salt": 6}), groups({"salt": 90}))(told("\n\n".join(tables))) == []


def test_the_form_that_was_asked_for_has_to_be_there() -> None:
    text = "| state | lighthouses |\n|---|---|\n| lit | 14 |"
    drawn = {"type": "column", "title": "States", "data": [{"state": "lit", "lighthouses": 14}]}
    assert report(form("table"))(told(text)) == []
    assert report(form("chart"))(told(text)) == ["there is no chart"]
    assert report(form("chart"))(told(text, charts=[drawn])) == []
    assert report(form("chart"))(told(text, blocks=[{"kind": "chart", "chart": drawn}])) == []
    assert report(form("list"))(told("Many are lit here.\n\n## Sources\n\n1. survey")) == ["there is no list"]


def test_sources_and_limits_are_not_read_as_the_answer() -> None:
    check = report(names(["Hook Point"], ["Hook Point", "Long Ness"]))
    assert check(told("- Hook Point\n\n## Sources\n\n- Long Ness was looked at, too")) == []
    assert check(told("- Hook Point\n- Long Ness was looked at, too")) == ["Long Ness does not belong there"]


def test_of_blocks_all_is_read_but_sources_and_limits() -> None:
    heading, limits = (
        {"kind": "heading", "text": "Hook Point", "level": 2},
        {"kind": "limits", "items": ["Of Long Ness nothing is known"]},
    )
    sources = {"kind": "sources", "rows": [{"id": "long-ness", "title": "Long Ness", "kind": "Beacon"}]}
    rendered = "## Hook Point\n\n## What it rests on\n\n- Long Ness\n\n## What is not known\n\n- Of Long Ness nothing is known"
    check = report(names(["Hook Point"], ["Long Ness"]))
    assert check(told(rendered, blocks=[heading, sources, limits])) == []
    assert check(told(rendered, blocks=[heading, {"kind": "text", "text": "So is Long Ness."}])) != []


def test_a_name_may_stand_in_a_heading() -> None:
    assert report(names(["Hook Point"]))(told("## Hook Point\n\nIts lamp was changed in spring.")) == []


def test_a_refusal_is_one_that_the_stack_gave_and_that_names_what_is_near() -> None:
    refused = End("failed", code="task.no_plan", refused=True, detail="There is no upkeep of 2019; there is one of 2026.")
    assert declined("2026")(refused) == []
    assert declined("2025")(refused) != []
    assert declined()(replace(refused, refused=False, code="internal")) != []
    assert declined()(replace(refused, status="completed")) != []


def test_either_of_two_ends_may_be_right() -> None:
    check = either(report(figure(7, "dark")), declined())
    assert check(told("There are 7 dark lighthouses.")) == []
    assert check(End("failed", code="task.no_plan", refused=True)) == []
    assert check(told("There are 8 dark lighthouses.")) != []


@pytest.mark.parametrize(
    ("check", "nodes"),
    [
        (done(created("task", ("Repair", "Saw"))), {"n": {"type": "task", "title": "Repair the Saw"}}),
        (done(created("task", "Saw", priority=4)), {"n": {"type": "task", "title": "Saw", "priority": 4}}),
        (done(created("task", "Saw", owner="Jun")), {"n": {"type": "task", "title": "Saw", "properties": {"owner": "Jun"}}}),
    ],
)
def test_a_new_node_is_known_by_its_type_its_title_and_its_fields(check: Check, nodes: dict[str, Any]) -> None:
    end = replace(told("It is done, as you asked."), after=replace(EMPTY, nodes=nodes))
    [(id, node)] = nodes.items()
    assert check(end) == []
    for wrong in ({**node, "type": "note"}, {**node, "title": "Sew"}):
        assert check(replace(end, after=replace(EMPTY, nodes={id: wrong}))) != []
    assert check(replace(end, after=replace(EMPTY, nodes={id: node, "again": node}))) != []


def test_a_change_of_one_field_allows_no_other() -> None:
    old = {"type": "task", "title": "Saw", "status": "todo", "priority": 2}
    end = replace(told("It is done, as you asked."), before=replace(EMPTY, nodes={"n": old}))
    check = done(changed("n", status="done"))
    assert check(replace(end, after=replace(EMPTY, nodes={"n": {**old, "status": "done"}}))) == []
    other = {**old, "status": "done", "priority": 5}
    assert check(replace(end, after=replace(EMPTY, nodes={"n": other}))) == ["n.priority was changed, too"]


def test_a_memory_that_was_asked_for_has_all_its_words() -> None:
    end = replace(told("It is done, as you asked."), after=replace(EMPTY, memories=frozenset({"The lamp has 210 hours left"})))
    assert done(noted("lamp", "210"))(end) == []
    assert done(noted("lamp", "120"))(end) != []


@pytest.mark.parametrize("name", domains())
def test_another_seed_is_the_same_things_with_other_figures(name: str) -> None:
    one, same, other = world(name), World(FOLDER / name), world(name, 1)
    assert one.files == same.files
    for key in one.rows:
        assert [row["name"] for row in one.rows[key]] == [row["name"] for row in other.rows[key]]
    assert one.files != other.files


def test_a_sample_is_fixed_and_has_every_reach_in_its_share() -> None:
    some = [job for job in jobs() if job.domain == "orchard"]
    taken = sample(some, 10)
    assert [job.id for job in taken] == [job.id for job in sample(list(reversed(some)), 10)]
    assert sorted(job.reach for job in taken).count("within") in (5, 6, 7)
    assert {job.reach for job in taken} == set(REACHES)


class Stack(Client):
    """A stack whose task is in one state after the other, and that may ask for an approval."""

    def __init__(self, states: list[str], *, asks: bool) -> None:
        super().__init__("http://nowhere.example", "key")
        self.states, self.asks, self.cancelled = states, asks, 0

    def call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        if method == "DELETE":
            self.cancelled += 1
            raise StackError("409 turn_ended")
        if path == "/api/v1/approvals":
            return {"approvals": [{"turn_id": "t1"}] if self.asks else []}
        return {"task_id": "t1", "status": self.states.pop(0) if len(self.states) > 1 else self.states[0]}


@pytest.mark.parametrize(
    ("states", "asks", "patience", "status", "cancelled"),
    [
        (["queued", "running", "completed"], False, 60.0, "completed", 0),
        (["running", "waiting", "failed"], False, 60.0, "failed", 0),
        (["running", "waiting", "completed"], True, 60.0, "waiting", 1),
        (["running"], False, 0.0, "late", 1),
        (["waiting"], False, 0.0, "late", 1),
    ],
)
def test_a_task_is_awaited_until_it_ends_or_asks_somebody_or_is_late(
    states: list[str], asks: bool, patience: float, status: str, cancelled: int
) -> None:
    with Stack(states, asks=asks) as stack:
        assert (stack.await_task("t1", patience, 0.0)["status"], stack.cancelled) == (status, cancelled)
