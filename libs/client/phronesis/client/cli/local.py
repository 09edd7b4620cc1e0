"""`phronesis up down restart status ...`: handed on to the embedded stack's package, imported when one of them runs."""

from __future__ import annotations

import typer

from . import output

COMMANDS = {
    "up": "Start a stack on this machine.",
    "down": "Stop the stack of this machine.",
    "restart": "Restart the services of this machine one by one.",
    "status": "Show what runs, and whether it is well.",
    "doctor": "Find out why a stack does not run.",
    "rebuild": "Make vectors and links anew.",
}


def register(app: typer.Typer) -> None:
    """Add the commands; their options are the package's own."""
    for name, help_text in COMMANDS.items():
        settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
        app.command(name, help=help_text, context_settings=settings)(_hand_on)


def _hand_on(context: typer.Context) -> None:
    try:
        from phronesis.local.cli import register as register_local
    except ModuleNotFoundError as exc:
        if exc.name not in ("phronesis.local", "phronesis.local.cli"):
            raise
        output.note("error: unavailable: the embedded stack is not installed; install the package phronesis-local")
        raise typer.Exit(output.FAILURE) from exc
    app = typer.Typer(name="phronesis", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    register_local(app)
    result = app(args=[str(context.info_name), *context.args], prog_name="phronesis", standalone_mode=False)
    raise typer.Exit(result if isinstance(result, int) else 0)
