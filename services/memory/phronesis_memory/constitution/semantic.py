"""Nodes by meaning, with what supports them, and how they are shown in an answer."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TypeVar

import numpy as np

from phronesis_contracts import BadRequest, Principal, ServiceError, Unavailable
from phronesis_contracts.constitution import search
from phronesis_contracts.constitution import values as contract
from phronesis_contracts.constitution.registry import Layer, Lifecycle, lifecycle_of, node_type, types_of_layer
from phronesis_contracts.constitution.search import EmbeddingUnavailable, Hit, HybridHit, Supported
from phronesis_contracts.constitution.values import ConstitutionNode, Mention
from phronesis_tokens import count

from ..embedding.queries import QueryVectors
from ..ports import Embedder
from ..values import Vector
from .ports import NodeFilter, NodeHit, NodeVectors, Structure


def mention(node: ConstitutionNode) -> Mention:
    """The node as other nodes' answers name it."""
    return Mention(id=node.id, type=node.type, title=node.title, status=node.status)


Found = TypeVar("Found", Hit, HybridHit, Supported)
_FRAME = 100
"""Tokens of an answer without its results."""


def count_tokens(message: Hit | HybridHit | Supported, limit: int) -> int:
    """Tokens of one result as it is sent; `limit + 1` where there are more."""
    return count(message.model_dump_json(), limit)


def fit_results(results: Sequence[Found], most: int) -> tuple[tuple[Found, ...], int, bool]:
    """The first results that fit, their tokens with the frame around them, and whether some were left out.

    A first one that is too large by itself is told without its texts, so that its id at least is known.
    """
    kept: list[Found] = []
    used = _FRAME
    for place, result in enumerate(results):
        size = count_tokens(result, most)
        if used + size > most:
            if place:
                return tuple(kept), used, True
            result = result.model_copy(update={"node": bare_node(result.node)})
            return (result,), used + count_tokens(result, most), True
        kept.append(result)
        used += size
    return tuple(kept), used if kept else 0, False


def bare_node(node: ConstitutionNode) -> ConstitutionNode:
    """A node by its name and place alone."""
    return ConstitutionNode(id=node.id, type=node.type, layer=node.layer, title=node.title, status=node.status)


def without_provenance(node: ConstitutionNode) -> ConstitutionNode:
    """A node as a search tells it: without its provenance, which a full read has."""
    return node.model_copy(update={"provenance": None})


log = logging.getLogger(__name__)

SPARE = 8
"""Hits beyond the limit that are looked at: for those whose node has gone, and for the order of equals at the cut."""
MAX_CANDIDATES = 100
"""Nearest nodes that are read where a figure of theirs decides, which is no filter of the index."""
_READ = 40
"""Of these, how many are read at once."""
INDEX_FILLING = "the index is being filled"
"""How the warning begins that results may be missing for now."""


_QUESTIONS = (
    "how do I change the chain of a bicycle",
    "which spices belong in a curry",
    "the rules of castling in chess",
    "how far away is the moon",
    "who painted the ceiling of the chapel",
    "symptoms of a broken wrist",
    "how to prune an apple tree",
    "what makes a violin sound warm",
    "when did the empire fall",
    "how do sharks sleep",
    "the square root of a negative number",
    "how to fold a paper crane",
)
_STATEMENTS = (
    "The invoice is due at the end of the month.",
    "A parent picked up the children from the nursery.",
    "The server was restarted after the update.",
    "Two candidates were invited to an interview.",
    "The kitchen of the flat needs new tiles.",
    "Passengers wait for the delayed flight.",
    "The contract ends in December and is renewed by the year.",
    "The choir rehearses in the town hall.",
    "Insulation lowers the cost of heating.",
    "The nurse writes down the blood pressure.",
    "A lawyer reads the statement of the witness.",
    "The shop opens later on public holidays.",
)
_DEVIATIONS = 3.6
"""Standard deviations over the mean of unrelated texts that one pair in six thousand reaches."""
_USELESS = 0.95
"""Noise from which on a model does not tell texts apart."""
_AGAIN = 60.0
"""Seconds until a model that did not answer is measured again."""


class NoiseLevel:
    """The cosine that an embedder gives texts that have nothing to do with each other, measured once."""

    def __init__(self, embedder: Embedder, clock: Callable[[], float] = time.monotonic) -> None:
        self._embedder, self._clock = embedder, clock
        self._measuring = asyncio.Lock()
        self._level: float | None = None
        self._next = float("-inf")

    async def of(self) -> float | None:
        """`None` where the embedder does not answer, or has no such level."""
        async with self._measuring:
            if self._level is None and self._clock() >= self._next:
                self._next = self._clock() + _AGAIN
                try:
                    self._level = _noise(
                        await self._embedder.embed_queries(_QUESTIONS), await self._embedder.embed_texts(_STATEMENTS)
                    )
                    log.info("unrelated texts have a cosine of up to %s", self._level)
                except ServiceError as error:
                    log.warning("the noise of the embedder is not known: %s", error.code)
        return self._level


