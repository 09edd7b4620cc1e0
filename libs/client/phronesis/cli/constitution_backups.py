"""`phronesis constitution backup`: create, list, verify, restore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from . import output
from .options import AsJson, Data, Key, Url, Yes

if TYPE_CHECKING:
    from phronesis_contracts.constitution.keeping import BackupDone

app = typer.Typer(help="Backups of the constitutional graph: create, list, verify, restore.", no_args_is_help=True)

BackupId = Annotated[str, typer.Argument(help="Id of a backup.", metavar="ID")]


@app.command()
def create(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Back the graph up, with its vectors."""
    _shown(_ask({"operation": "backup"}, url, key, data), as_json)


@app.command("list")
def list_backups(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """The backups that there are."""
    _shown(_ask({"operation": "list"}, url, key, data), as_json)


@app.command()
def verify(id: BackupId, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Whether a backup is whole; prints the word that a restore asks for."""
    found = _ask({"operation": "verify", "backupId": id}, url, key, data)
    _shown(found, as_json)
    if not as_json and found.confirmation:
        output.note(f"to restore it: phronesis constitution backup restore {id} --confirm {found.confirmation}")


@app.command()
def restore(
    id: BackupId,
    word: Annotated[str, typer.Option("--confirm", help="The word that `verify` prints.", metavar="WORD")],
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Have the graph again as a backup has it; what was made since is removed."""
    output.sure(f"Replace the constitutional graph of your tenant by the backup {id}?", yes)
    found = _ask({"operation": "restore", "backupId": id, "confirmation": word}, url, key, data)
    if as_json:
        output.as_json(found)
        return
    output.out(
        f"{found.restored_nodes} nodes, {found.restored_relationships} relationships and {found.restored_embeddings} vectors "
        f"restored, {found.removed_nodes} nodes removed"
    )


def _ask(given: dict[str, Any], url: str | None, key: str | None, data: Path | None) -> BackupDone:
    from phronesis.sync import Client
    from phronesis_contracts.constitution.keeping import BACKUP_RESTORE_TOOL, BackupDone

    with Client(url, key, data) as client:
        return BackupDone.model_validate(client.tools.call(BACKUP_RESTORE_TOOL.name, given, idempotency_key=uuid4().hex))


def _shown(found: BackupDone, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    rows = (
        (
            each.id,
            f"{each.created_at:%Y-%m-%d %H:%M}",
            str(each.nodes),
            str(each.relationships),
            str(each.embeddings),
            str(each.bytes),
        )
        for each in found.backups
    )
    output.table(("ID", "MADE", "NODES", "RELATIONSHIPS", "VECTORS", "BYTES"), rows)
