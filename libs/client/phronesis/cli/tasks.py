"""`phronesis task`, `tasks`, `schedules`, `strategies`: hand in, follow, answer, judge, read, and let come again."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .output import Commands, Stack

if TYPE_CHECKING:
    from phronesis_contracts.episodes import KeptStrategy
    from phronesis_contracts.orchestrator import TaskBudget
    from phronesis_contracts.tasks import ArmEffect, PlannedCall, Schedule, StrategyEffect, Task

    from ..models import TurnEvent
    from ..sync import Client

app = Commands(help="Your background tasks: list, show, watch, cancel, accept, reject, and their reports as files.")

Id = Annotated[str, typer.Argument(help="Id of a task.")]
Comment = Annotated[str, typer.Option("--comment", help="Why, up to 1,000 characters.")]
_LOOK_AGAIN = 1.0
_BEYOND = 1_200.0
"""Seconds beyond a task's budget after which one that does not wait has ended: it is queued for 15 minutes at most."""


@app.default_command()
@app.stack_command("list")
def list_tasks(
    stack: Stack, limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=100)] = 20
) -> None:
    """Your tasks, newest first."""
    from phronesis_contracts.tasks import Tasks

    with stack.client() as client:
        found = client.tasks.list(limit=limit)
    if not stack.as_json(Tasks(tasks=found)):
        rows = [(t.task_id, t.status, f"{t.created_at:%Y-%m-%d %H:%M:%S}", t.agent, t.goal[:60]) for t in found]
        output.table(("TASK", "STATUS", "CREATED (UTC)", "AGENT", "GOAL"), rows)


@app.stack_command()
def show(stack: Stack, task: Id) -> None:
    """How far a task is, and its report."""
    with stack.client() as client:
        stack.show(client.tasks.get(task), _print)


class Form(StrEnum):
    """The forms of a report."""

    MARKDOWN = "markdown"
    HTML = "html"
    PDF = "pdf"


_ENDINGS = {".md": Form.MARKDOWN, ".html": Form.HTML, ".htm": Form.HTML, ".pdf": Form.PDF}


@app.stack_command(json=False)
def report(
    stack: Stack,
    task: Id,
    form: Annotated[
        Form | None, typer.Option("--format", help="What to make of it [default: by the file's ending, else markdown].")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write, `-` for stdout; without it it is shown.", metavar="FILE"),
    ] = None,
) -> None:
    """The report of a task that has ended: shown, or written to a file as Markdown, an HTML page or a PDF.

    phronesis tasks report ID --format pdf --output report.pdf
    """
    chosen = form or (_ENDINGS.get(file.suffix.lower()) if file else None) or Form.MARKDOWN
    if file is None and chosen is Form.PDF:
        raise typer.BadParameter("a PDF is not shown in a terminal: name a file, or - for stdout", param_hint="--output")
    with stack.client() as client:
        made = client.tasks.report(task, chosen.value)
    if file is None:
        _show_markdown(made.decode()) if chosen is Form.MARKDOWN else output.out(made.decode())
    elif str(file) == "-":
        sys.stdout.buffer.write(made)
    else:
        try:
            file.write_bytes(made)
        except OSError as error:
            raise typer.BadParameter(f"{file} cannot be written: {error.strerror}", param_hint="--output") from error
        output.note(f"wrote {file} ({len(made):,} bytes)")


@app.stack_command()
def cancel(stack: Stack, task: Id) -> None:
    """Cancel a task that has not ended; what runs of it is stopped."""
    with stack.client() as client:
        stack.show(client.tasks.cancel(task), _print)


@app.stack_command()
def answer(stack: Stack, task: Id, text: Annotated[str, typer.Argument(help="Your answer, or one of the choices.")]) -> None:
    """Answer what a task asks; it goes on with that."""
    with stack.client() as client:
        stack.show(client.tasks.answer(task, text), _print)


@app.stack_command()
def accept(stack: Stack, task: Id, comment: Comment = "") -> None:
    """Say that a task's result is what you asked for. Only then is it learnt from."""
    _set_outcome(stack, task, True, comment)


@app.stack_command()
def reject(stack: Stack, task: Id, comment: Comment = "") -> None:
    """Say that a task's result is not what you asked for. It lowers the strategies that the task used."""
    _set_outcome(stack, task, False, comment)


