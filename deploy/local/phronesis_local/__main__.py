"""`python -m phronesis_local up|down|status|doctor`: the stack's commands without the client."""

from __future__ import annotations

import typer

from .cli import register

if __name__ == "__main__":
    app = typer.Typer(no_args_is_help=True, add_completion=False)
    register(app)
    app()
