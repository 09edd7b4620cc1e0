"""What the service needs from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.memory import Remember, Remembered
from phronesis_contracts.orchestrator import ToolOutcome
from phronesis_contracts.twin import Neighbour, Node

from .values import Audience, Draft, Item, NodeState, TextHit, Vector, VectorEntry, VectorHit
from .words.ranking import Weights

Transaction: TypeAlias = object
"""An open transaction of the items' store. Only adapters look inside."""


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    @property
    def model(self) -> str:
        """Name of the model; vectors of two models cannot be compared."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    @property
    def floor(self) -> float | None:
        """The cosine below which this model's texts are unrelated; `None` where it knows no such line."""

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions, in their order, ahead of any texts that wait. Raises `Unavailable`."""

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts to be stored, in their order. Raises `Unavailable`."""


class VectorIndex(Protocol):
    """Vectors of items, with filters applied inside the search."""

    async def upsert(self, entries: Sequence[VectorEntry], *, within: Transaction | None = None) -> None:
        """Store vectors, each in place of its item's former one.

        Args:
            within: the transaction in which the items are written. An index in the same database joins it; another one
                notes in it what `settle` is to do after the commit. Without one the vectors are written at once.

        Raises:
            EmbeddingMismatch: the index holds vectors of another model or dimension.
            Unavailable: the index does not take them; with `within` it is the items' store that does not answer.
        """

    async def delete(self, tenant: str, ids: Sequence[str], *, within: Transaction | None = None) -> bool:
        """Forget items' vectors, as `upsert` does; whether they are gone with the transaction, else once it is settled."""

    async def settle(self, tenant: str, ids: Sequence[str]) -> None:
        """Make a search find what was written of these items, after the commit, if the index answers soon.

        It waits for a few seconds at most and raises nothing: what is left, the index applies later by itself.
        """

    async def search(self, audience: Audience, vectors: Sequence[Vector], limit: int) -> list[list[VectorHit]]:
        """For each vector the items of the audience that are nearest, nearest first: `limit` of them, or all there are."""

    async def similarity(
        self, audience: Audience, vectors: Sequence[Vector], ids: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        """For each vector the cosine of those of its `ids` that the audience holds, by their own or nearest passage's."""

    async def count(self, tenant: str, owners: Sequence[str], prefix: str) -> int:
        """How many vectors the index holds of these owners, and of those whose names begin so. Raises `Unavailable`."""

    async def check(self) -> None:
        """Raise `Unavailable` where the index is down, `EmbeddingMismatch` where it is another model's."""

    def scan(self, size: int) -> AsyncIterator[list[VectorEntry]]:
        """Every entry of every tenant, whatever its model, in batches of at most `size`, each item once.

        What is written meanwhile may be seen or not. Numbers come back as they are kept: in half precision. Raises
        `Unavailable`: the index does not answer.
        """

    async def clear(self) -> None:
        """Forget every vector of every tenant, and which model they were of. Nobody else may write meanwhile.

        Raises `Unavailable`: the index does not answer; it may be done in part, and may be done again.
        """


class TextIndex(Protocol):
    """Full-text search by BM25."""

    async def search(self, audience: Audience, queries: Sequence[str], limit: int) -> list[tuple[Weights, list[TextHit]]]:
        """For each query the items of the audience with its words, best first, and how those words weigh."""

    async def score(self, audience: Audience, weights: Sequence[Weights], ids: Sequence[Sequence[str]]) -> list[list[TextHit]]:
        """For each query, by its weights, the same figures for those of its `ids` that the audience holds."""


class Knowledge(Protocol):
    """Items and what is written with them."""

    async def digests(self, tenant: str, owner: str, external_ids: Sequence[str]) -> dict[tuple[str, str], bytes]:
        """Digest by external id and part, of what is stored."""

    async def remember(self, call: Call, request: Remember, drafts: Sequence[Draft]) -> Remembered:
        """Store the caller's items, once for the call's key, with news of them.

        Raises `VectorMissing` (a changed draft has no vector), `BadRequest` (a link names an item that the caller does not
        have).
        """

    async def record(self, tenant: str, owner: str, draft: Draft, outcomes: Sequence[ToolOutcome] = ()) -> None:
        """Store one item, with what came of tools, unless its external id is there."""

    async def project(self, tenant: str, node: NodeState, drafts: Sequence[Draft]) -> None:
        """Make a node's shared items what `drafts` says, unless a later state came before. Raises `VectorMissing`."""

    async def passed(self, tenant: str, versions: Mapping[str, int]) -> set[str]:
        """The keys of nodes whose items were made from this version or a later one."""

    def reading(self, tenant: str) -> AbstractAsyncContextManager[None]:
        """Let the reads of a block, those of searches too, share a transaction."""

    async def items(self, audience: Audience, ids: Sequence[str]) -> list[Item]:
        """Those of `ids` that the audience holds, by one statement."""


class Graph(Protocol):
    """What memory asks the graph service."""

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        """The items that stand within `hops` of `ids`, in either direction, seen by `who`."""

    async def nodes(self, tenant: str, keys: Sequence[str]) -> tuple[Node, ...]:
        """Those of the nodes that exist."""
