"""Working stand-ins for what a turn needs: a journal, neighbours and a reasoner, all in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from phronesis_bus.tracing import Tracing
from phronesis_contracts import Label, NotFound, Principal, ServiceError, Unavailable
from phronesis_contracts.approvals import ApprovalStatus
from phronesis_contracts.documents import KEEP_DOCUMENT, SEARCH_DOCUMENTS, FoundPassages, KeepDocument, KeptDocument
from phronesis_contracts.facts import ASK_FACTS, LIST_FACTS, AnsweredFacts, FactList
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText, Media, MediaKind
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, ItemKind, Profile
from phronesis_contracts.orchestrator import Audited, ConversationRef, Directive, SubmitTurn, TurnProgress
from phronesis_contracts.origins import OriginKind
from phronesis_orchestrator.agents.cognition.state import Cognition
from phronesis_orchestrator.approvals.policy import ApprovalAnswer, ApprovalRequest
from phronesis_orchestrator.conversations.history import Past, PastMessage, PastTurn, Summary
from phronesis_orchestrator.ledger.usage import CallUsage
from phronesis_orchestrator.models.reasoner import Answer, ComposedReply, Fault, Reasoner, RouteDecision, TurnContext
from phronesis_orchestrator.settings import OrchestratorSettings
from phronesis_orchestrator.turns.run import TurnRunner, TurnServices
from phronesis_orchestrator.turns.turn import AlreadyBegun, Claim, Completed, Failed
from phronesis_orchestrator.understanding.plan import NO_FOCUS, Focus
from phronesis_orchestrator.understanding.reader import Vocabularies

PROFILE = AgentProfile(
    agent="dialogue",
    version="1",
    loop="router",
    stages=(),
    prompts={},
    phrases={"apology": "Sorry.", "unreadable_attachment": "({name} is unreadable)"},
)
FACT = ContextItem(id="i1", kind=ItemKind.FACT, title="Phoenix", text="Phoenix moves the archive.", score=0.9, hop=0)


@dataclass
class FakeJournal:
    """A journal of one turn."""

    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    intents: list[str] = field(default_factory=list)
    record: Any = None
    """How the answer came about."""

    async def intend(self, claim: Claim, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        if once and step in self.intents and step not in self.results:
            raise AlreadyBegun(step)
        self.intents.append(step)
        return self.results.get(step)

    async def known(self, claim: Claim, step: str) -> dict[str, Any] | None:
        return self.results.get(step)

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: Any = None) -> None:
        self.results[step] = result

    async def keep_record(self, claim: Claim, record: Any, profile: AgentProfile | None) -> None:
        self.record = record


@dataclass
class FakeNeighbours:
    """Neighbours that answer from tables; a `ServiceError` in a table is raised."""

    profiles: dict[str, AgentProfile | ServiceError] = field(default_factory=lambda: {"dialogue": PROFILE})
    known: dict[str, object] | ServiceError = field(default_factory=dict)
    memory: AugmentedMemoryContext | ServiceError = field(
        default_factory=lambda: AugmentedMemoryContext(user_id="ann", key_phrases=("x",), memory_units=(FACT,))
    )
    documents: dict[str, ExtractedText | ServiceError] = field(default_factory=dict)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    owners: dict[str, Any] = field(default_factory=dict)
    """Answers of contracts by subject: a message, a `ServiceError`, or a function of the request; else nobody is there."""
    questions: list[tuple[str, Any, str | None]] = field(default_factory=list)
    """What was asked by contract: subject, request and idempotency key."""

    async def ask(self, who: Principal, rpc: Any, request: Any, *, key: str | None = None) -> Any:
        if rpc.subject == KEEP_DOCUMENT.subject and rpc.subject not in self.owners:
            return _keep_whole(request)
        if rpc.subject in _NOTHING_KEPT and rpc.subject not in self.owners:
            return _NOTHING_KEPT[rpc.subject]
        self.questions.append((rpc.subject, request, key))
        found = self.owners.get(rpc.subject, Unavailable("nobody serves it"))
        return raised(found(request) if callable(found) else found)

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        return raised(self.profiles.get(name, NotFound("no such agent")))

    async def profile(self, who: Principal) -> Profile:
        return Profile(profile=raised(self.known), labels=(Label(kind=OriginKind.MEMORY),))

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        self.asked.append(phrases)
        return raised(self.memory)

    async def media(self, who: Principal, media_id: str) -> Media:
        found = self.documents.get(media_id)
        if found is None:
            raise NotFound("no such media")
        kind = found.kind if isinstance(found, ExtractedText) else MediaKind.DOCUMENT
        name = found.name if isinstance(found, ExtractedText) else "note.pdf"
        return Media(id=media_id, name=name, type="text/plain", kind=kind, size=1, sha256="0" * 64)

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        return raised(self.documents.get(medium.id, NotFound("no such media")))


_NOTHING_KEPT: dict[str, Any] = {
    SEARCH_DOCUMENTS.subject: FoundPassages(),
    ASK_FACTS.subject: AnsweredFacts(known=False, understood=False),
    LIST_FACTS.subject: FactList(facts=(), total=0),
}
"""What memory answers about a user and a conversation that it has heard nothing of."""


def _keep_whole(request: KeepDocument) -> KeptDocument:
    whole = {"passages": 1, "characters": request.length, "length": request.length, "complete": not request.limits}
    return KeptDocument.model_validate({"media_id": request.media_id, **whole, "limits": request.limits})


def raised(found: Any) -> Any:
    """The value; raised where it is an error."""
    if isinstance(found, ServiceError):
        raise found
    return found


@dataclass
class FakeConversations:
    """One conversation."""

    directive: Directive = Directive.SUPPORTIVE_COMPANION
    history: tuple[PastMessage, ...] = ()
    """The newest messages: of the user and of the assistant in turn."""
    error: ServiceError | None = None
    summary: Summary = field(default_factory=Summary)
    aged: tuple[PastTurn, ...] = ()
    stored: list[Summary] = field(default_factory=list)
    focus: Focus = NO_FOCUS

    async def recent(self, tenant: str, conversation_id: str) -> Past:
        if self.error:
            raise self.error
        texts = [message.text for message in self.history]
        pairs = zip(texts[::2], texts[1::2], strict=True)
        window = tuple(PastTurn(1_001 + 2 * at, user, said) for at, (user, said) in enumerate(pairs))
        return Past(self.directive, self.summary, aged=self.aged, window=window, focus=self.focus)

    async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
        self.stored.append(summary)

    async def get(self, who: Principal, ref: ConversationRef) -> Any:
        raise NotFound("no such conversation")


@dataclass
class FakeTurns:
    """Remembers the end, what people are asked and answer, and what is recorded of calls."""

    end_of: Completed | Failed | None = None
    asked: dict[str, ApprovalRequest] = field(default_factory=dict)
    """By the approval's id."""
    answers: dict[str, ApprovalAnswer] = field(default_factory=dict)
    recorded: list[Audited] = field(default_factory=list)
    grants: list[tuple[str, frozenset[OriginKind], str]] = field(default_factory=list)
    """Consents that cover later calls: the tool, the kinds of origins, the hosts."""
    traced: Any = None
    """How the answer came about."""

    async def end(self, claim: Claim, end: Completed | Failed, record: Any = None, profile: AgentProfile | None = None) -> None:
        assert self.end_of is None, "a turn ends once"
        self.end_of, self.traced = end, record

    async def wait(self, claim: Claim, asked: ApprovalRequest) -> None:
        self.asked[asked.approval_id] = asked

    async def answered(self, claim: Claim, approval_id: str) -> ApprovalAnswer | None:
        return self.answers.get(approval_id)

    async def granted(self, claim: Claim, tool: str, kinds: frozenset[OriginKind], host: str) -> bool:
        return bool(kinds) and any((tool, host) == (of, to) and kinds <= because for of, because, to in self.grants)

    async def record(self, claim: Claim, entry: Audited) -> None:
        self.recorded.append(entry)

    def answer(self, status: ApprovalStatus, note: str = "") -> ApprovalRequest:
        """Let a person answer what was asked last."""
        asked = list(self.asked.values())[-1]
        self.answers[asked.approval_id] = ApprovalAnswer(status, asked.digest, note)
        return asked


