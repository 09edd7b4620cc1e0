"""The commands `backup`, `restore`, `export` and `import`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from .format import Manifest

T = TypeVar("T")
FAILED, REFUSED, INTERRUPTED = 1, 3, 130

File = Annotated[Path, typer.Argument(help="The archive.", metavar="FILE")]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Data directory of a local stack; by default the stores that POSTGRES_DSN and its like name, or ~/.phronesis.",
        metavar="DIR",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether you mean it.")]


def backup(
    file: File, data: Data = None, force: Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")] = False
) -> None:
    """Write everything that a running stack holds to one archive, as it is at one moment."""
    from . import places
    from .backup import backup as run
    from .reporting import Progress

    async def work() -> Manifest:
        where = places.find_places(places.local_data(data))
        progress.say(f"backup of {where.name}")
        return await run(where, file, progress, force=force)

    progress = Progress()
    manifest = _report_errors(work())
    size = file.stat().st_size / 1024**2
    typer.echo(f"{file}: {size:,.1f} MiB, as of {manifest.point:%Y-%m-%d %H:%M:%S} UTC, in {progress.seconds:.1f} s")


def restore(
    file: File,
    data: Data = None,
    force: Annotated[bool, typer.Option("--force", help="Remove first what the stores hold.")] = False,
    forgotten: Annotated[
        Path | None, typer.Option("--forgotten", help="What to forget again: a file of `phronesis forgotten`.", metavar="FILE")
    ] = None,
    yes: Yes = False,
) -> None:
    """Load a backup into empty stores. No service may run; of a local stack the servers are started for it."""
    from . import places
    from .archive import Archive
    from .places import open_idle_stores
    from .reporting import Progress
    from .restore import read_forgotten
    from .restore import restore as run

    async def work() -> tuple[Manifest, dict[str, int]]:
        archive = Archive.checked(file, "backup")
        known = read_forgotten(forgotten) if forgotten is not None else ()
        progress.say(f"the archive is whole: {archive.manifest.point:%Y-%m-%d %H:%M:%S} UTC")
        if force and not yes:
            typer.confirm("Remove everything that the stores hold?", abort=True, err=True)
        async with open_idle_stores(places.local_data(data)) as where:
            return archive.manifest, await run(where, archive, progress, force=force, known=known)

    progress = Progress()
    _compare_counts(*_report_errors(work()), progress.seconds)


def export(
    tenant: Annotated[str, typer.Argument(help="Whose.", metavar="TENANT")],
    file: File,
    data: Data = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")] = False,
) -> None:
    """Write everything that one tenant has to an archive; its API keys stay."""
    from . import places
    from .backup import backup as run
    from .reporting import Progress
    from .tenancy import make_tenancy

    async def work() -> Manifest:
        where = places.find_places(places.local_data(data))
        progress.say(f"export of {tenant} from {where.name}")
        return await run(where, file, progress, tenant=make_tenancy(tenant).old, force=force)

    progress = Progress()
    manifest = _report_errors(work())
    held = sum(member.count for member in manifest.members)
    typer.echo(
        f"{file}: {held:,} records of {tenant}, as of {manifest.point:%Y-%m-%d %H:%M:%S} UTC, in {progress.seconds:.1f} s"
    )


def bring_in(
    file: File,
    name: Annotated[str | None, typer.Option("--as", help="The tenant's name here, if another.", metavar="TENANT")] = None,
    data: Data = None,
) -> None:
    """Load a tenant's archive into an installation that runs, and where the tenant has nothing."""
    from . import places
    from .archive import Archive
    from .reporting import Progress
    from .tenancy import make_tenancy
    from .tenant_import import import_tenant as run

    async def work() -> str:
        archive = Archive.checked(file, "tenant")
        tenancy = make_tenancy(archive.manifest.about.tenant, name)
        await run(places.find_places(places.local_data(data)), archive, tenancy, progress)
        return tenancy.new

    progress = Progress()
    typer.echo(f"{_report_errors(work())} is there, in {progress.seconds:.1f} s")


def forgotten(file: File, data: Data = None) -> None:
    """Write what was forgotten, by ids alone, for a restore of a backup that is older: keep it beside your backups."""
    from . import places
    from .restore import find_forgotten as known
    from .restore import write_forgotten
    from .tables import connect_owner

    async def work() -> int:
        async with connect_owner(places.find_places(places.local_data(data)).postgres) as connection:
            found = await known(connection)
        write_forgotten(found, file)
        return len(found)

    typer.echo(f"{file}: {_report_errors(work())} forgettings")


def register(app: typer.Typer) -> None:
    for name, command in _COMMANDS.items():
        app.command(name)(command)


_COMMANDS: dict[str, Callable[..., None]] = {
    "backup": backup,
    "restore": restore,
    "forgotten": forgotten,
    "export": export,
    "import": bring_in,
}


def _report_errors(work: Coroutine[Any, Any, T]) -> T:
    from phronesis_contracts import ServiceError

    from .reporting import Failed, Refused

    try:
        return asyncio.run(_end_in_order(work))
    except asyncio.CancelledError as error:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from error
    except Refused as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(REFUSED) from error
    except (Failed, ServiceError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(FAILED) from error


async def _end_in_order(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`; told to end, it leaves no half file and no server behind, as with Ctrl-C."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def _compare_counts(manifest: Manifest, counts: dict[str, int], seconds: float) -> None:
    wrong = 0
    typer.echo(f"{'what':<40}{'archive':>12}{'here':>12}")
    for member in manifest.members:
        here = counts.get(member.name, 0)
        wrong += here != member.count
        typer.echo(f"{member.name:<40}{member.count:>12,}{here:>12,}{'' if here == member.count else '  DIFFERS'}")
    if wrong:
        typer.echo("error: the stores do not hold what the archive does: restore it again with --force", err=True)
        raise typer.Exit(FAILED)
    if (lacking := counts.get("postgres/memory/items", 0) - counts.get("vectors", 0)) > 0:
        typer.echo(f"{lacking:,} items have no vector yet: start the stack and run `phronesis rebuild`", err=True)
    typer.echo(f"restored in {seconds:.1f} s")