def _set_outcome(stack: Stack, task: str, accepted: bool, comment: str) -> None:
    with stack.client() as client:
        stack.show(client.tasks.set_outcome(task, accepted, comment), _print)


@app.stack_command()
def watch(stack: Stack, task: Id) -> None:
    """Watch a task until it ends."""
    with stack.client() as client:
        _finish(stack, _watch_until_end(client, client.tasks.get(task)))


Agent = Annotated[str | None, typer.Option("--agent", help="Whose tools and texts it has.", metavar="NAME")]
Seconds = Annotated[float | None, typer.Option("--budget-seconds", help="Seconds of work.")]
Tokens = Annotated[int | None, typer.Option("--budget-tokens", help="Tokens of all model calls.")]
Usd = Annotated[float | None, typer.Option("--budget-usd", help="US dollars of all model calls.")]
Calls = Annotated[int | None, typer.Option("--budget-calls", help="Tool calls.")]
Zone = Annotated[str | None, typer.Option("--time-zone", help="IANA name of the time zone; UTC if not stated.", metavar="ZONE")]


def _budget(seconds: float | None, tokens: int | None, usd: float | None, calls: int | None) -> TaskBudget:
    from phronesis_contracts.orchestrator import TaskBudget

    from ..request import validate_message

    given = {"seconds": seconds, "tokens": tokens, "usd": usd, "tool_calls": calls}
    return validate_message(TaskBudget, {name: value for name, value in given.items() if value is not None})


def task(
    stack: Stack,
    text: Annotated[str, typer.Argument(help="The goal.")],
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Show the plan and what each step finds, then the report; or print the id.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its calls, and do nothing.")] = False,
    at: Annotated[str | None, typer.Option("--at", help="Start it at these times, and not now.", metavar="CRON")] = None,
    time_zone: Zone = None,
    agent: Agent = None,
    seconds: Seconds = None,
    tokens: Tokens = None,
    usd: Usd = None,
    calls: Calls = None,
) -> None:
    """Work on a goal in the background, and show how it goes; or let it come again at the times of a cron expression.

    Ctrl-C ends the watching alone: the task goes on. `phronesis tasks report ID --format pdf --output FILE` gives the report as
    a file.
    """
    from phronesis_contracts.tasks import DEFAULT_AGENT

    budget = _budget(seconds, tokens, usd, calls)
    if at is not None:
        if dry_run:
            raise typer.BadParameter("with --at nothing is started now", param_hint="--dry-run")
        return add_schedule(
            stack, text, at, time_zone=time_zone, agent=agent, seconds=seconds, tokens=tokens, usd=usd, calls=calls
        )
    if time_zone is not None:
        raise typer.BadParameter("it says what the times of --at are meant in", param_hint="--time-zone")
    with stack.client() as client:
        accepted = client.tasks.submit(text, agent or DEFAULT_AGENT, budget, dry_run=dry_run)
        found = client.tasks.get(accepted.turn_id)
        if wait or dry_run:
            _finish(stack, _watch_until_end(client, found))
        elif not stack.as_json(found):
            output.out(found.task_id)


def _watch_until_end(client: Client, task: Task) -> Task:
    """The task once it has ended; what it does meanwhile goes to stderr. Ctrl-C ends the watching alone."""
    try:
        return _follow_events(client, task)
    except KeyboardInterrupt:
        id = task.task_id
        output.note(f"stopped watching; task {id} goes on: phronesis tasks watch {id}, or end it: phronesis tasks cancel {id}")
        raise


def _follow_events(client: Client, task: Task) -> Task:
    from phronesis_contracts import ServiceError

    try:
        for event in client.turns.events(task.task_id):
            if line := _line(event):
                output.note(line)
    except ServiceError as exc:
        if 400 <= exc.status < 500:
            raise
        output.note(f"events are lost ({exc.code}), looking for the end")
    return _await_end(client, task)


