"""Commands of other packages, which are imported when one of them runs: of the embedded stack, and of operations."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import typer

from . import output

LOCAL = {
    "up": "Start a stack on this machine.",
    "down": "Stop the stack of this machine.",
    "restart": "Restart the services of this machine one by one.",
    "status": "Show what runs, and whether it is well.",
    "doctor": "Find out why a stack does not run.",
    "rebuild": "Make vectors and links anew.",
}
OPERATIONS = {
    "backup": "Write everything that a stack holds to one archive.",
    "restore": "Load a backup into empty stores.",
    "forgotten": "Write the list of what was forgotten, for the restore of an older backup.",
    "export": "Write what one tenant has to an archive.",
    "import": "Load a tenant's archive.",
}


def register(app: typer.Typer) -> None:
    """Add the commands; their options are the packages' own."""
    for package, commands in (("local", LOCAL), ("operations", OPERATIONS)):
        for name, help_text in commands.items():
            settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
            app.command(name, help=help_text, context_settings=settings)(_handed_on(package))


def _handed_on(package: str) -> Callable[[typer.Context], None]:
    def hand_on(context: typer.Context) -> None:
        try:
            cli = import_module(f"phronesis_{package}.cli")
        except ModuleNotFoundError as exc:
            if exc.name not in (f"phronesis_{package}", f"phronesis_{package}.cli"):
                raise
            output.note(f"error: unavailable: install the package phronesis-{package} first")
            raise typer.Exit(output.FAILURE) from exc
        app = typer.Typer(name="phronesis", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        cli.register(app)
        result = app(args=[str(context.info_name), *context.args], prog_name="phronesis", standalone_mode=False)
        raise typer.Exit(result if isinstance(result, int) else 0)

    return hand_on
