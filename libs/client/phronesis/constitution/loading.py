"""Loading a constitution: parts to the graph, then vectors from memory, with a bar for each; and making its vectors whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from phronesis_contracts.constitution.lists import GET_ALL_TOOL, GetAll, GraphPage
from phronesis_contracts.constitution.maintenance import (
    BACKUP_RESTORE_TOOL,
    EMBEDDINGS_TOOL,
    REGENERATE_TOOL,
    Regenerate,
    Regenerated,
)
from phronesis_contracts.constitution.registry import Lifecycle
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL
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


_CHECKED = 10
"""Vectors that are looked at closely."""


class Tools(Protocol):
    """What calls a tool; `Client.tools` is one."""

    def call(self, name: str, arguments: dict[str, Any], /) -> dict[str, Any]:
        """The tool's answer, as JSON."""


@dataclass(frozen=True)
class Step:
    """What one step came to."""

    name: str
    good: bool
    said: str


def repair(tools: Tools, question: str) -> Iterator[Step]:
    """Back up, make the vectors whole, and see that they are; it ends after the first step that is not good.

    Args:
        question: words that the graph should have an answer to.
    """
    for step in (_backup, _regenerate, _verify, _spot_check):
        done = step(tools)
        yield done
        if not done.good:
            return
    yield _search(tools, question)


def _backup(tools: Tools) -> Step:
    [made] = tools.call(BACKUP_RESTORE_TOOL.name, {"operation": "backup"})["backups"]
    found = tools.call(BACKUP_RESTORE_TOOL.name, {"operation": "verify", "backupId": made["id"]})
    back = f"to go back: backup {made['id']}, confirmed by {found['confirmation']}"
    return Step("back up", found["backups"] == [made], f"{made['nodes']} nodes, {made['embeddings']} vectors; {back}")


def _regenerate(tools: Tools) -> Step:
    done = tools.call(REGENERATE_TOOL.name, {})
    said = f"{done['embedded']} made, {done['unchanged']} kept, {done['removed']} removed, {done['failed']} failed"
    return Step("regenerate", not done["failed"], said)


def _verify(tools: Tools) -> Step:
    status = tools.call(EMBEDDINGS_TOOL.name, {})
    filling = [scope["name"] for scope in status["scopes"] if scope["state"] != "ONLINE"]
    sizes = "; ".join(f"{one['type']}: {_sizes(one['dimensions'])}" for one in status["counts"])
    wrong = [*status["findings"], *(f"{name} is being filled" for name in filling)]
    return Step("verify", not wrong, "; ".join(wrong) or sizes or "no nodes")


def _spot_check(tools: Tools) -> Step:
    checks = tools.call(EMBEDDINGS_TOOL.name, {"spotCheck": _CHECKED})["spotChecks"]
    bad = [check["nodeId"] for check in checks if check["norm"] <= 0 or check["rank"] != 1]
    said = f"{', '.join(bad)} not found by their own vectors" if bad else ", ".join(check["nodeId"] for check in checks)
    return Step("check vectors", not bad, said)


def _search(tools: Tools, question: str) -> Step:
    found = tools.call(SEMANTIC_SEARCH_TOOL.name, {"query": question, "topK": 5})["results"]
    said = "; ".join(f"{hit['node']['title']} ({hit['score']:.2f})" for hit in found)
    return Step("search", bool(found), said or "nothing was found")


def _sizes(dimensions: dict[str, int]) -> str:
    return ", ".join(f"{count} of {size} numbers" for size, count in dimensions.items())