@dataclass
class ScriptedReasoner:
    """Gives the scripted answers in order, and remembers what it was asked with."""

    routes: list[Answer[RouteDecision] | ServiceError] = field(default_factory=list)
    composes: list[Answer[ComposedReply] | ServiceError] = field(default_factory=list)
    name: str = "scripted"
    calls: list[str] = field(default_factory=list)
    contexts: list[TurnContext] = field(default_factory=list)
    drafts: list[str | None] = field(default_factory=list)
    memories: list[AugmentedMemoryContext | None] = field(default_factory=list)

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[RouteDecision]:
        self.calls.append("route" if fault is None else "route.repair")
        self.contexts.append(turn)
        return raised(self.routes.pop(0))

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[ComposedReply]:
        self.calls.append("compose" if fault is None else "compose.repair")
        self.drafts.append(draft)
        self.memories.append(memory)
        return raised(self.composes.pop(0))


def direct(draft: str | None = "Hi!") -> Answer[RouteDecision]:
    """A decision to answer at once."""
    return Answer(RouteDecision(decision="respond_directly", direct_response=draft), spent=CallUsage(model_calls=1))


def query(*phrases: str) -> Answer[RouteDecision]:
    """A decision to ask memory."""
    return Answer(RouteDecision(decision="query_memory", key_phrases=phrases), spent=CallUsage(model_calls=1))


