"""`docs/generated/cli.md`: every command of `phronesis`, from the program itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main

from phronesis.cli.app import SECTIONS, app
from phronesis_local import cli as local
from phronesis_operations import cli as operations

from .tree import GENERATED, GENERATED_DOCS

PATH = GENERATED_DOCS / "cli.md"
SHARED = ("--url", "--key", "--data", "--as", "--json")
"""Options of the commands that talk to a stack; they are listed once."""
_HEAD = f"""# Command line

<!-- {GENERATED} -->
`phronesis --help` lists the commands, `phronesis COMMAND --help` explains one. Exit codes: 1 for a failure, 2 for a wrong use,
3 for a refusal by the stack, 130 after an interruption.
"""


def documents() -> dict[Path, str]:
    """The page."""
    return {PATH: "\n".join([_HEAD, *_shared(), *_commands()]).rstrip() + "\n"}


def program() -> Any:
    """The command with all it hands on to other packages."""
    whole = typer.main.get_command(app)
    for part in (local, operations):
        found = typer.Typer(rich_markup_mode=None)
        part.register(found)
        whole.commands |= typer.main.get_command(found).commands  # type: ignore[attr-defined]
    return whole


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that call it."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, one in command.commands.items():
        if not one.hidden:
            yield from leaves(one, (*path, name))


def _commands() -> Iterator[str]:
    whole = program()
    named = {name for names in SECTIONS.values() for name in names}
    others = tuple(name for name in whole.commands if name not in named)
    for title, names in (SECTIONS | ({"Others": others} if others else {})).items():
        yield from (f"## {title}", "")
        for name in names:
            for path, command in leaves(whole.commands[name], (name,)):
                yield from _command(path, command)


def _command(path: tuple[str, ...], command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=" ".join(("phronesis", *path)))
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f"### phronesis {' '.join(path)}", "", " ".join((command.help or "").split()), "")
    yield from (f"    phronesis {' '.join(path)} {usage}".rstrip(), "")
    talks = _has(command, "--url")
    rows = [row for row in _rows(command, context) if not (talks and _option(row) in SHARED) and _option(row) != "--help"]
    if rows:
        yield from ("| argument or option | |", "| --- | --- |", *(f"| `{name}` | {text} |" for name, text in rows), "")
    if talks:
        json = ", with" if _has(command, "--json") else ", without"
        yield from (f"Takes the [options of a stack](#options-of-a-stack){json} `--json`.", "")


def _option(row: tuple[str, str]) -> str:
    return re.split(r"[ ,]", row[0])[0]


def _rows(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            name, text = record
            yield name.replace("|", "\\|"), " ".join(text.split()).replace("|", "\\|")


def _has(command: Any, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def _shared() -> Iterator[str]:
    ask = program().commands["ask"]
    context = typer.Context(ask, info_name="phronesis ask")
    rows = [row for row in _rows(ask, context) if _option(row) in SHARED]
    yield from ("## Options of a stack", "", "Commands that talk to a stack take them.", "")
    yield from ("| option | |", "| --- | --- |", *(f"| `{name}` | {text} |" for name, text in rows), "")
