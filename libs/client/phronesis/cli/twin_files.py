"""`phronesis load ONTOLOGY.yaml DATA.csv ...`: a tenant's own twin, checked whole before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import typer
from pydantic import Field

from phronesis_contracts import BadRequest, Message
from phronesis_contracts.ontology import (
    GET_TOOL,
    PUBLISH_TOOL,
    VOCABULARY_TOOL,
    OntologyFile,
    OntologyPublished,
    OntologyView,
    Vocabulary,
)

from ..sync import Client
from ..twin.tables import Ids, Unfit, read_tables
from .loading import load
from .output import note

ONTOLOGIES = (".yaml", ".yml")
MOST_NAMES = 12
"""Names in one line of what changes."""


class LoadedTwin(Message):
    """What was loaded, or would be."""

    dry_run: bool
    ontology: OntologyPublished | None = None
    nodes: int = 0
    relationships: int = 0
    changed: dict[str, int] = Field(default_factory=dict)


def load_files(
    client: Client, paths: Sequence[Path], type: str | None, year: int | None, dry_run: bool, wait: bool
) -> LoadedTwin:
    """Check all files, publish the ontology if there is one, and write the tables.

    Raises:
        BadRequest: the ontology or a table does not fit; nothing was written.
        ServiceError: the stack refused or failed; what was written before stays, and loading again goes on from there.
    """
    files = [path for path in paths if path.suffix.lower() in ONTOLOGIES]
    tables = [path for path in paths if path not in files]
    if len(files) > 1:
        raise typer.BadParameter("one ontology at a time")
    if strange := [path.name for path in tables if path.suffix.lower() != ".csv"]:
        raise typer.BadParameter(f"{', '.join(strange)}: an ontology ends in .yaml, a table in .csv")
    if type is not None and len(tables) != 1:
        raise typer.BadParameter("--type is for one table", param_hint="--type")
    planned = _publish(client, files[0], dry_run=True) if files else None
    view = planned.ontology if planned is not None else _active(client)
    if planned is not None:
        _tell(planned)
    try:
        found = read_tables(view, tables, year or datetime.now(UTC).year, lambda: _stored(client), type)
    except Unfit as unfit:
        plural = "" if len(unfit.faults) == 1 else "s"
        for fault in unfit.faults:
            note(str(fault))
        raise BadRequest(
            f"{len(unfit.faults)} fault{plural} in the tables; nothing was written", field=unfit.faults[0].file
        ) from unfit
    result = LoadedTwin(dry_run=dry_run, ontology=planned, nodes=len(found.nodes), relationships=len(found.relationships))
    note(f"{result.nodes} nodes and {result.relationships} relationships in {len(tables)} tables")
    if dry_run:
        note("nothing was written")
        return result
    published = _publish(client, files[0], dry_run=False) if files else None
    if published is not None:
        note(f"the ontology {published.ontology.name} is active as version {published.version}")
    if not tables:
        return result.model_copy(update={"ontology": published})
    changed = load(client, found.batches(), _texts(view) if wait else ())
    note(", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in changed.items()))
    return result.model_copy(update={"ontology": published, "changed": dict(changed)})


def _publish(client: Client, path: Path, dry_run: bool) -> OntologyPublished:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path.name} is not UTF-8", field="text") from error
    given = {"text": text, "dry_run": dry_run}
    try:
        return OntologyPublished.model_validate(client.tools.call(PUBLISH_TOOL.name, given, uuid4().hex))
    except BadRequest as error:
        error.detail = f"{path.name}: {error.detail}"
        raise


def _active(client: Client) -> OntologyView:
    return OntologyFile.model_validate(client.tools.call(GET_TOOL.name, {})).ontology


def _stored(client: Client) -> Ids:
    ids: dict[tuple[str, str, int], str | None] = {}
    names: dict[tuple[str, str, int], str | None] = {}
    after: str | None = None
    while True:
        given = {} if after is None else {"after": after}
        page = Vocabulary.model_validate(client.tools.call(VOCABULARY_TOOL.name, given))
        for each in page.names:
            for year in each.years:
                ids[each.type, each.id, year] = each.id
                named = (each.type, each.name, year)
                names[named] = None if named in names else each.id
        if page.next is None:
            return names | ids
        after = page.next


def _texts(view: OntologyView) -> frozenset[str]:
    return frozenset(each.name for kind in view.types for each in kind.properties if each.kind == "text")


def _tell(planned: OntologyPublished) -> None:
    changes = planned.changes
    for what, names in (("added", changes.added), ("changed", changes.changed), ("removed", changes.removed)):
        if names:
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            note(f"{what}: {', '.join(names[:MOST_NAMES])}{more}")
    for misfit in changes.misfits:
        where = ".".join(filter(None, (misfit.type, misfit.property or misfit.relationship)))
        note(f"{'refused: ' if misfit.blocking else 'note: '}{where}: {misfit.count} stored, {misfit.because}")