def _noise(questions: Sequence[Vector], statements: Sequence[Vector]) -> float | None:
    cosines = _unit(questions) @ _unit(statements).T
    spread = float(cosines.std())
    level = float(cosines.mean()) + _DEVIATIONS * spread
    return round(level, 4) if spread > 0 and 0 < level < _USELESS else None


def _unit(vectors: Sequence[Vector]) -> Vector:
    rows = np.stack(vectors).astype(np.float32)
    unit: Vector = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


@dataclass(frozen=True)
class Floor:
    """From which cosine on a node is a result of one question.

    Args:
        least: the cosine that is needed in any case; 0 is no floor.
        bulk: up to where the tenant's nodes reach that are not meant. Where even the best one is in it, the best is a result.
    """

    least: float
    bulk: float | None = None

    def at(self, best: float) -> float:
        """The floor where the best node has this cosine."""
        return self.least if self.bulk is None else max(self.least, min(best, self.bulk))


_SAMPLE = 400
"""Vectors that stand for a tenant's."""
_FEW = 16
"""Nodes below which a tenant has no bulk to speak of."""
_SHARE = 0.7
"""Share of the height that the best of so many unrelated nodes would reach, from which on a node stands out. Measured on
`evals/sets/constitution`: more cuts what is right, less lets through what is wrong."""
_SAMPLE_SECONDS = 30.0
"""Seconds that a sample is believed."""
_SAMPLES = 200
"""Tenants whose sample is held: 600 KB each with vectors of 384 numbers."""