def _await_end(client: Client, task: Task) -> Task:
    """The task once it has ended. Raises `TimedOut`: it has worked for longer than its budget without waiting for anybody."""
    from phronesis_contracts import TimedOut

    allowed = task.budget.seconds + _BEYOND
    deadline = time.monotonic() + allowed
    while not (found := client.tasks.get(task.task_id)).status.ended:
        if found.status == "waiting":
            deadline = time.monotonic() + allowed
        elif time.monotonic() > deadline:
            raise TimedOut(f"task {task.task_id} has not ended; look again with `phronesis tasks show {task.task_id}`")
        time.sleep(_LOOK_AGAIN)
    return found


def _line(event: TurnEvent) -> str:
    detail = event.data.get("detail", {})
    match event.data.get("phase"):
        case "waiting_for":
            from .chat import describe_wait

            return describe_wait(event)
        case "plan":
            steps = [f"  {step}" for step in detail.get("steps", ())]
            return "\n".join([f"plan: {len(steps)} steps in {detail.get('waves')} waves", *steps])
        case "wave_started":
            return f"wave {detail.get('wave')}: {', '.join(detail.get('steps', ()))}"
        case "step_finished":
            return _step_line(detail)
        case "plan_adjusted":
            steps = [f"  {step}" for step in detail.get("steps", ())]
            return "\n".join([f"plan adjusted: {len(steps)} steps are left", *steps])
    if event.kind == "waiting" and detail.get("for") == "date":
        return f"waiting until {detail.get('until')}"
    if event.kind == "waiting" and detail.get("for") == "person":
        choices = f" ({', '.join(detail['choices'])})" if detail.get("choices") else ""
        return f"it asks you: {detail.get('question')}{choices}: phronesis tasks answer {event.data.get('turn_id')} ANSWER"
    if event.kind == "waiting":
        return f"waiting for you ({detail.get('reason')}): phronesis approvals show {detail.get('approval_id')}"
    return ""


_MARKS = {"done": "✓", "failed": "✗"}
"""Before a step's line; one that was not made has a dash."""


def _step_line(detail: dict[str, Any]) -> str:
    """What a step found, or why it found nothing."""
    state = detail.get("state", "")
    said = detail.get("found") or ("done" if state == "done" else f"{state} ({detail.get('code')})")
    name = detail.get("description") or detail.get("step")
    return f"  {_MARKS.get(state, '-')} {output.cut(str(name), 80)}: {said} ({(detail.get('ms') or 0) / 1000:.1f} s)"


def _finish(stack: Stack, task: Task) -> None:
    """The report of a task that has ended, or how it ended without one."""
    stack.show(task, _print if task.dry_run else _print_end)
    if task.dry_run and task.status == "completed":
        return
    if task.progress.report is None:
        raise typer.Exit(1)
    if task.progress.verified is None:
        id = task.task_id
        output.note(f"is this what you asked for? phronesis tasks accept {id}, or: phronesis tasks reject {id}")


def _print_end(task: Task) -> None:
    report = task.progress.report
    if report is None:
        _print(task)
        return
    _show_markdown(f"# {report.title}\n\n{report.text}")
    score = f"; score {task.progress.score:.2f}" if task.progress.score is not None else ""
    stopped = f"; stopped: {task.progress.stopped.detail}" if task.progress.stopped else ""
    output.note(
        f"\n[reasoner: {report.reasoner}{score}{stopped}; document {report.document_id or 'not saved'}; task {task.task_id}]"
    )
    output.note(f"as a file: phronesis tasks report {task.task_id} --format pdf --output report.pdf")


