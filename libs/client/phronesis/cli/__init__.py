"""The command `phronesis`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from . import output
from .app import app

__all__ = ["app", "main", "run"]


def main() -> None:
    """Run the command with the arguments of this process, and leave with its exit code."""
    # httpx imports its own command, and with it click, rich and pygments, where those are installed: half of our start.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Returns:
        0 for success, 1 for a failure of the stack or the network, 2 for wrong usage, 3 for a refusal, 130 after Ctrl-C.
    """
    try:
        result = app(args=list(arguments), prog_name="phronesis", standalone_mode=False)
    except typer.TyperException as error:
        return _usage(error)
    except (typer.Abort, KeyboardInterrupt):
        return output.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return output.FAILURE
    except Exception as error:
        return _failed(error)
    return result if isinstance(result, int) else 0


def _usage(error: typer.TyperException) -> int:
    text = error.format_message()
    if text.startswith("Usage:"):
        output.note(text)
    elif text:
        output.note(f"error: usage: {' '.join(text.split())}")
    return error.exit_code


def _failed(error: Exception) -> int:
    from phronesis_contracts import ServiceError

    if not isinstance(error, ServiceError):
        raise error
    return output.fail(error)
