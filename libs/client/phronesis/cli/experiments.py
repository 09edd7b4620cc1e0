"""`phronesis instructions experiment`: start, stop, list and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .options import AsJson, Data, Key, Url, Yes

if TYPE_CHECKING:
    from phronesis_contracts.experiments import ArmResult, Experiment, Interval

app = typer.Typer(help="Experiments on what agents are told: start, stop, list, report.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of an experiment.")]


@app.command()
def start(
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
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Divide the users of your tenant among arms by weight; each arm is told its own texts."""
    from phronesis_contracts.experiments import START_EXPERIMENT_TOOL as TOOL

    from .instructions import ask

    body = {"name": name, "arms": [_arm(arm) for arm in arms]}
    output.sure(f"Start the experiment {name} for everybody in your tenant?", yes)
    _print(ask(TOOL.name, TOOL.rpc, body, url, key, data, writes=True), as_json)


@app.command()
def stop(name: Name, yes: Yes = False, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Tell everybody the same again; what came of it stays."""
    from phronesis_contracts.experiments import STOP_EXPERIMENT_TOOL as TOOL

    from .instructions import ask

    output.sure(f"Stop the experiment {name}?", yes)
    _print(ask(TOOL.name, TOOL.rpc, {"name": name}, url, key, data, writes=True), as_json)


@app.command("list")
def list_experiments(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """The experiments of your tenant, the newest first."""
    from phronesis_contracts.experiments import LIST_EXPERIMENTS_TOOL as TOOL

    from .instructions import ask

    found = ask(TOOL.name, TOOL.rpc, {}, url, key, data)
    if as_json:
        output.as_json(found)
        return
    for one in found.experiments:
        _print(one, False)


@app.command()
def report(
    name: Name,
    confidence: Annotated[float, typer.Option(help="Of the intervals.", min=0.5, max=0.999)] = 0.95,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Users and outcomes by arm, with confidence intervals."""
    from phronesis_contracts.experiments import REPORT_EXPERIMENT_TOOL as TOOL

    from .instructions import ask

    found = ask(TOOL.name, TOOL.rpc, {"name": name, "confidence": confidence}, url, key, data)
    if as_json:
        output.as_json(found)
        return
    rows = [_result(metric.metric, arm) for metric in found.metrics for arm in metric.arms]
    output.table(("METRIC", "ARM", "EXPOSED", "WITH OUTCOME", "MEAN", "AGAINST THE FIRST"), rows)
    _print(found.experiment, False)


def _arm(stated: str) -> dict[str, Any]:
    from phronesis_contracts import BadRequest

    name, equals, rest = stated.partition("=")
    weight, _, folder = rest.partition(":")
    if not equals or not weight.isdigit():
        raise BadRequest(f"{stated!r} is not NAME=WEIGHT or NAME=WEIGHT:FOLDER", field="arm")
    return {"name": name, "weight": int(weight), "texts": _texts(Path(folder)) if folder else {}}


def _texts(folder: Path) -> dict[str, str]:
    from phronesis_contracts import BadRequest

    found = {
        file.relative_to(folder).with_suffix("").as_posix(): file.read_text(encoding="utf-8").strip()
        for file in sorted(folder.rglob("*.md"))
    }
    if not found:
        raise BadRequest(f"{folder} holds no files that end with .md", field="arm")
    return found


def _print(found: Experiment, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    ended = f", stopped {found.stopped_at:%Y-%m-%d %H:%M}" if found.stopped_at else ""
    output.out(f"{found.name}: {found.status} since {found.started_at:%Y-%m-%d %H:%M}{ended}")
    for arm in found.arms:
        output.out(f"  {arm.name}: weight {arm.weight}, {arm.users} users, {', '.join(arm.tags) or 'as everybody is told'}")


def _result(metric: str, arm: ArmResult) -> tuple[str, ...]:
    return (metric, arm.arm, str(arm.exposed), str(arm.users), _interval(arm.mean), _interval(arm.against_first))


def _interval(found: Interval | None) -> str:
    return "-" if found is None else f"{found.estimate:.4g} ({found.low:.4g} to {found.high:.4g}; {found.method})"