class Floors:
    """The floors of questions, by the noise of the embedder and by how like the question the tenant's nodes are as a whole."""

    def __init__(self, vectors: NodeVectors, noise: NoiseLevel | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._vectors, self._noise, self._clock = vectors, noise, clock
        self._samples: OrderedDict[str, tuple[Vector, int, float]] = OrderedDict()

    async def of(self, tenant: str, question: Vector, stated: float, *, shipped: bool) -> Floor:
        """The floor of one question.

        Args:
            stated: the floor that was asked for, or that is in force where the noise is not known.
            shipped: whether nobody asked for one.
        """
        noise = await self._noise.of() if shipped and self._noise else None
        if noise is None:
            return Floor(stated)
        sample, nodes = await self._sample(tenant)
        if nodes < _FEW:
            return Floor(noise)
        cosines = sample @ (question / max(float(np.linalg.norm(question)), 1e-12))
        height = math.sqrt(2 * math.log(nodes))  # of the largest of so many normally distributed numbers, in deviations
        return Floor(noise, float(cosines.mean()) + _SHARE * height * float(cosines.std()))

    async def _sample(self, tenant: str) -> tuple[Vector, int]:
        kept = self._samples.get(tenant)
        if kept is None or kept[2] <= self._clock():
            try:
                found, nodes = await self._vectors.sample(tenant, _SAMPLE)
            except ServiceError as error:
                log.warning("the floor of a search is the noise alone: %s", error.code)
                return np.zeros((0, 0), np.float32), 0
            kept = (_unit(found) if found else np.zeros((0, 0), np.float32), nodes, self._clock() + _SAMPLE_SECONDS)
            if nodes >= _FEW:
                self._samples[tenant] = kept
                self._samples.move_to_end(tenant)
                if len(self._samples) > _SAMPLES:
                    self._samples.popitem(last=False)
        return kept[0], kept[1]


@dataclass(frozen=True)
class NearNode:
    """A node and its cosine, from 0 to 1."""

    node: ConstitutionNode
    score: float


class SemanticFinder:
    """Finds nodes by meaning.

    Args:
        seconds: the time that the vector of a question may take.
        noise: of the embedder; without it every floor is the stated one.
    """

    def __init__(
        self,
        vectors: NodeVectors,
        structure: Structure,
        queries: QueryVectors,
        seconds: float = 4.0,
        noise: NoiseLevel | None = None,
    ) -> None:
        self.vectors, self.structure = vectors, structure
        self.floors = Floors(vectors, noise)
        self._queries, self._seconds = queries, seconds

    async def question(self, tenant: str, text: str) -> Vector:
        """The vector of a question, by at most one call of the model, or kept. Raises `EmbeddingUnavailable`."""
        try:
            async with asyncio.timeout(self._seconds):
                return (await self._queries.of(tenant, [text]))[text]
        except (Unavailable, TimeoutError, KeyError) as error:
            log.warning("a question could not be embedded: %s", getattr(error, "code", type(error).__name__))
            raise EmbeddingUnavailable("the question cannot be embedded now", retry_after=1) from error

    async def near(
        self,
        who: Principal,
        vector: Vector,
        chosen: NodeFilter,
        floor: Floor,
        limit: int,
        fits: Callable[[ConstitutionNode], bool] | None = None,
    ) -> list[NearNode]:
        """The chosen nodes of a floor or above, best first; of equals the one changed last, then by id.

        Args:
            fits: what a node has to be as well, where the index cannot say that: the nearest `MAX_CANDIDATES` are asked for it.
        """
        most = limit + SPARE if fits is None else max(MAX_CANDIDATES, limit)
        hits = rank_hits(await self.vectors.nearest(who.tenant, vector, chosen, most), floor)
        found: list[NearNode] = []
        step = limit if fits is None else max(_READ, limit)
        for at in range(0, len(hits), step):
            part = hits[at : at + step]
            nodes = await self.live(who, [hit.id for hit in part], chosen.lifecycle)
            there = [hit for hit in part if hit.id in nodes and (fits is None or fits(nodes[hit.id]))]
            found += [NearNode(nodes[hit.id], round_cosine(hit.cosine)) for hit in there]
            if len(found) >= limit:
                break
        return found[:limit]

    async def live(self, who: Principal, ids: Sequence[str], wanted: Lifecycle | None) -> dict[str, ConstitutionNode]:
        """The nodes as the graph has them; hits whose node has gone, or is in another status by now, are left out."""
        found = await self.structure.nodes(who, ids) if ids else {}
        live = {id: node for id, node in found.items() if wanted is None or lifecycle_of(node.status or "") is wanted}
        if stale := [id for id in ids if id not in live]:
            log.info("stale hits of the index: %s", ", ".join(stale))
        return live

    async def warnings(self, tenant: str, chosen: NodeFilter) -> tuple[str, ...]:
        """What a caller should know of the index: it is being filled, or part of the choice is never in it."""
        found = [_never(chosen)] if _never(chosen) else []
        try:
            filling = sorted(await self.vectors.populating(tenant))
        except ServiceError as error:
            log.warning("the state of the index is not known: %s", error.code)
            return tuple(found)
        if lacking := [layer for layer in filling if not chosen.layers or layer in chosen.layers]:
            found.append(f"{INDEX_FILLING} ({', '.join(lacking)}): results may be missing")
        return tuple(found)


def filter_of_request(asked: contract.Chosen, topic: str | None = None) -> NodeFilter:
    """The filters of a request. Raises `BadRequest`: there is no such type."""
    types: set[str] = set()
    for given in asked.types:
        kind = node_type(given)
        if kind is None:
            raise BadRequest(f"there is no type {given!r}; schema.inventory.v1 lists them", field="types")
        types.add(kind.name)
    return NodeFilter(frozenset(asked.layers), frozenset(types), asked.status, topic=topic)


def rank_hits(hits: Sequence[NodeHit], floor: Floor) -> list[NodeHit]:
    """Hits of the floor or above in their order; a floor of 0 is none, since a cosine may be below it."""
    least = floor.at(max((hit.cosine for hit in hits), default=0.0))
    passed = [hit for hit in hits if least <= 0 or hit.cosine >= least - search.COSINE_ROUNDING]
    return sorted(passed, key=lambda hit: (-round_cosine(hit.cosine), -hit.updated_at.timestamp(), hit.id))


def round_cosine(cosine: float) -> float:
    """A cosine as it is told: 0 to 1, and six digits, so that equals are equal on both stores."""
    return round(min(1.0, max(0.0, cosine)), 6)


def _never(chosen: NodeFilter) -> str:
    asked = [kind for layer in chosen.layers or tuple(Layer) for kind in types_of_layer(layer)]
    named = chosen.types or (frozenset(kind.name for kind in asked) if chosen.layers else frozenset())
    never = [kind.name for kind in asked if kind.name in named and kind.tier is None]
    return f"never embedded, and so not found by meaning: {', '.join(never)}" if never else ""


FOR_A_GOAL = ("SERVES", "ALIGNS_WITH")
"""Relationships that lead from a strategy to its goal."""


async def goals_of_strategies(
    structure: Structure, who: Principal, strategies: Sequence[str]
) -> dict[str, tuple[Mention, ...]]:
    """By strategy the goals that it serves or aligns with, whatever their status."""
    found: defaultdict[str, dict[str, Mention]] = defaultdict(dict)
    for relationship in FOR_A_GOAL if strategies else ():
        for strategy, goals in (await structure.ends(who, strategies, relationship, ("goal",))).items():
            found[strategy] |= {goal.id: goal for goal in goals}
    return {strategy: tuple(goals.values()) for strategy, goals in found.items()}


INSIGHTS = frozenset({"insight", "pattern"})
DECISIONS = frozenset({"decision"})
_NEAREST = 20
"""Decisions among which the return decides."""


@dataclass(frozen=True)
class PrecedentCriteria:
    """What a precedent has to have."""

    floor: float
    min_roi: float | None
    start: str | None
    limit: int
    shipped: bool = False
    """Whether nobody asked for the floor."""


class SupportFinder:
    """Finds nodes by meaning and by a figure of theirs, and what they are linked to."""

    def __init__(self, meaning: SemanticFinder) -> None:
        self._meaning = meaning

    async def insights(
        self, who: Principal, question: str, least: float, sure: float, top_k: int, *, shipped: bool = False
    ) -> list[Supported]:
        """The nearest insights and patterns that are sure enough, the surest first, with their evidence."""
        vector = await self._meaning.question(who.tenant, question)
        floor = await self._meaning.floors.of(who.tenant, vector, least, shipped=shipped)
        near = await self._meaning.near(
            who, vector, NodeFilter(types=INSIGHTS), floor, top_k, lambda node: number_of(node, "confidence") >= sure
        )
        best = sorted(near, key=lambda one: (-number_of(one.node, "confidence"), -one.score))
        linked = await self._ends(who, best, "SUPPORTED_BY", ("evidence",), ())
        return [_to_supported(one, linked) for one in best]

    async def precedents(self, who: Principal, question: str, by: PrecedentCriteria) -> list[Supported]:
        """Of the nearest decisions those with a return of the least or more, the best return first.

        Those without a return come last, and are left out only where a least return is given.
        """
        vector = await self._meaning.question(who.tenant, question)
        near = await self._meaning.near(
            who,
            vector,
            NodeFilter(types=DECISIONS),
            await self._meaning.floors.of(who.tenant, vector, by.floor, shipped=by.shipped),
            max(_NEAREST, by.limit),
            lambda node: _pays(node, by.min_roi) and _since(node, by.start),
        )
        best = sorted(near, key=_by_return)[: by.limit]
        linked = await self._ends(who, best, "LEADS_TO", ("task", "metric"), ("done", "active"))
        return [_to_supported(one, linked) for one in best]

    async def _ends(
        self, who: Principal, found: Sequence[NearNode], relationship: str, types: Sequence[str], statuses: Sequence[str]
    ) -> dict[str, tuple[Mention, ...]]:
        if not found:
            return {}
        return await self._meaning.structure.ends(who, [one.node.id for one in found], relationship, types, statuses)


def number_of(node: ConstitutionNode, name: str) -> float:
    """A number of a node; 0 where it has none."""
    value = (node.model_extra or {}).get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def total_return(node: ConstitutionNode) -> float | None:
    """What a decision paid off (`roi.total`), where that is known."""
    roi = (node.model_extra or {}).get("roi")
    total = roi.get("total") if isinstance(roi, Mapping) else roi
    return float(total) if isinstance(total, int | float) else None


def normalize_time(given: str | None, field: str) -> str | None:
    """An ISO 8601 day or time as the graph keeps it, so that texts sort by time; UTC without a zone. Raises `BadRequest`."""
    if given is None:
        return None
    try:
        if len(given) <= len("2026-11-22"):
            return date.fromisoformat(given).isoformat()
        when = datetime.fromisoformat(given)
    except ValueError as error:
        raise BadRequest("a day or a time in ISO 8601", field=field) from error
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _pays(node: ConstitutionNode, least: float | None) -> bool:
    found = total_return(node)
    return least is None or (found is not None and found >= least)


def _since(node: ConstitutionNode, start: str | None) -> bool:
    decided = (node.model_extra or {}).get("decidedAt")
    # A day without a time counts with the whole of it: 2026-01-01 is not before 2026-01-01T09:00.
    return start is None or (isinstance(decided, str) and decided >= start[: len(decided)])


def _by_return(one: NearNode) -> tuple[bool, float, float, str]:
    found = total_return(one.node)
    return found is None, -(found or 0.0), -one.score, one.node.id


def _to_supported(one: NearNode, linked: Mapping[str, tuple[Mention, ...]]) -> Supported:
    return Supported(node=without_provenance(one.node), score=one.score, linked=linked.get(one.node.id, ()))
