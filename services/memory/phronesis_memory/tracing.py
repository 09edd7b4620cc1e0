"""Spans by the GenAI conventions, and times, of the memory's operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeVar

from opentelemetry.trace import SpanKind

from phronesis_bus import Call, Kind, Metric, News, Tracing
from phronesis_bus.metrics import MODEL_SECONDS
from phronesis_contracts import Message, memory
from phronesis_contracts.episodes import MemoryFound, MemoryQuery, RecalledEpisodes, RecalledStrategies, RecallEpisodes
from phronesis_embedding.local import tenant

from .ports import Embedder
from .values import Vector

Operation = Literal["search_memory", "create_memory", "update_memory", "upsert_memory", "delete_memory"]
Envelope = TypeVar("Envelope", Call, News)
In = TypeVar("In", bound=Message)
Out = TypeVar("Out")
Handler = Callable[[Envelope, In], Awaitable[Out]]
KNOWLEDGE, PROFILES, SCOPES = "knowledge", "profiles", "scopes"
"""The stores, as spans name them."""
LOCAL = "phronesis"
"""The provider's name of the model that runs in this process."""

RETRIEVAL = Metric(
    "phronesis_retrieval_step_seconds",
    Kind.HISTOGRAM,
    "Time of the steps of a hybrid retrieval, as its result states them.",
    ("step",),
)


def trace_handler(
    tracing: Tracing, operation: Operation, store: str, handler: Handler[Envelope, In, Out]
) -> Handler[Envelope, In, Out]:
    """The handler with a span around it, which embeds for its caller's tenant."""

    async def run(envelope: Envelope, request: In) -> Out:
        tenant.set(envelope.who.tenant if isinstance(envelope, Call) else envelope.tenant)
        with tracing.span(
            f"{operation} {store}",
            gen_ai__operation__name=operation,
            gen_ai__provider__name=LOCAL,
            gen_ai__memory__store__id=store,
        ) as span:
            if isinstance(request, memory.Recall | RecallEpisodes | MemoryQuery):
                tracing.note(span, "gen_ai.memory.query.text", request.query)
            elif isinstance(request, memory.Retrieve):
                tracing.note(span, "gen_ai.memory.query.text", "\n".join(request.key_phrases))
            result = await handler(envelope, request)
            if (count := _count_records(result)) is not None:
                span.set_attribute("gen_ai.memory.record.count", count)
            if isinstance(result, memory.AugmentedMemoryContext):
                for step, milliseconds in result.timings_ms.items():
                    tracing.metrics.observe(RETRIEVAL, milliseconds / 1_000, step)
            return result

    return run


def _count_records(result: object) -> int | None:
    match result:
        case memory.RecalledMemories():
            return len(result.snippets)
        case memory.Remembered() | memory.Recalled():
            return len(result.items)
        case memory.AugmentedMemoryContext():
            return len(result.memory_units) + len(result.concepts)
        case RecalledEpisodes():
            return len(result.episodes)
        case RecalledStrategies():
            return len(result.strategies)
        case memory.Forgotten() | MemoryFound():
            return result.count
    return None


class TracedEmbedder:
    """An `Embedder` whose calls are traced."""

    def __init__(self, embedder: Embedder, tracing: Tracing, provider: str = LOCAL) -> None:
        self._embedder, self._tracing, self._provider = embedder, tracing, provider
        self.model = embedder.model
        self.dimension = embedder.dimension
        self.floor = embedder.floor

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        return await self._watched("question", self._embedder.embed_queries(texts))

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        return await self._watched("texts", self._embedder.embed_texts(texts))

    async def _watched(self, purpose: str, work: Awaitable[Out]) -> Out:
        with (
            self._tracing.span(
                f"embeddings {self.model}",
                kind=SpanKind.CLIENT,
                gen_ai__operation__name="embeddings",
                gen_ai__provider__name=self._provider,
                gen_ai__request__model=self.model,
                gen_ai__embeddings__dimension__count=self.dimension,
            ),
            self._tracing.metrics.timed(MODEL_SECONDS, "embeddings", self._provider, self.model, purpose),
        ):
            return await work
