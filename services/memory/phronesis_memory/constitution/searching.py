"""The handlers of searches: defaults filled in, answers kept for identical questions, each call logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar
from uuid import uuid4

from phronesis_bus import Call, News
from phronesis_contracts import Principal, ServiceError
from phronesis_contracts.constitution.retrieval import (
    ReportRetrieval,
    RetrievalReported,
    RetrievalTuned,
    TuneRetrieval,
)
from phronesis_contracts.constitution.search import (
    GoalFound,
    GoalSearch,
    HybridFound,
    HybridSearch,
    InsightSearch,
    NoSuchRetrieval,
    PrecedentSearch,
    RateRetrieval,
    RetrievalRated,
    SemanticFound,
    SemanticSearch,
    SupportedFound,
)
from phronesis_contracts.constitution.writes import ConstitutionChanged

from .answers import Answers
from .finding import Finding
from .log import Retrieval, RetrievalLog, by_layer
from .meaning import FILLING
from .retrievals import Retrievals
from .storable import storable
from .tuning import checked, tuned, value

log = logging.getLogger(__name__)

Request = TypeVar("Request", SemanticSearch, HybridSearch, InsightSearch, PrecedentSearch, GoalSearch)
Found = TypeVar("Found", SemanticFound, HybridFound, SupportedFound, GoalFound)
_TRIES, _PAUSE = 4, 0.5
"""How often, and after how many seconds, a rated retrieval is looked for that another copy of the service has yet to log."""


class Searching:
    """The handlers of searches.

    Args:
        finding: the searches themselves.
        retrievals: what is kept of them.
        log: where each is logged.
        answers: those that are kept.
    """

    def __init__(self, finding: Finding, retrievals: Retrievals, log: RetrievalLog, answers: Answers) -> None:
        self._finding = finding
        self._retrievals = retrievals
        self._log = log
        self._answers = answers

    async def semantic_search(self, call: Call, request: SemanticSearch) -> SemanticFound:
        """Nodes by meaning."""
        asked = tuned(request, await self._changed(call.who))
        return await self._answered(call.who, "semantic.search.v1", asked, self._finding.semantic)

    async def hybrid_search(self, call: Call, request: HybridSearch) -> HybridFound:
        """Nodes by meaning and structure."""
        asked = tuned(request, await self._changed(call.who))
        return await self._answered(call.who, "hybrid.search.v1", asked, self._finding.hybrid)

    async def insight_search(self, call: Call, request: InsightSearch) -> SupportedFound:
        """Insights with their evidence."""
        asked = tuned(request, await self._changed(call.who))
        return await self._answered(call.who, "insight.search.v1", asked, self._finding.insights)

    async def precedent_search(self, call: Call, request: PrecedentSearch) -> SupportedFound:
        """Decisions with their outcomes."""
        asked = tuned(request, await self._changed(call.who))
        return await self._answered(call.who, "decision.precedents.v1", asked, self._finding.precedents)

    async def goal_search(self, call: Call, request: GoalSearch) -> GoalFound:
        """A goal by its words, and what is around it."""
        changed = await self._changed(call.who)

        async def find(who: Principal, asked: GoalSearch) -> GoalFound:
            weights = tuned(HybridSearch(query=asked.query), changed)
            return await self._finding.goal(who, asked, value(changed, "goal.minSimilarity"), weights)

        return await self._answered(call.who, "goal.search.v1", request, find)

    async def rate_retrieval(self, call: Call, request: RateRetrieval) -> RetrievalRated:
        """Keep what the caller says of an answer, which may have been logged nowhere yet."""
        storable(request)
        for _ in range(_TRIES - 1):
            await self._log.flush()
            try:
                return await self._retrievals.rate(call, request)
            except NoSuchRetrieval:
                await asyncio.sleep(_PAUSE)
        return await self._retrievals.rate(call, request)

    async def tune_retrieval(self, call: Call, request: TuneRetrieval) -> RetrievalTuned:
        """Change defaults of the caller's tenant; the next search has them."""
        checked(request.values)
        done = await self._retrievals.tune(call, request)
        self._answers.drop(call.who.tenant)
        return done

    async def report_retrieval(self, call: Call, request: ReportRetrieval) -> RetrievalReported:
        """How the tenant's searches went."""
        await self._log.flush()
        return await self._retrievals.report(call.who.tenant, request.days)

    async def on_constitution_changed(self, news: News, _: ConstitutionChanged) -> None:
        """Forget the tenant's answers."""
        self._answers.drop(news.tenant)

    async def _changed(self, who: Principal) -> Mapping[str, float]:
        try:
            return await self._retrievals.changed(who.tenant)
        except ServiceError as error:
            log.warning("the tenant's own defaults are not known: %s", error.code)
            return {}

    async def _answered(
        self, who: Principal, tool: str, asked: Request, find: Callable[[Principal, Request], Awaitable[Found]]
    ) -> Found:
        storable(asked)
        began, id, outcome = perf_counter(), str(uuid4()), "failed"
        answer: Found | None = None
        try:
            answer = _named(await self._kept_or_found(who, tool, asked, find), id)
            outcome = "ok"
            return answer
        except ServiceError as error:
            outcome = error.code
            raise
        finally:
            arguments, milliseconds = asked.model_dump(mode="json", exclude={"query"}), 1_000 * (perf_counter() - began)
            row = Retrieval(id, who.tenant, tool, who.user, asked.query, arguments, milliseconds, outcome)
            self._log.add(row if answer is None else replace(row, **_figures(answer)))

    async def _kept_or_found(
        self, who: Principal, tool: str, asked: Request, find: Callable[[Principal, Request], Awaitable[Found]]
    ) -> Found:
        place = self._answers.place(who, tool, asked.model_dump_json())
        strong = getattr(asked, "consistency", "") == "strong"
        kept: Found | None = None if strong else self._answers.find(place)
        if kept is not None:
            return kept
        found = await find(who, asked)
        if not strong and not _lacking(found):
            self._answers.keep(place, _with(found, cached=True))
        return found


def _around(found: Found) -> SemanticFound | HybridFound | SupportedFound:
    """The part of an answer that holds its results."""
    return found.found if isinstance(found, GoalFound) else found


def _with(found: Found, **fields: object) -> Found:
    if isinstance(found, GoalFound):
        return found.model_copy(update={"found": found.found.model_copy(update=fields)})
    return found.model_copy(update=fields)


def _named(found: Found, id: str) -> Found:
    return _with(found, retrieval_id=id)


def _lacking(found: Found) -> bool:
    """Whether the answer would be another one as soon as something works again."""
    around = _around(found)
    degraded = isinstance(around, HybridFound) and bool(around.degraded)
    return degraded or any(said.startswith(FILLING) for said in around.warnings)


def _figures(found: Found) -> dict[str, Any]:
    """What the log tells of an answer."""
    around = _around(found)
    nodes = [one.node for one in around.results]
    return {
        "tokens": around.stats.token_estimate,
        "nodes": len(nodes),
        "layers": by_layer(nodes),
        "cached": around.cached,
        "degraded": around.degraded if isinstance(around, HybridFound) else (),
    }
