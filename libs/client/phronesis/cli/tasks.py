"""`phronesis task` and `phronesis tasks`: hand a task in, list, show, watch and cancel."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .output import AsJson, Data, Key, Url

if TYPE_CHECKING:
    from phronesis_contracts.tasks import Task

    from ..models import TurnEvent
    from ..sync import Client

app = typer.Typer(help="Your background tasks: list, show, watch, cancel.", invoke_without_command=True)

Id = Annotated[str, typer.Argument(help="Id of a task.")]
_LOOK_AGAIN = 1.0
_BEYOND = 1_200.0
"""Seconds beyond a task's budget after which it has ended for certain: it waits in the queue for 15 minutes at most."""


@app.callback()
def tasks(context: typer.Context, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Your background tasks: list them, or show, watch or cancel one."""
    if context.invoked_subcommand is None:
        list_tasks(url=url, key=key, data=data)


@app.command("list")
def list_tasks(
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=100)] = 20,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Your tasks, newest first."""
    with _client(url, key, data) as client:
        found = client.tasks.list(limit=limit)
    if as_json:
        from phronesis_contracts.tasks import Tasks

        output.as_json(Tasks(tasks=found))
    else:
        rows = [(t.task_id, t.status, f"{t.created_at:%Y-%m-%d %H:%M:%S}", t.agent, t.goal[:60]) for t in found]
        output.table(("TASK", "STATUS", "CREATED (UTC)", "AGENT", "GOAL"), rows)


@app.command()
def show(task: Id, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """How far a task is, and its report."""
    with _client(url, key, data) as client:
        _print(client.tasks.get(task), as_json)


@app.command()
def cancel(task: Id, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Cancel a task that has not ended; what runs of it is stopped."""
    with _client(url, key, data) as client:
        _print(client.tasks.cancel(task), as_json)


@app.command()
def watch(task: Id, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Watch a task until it ends."""
    with _client(url, key, data) as client:
        _finish(_watch_until_end(client, client.tasks.get(task)), as_json)


def register(commands: typer.Typer) -> None:
    """Add `task` to the commands."""
    commands.command("task")(task)


def task(
    text: Annotated[str, typer.Argument(help="The goal.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended, and print its report.")] = False,
    agent: Annotated[str | None, typer.Option("--agent", help="Whose tools and texts it has.", metavar="NAME")] = None,
    seconds: Annotated[float | None, typer.Option("--budget-seconds", help="Seconds of work.")] = None,
    tokens: Annotated[int | None, typer.Option("--budget-tokens", help="Tokens of all model calls.")] = None,
    usd: Annotated[float | None, typer.Option("--budget-usd", help="US dollars of all model calls.")] = None,
    calls: Annotated[int | None, typer.Option("--budget-calls", help="Tool calls.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Work on a goal in the background."""
    from phronesis_contracts.orchestrator import TaskBudget
    from phronesis_contracts.tasks import DEFAULT_AGENT

    from ..calls import validate_message

    given = {"seconds": seconds, "tokens": tokens, "usd": usd, "tool_calls": calls}
    budget = validate_message(TaskBudget, {name: value for name, value in given.items() if value is not None})
    with _client(url, key, data) as client:
        accepted = client.tasks.submit(text, agent or DEFAULT_AGENT, budget)
        found = client.tasks.get(accepted.turn_id)
        if wait:
            _finish(_watch_until_end(client, found), as_json)
        elif as_json:
            output.as_json(found)
        else:
            output.out(found.task_id)


def _client(url: Url, key: Key, data: Data) -> Client:
    from ..sync import Client

    return Client(url, key, data)


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

    deadline = time.monotonic() + task.budget.seconds + _BEYOND
    try:
        for event in client.turns.events(task.task_id):
            if line := _line(event):
                output.note(line)
    except ServiceError as exc:
        if 400 <= exc.status < 500:
            raise
        output.note(f"events are lost ({exc.code}), looking for the end")
    return _await_end(client, task, deadline)


def _await_end(client: Client, task: Task, deadline: float) -> Task:
    from phronesis_contracts import TimedOut

    while not (found := client.tasks.get(task.task_id)).status.ended:
        if time.monotonic() > deadline:
            raise TimedOut(f"task {task.task_id} has not ended; look again with `phronesis tasks show {task.task_id}`")
        time.sleep(_LOOK_AGAIN)
    return found


def _line(event: TurnEvent) -> str:
    """What is told of an event."""
    detail = event.data.get("detail", {})
    match event.data.get("phase"):
        case "plan":
            return f"plan: {len(detail.get('steps', ()))} steps in {detail.get('waves')} waves"
        case "wave_started":
            return f"wave {detail.get('wave')}: {', '.join(detail.get('steps', ()))}"
        case "step_finished":
            return f"  {detail.get('step')}: {detail.get('state')}"
        case "plan_adjusted":
            return f"plan adjusted: {len(detail.get('steps', ()))} steps are left"
    if event.kind == "waiting":
        return f"waiting for you ({detail.get('reason')}): phronesis approvals show {detail.get('approval_id')}"
    return ""


def _finish(task: Task, as_json: bool) -> None:
    _print(task, as_json)
    if task.progress.report is None:
        raise typer.Exit(1)


def _print(task: Task, as_json: bool) -> None:
    if as_json:
        output.as_json(task)
        return
    progress = task.progress
    output.out(f"task      {task.task_id}")
    output.out(f"status    {task.status}")
    output.out(f"steps     {len(progress.steps)} in {progress.waves} waves{', replanned' if progress.adjusted else ''}")
    for step in progress.steps:
        output.out(f"  {step.wave}. {step.state:<8} {step.description}{f' ({step.code})' if step.code else ''}")
    if progress.score is not None:
        output.out(f"score     {progress.score:.2f}")
    if progress.stopped:
        output.out(f"stopped   {progress.stopped.detail}")
    if task.problem:
        output.out(f"problem   {task.problem.code}: {task.problem.detail}")
    if report := progress.report:
        output.out(f"reasoner  {report.reasoner}")
        output.out(f"document  {report.document_id or 'not saved'}")
        output.out()
        output.out(f"# {report.title}\n\n{report.text}")
