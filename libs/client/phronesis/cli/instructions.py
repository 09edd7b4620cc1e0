"""`phronesis instructions`: list, show, diff, publish, rollback, releases, and experiments."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.experiments import ArmResult, Experiment, Interval
    from phronesis_contracts.instructions import TextChange


experiment_app = Commands(help="Experiments on what agents are told: start, stop, list, report.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of an experiment.")]


@experiment_app.stack_command()
def start(
    stack: Stack,
    name: Name,
    arms: Annotated[
        list[str],
        typer.Option(
            "--arm",
            help="An arm, given again for each; the first is what others are compared with. FOLDER holds its texts.",
            metavar="NAME=WEIGHT[:FOLDER]",
        ),
    ],
    yes: Yes = False,
) -> None:
    """Divide the users of your tenant among arms by weight; each arm is told its own texts."""
    from phronesis_contracts.experiments import START_EXPERIMENT_TOOL as TOOL

    body = {"name": name, "arms": [_parse_arm(arm) for arm in arms]}
    output.sure(f"Start the experiment {name} for everybody in your tenant?", yes)
    stack.show(stack.call(TOOL, body, writes=True), _print_experiment)


@experiment_app.stack_command()
def stop(stack: Stack, name: Name, yes: Yes = False) -> None:
    """Tell everybody the same again; what came of it stays."""
    from phronesis_contracts.experiments import STOP_EXPERIMENT_TOOL as TOOL

    output.sure(f"Stop the experiment {name}?", yes)
    stack.show(stack.call(TOOL, {"name": name}, writes=True), _print_experiment)


@experiment_app.stack_command("list")
def list_experiments(stack: Stack) -> None:
    """The experiments of your tenant, the newest first."""
    from phronesis_contracts.experiments import LIST_EXPERIMENTS_TOOL as TOOL

    found = stack.call(TOOL, {})
    if stack.as_json(found):
        return
    for one in found.experiments:
        _print_experiment(one)


@experiment_app.stack_command()
def report(
    stack: Stack, name: Name, confidence: Annotated[float, typer.Option(help="Of the intervals.", min=0.5, max=0.999)] = 0.95
) -> None:
    """Users and outcomes by arm, with confidence intervals."""
    from phronesis_contracts.experiments import REPORT_EXPERIMENT_TOOL as TOOL

    found = stack.call(TOOL, {"name": name, "confidence": confidence})
    if stack.as_json(found):
        return
    rows = [_result(metric.metric, arm) for metric in found.metrics for arm in metric.arms]
    output.table(("METRIC", "ARM", "EXPOSED", "WITH OUTCOME", "MEAN", "AGAINST THE FIRST"), rows)
    _print_experiment(found.experiment)


def _parse_arm(stated: str) -> dict[str, Any]:
    from phronesis_contracts import BadRequest

    name, equals, rest = stated.partition("=")
    weight, _, folder = rest.partition(":")
    if not equals or not weight.isdigit():
        raise BadRequest(f"{stated!r} is not NAME=WEIGHT or NAME=WEIGHT:FOLDER", field="arm")
    return {"name": name, "weight": int(weight), "texts": _read_arm_texts(Path(folder)) if folder else {}}


def _read_arm_texts(folder: Path) -> dict[str, str]:
    from phronesis_contracts import BadRequest

    found = {
        file.relative_to(folder).with_suffix("").as_posix(): file.read_text(encoding="utf-8").strip()
        for file in sorted(folder.rglob("*.md"))
    }
    if not found:
        raise BadRequest(f"{folder} holds no files that end with .md", field="arm")
    return found


def _print_experiment(found: Experiment) -> None:
    ended = f", stopped {found.stopped_at:%Y-%m-%d %H:%M}" if found.stopped_at else ""
    output.out(f"{found.name}: {found.status} since {found.started_at:%Y-%m-%d %H:%M}{ended}")
    for arm in found.arms:
        output.out(f"  {arm.name}: weight {arm.weight}, {arm.users} users, {', '.join(arm.tags) or 'as everybody is told'}")


def _result(metric: str, arm: ArmResult) -> tuple[str, ...]:
    return (metric, arm.arm, str(arm.exposed), str(arm.users), _interval(arm.mean), _interval(arm.against_first))


def _interval(found: Interval | None) -> str:
    return "-" if found is None else f"{found.estimate:.4g} ({found.low:.4g} to {found.high:.4g}; {found.method})"


app = Commands(help="What agents are told: list, show, diff, publish, rollback, experiment.", no_args_is_help=True)
app.add_typer(experiment_app, name="experiment")

Folder = Annotated[
    Path,
    typer.Argument(
        help="A folder of Markdown files; the path of each, without .md, is its tag.",
        metavar="FOLDER",
        exists=True,
        file_okay=False,
    ),
]
Note = Annotated[str, typer.Option("--note", help="Why; kept with the release.")]


@app.stack_command("list")
def list_texts(
    stack: Stack,
    tier: Annotated[int | None, typer.Option(help="Only elements of this tier.", min=1, max=3)] = None,
    status: Annotated[str | None, typer.Option(help="Only active, deprecated or draft.")] = None,
    own: Annotated[bool, typer.Option("--own", help="Only those of your own tenant.")] = False,
) -> None:
    """Every text that agents are told, with version, status and tokens."""
    from phronesis_contracts.instructions import LIST_INSTRUCTIONS_TOOL as TOOL

    found = stack.call(TOOL, {"tier": tier, "status": status, "own": own})
    if stack.as_json(found):
        return
    rows = [
        (
            text.tag,
            str(text.tier or text.category or ""),
            text.version,
            text.status,
            str(text.tokens),
            "own" if text.own else "",
        )
        for text in found.texts
    ]
    output.table(("TAG", "TIER", "VERSION", "STATUS", "TOKENS", ""), rows)
    output.note(f"{len(rows)} texts of release {found.release}")


@app.stack_command()
def show(stack: Stack, tag: Annotated[str, typer.Argument(help="Tag of a text.")]) -> None:
    """One text as it is told now."""
    from phronesis_contracts.instructions import SHOW_INSTRUCTION_TOOL as TOOL

    found = stack.call(TOOL, {"tag": tag})
    if stack.as_json(found):
        return
    info = found.info
    output.note(f"{info.tag} {info.version}, {info.status}, {info.tokens} tokens, of release {found.release}")
    output.out(found.content)


@app.stack_command()
def releases(stack: Stack) -> None:
    """The releases of your tenant, the newest first."""
    from phronesis_contracts.instructions import LIST_RELEASES_TOOL as TOOL

    found = stack.call(TOOL, {})
    if stack.as_json(found):
        return
    rows = [
        (str(one.number), "active" if one.active else "", str(one.texts), one.by, f"{one.created_at:%Y-%m-%d %H:%M}", one.note)
        for one in found.releases
    ]
    output.table(("RELEASE", "", "TEXTS", "BY", "AT (UTC)", "NOTE"), rows)
    output.note(f"told now: {found.release}")


@app.stack_command()
def diff(
    stack: Stack,
    before: Annotated[
        str, typer.Argument(help="A release by number (0: as shipped), or a folder.", metavar="RELEASE|FOLDER")
    ] = "0",
    after: Annotated[int | None, typer.Argument(help="Another release; the active one by default.", min=0)] = None,
) -> None:
    """What differs between two releases, or what publishing a folder would change."""
    from phronesis_contracts.instructions import DIFF_INSTRUCTIONS_TOOL as DIFF
    from phronesis_contracts.instructions import PUBLISH_INSTRUCTIONS_TOOL as PUBLISH

    if before.isdigit():
        found: Any = stack.call(DIFF, {"before": int(before), "after": after})
    else:
        found = stack.call(PUBLISH, {"texts": _read_texts(Path(before)), "dry_run": True})
    stack.show(found, partial(_print_changes, whole=True))


@app.stack_command()
def publish(stack: Stack, folder: Folder, note: Note = "", yes: Yes = False) -> None:
    """Publish a folder of texts for your tenant as one release, all or none."""
    from phronesis_contracts.instructions import PUBLISH_INSTRUCTIONS_TOOL as TOOL

    texts = _read_texts(folder)
    output.sure(f"Publish {len(texts)} texts for everybody in your tenant?", yes)
    stack.show(stack.call(TOOL, {"texts": texts, "note": note}, writes=True), _print_changes)


@app.stack_command()
def rollback(
    stack: Stack,
    to: Annotated[
        int | None, typer.Argument(help="A release by number; the one before by default; 0 is as shipped.", min=0)
    ] = None,
    yes: Yes = False,
) -> None:
    """Make an earlier release of your tenant active again."""
    from phronesis_contracts.instructions import ROLLBACK_INSTRUCTIONS_TOOL as TOOL

    output.sure("Take the active release back for everybody in your tenant?", yes)
    stack.show(stack.call(TOOL, {"to": to}, writes=True), _print_changes)


def _print_changes(found: Any, whole: bool = False) -> None:
    for change in found.changes:
        output.out(_line(change))
        if whole and change.diff:
            output.out(change.diff)
    number = getattr(found, "number", None)
    active = f"; release {number} is active, told as {found.release}" if number is not None else ""
    output.note(f"{len(found.changes)} texts differ{active}")


def _line(change: TextChange) -> str:
    return f"{change.change}  {change.tag}  {change.before or '-'} -> {change.after or '-'}"


def _read_texts(folder: Path) -> list[dict[str, Any]]:
    from phronesis_contracts import BadRequest

    if not folder.is_dir():
        raise BadRequest(f"{folder} is neither the number of a release nor a folder")
    found = [_read_text(file, folder) for file in sorted(folder.rglob("*.md"))]
    if not found:
        raise BadRequest(f"{folder} holds no files that end with .md")
    return found


def _read_text(file: Path, folder: Path) -> dict[str, Any]:
    from phronesis_contracts import BadRequest

    tag = file.relative_to(folder).with_suffix("").as_posix()
    text = file.read_text(encoding="utf-8")
    stated: dict[str, Any] = {"tag": tag}
    if text.startswith("---\n"):
        head, fence, text = text[4:].partition("---\n")
        if not fence:
            raise BadRequest(f"the head of {file} has no end")
        stated |= _parse_head(head, file)
    return {**stated, "content": text.strip()} if text.strip() else stated


def _parse_head(head: str, file: Path) -> dict[str, Any]:
    from phronesis_contracts import BadRequest

    found: dict[str, Any] = {}
    for line in filter(str.strip, head.splitlines()):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or name not in ("status", "version", "dependencies", "use_cases"):
            raise BadRequest(f"{file} begins with {line!r}; known are status, version, dependencies and use_cases")
        listed = [one.strip() for one in value.strip("[]").split(",") if one.strip()]
        found[name] = listed if name in ("dependencies", "use_cases") else value
    return found
