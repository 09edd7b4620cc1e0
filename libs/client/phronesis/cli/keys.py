"""`phronesis keys`: create, list and revoke."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .options import AsJson, Data, Key, Url

if TYPE_CHECKING:
    from phronesis.models import KeyInfo, NewBusKey
    from phronesis.sync import Client

app = typer.Typer(help="Keys of the gateway: create, list, revoke.", no_args_is_help=True)


class For(StrEnum):
    """What a key opens."""

    HTTP = "http"
    BUS = "bus"


@app.command()
def create(
    tenant: Annotated[str, typer.Option(help="Whose data it opens.")],
    user: Annotated[str, typer.Option(help="For whom it acts.")],
    role: Annotated[str, typer.Option(help="What it may do: noor, maestro, curator, editor, admin, ...")],
    department: Annotated[str | None, typer.Option(help="The user's department.")] = None,
    ministry: Annotated[str | None, typer.Option(help="The user's ministry.")] = None,
    what: Annotated[For, typer.Option("--for", help="What it opens: the gateway, or the bus to an outside system.")] = For.HTTP,
    days: Annotated[int, typer.Option(help="Days that a key of the bus is good for, 366 at most.")] = 90,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Make a key and print it, alone, on stdout. It cannot be shown again."""
    from phronesis_contracts import BadRequest, Role

    if role not in set(Role):
        raise BadRequest(f"the roles are {', '.join(Role)}", field="role")
    with _client(url, key, data) as client:
        if what is For.BUS:
            for_bus = client.keys.create_for_bus(tenant, user, Role(role), department, ministry, days)
            made: KeyInfo = for_bus
            shown = _snippet(for_bus)
        else:
            for_http = client.keys.create(tenant, user, Role(role), department, ministry)
            made, shown = for_http, for_http.key
    output.note(f"key {made.id} for {made.user} of {made.tenant} as {made.role}")
    if as_json:
        output.as_json(made)
    else:
        output.out(shown)


def _snippet(made: NewBusKey) -> str:
    """What an outside system has to know, as the beginning of its program."""
    return f"""\
import nats

TENANT, USER = {made.tenant!r}, {made.user!r}
HEADERS = {{"Phronesis-Principal": {made.token!r}}}

broker = await nats.connect(
    {list(made.servers)!r},
    user={made.nats_user!r},
    password={made.nats_password!r},
    inbox_prefix={made.inbox!r},
)"""


@app.command("list")
def list_keys(url: Url = None, key: Key = None, data: Data = None) -> None:
    """The keys there are, without their secrets."""
    with _client(url, key, data) as client:
        found = client.keys.list()
    rows = [(k.id, k.tenant, k.user, k.role, "bus" if k.bus else "http", _state(k)) for k in found]
    output.table(("KEY", "TENANT", "USER", "ROLE", "FOR", "STATE"), rows)


def _state(key: KeyInfo) -> str:
    if key.revoked_at:
        return "revoked"
    if key.expires_at is None:
        return "good"
    return "expired" if key.expires_at < datetime.now(UTC) else f"good until {key.expires_at:%Y-%m-%d}"


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it.")],
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Revoke a key; its turns end, and an outside system that came in with it is put out."""
    with _client(url, key, data) as client:
        client.keys.revoke(id)
    output.note(f"key {id} is revoked")


def _client(url: Url, key: Key, data: Data) -> Client:
    from phronesis.sync import Client

    return Client(url, key, data)
