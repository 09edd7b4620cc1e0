"""`phronesis profile`: show, set and delete."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from . import output
from .options import AsJson, Data, Key, Url, Yes

if TYPE_CHECKING:
    from phronesis.sync import Client
    from phronesis_contracts.memory import Profile

app = typer.Typer(help="What is known of you: show, set, delete.", invoke_without_command=True)


@app.callback()
def profile(context: typer.Context, url: Url = None, key: Key = None, data: Data = None) -> None:
    """What is known of you: show, correct or delete it."""
    if context.invoked_subcommand is None:
        show(url=url, key=key, data=data)


@app.command()
def show(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """What is known of you."""
    with _client(url, key, data) as client:
        _print(client.profile.get(), as_json)


@app.command("set")
def set_fields(
    fields: Annotated[
        list[str],
        typer.Argument(help="A value is JSON, or else text; null removes; a dot in a key goes inside.", metavar="KEY=VALUE..."),
    ],
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Correct what is known of you."""
    patch = _patch(fields)
    with _client(url, key, data) as client:
        _print(client.profile.update(patch), as_json)


@app.command()
def delete(yes: Yes = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Delete all that is known of you in the profile."""
    output.sure("Delete your profile for good?", yes)
    with _client(url, key, data) as client:
        client.profile.delete()
    output.note("the profile is deleted")


def _patch(fields: list[str]) -> dict[str, Any]:
    from phronesis_contracts import BadRequest

    patch: dict[str, Any] = {}
    for field in fields:
        path, equals, text = field.partition("=")
        *outer, last = path.split(".")
        if not equals or not all([*outer, last]):
            raise BadRequest(f"{field!r} is not KEY=VALUE", field="fields")
        inside = patch
        for name in outer:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise BadRequest(f"{path!r} goes inside a value that is set too", field="fields")
        inside[last] = _value(text)
    return patch


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError:
        return text


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _client(url: Url, key: Key, data: Data) -> Client:
    from phronesis.sync import Client

    return Client(url, key, data)


def _print(found: Profile, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    for name, value in found.profile.items():
        output.out(f"{name} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    if not found.profile:
        output.note("nothing is known of you")
