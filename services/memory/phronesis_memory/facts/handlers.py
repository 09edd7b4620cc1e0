"""What the service does with facts, one method for each message."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, Unavailable
from phronesis_contracts.deletions import ConversationDeleted, Purged
from phronesis_contracts.facts import (
    FactKind,
    FactList,
    ImportedMemory,
    ImportMemory,
    Learn,
    Learnt,
    ListFacts,
    RecalledFact,
    RecalledFacts,
    RecallFacts,
    Statement,
)
from phronesis_contracts.forgetting import CopiesPurged, ForgetFor, Forgetting, ForgettingPreview, ForgettingRef

from ..domain.limits import is_storable
from ..domain.rooms import owner_of_facts
from ..domain.values import MEMORY, Audience, Draft
from ..drafting import Drafting
from ..search import HybridSearch
from .extracting import statements_of
from .ports import Drafts, Facts, Forgettings, TextMissing
from .reading import read
from .secrets import has_secret
from .values import SAYS, Evidence, Saying
from .weighing import score, why

T = TypeVar("T")
_WIDER = 3
"""Facts that are searched for each that is asked for: trust and age order them anew."""
_TRIES = 3


class FactHandlers:
    """The handlers of facts and of forgetting.

    Args:
        facts: the store of facts.
        forgettings: forgets for good.
        search: hybrid search.
        drafting: completes what is to be found.
        now: the time.
    """

    def __init__(
        self,
        facts: Facts,
        forgettings: Forgettings,
        search: HybridSearch,
        drafting: Drafting,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._facts = facts
        self._forgettings = forgettings
        self._search = search
        self._drafting = drafting
        self._now = now

    async def learn(self, call: Call, request: Learn) -> Learnt:
        """Take in what a turn taught: what a model drew from it, or, without one, what rules draw from the user's words."""
        if not is_storable(request.model_dump(mode="json")):
            raise BadRequest("no NUL characters and no infinite numbers")
        said = statements_of(request.said) if request.statements is None else request.statements
        fit = [one for one in said if _may_be_kept(one)]
        sayings = [_saying(request, number, one) for number, one in enumerate(fit)]
        return await self._written(
            [one.text for one in fit],
            lambda drafts: self._facts.learn(call, request, sayings, drafts, len(said) - len(fit)),
        )

    async def import_memory(self, call: Call, request: ImportMemory) -> ImportedMemory:
        """Take facts in from JSON Lines, all lines or none, once for the call's key."""
        lines, now = read(request.lines), self._now()
        digest = hashlib.sha256(request.lines.encode()).hexdigest()[:32]
        said = [(line, number, one) for line in lines for number, one in enumerate(line.statements)]
        sayings = [
            Saying(
                one,
                Evidence(
                    f"import:{digest}/{line.number}/{number}",
                    (line.at or now) + timedelta(microseconds=line.number),
                    one.origin,
                    one.confidence,
                ),
            )
            for line, number, one in said
        ]
        skipped = tuple(line.number for line in lines if not line.statements)
        result = ImportedMemory(
            lines=len(lines), added=0, confirmed=0, superseded=0, skipped=len(skipped), skipped_lines=skipped
        )
        return await self._written(
            [one.text for _, _, one in said], lambda drafts: self._facts.take_in(call, request, sayings, drafts, result)
        )

    async def _written(self, texts: Sequence[str], write: Callable[[Drafts], Awaitable[T]]) -> T:
        """Write with the vectors of these texts, made before the transaction, and of those that turn out to lack one."""
        wanted = list(dict.fromkeys(texts))
        for _ in range(_TRIES):
            drafts = await self._drafting.complete([_draft(text) for text in wanted], {})
            try:
                return await write({draft.text: draft for draft in drafts})
            except TextMissing as missing:
                wanted.append(missing.text)
        raise Unavailable("the facts change too fast", retry_after=1)

    async def list_facts(self, call: Call, request: ListFacts) -> FactList:
        """The caller's facts, the newest first."""
        return await self._facts.list(call.who, request)

    async def recall_facts(self, call: Call, request: RecallFacts) -> RecalledFacts:
        """Held facts of the caller that bear on a question, each with what gave it its score."""
        audience = Audience(call.who.tenant, (owner_of_facts(call.who.user),), (MEMORY,))
        [found] = await self._search.find(audience, [request.query], _WIDER * request.limit)
        candidates = found.candidates[: _WIDER * request.limit]
        behind = await self._facts.by_items(call.who, [one.id for one in candidates]) if candidates else {}
        reasons = [
            (behind[one.id][1], why(request.query, one, behind[one.id][0], self._now()))
            for one in candidates
            if one.id in behind
        ]
        ranked = sorted(
            (RecalledFact(fact=fact, score=score(reason), why=reason) for fact, reason in reasons),
            key=lambda one: (-one.score, one.fact.id),
        )
        return RecalledFacts(facts=tuple(ranked[: request.limit]), degraded=tuple(sorted(found.degraded)))

    async def preview_forgetting(self, call: Call, request: ForgetFor) -> ForgettingPreview:
        """What a forgetting would remove."""
        _check(request)
        return await self._forgettings.preview(call.who, request)

    async def forget_for_good(self, call: Call, request: ForgetFor) -> Forgetting:
        """Forget, here at once, and wherever a copy is soon after."""
        _check(request)
        return await self._forgettings.begin(call, request)

    async def get_forgetting(self, call: Call, request: ForgettingRef) -> Forgetting:
        """How far a forgetting is."""
        return await self._forgettings.get(call.who, request.forgetting_id)

    async def on_conversation_deleted(self, news: News, event: ConversationDeleted) -> None:
        """Remove the facts that were learnt from a deleted conversation alone."""
        if event.part == 1:
            await self._forgettings.forget_conversation(news.tenant, event)

    async def on_purged(self, news: News, event: Purged) -> None:
        """The graph has removed its part of what was forgotten."""
        await self._forgettings.purged(news.tenant, "graph", event)

    async def on_copies_purged(self, news: News, event: CopiesPurged) -> None:
        """The orchestrator has removed its copies of what was forgotten."""
        await self._forgettings.copies_purged(news.tenant, event)


def _check(request: ForgetFor) -> None:
    if (bool(request.ids) + (request.subject is not None) + (request.conversation_id is not None)) != 1:
        raise BadRequest("state either ids, a subject or a conversation_id", field="ids")
    if not is_storable(request.model_dump(mode="json")):
        raise BadRequest("no NUL characters", field="ids")


def _may_be_kept(statement: Statement) -> bool:
    """Whether a statement holds no secret, and comes from one who may make it."""
    if has_secret(f"{statement.text}\n{statement.predicate} {statement.object}"):
        return False
    return statement.kind is not FactKind.PREFERENCE or statement.origin in SAYS


def _saying(request: Learn, number: int, statement: Statement) -> Saying:
    """A statement of a turn; of two in one message the later one is the newer."""
    return Saying(
        statement,
        Evidence(
            f"turn:{request.turn_id}/{number}",
            request.said_at + timedelta(microseconds=number),
            statement.origin,
            statement.confidence,
            request.turn_id,
            request.conversation_id,
        ),
    )


def _draft(text: str) -> Draft:
    return Draft(MEMORY, text, hashlib.sha256(text.encode()).digest())