def _show_markdown(text: str) -> None:
    """Print Markdown: set for reading in a terminal, as it is elsewhere."""
    if not sys.stdout.isatty():
        output.out(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(highlight=False)
    console.print(Markdown(output.clean(text), hyperlinks=False), width=min(console.width, _WIDEST))


_WIDEST = 110
"""Columns of a terminal that a report takes."""


def _print(task: Task) -> None:
    progress = task.progress
    output.out(f"task      {task.task_id}")
    output.out(f"status    {task.status}")
    output.out(f"steps     {len(progress.steps)} in {progress.waves} waves{', replanned' if progress.adjusted else ''}")
    calls = {call.step: call for call in progress.calls}
    for step in progress.steps:
        found = step.found or (step.code and f"({step.code})") or ""
        output.out(f"  {step.wave}. {step.state:<8} {step.description}{f': {found}' if found else ''}")
        if call := calls.get(step.id):
            _print_call(call)
    if task.schedule:
        run = task.schedule
        late = f", late, {run.missed} missed before it" if run.late else ""
        output.out(f"schedule  {run.schedule_id}, due {run.due:%Y-%m-%d %H:%M} UTC{late}")
        for thing in run.event.things if run.event else ():
            output.out(f"event     {run.event.event if run.event else ''}: {thing.id} {thing.title}")
    if progress.score is not None:
        output.out(f"score     {progress.score:.2f}")
    if said := progress.verified:
        word = "accepted" if said.accepted else "rejected"
        output.out(f"outcome   {word} by a {said.by}{f': {said.comment}' if said.comment else ''}")
    if progress.stopped:
        output.out(f"stopped   {progress.stopped.detail}")
    if task.waiting and task.waiting.kind == "person":
        choices = f" ({', '.join(task.waiting.choices)})" if task.waiting.choices else ""
        output.out(f"asks      {task.waiting.question}{choices}")
        output.out(f"answer    phronesis tasks answer {task.task_id} ANSWER, until {task.waiting.until:%Y-%m-%d %H:%M} UTC")
    elif task.waiting:
        output.out(f"waits     until {task.waiting.until:%Y-%m-%d %H:%M} UTC")
    for effect in progress.effects:
        known = "did" if effect.state == "done" else "may have done"
        output.out(f"{known:<9} {effect.description} ({effect.tool})")
    if task.problem:
        output.out(f"problem   {task.problem.code}: {task.problem.detail}")
    if report := progress.report:
        output.out(f"reasoner  {report.reasoner}")
        output.out(f"document  {report.document_id or 'not saved'}")
        output.out()
        _show_markdown(f"# {report.title}\n\n{report.text}")


_APPROVALS = {"yes": "you would be asked", "maybe": "you may be asked", "refused": "it would be refused"}


def _print_call(call: PlannedCall) -> None:
    import json

    if call.question:
        output.out(f"       asks      {call.question}")
    if call.tool:
        output.out(f"       calls     {call.tool} {json.dumps(call.arguments, ensure_ascii=False)}")
    if call.approval != "no":
        output.out(f"       approval  {_APPROVALS[call.approval]}: {call.reason}")


schedules_app = Commands(help="Tasks that start at times or by events: add, list, show, pause, resume, remove.")

ScheduleId = Annotated[str, typer.Argument(help="Id of a schedule.", metavar="SCHEDULE")]


@schedules_app.stack_command("add")
def add_schedule(
    stack: Stack,
    goal: Annotated[str, typer.Argument(help="The goal of each run.")],
    at: Annotated[
        str | None, typer.Option("--at", help="Minute, hour, day, month, day of the week: `0 8 * * 1`.", metavar="CRON")
    ] = None,
    on: Annotated[str | None, typer.Option("--on", help="The event: node_changed or file_arrived.", metavar="EVENT")] = None,
    type: Annotated[
        str | None, typer.Option("--type", help="Only nodes of this type, or files of this kind.", metavar="TYPE")
    ] = None,
    property: Annotated[
        str | None, typer.Option("--property", help="Only where this property was changed.", metavar="NAME")
    ] = None,
    value: Annotated[str | None, typer.Option("--value", help="Only where it is this now.", metavar="VALUE")] = None,
    time_zone: Zone = None,
    paused: Annotated[bool, typer.Option("--paused", help="Start nothing until it is resumed.")] = False,
    agent: Agent = None,
    seconds: Seconds = None,
    tokens: Tokens = None,
    usd: Usd = None,
    calls: Calls = None,
) -> None:
    """Start a task at the times of a cron expression, or whenever an event happens; the budget is that of each run.

    phronesis schedules add --on node_changed --type task --property status --value done "What does {node} leave open?"
    """
    from phronesis_contracts.tasks import DEFAULT_AGENT, Trigger

    from ..request import validate_message

    if (at is None) == (on is None):
        raise typer.BadParameter("give the times or the event", param_hint="--at or --on")
    which = {name: given for name, given in (("type", type), ("property", property), ("value", value)) if given is not None}
    if on is None and which:
        raise typer.BadParameter("it belongs to an event: --on", param_hint=f"--{next(iter(which))}")
    if on is not None and time_zone is not None:
        raise typer.BadParameter("it belongs to times: --at", param_hint="--time-zone")
    trigger = validate_message(Trigger, {"event": on, **which}) if on is not None else None
    budget = _budget(seconds, tokens, usd, calls)
    with stack.client() as client:
        made = client.schedules.add(goal, at, time_zone or "UTC", agent or DEFAULT_AGENT, budget, not paused, on=trigger)
    stack.show(made, _print_schedule)


@schedules_app.default_command()
@schedules_app.stack_command("list")
def list_schedules(stack: Stack) -> None:
    """Your schedules, oldest first."""
    from phronesis_contracts.tasks import Schedules

    with stack.client() as client:
        found = client.schedules.list()
    if not stack.as_json(Schedules(schedules=found)):
        rows = [
            (one.schedule_id, _starts(one), one.time_zone if one.on is None else "", _next(one), one.goal[:50]) for one in found
        ]
        output.table(("SCHEDULE", "STARTS", "TIME ZONE", "NEXT RUN", "GOAL"), rows)


@schedules_app.stack_command("show")
def show_schedule(stack: Stack, schedule: ScheduleId) -> None:
    """When a schedule runs next, and what its last run was."""
    with stack.client() as client:
        stack.show(client.schedules.get(schedule), _print_schedule)


@schedules_app.stack_command("pause")
def pause_schedule(stack: Stack, schedule: ScheduleId) -> None:
    """Let a schedule start nothing until it is resumed; a run that has started goes on."""
    with stack.client() as client:
        stack.show(client.schedules.pause(schedule), _print_schedule)


@schedules_app.stack_command("resume")
def resume_schedule(stack: Stack, schedule: ScheduleId) -> None:
    """Let a schedule start runs again, with the rights of the key at hand."""
    with stack.client() as client:
        stack.show(client.schedules.resume(schedule), _print_schedule)


@schedules_app.stack_command("remove")
def remove_schedule(stack: Stack, schedule: ScheduleId) -> None:
    """Remove a schedule; a run that has started goes on."""
    with stack.client() as client:
        stack.show(client.schedules.remove(schedule), _print_schedule)


def _next(schedule: Schedule) -> str:
    if schedule.next_runs:
        return _local(schedule.next_runs[0], schedule)
    return "by event" if schedule.enabled and schedule.on is not None else "paused"


def _starts(schedule: Schedule) -> str:
    """The times or the events that start the runs of a schedule."""
    on = schedule.on
    if on is None:
        return schedule.cron
    value = f"={on.value}" if on.value is not None else ""
    return " ".join(part for part in (on.event, on.type, f"{on.property}{value}" if on.property else None) if part)


def _local(time: datetime, schedule: Schedule) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return f"{time.astimezone(ZoneInfo(schedule.time_zone)):%Y-%m-%d %H:%M}"
    except ZoneInfoNotFoundError:  # a machine without time zones
        return f"{time:%Y-%m-%d %H:%M} UTC"


def _print_schedule(schedule: Schedule) -> None:
    output.out(f"schedule  {schedule.schedule_id}")
    output.out(f"goal      {schedule.goal}")
    if schedule.on is None:
        output.out(f"times     {schedule.cron} ({schedule.time_zone})")
    else:
        output.out(f"event     {_starts(schedule)}")
    if schedule.next_runs:
        output.out(f"next      {', '.join(_local(time, schedule) for time in schedule.next_runs)}")
    elif not schedule.enabled:
        output.out(f"paused    {schedule.paused.detail if schedule.paused else 'until it is resumed'}")
    output.out(f"runs      {schedule.runs}{_skipped(schedule)}")
    if schedule.last_task:
        output.out(f"last run  {schedule.last_task}")


def _skipped(schedule: Schedule) -> str:
    from phronesis_contracts.tasks import MAX_RUNS_AN_HOUR

    if not schedule.skipped:
        return ""
    if schedule.on is None:
        return f", {schedule.skipped} skipped"
    return f", {schedule.skipped} events left out: they start {MAX_RUNS_AN_HOUR} runs an hour at most"


strategies_app = Commands(help="How your tasks were done whose results you accepted: list, show, edit, retire.")

StrategyId = Annotated[str, typer.Argument(help="Id of a strategy.", metavar="STRATEGY")]


@strategies_app.default_command()
@strategies_app.stack_command("list")
def list_strategies(
    stack: Stack,
    state: Annotated[str | None, typer.Option(help="Only these: active, unverified or retired.", metavar="STATE")] = None,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=200)] = 50,
) -> None:
    """Your strategies, newest first."""
    from phronesis_contracts.episodes import KeptStrategies, ListStrategies

    from ..request import validate_message

    wanted = validate_message(ListStrategies, {"state": state, "limit": limit})
    with stack.client() as client:
        found = client.strategies.list(wanted.state, wanted.limit)
    if not stack.as_json(KeptStrategies(strategies=found)):
        rows = [(one.id, one.state, f"{one.accepted}/{one.accepted + one.rejected}", one.agent, one.goal[:60]) for one in found]
        output.table(("STRATEGY", "STATE", "ACCEPTED", "AGENT", "GOAL"), rows)


