"""Loading a twin: batches into the graph, and their texts into memory by way of the graph's news."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from phronesis_contracts import TimedOut
from phronesis_contracts.memory import ItemKind
from phronesis_contracts.twin import Upsert, Upserted, UpsertNode

from ..sync import Client

STALLED = 120.0
"""Seconds in which no further text is found, after which memory is not waited for any longer."""
EMBEDDED_WITHIN = 1200.0
"""Seconds that memory may take in all."""
PROBES = 32
"""Nodes that are looked for: spread evenly, in the order of the batches, the very last one among them."""
_LOOK_AGAIN = 0.5


def load(client: Client, batches: Sequence[Upsert], texts: Collection[str] = ()) -> Counter[str]:
    """Post the batches and, where `texts` are named, stay until memory finds them.

    Args:
        batches: what to load; each is atomic, and loading it again changes nothing.
        texts: properties that are embedded; none where nobody waits for them.

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
        if probes := _probes(batches, texts):
            embedding = progress.add_task("memory: texts found", total=len(probes))
            _wait(client, probes, lambda: progress.advance(embedding))
    return changed


def _post(client: Client, batch: Upsert) -> Upserted:
    body = batch.model_dump(mode="json")
    return Upserted.model_validate(client.tools.call("graph_upsert", body, idempotency_key=uuid4().hex))


def _probes(batches: Sequence[Upsert], texts: Collection[str]) -> list[UpsertNode]:
    nodes = [node for batch in batches for node in batch.nodes if any(node.properties.get(text) for text in texts)]
    step = max(1, len(nodes) // PROBES)
    return nodes[::-1][::step][:PROBES][::-1]


def _wait(client: Client, probes: Sequence[UpsertNode], found: Callable[[], None]) -> None:
    end = time.monotonic() + EMBEDDED_WITHIN
    for number, probe in enumerate(probes):
        deadline = min(end, time.monotonic() + STALLED)
        while not _is_found(client, probe):
            if time.monotonic() > deadline:
                raise TimedOut(f"memory has embedded {number} of {len(probes)} sampled texts and is not waited for any longer")
            time.sleep(_LOOK_AGAIN)
        found()


def _is_found(client: Client, node: UpsertNode) -> bool:
    items = client.memory.recall(node.name, limit=100, kinds=(ItemKind.NODE,)).items
    return any(item.external_id == node.key for item in items)
