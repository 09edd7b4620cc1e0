"""The commands `up`, `down`, `restart`, `status`, `doctor` and `rebuild`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import psutil
import typer

from .layout import DataDir, marked_processes
from .settings import LocalSettings, Model, Stores

_REBUILT_SERVICE = "memory"


class NotRunning(Exception):
    """No memory service runs on this data directory."""


def run_rebuild(data: DataDir, parts: Sequence[str]) -> int:
    """Make `parts` anew, beside the stack; the program's exit code. Raises `NotRunning`: the stack does not run."""
    for name, process in marked_processes(data):
        if name == _REBUILT_SERVICE:
            try:
                environment = process.environ()
            except psutil.Error:
                continue
            return subprocess.call([sys.executable, "-m", "phronesis_memory.rebuild", *parts], env=environment)
    raise NotRunning(f"no stack runs on {data.root}; start it with `phronesis up`")


Data = Annotated[Path | None, typer.Option("--data", help="Data directory; PHRONESIS_DATA, or ~/.phronesis, by default.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65_535, help="The gateway's port; 0 for any free one.")]
WhichStores = Annotated[
    Stores | None, typer.Option("--stores", help="ArcadeDB and pgvector (embedded), or Neo4j and Weaviate (production).")
]


class Part(StrEnum):
    """What can be made anew."""

    VECTORS = "vectors"
    LINKS = "links"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def up(
    data: Data = None,
    port: Port = None,
    stores: WhichStores = None,
    replicas: Annotated[int | None, typer.Option("--replicas", min=1, max=9, help="Processes of each service.")] = None,
    model: Annotated[
        Model | None, typer.Option("--model", help="What answers: as configured, or a small model on this machine (local).")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready, and leave it running.")] = False,
) -> None:
    """Start a stack on this machine: real servers and the six services, as child processes."""
    from . import up as starting

    settings = _settings(data, port, stores, replicas, model)
    raise typer.Exit(starting.up_detached(settings) if detach else starting.up(settings))


def down(data: Data = None) -> None:
    """Stop the stack, and whatever a killed one has left behind."""
    from .layout import DataDir
    from .stack import WillNotEnd
    from .stack import stop_stack as stop

    folder = DataDir(_settings(data).data)
    try:
        typer.echo("stopped" if stop(folder) else f"nothing runs on {folder.root}")
    except WillNotEnd as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


def restart(
    services: Annotated[
        list[str] | None, typer.Argument(help="Services, or single parts such as memory-2; all by default.")
    ] = None,
    data: Data = None,
) -> None:
    """Restart the services one process after the other; the exit code is 1 when one does not come up again."""
    from . import up as restarting
    from .layout import DataDir

    raise typer.Exit(restarting.restart(DataDir(_settings(data).data), services or ()))


def status(data: Data = None, as_json: AsJson = False) -> None:
    """Tell what runs; the exit code is 0 when all of it is up."""
    from . import status as reading
    from .layout import DataDir
    from .status import print_status

    found = reading.status(DataDir(_settings(data).data))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        print_status(found)
    raise typer.Exit(0 if reading.all_up(found) else 1)


def doctor(data: Data = None, stores: WhichStores = None, as_json: AsJson = False) -> None:
    """Look for what is wrong, and say what to do about it; the exit code is 1 when something is."""
    from . import doctor as looking
    from .layout import DataDir
    from .status import print_findings

    settings = _settings(data, stores=stores)
    found = looking.examine(DataDir(settings.data), settings)
    if as_json:
        typer.echo(json.dumps([finding.model_dump() for finding in found], indent=2))
    else:
        print_findings(found)
    raise typer.Exit(0 if all(finding.ok for finding in found) else 1)


def rebuild(
    parts: Annotated[list[Part] | None, typer.Argument(help="What to make anew: vectors, links; both by default.")] = None,
    data: Data = None,
) -> None:
    """Make the vectors, and the graph of users' items, anew from the items; the stack goes on meanwhile."""
    from .layout import DataDir

    try:
        code = run_rebuild(DataDir(_settings(data).data), [part.value for part in parts or Part])
    except NotRunning as error:
        typer.echo(str(error), err=True)
        code = 1
    raise typer.Exit(code)


def register(app: typer.Typer) -> None:
    for command in (up, down, restart, status, doctor, rebuild):
        app.command()(command)


def _settings(
    data: Path | None,
    port: int | None = None,
    stores: Stores | None = None,
    replicas: int | None = None,
    model: Model | None = None,
) -> LocalSettings:
    wanted = {"data": data, "port": port, "stores": stores, "replicas": replicas, "model": model}
    given = {name: value for name, value in wanted.items() if value is not None}
    return LocalSettings().model_copy(update=given)