@strategies_app.stack_command("show")
def show_strategy(stack: Stack, strategy: StrategyId) -> None:
    """A strategy with the tasks that speak for it or against it."""
    with stack.client() as client:
        stack.show(client.strategies.get(strategy), _print_strategy)


@strategies_app.stack_command("edit")
def edit_strategy(
    stack: Stack,
    strategy: StrategyId,
    goal: Annotated[str | None, typer.Option(help="The goal that it is found by.")] = None,
    approach: Annotated[str | None, typer.Option(help="How it is done.")] = None,
    avoid: Annotated[str | None, typer.Option(help="What to avoid; empty for nothing.")] = None,
) -> None:
    """Change a strategy's text, which is your own from then on."""
    with stack.client() as client:
        stack.show(client.strategies.update(strategy, goal, approach, avoid), _print_strategy)


@strategies_app.stack_command("retire")
def retire_strategy(
    stack: Stack,
    strategy: StrategyId,
    undo: Annotated[bool, typer.Option("--undo", help="Take it back: recall the strategy again.")] = False,
) -> None:
    """Recall a strategy no more; it is kept."""
    with stack.client() as client:
        kept = client.strategies.update(strategy, retired=False) if undo else client.strategies.retire(strategy)
        stack.show(kept, _print_strategy)


