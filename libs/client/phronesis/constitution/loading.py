"""Loading a constitution: parts to the graph, then vectors from memory, with a bar for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from phronesis_contracts.constitution.lists import GET_ALL_TOOL, GetAll, GraphPage
from phronesis_contracts.constitution.maintenance import REGENERATE_TOOL, Regenerate, Regenerated
from phronesis_contracts.constitution.registry import Lifecycle
from phronesis_contracts.constitution.writes import LOAD_TOOL, NODES, ConstitutionLoaded, LoadConstitution, LoadNode, Relate

from ..sync import Client
from .files import parts

T = TypeVar("T")

EMBEDDED_AT_ONCE = 250
"""Nodes of one order to embed: seconds of work, so that the bar moves, and not so few that the looks at its end add up."""
_PAGE = 500


def load_all(client: Client, nodes: Iterable[LoadNode], relationships: Iterable[Relate]) -> tuple[list[str], Counter[str]]:
    """Write nodes and relationships, part by part; each part is atomic, and writing it again changes nothing.

    Returns:
        The ids of the nodes, and how many were created, updated, unchanged and joined.

    Raises:
        ServiceError: a part was refused or failed; those before it stay.
    """
    ids: list[str] = []
    changed: Counter[str] = Counter()
    with _progress() as progress:
        writing = progress.add_task("graph: nodes", total=None)
        joining = progress.add_task("graph: relationships", total=None)
        for part in parts(nodes, relationships):
            done = _post(client, part)
            changed.update(done.model_dump(exclude={"removed"}))
            ids += (node.id for node in part.nodes)
            progress.advance(writing, len(part.nodes))
            progress.advance(joining, len(part.relationships))
    return ids, changed


def clear_all(client: Client) -> int:
    """Remove every node of the tenant's graph for good. Returns how many there were."""
    ids = list(dict.fromkeys(id for status in Lifecycle for id in _ids(client, status)))
    removed = 0
    with _progress() as progress:
        removing = progress.add_task("graph: removed", total=len(ids))
        for some in _cut(ids, NODES):
            removed += _post(client, LoadConstitution(remove=tuple(some))).removed
            progress.advance(removing, len(some))
    return removed


def embed_all(client: Client, ids: Sequence[str]) -> Counter[str]:
    """Have nodes embedded now, whatever their tier. Returns how many were embedded, were so already, and have no text."""
    done: Counter[str] = Counter()
    with _progress() as progress:
        embedding = progress.add_task("memory: embedded", total=len(ids))
        for some in _cut(ids, EMBEDDED_AT_ONCE):
            body = Regenerate(ids=tuple(some)).model_dump(mode="json", by_alias=True)
            answer = client.tools.call(REGENERATE_TOOL.name, body, idempotency_key=uuid4().hex)
            done.update(Regenerated.model_validate(answer).model_dump())
            progress.advance(embedding, len(some))
    return done


def _ids(client: Client, status: Lifecycle) -> Iterator[str]:
    cursor: str | None = None
    while True:
        request = GetAll(status=status, limit=_PAGE, cursor=cursor, exclude_fields=("summary", "description", "properties"))
        page = GraphPage.model_validate(client.tools.call(GET_ALL_TOOL.name, request.model_dump(mode="json", by_alias=True)))
        yield from (node.id for node in page.nodes)
        cursor = page.next_cursor
        if cursor is None or not page.nodes:
            return  # relationships come after the last node


def _post(client: Client, part: LoadConstitution) -> ConstitutionLoaded:
    body = part.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return ConstitutionLoaded.model_validate(client.tools.call(LOAD_TOOL.name, body, idempotency_key=uuid4().hex))


def _cut(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))
