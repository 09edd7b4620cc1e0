"""What the command prints, and the options that every command shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints
from uuid import uuid4

import typer

if TYPE_CHECKING:
    from phronesis_contracts import Message, ServiceError, Tool
    from phronesis_contracts.orchestrator import Reply

    from ..sync import Client

    Out = TypeVar("Out", bound=Message)

FAILURE = 1
USAGE = 2
REFUSED = 3
INTERRUPTED = 130

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """`text` without control characters: what a document says must not steer the reader's terminal."""
    return _CONTROL.sub("", text)


def out(text: str = "") -> None:
    typer.echo(clean(text))


SHOWN = 300
"""Characters of a text that a list shows."""


def cut(content: str, most: int = SHOWN) -> str:
    """A text on one line, and no more of it than a list shows."""
    text = " ".join(content.split())
    return text if len(text) <= most else f"{text[:most]}…"


def note(text: str) -> None:
    """Tell the reader something that is no result."""
    typer.echo(clean(text), err=True)


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

        raise Unavailable("the sample data is not installed: pip install 'phronesis[local]'") from missing


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [list(header), *([clean(cell).replace("\n", " ") for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        out("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def counts(name: str, held: Mapping[str, Mapping[str, int]], width: int) -> None:
    """Print what services hold, a line for each. `width`: characters that the name takes at least."""
    told = [f"{service}: {', '.join(f'{count} {what}' for what, count in of.items())}" for service, of in held.items() if of]
    for line in told or ["nothing"]:
        out(f"{name:<{width}} {line}")


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


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether you mean it.")]
Url = Annotated[str | None, typer.Option("--url", help="Address of a gateway [env: PHRONESIS_URL].", metavar="URL")]
Key = Annotated[str | None, typer.Option("--key", help="A key of that gateway [env: PHRONESIS_KEY].", metavar="KEY")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data directory of a local stack [env: PHRONESIS_DATA; default: ~/.phronesis].", metavar="DIR"),
]
ActsFor = Annotated[
    str | None, typer.Option("--as", help="A user to act for; the key needs the scope act_for_users.", metavar="USER")
]
_OPTIONS: dict[str, Any] = {"url": Url, "key": Key, "data": Data, "acts_for": ActsFor}
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, alone, on stdout.")]


@dataclass(frozen=True)
class Stack:
    """The stack that a command talks to, and how it prints its result."""

    url: str | None = None
    key: str | None = None
    data: Path | None = None
    json: bool = False
    acts_for: str | None = None

    def client(self) -> Client:
        from ..sync import Client

        return Client(self.url, self.key, self.data, self.acts_for)

    def call(self, tool: Tool[Any, Out], given: Mapping[str, Any], *, writes: bool = False) -> Out:
        """Call a tool and parse its result; fields that are `None` are left out."""
        stated = {name: value for name, value in given.items() if value is not None}
        with self.client() as client:
            return tool.rpc.output.model_validate(client.tools.call(tool.name, stated, uuid4().hex if writes else None))

    def as_json(self, result: Message) -> bool:
        """Print a result as JSON, alone, where that is wanted. Returns whether it was printed."""
        if self.json:
            typer.echo(result.model_dump_json(indent=2))
        return self.json

    def show(self, result: Out, show: Callable[[Out], object]) -> None:
        if not self.as_json(result):
            show(result)


_Command = TypeVar("_Command", bound=Callable[..., None])


class Commands(typer.Typer):
    """A group of commands that share the options --url, --key and --data, and --json where there is a result to print."""

    def stack_command(
        self, name: str | None = None, *, json: bool = True, options: bool = True
    ) -> Callable[[_Command], _Command]:
        """Add a command whose first parameter is the stack; with `options` off it is the one that the group chose."""

        def register(function: _Command) -> _Command:
            shared = ({"json": AsJson} if json else {}) | (_OPTIONS if options else {})
            self.command(name)(_with_stack(function, shared))
            return function

        return register

    def default_command(self, *, json: bool = False) -> Callable[[_Command], _Command]:
        """Run a command with its defaults where the group is named alone."""

        def register(function: _Command) -> _Command:
            shared = ({"json": AsJson} if json else {}) | _OPTIONS
            self.callback(invoke_without_command=True)(_with_stack(function, shared, default=True))
            return function

        return register


def _with_stack(function: Callable[..., None], shared: dict[str, Any], *, default: bool = False) -> Callable[..., None]:
    """What typer calls: `function` with the options `shared` in place of its first parameter, the stack."""

    @wraps(function)
    def command(_context: typer.Context, **given: Any) -> None:
        chosen = _context.obj if isinstance(_context.obj, Stack) else Stack()
        stack = replace(chosen, **{name: given.pop(name) for name in shared})
        if not (default and _context.invoked_subcommand):
            function(stack, **given)

    hints = get_type_hints(function, include_extras=True)
    _, *own = signature(function).parameters.values()
    parameters = [Parameter("_context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    if not default:
        parameters += [one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in own]
    for name, option in shared.items():
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(Stack, name), annotation=option))
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command
