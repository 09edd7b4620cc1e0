"""`phronesis keys`: create, list and revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .options import Data, Key, Url

if TYPE_CHECKING:
    from phronesis.client.sync import Client

app = typer.Typer(help="Keys of the gateway: create, list, revoke.", no_args_is_help=True)


@app.command()
def create(
    tenant: Annotated[str, typer.Option(help="Whose data it opens.")],
    user: Annotated[str, typer.Option(help="For whom it acts.")],
    role: Annotated[str, typer.Option(help="What it may do: noor, maestro, curator, editor, admin, ...")],
    department: Annotated[str | None, typer.Option(help="The user's department.")] = None,
    ministry: Annotated[str | None, typer.Option(help="The user's ministry.")] = None,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Make a key and print it, alone, on stdout. It cannot be shown again."""
    from phronesis.contracts import BadRequest, Role

    if role not in set(Role):
        raise BadRequest(f"the roles are {', '.join(Role)}", field="role")
    with _client(url, key, data) as client:
        made = client.keys.create(tenant, user, Role(role), department, ministry)
    output.note(f"key {made.id} for {made.user} of {made.tenant} as {made.role}")
    output.out(made.key)


@app.command("list")
def list_keys(url: Url = None, key: Key = None, data: Data = None) -> None:
    """The keys there are, without their secrets."""
    with _client(url, key, data) as client:
        found = client.keys.list()
    rows = [(k.id, k.tenant, k.user, k.role, "revoked" if k.revoked_at else "good") for k in found]
    output.table(("KEY", "TENANT", "USER", "ROLE", "STATE"), rows)


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it.")],
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Revoke a key; its turns end."""
    with _client(url, key, data) as client:
        client.keys.revoke(id)
    output.note(f"key {id} is revoked")


def _client(url: Url, key: Key, data: Data) -> Client:
    from phronesis.client.sync import Client

    return Client(url, key, data)
