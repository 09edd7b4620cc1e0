"""What the command prints, and the options that every command shares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from phronesis_contracts import Message, ServiceError
    from phronesis_contracts.orchestrator import Reply


FAILURE = 1
USAGE = 2
REFUSED = 3
INTERRUPTED = 130

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """`text` without control characters: what a document says must not steer the reader's terminal."""
    return _CONTROL.sub("", text)


def out(text: str = "") -> None:
    """Print a result."""
    typer.echo(clean(text))


def note(text: str) -> None:
    """Tell the reader something that is no result."""
    typer.echo(clean(text), err=True)


def as_json(message: Message) -> None:
    """Print a result as JSON, alone."""
    typer.echo(message.model_dump_json(indent=2))


def sure(question: str, yes: bool) -> None:
    """Ask whether it is meant, unless `yes` says so; anything but yes, and no answer at all, ends the command."""
    if not yes:
        typer.confirm(question, abort=True, err=True)


def fail(error: ServiceError) -> int:
    """Print an error as one line. Returns the exit code: 3 for a refusal (4xx), 1 for any other failure."""
    where = f" ({error.field})" if error.field else ""
    note(f"error: {error.code}: {' '.join(error.detail.split())}{where}")
    return REFUSED if 400 <= error.status < 500 else FAILURE


def samples(name: str) -> Any:
    """The module of a sample, which is a package of its own.

    Args:
        name: `portfolio`, `institute` or `twin`.

    Raises:
        Unavailable: the package is not installed.
    """
    try:
        return import_module(f"phronesis_samples.{name}")
    except ModuleNotFoundError as missing:
        from phronesis_contracts import Unavailable

        raise Unavailable("the sample data is not installed: pip install phronesis-samples") from missing


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows in aligned columns."""
    lines = [list(header), *([clean(cell).replace("\n", " ") for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        out("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def reply(answer: Reply) -> None:
    """Print a reply with its sources and with what was missing when it was made."""
    out(answer.user_response)
    if answer.sources:
        out("\nSources")
    for number, source in enumerate(answer.sources, 1):
        out(f"  {number}. {source.title} ({source.type}, score {source.score:.2f})")
    marks = [f"reasoner: {answer.reasoner}"]
    if answer.degraded:
        marks.append(f"degraded: {', '.join(answer.degraded)}")
    note(f"\n[{'; '.join(marks)}; {answer.usage.ms} ms; turn {answer.turn_id}; conversation {answer.conversation_id}]")


Url = Annotated[str | None, typer.Option("--url", help="Address of a gateway [env: PHRONESIS_URL].", metavar="URL")]
Key = Annotated[str | None, typer.Option("--key", help="A key of that gateway [env: PHRONESIS_KEY].", metavar="KEY")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data directory of a local stack [env: PHRONESIS_DATA; default: ~/.phronesis].", metavar="DIR"),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether you mean it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, alone, on stdout.")]
