"""The stand-ins that a replay runs on: questions and approvals are answered from the record, and nothing is written."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phronesis_contracts import Message, Nothing, Principal, Rpc, ServiceError
from phronesis_contracts.answers import NotRecorded, ToolCalled
from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.instructions import (
    AGENT_GET,
    RETRIEVE_AT,
    RETRIEVE_INSTRUCTIONS,
    AgentProfile,
    AgentRef,
    RetrieveAt,
    RetrieveInstructions,
)
from phronesis_contracts.media import MEDIA_GET, ExtractedText, Media, MediaRef, TextRef
from phronesis_contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, Retrieve
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import Audited

from ..approvals.policy import ApprovalAnswer, ApprovalRequest, make_approval_id
from ..conversations.history import Past, Summary
from ..ledger.usage import LedgerEntry
from ..turns.execution import TEXT_OF
from ..turns.ports import Neighbours
from ..turns.turn import Claim, Completed, Failed
from .record import Question, StoredRecord, find_tool, message_digest, restore_answer, trace_arguments
from .trace import describe_call

_NOBODY = ApprovalAnswer(ApprovalStatus.REFUSED, "", "")
"""Stands for an answer that there is not: it is no answer to any call, so the call is not allowed."""


class RecordedApprovals:
    """The store of approvals as a replay finds it."""

    def __init__(self, turn_id: str, answers: Mapping[str, ApprovalAnswer]) -> None:
        self._answers = {make_approval_id(turn_id, step): answer for step, answer in answers.items()}

    async def answered(self, claim: Claim, approval_id: str) -> ApprovalAnswer:
        return self._answers.get(approval_id, _NOBODY)

    async def record(self, claim: Claim, entry: Audited) -> None:
        """Enter nothing: no call is made."""

    async def wait(self, claim: Claim, asked: ApprovalRequest) -> None:
        raise NotRecorded("the turn that is replayed did not ask this")


_WIDE = 32_000
"""Tokens of the retrieval that reads the texts of recorded memories again: more than any turn asked for."""


class RecordedNeighbours:
    """Answers a turn's questions from its record. No tool is called: what is not in the record is said to be so.

    Texts that their owner alone keeps (memories, the profile, attachments) are read there again, as the turn's user.

    Args:
        release: number of the release that texts of instructions are read from; `None` for the recorded ones.
    """

    def __init__(self, record: StoredRecord, profile: AgentProfile, live: Neighbours, release: int | None) -> None:
        self._profile, self._live, self._release = profile, live, release
        self._left: dict[tuple[str, str], deque[Question]] = defaultdict(deque)
        for question in record.questions:
            self._left[question.subject, question.digest].append(question)
        self.unrecorded: list[ToolCalled] = []
        """Questions that are not in the record."""
        self.lost: dict[str, None] = {}
        """What its owner no longer has as it was."""

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        return self._profile

    async def profile(self, who: Principal) -> dict[str, object]:
        question = self._next(who, PROFILE_GET, Nothing())
        if question.held is None:
            return _answer_from_record(question, PROFILE_GET).profile
        known = await self._live.profile(who)
        if message_digest(PROFILE_GET.output(profile=known)) != question.held:
            self.lost["profile"] = None
        return known

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        question = self._next(who, RETRIEVE, Retrieve(key_phrases=phrases, budget_tokens=budget))
        if question.held is None:
            return _answer_from_record(question, RETRIEVE)
        again = await self._live.retrieve(who, phrases, _WIDE, limit)
        return self._again(question, again)

    async def media(self, who: Principal, media_id: str) -> Media:
        question = self._next(who, MEDIA_GET, MediaRef(media_id=media_id))
        return _answer_from_record(question, MEDIA_GET) if question.held is None else await self._live.media(who, media_id)

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        question = self._next(who, TEXT_OF[medium.kind], TextRef(media_id=medium.id))
        if question.held is None:
            return _answer_from_record(question, TEXT_OF[medium.kind])
        return self._again(question, await self._live.medium_text(who, medium, limit), medium.id)

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        if self._release is not None and rpc.subject == RETRIEVE_INSTRUCTIONS.subject:
            assert isinstance(request, RetrieveInstructions)
            text: Any = await self._live.ask(who, RETRIEVE_AT, RetrieveAt(release=self._release, wanted=request))
            return rpc.output.model_validate(text.model_dump())
        question = self._next(who, rpc, request)
        if question.held is None:
            return _answer_from_record(question, rpc)
        # Only what reads is ever held (`holding`), so nothing is changed by asking again.
        return self._again(question, await self._live.ask(who, rpc, request), rpc.subject)

    def _next(self, who: Principal, rpc: Rpc[Any, Any], request: Message) -> Question:
        left = self._left.get((rpc.subject, message_digest(request)))
        if not left:
            tool = find_tool(rpc)
            name = tool.name if tool else rpc.subject
            question = Question(subject=rpc.subject, digest="", tool=name, arguments=trace_arguments(who, rpc, request))
            self.unrecorded.append(describe_call(question).model_copy(update={"outcome": NotRecorded.code}))
            raise NotRecorded("the turn that is replayed did not ask this, so there is no answer to it")
        return left.popleft() if len(left) > 1 else left[0]

    def _again(self, question: Question, answer: Out_, name: str = "") -> Out_:
        found, lost = restore_answer(answer, question.items)
        self.lost |= dict.fromkeys(lost)
        if name and not question.items and message_digest(answer) != question.held:
            self.lost[name] = None
        assert isinstance(found, type(answer))
        return found


def _answer_from_record(question: Question, rpc: Rpc[In, Out_]) -> Out_:
    if question.problem is not None:
        raise ServiceError.from_body(question.problem)
    if question.answer is None:
        raise NotRecorded("the answer was too large to be recorded")
    return rpc.output.model_validate(question.answer)


async def profile_at(live: Neighbours, who: Principal, agent: str, release: int) -> AgentProfile:
    """An agent's profile as of a release of the tenant. Raises `NotFound` where there is no such release."""
    return await live.ask(who, AGENT_GET, AgentRef(agent=agent, release=release))


class BlankJournal:
    """A journal that knows nothing and keeps nothing: a replay makes each step itself. What it spends is entered."""

    def __init__(self, spent: Any) -> None:
        self._spent = spent

    async def intend(self, claim: Claim, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        return None

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: LedgerEntry | None = None) -> None:
        if spend is not None:
            await self._spent(claim, spend)

    async def keep_record(self, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
        """The record is the caller's."""


class RecordedConversations:
    """The conversation as the turn saw it; what would be written to it is dropped."""

    def __init__(self, past: Past) -> None:
        self._past = past

    async def recent(self, tenant: str, conversation_id: str) -> Past:
        return self._past

    async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
        """Keep nothing."""

    async def get(self, who: Principal, ref: Any) -> Any:
        raise NotRecorded("a replay reads no conversation")


class ReplayEnd:
    """Where a replay ends: in a value, and in no row."""

    def __init__(self) -> None:
        self.end_of: Completed | Failed | None = None

    async def end(self, claim: Claim, end: Completed | Failed) -> None:
        self.end_of = end


@dataclass(frozen=True)
class ReplayStores:
    """The stores of one replay."""

    turns: ReplayEnd
    journal: BlankJournal
    conversations: RecordedConversations
    approvals: RecordedApprovals
