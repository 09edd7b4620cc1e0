"""`docs/generated/sdk.md`: the public classes of the Python SDK, from their signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import phronesis
from phronesis_contracts import Message

from .tree import GENERATED, GENERATED_DOCS

PATH = GENERATED_DOCS / "sdk.md"
_HEAD = f"""# Python SDK

<!-- {GENERATED} -->
`from phronesis import Client` for blocking code, `AsyncClient` for asyncio: the same calls, there with `await`. Failures raise
`phronesis_contracts.ServiceError` or one of its subclasses, with `code`, `status`, `detail` and `field`. Types that are not
described here are messages from `phronesis_contracts`; [asyncapi.yaml](asyncapi.yaml) has their fields.
"""
_REQUEST = re.compile(r"^Request\[(.+)\]$")
_HEADED = re.compile(r"^(Args|Raises|Returns):\n((?:[ \t]+.*\n?|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^([\w*.]+(?:, [\w*.]+)*): (.+)$")


def documents() -> dict[Path, str]:
    """The page."""
    return {PATH: "\n".join([_HEAD, *_client(), *_helpers(), *_models()]).rstrip() + "\n"}


def _client() -> Iterator[str]:
    yield from ("## Client", "", "```python", f"Client{_signature(phronesis.Client)}", "```", "", _text(phronesis.Client), "")
    for name, member in vars(phronesis.Client).items():
        if not name.startswith("_"):
            yield from _member(f"client.{name}", member)
    for name, resource in resources().items():
        yield from (f"## client.{name}", "", _text(resource), "")
        for called, member in vars(resource).items():
            if not called.startswith("_"):
                yield from _member(f"client.{name}.{called}", member)


def _helpers() -> Iterator[str]:
    yield "## Helpers"
    yield ""
    yield from _member("batches", phronesis.batches)


def resources() -> dict[str, type[Any]]:
    """The groups of calls of a client, by the name of their attribute."""
    with phronesis.Client("http://127.0.0.1:9", "none") as client:
        return {name: type(value) for name, value in vars(client).items() if not name.startswith("_")}


def _member(name: str, member: Any) -> Iterator[str]:
    if isinstance(member, property):
        yield from (f"### {name}", "", _text(member), "")
    else:
        text = _text(member)
        yield from (f"### {name}", "", "```python", f"{name}{_signature(member)}", "```", "", *((text, "") if text else ()))


def _signature(called: Callable[..., Any]) -> str:
    """The parameters and the result as the source states them, one to a line where they are many."""
    found = inspect.signature(called)
    shown, star = [], False
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            shown.append("*")
        stated = "" if parameter.annotation is parameter.empty else f": {_name(parameter.annotation)}"
        default = (
            "" if parameter.default is parameter.empty else f" = {parameter.default!r}" if stated else f"={parameter.default!r}"
        )
        shown.append(f"{parameter.name}{stated}{default}")
    result = "" if found.return_annotation in (found.empty, None, "None") else f" -> {_result(found.return_annotation)}"
    line = f"({', '.join(shown)}){result}"
    if len(line) > 80:
        line = "(\n" + "".join(f"    {one},\n" for one in shown) + f"){result}"
    return line


def _name(annotation: Any) -> str:
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\b[a-z_]+\.(?=[A-Z])", "", name)


def _result(annotation: Any) -> str:
    name = _name(annotation)
    described = _REQUEST.match(name)
    return described[1] if described else name


def _text(described: Any) -> str:
    """A docstring as Markdown: its lists of arguments and errors become lists."""
    doc = inspect.getdoc(described)
    return _HEADED.sub(_listed, f"{doc}\n").strip() if doc else ""


def _listed(section: re.Match[str]) -> str:
    entries: list[str] = []
    for line in inspect.cleandoc(section[2]).splitlines():
        entry = _ENTRY.match(line)
        if entry and not line.startswith(" "):
            entries.append(f"- `{entry[1]}`: {entry[2]}")
        elif entries:
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(f"- {line}")
    return f"{ {'Args': 'Arguments'}.get(section[1], section[1]) }:\n\n" + "\n".join(entries) + "\n\n"


def _models() -> Iterator[str]:
    yield from ("## Types", "")
    for name in sorted(phronesis.__all__):
        model = getattr(phronesis, name)
        if inspect.isclass(model) and issubclass(model, Message):
            yield from (f"### {name}", "", _text(model), "", "| field | type |", "| --- | --- |")
            hints = get_type_hints(model)
            for field in model.model_fields:
                yield f"| `{field}` | `{_type(hints[field])}` |"
            yield ""


def _type(hint: Any) -> str:
    name = hint.__name__ if isinstance(hint, type) and not hasattr(hint, "__args__") else str(hint)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", name).replace("|", "\\|")
