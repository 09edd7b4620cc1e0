"""`phronesis load portfolio`: the sample twin into the graph, and its texts into memory by way of the graph's news."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from phronesis.client.sync import Client
from phronesis.contracts import TimedOut
from phronesis.contracts.graph import Upsert, Upserted, UpsertNode
from phronesis.contracts.memory import ItemKind

EMBEDDED_WITHIN = 120.0
"""Seconds that memory may take to embed the texts after the last batch."""
PROBES = 8
"""Nodes that are looked for; spread over the batches, the last one of the last batch among them."""
TEXT = 40
"""Characters from which a property counts as a text, when probes are chosen."""
_LOOK_AGAIN = 0.5


def load(client: Client, batches: Sequence[Upsert], wait: bool) -> Counter[str]:
    """Post the batches and, with `wait`, stay until memory finds their texts.

    Args:
        client: the stack.
        batches: what to load; each is atomic, and loading it again changes nothing.
        wait: whether to stay until the texts are embedded.

    Returns:
        How many nodes and relationships were created, updated and left alone.

    Raises:
        ServiceError: a batch was refused or failed; `TimedOut` when the texts are not found in time.
    """
    changed: Counter[str] = Counter()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        posting = progress.add_task("graph: batches", total=len(batches))
        for batch in batches:
            changed.update(_post(client, batch).model_dump())
            progress.advance(posting)
        if wait:
            probes = _probes(batches)
            embedding = progress.add_task("memory: texts found", total=len(probes))
            _wait(client, probes, lambda: progress.advance(embedding))
    return changed


def _post(client: Client, batch: Upsert) -> Upserted:
    body = batch.model_dump(mode="json")
    return Upserted.model_validate(client.tools.call("graph_upsert", body, idempotency_key=uuid4().hex))


def _probes(batches: Sequence[Upsert]) -> list[UpsertNode]:
    last = [nodes[-1] for batch in batches if (nodes := [node for node in batch.nodes if _has_text(node)])]
    step = max(1, len(last) // PROBES)
    return last[::-1][::step][:PROBES]


def _has_text(node: UpsertNode) -> bool:
    return any(isinstance(value, str) and len(value) >= TEXT for value in node.properties.values())


def _wait(client: Client, probes: Sequence[UpsertNode], found: Callable[[], None]) -> None:
    deadline = time.monotonic() + EMBEDDED_WITHIN
    for probe in probes:
        while not _is_found(client, probe):
            if time.monotonic() > deadline:
                raise TimedOut(f"memory has not embedded the texts within {EMBEDDED_WITHIN:.0f} s; it goes on by itself")
            time.sleep(_LOOK_AGAIN)
        found()


def _is_found(client: Client, node: UpsertNode) -> bool:
    items = client.memory.recall(node.name, limit=100, kinds=(ItemKind.NODE,)).items
    return any(item.external_id is not None and item.external_id.startswith(node.key) for item in items)