def reply(text: str = "Done.", directive: Directive | None = Directive.FOCUSED_ANALYST) -> Answer[ComposedReply]:
    """A good final answer."""
    composed = ComposedReply(user_response=text, next_agent_directive=directive, directive_reasoning="because")
    return Answer(composed, spent=CallUsage(input_tokens=10, output_tokens=5, model_calls=1))


def fault(said: str = "nonsense") -> Answer[Any]:
    """An answer that broke its schema."""
    return Answer(None, Fault(said, "no JSON"), CallUsage(model_calls=1))


def claim(text: str = "What is Phoenix?", media: tuple[str, ...] = (), **more: Any) -> Claim:
    """A claimed turn."""
    values = {"idle_claims": 1, "expired": False, "key_revoked": False, "agent": "dialogue"}
    values |= {"who": Principal(tenant="acme", user="ann")} | more
    return Claim(
        turn_id=str(uuid4()),
        conversation_id=str(uuid4()),
        request=SubmitTurn(idempotency_key="k", text=text, media=media),
        fence=1,
        attempts=1,
        created_at=datetime.now(UTC),
        traceparent=None,
        correlation_id=None,
        **values,
    )


@dataclass
class Stage:
    """A runner with all its fakes."""

    reasoner: Reasoner
    neighbours: FakeNeighbours = field(default_factory=FakeNeighbours)
    conversations: FakeConversations = field(default_factory=FakeConversations)
    journal: FakeJournal = field(default_factory=FakeJournal)
    turns: FakeTurns = field(default_factory=FakeTurns)
    shown: list[str] = field(default_factory=list)
    settings: OrchestratorSettings = field(default_factory=OrchestratorSettings)
    cognition: Cognition = field(default_factory=Cognition)
    vocabularies: Vocabularies | None = None
    progress: list[TurnProgress] = field(default_factory=list)
    """All that was shown of a turn."""

    async def run(self, claimed: Claim) -> Completed | Failed:
        """Run one turn to its end."""
        await self.attempt(claimed)
        assert self.turns.end_of is not None
        return self.turns.end_of

    async def attempt(self, claimed: Claim) -> None:
        """Run one turn until it ends, or waits."""

        async def show(of: Principal, line: TurnProgress) -> None:
            self.shown.append(line.phase or line.kind)
            self.progress.append(line)
            await self.hear(of, line)

        services = TurnServices(
            self.turns,
            self.journal,
            self.conversations,
            self.neighbours,
            self.reasoner,
            self.settings,
            Tracing("orchestrator"),
            show,
            lambda: None,
            approvals=self.turns,
            cognition=self.cognition,
            vocabularies=self.vocabularies,
        )
        await TurnRunner(services).run(claimed)

    async def hear(self, of: Principal, line: TurnProgress) -> None:
        """Called with each line of progress."""