@strategies_app.stack_command("effect")
def show_effect(stack: Stack) -> None:
    """What strategies are worth: your tasks with them, and those that they were withheld from."""
    with stack.client() as client:
        stack.show(client.strategies.effect(), _print_effect)


def _print_strategy(one: KeptStrategy) -> None:
    output.out(f"strategy  {one.id}")
    output.out(f"state     {one.state}: {one.accepted} accepted, {one.rejected} rejected")
    output.out(f"goal      {one.goal}")
    output.out(f"approach  {one.approach}")
    if one.avoid:
        output.out(f"avoid     {one.avoid}")
    output.out(f"tools     {', '.join(one.tools_used) or 'none'}")
    output.out(f"agent     {one.agent or 'any'}")
    if one.edited_at is not None:
        output.out(f"edited    {one.edited_at:%Y-%m-%d %H:%M:%S}")
    for task in one.evidence:
        word, then = "accepted" if task.accepted else "rejected", ", edited since" if task.edited_since else ""
        output.out(f"  {task.at:%Y-%m-%d %H:%M:%S}  task {task.task_id} {word} by a {task.by}{then}")
    if one.state == "unverified":
        output.out(f"not recalled until its task is accepted: phronesis tasks accept {one.task_id}")


def _print_effect(effect: StrategyEffect) -> None:
    rows = [_arm_row("with strategies", effect.used), _arm_row("withheld", effect.held_out)]
    output.table(("GOALS", "TASKS", "VERIFIED", "ACCEPTED", "95 %", "STEPS"), rows)
    said = {"none_shown": "no difference shown", "better": "more is accepted with strategies"}
    output.out(said.get(effect.difference, "less is accepted with strategies"))


def _arm_row(name: str, arm: ArmEffect) -> tuple[str, ...]:
    share = "" if arm.share is None else f" ({arm.share:.0%})"
    interval = f"{arm.low:.0%} to {arm.high:.0%}" if arm.verified else "nothing known"
    steps = "" if arm.steps is None else f"{arm.steps:.1f}"
    return name, str(arm.tasks), str(arm.verified), f"{arm.accepted}{share}", interval, steps
