"""What is recorded of a turn while it runs, and which answers stay with their owner alone."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from pydantic import Field

from phronesis_bus import Metric, Tracing, audit_entry
from phronesis_contracts import UNKNOWN, Label, Message, Principal, Risk, Rpc, without_labels
from phronesis_contracts.answers import MAX_CALLS, MAX_STAGES, MAX_USED, StageRun
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.deletions import SourcePreview
from phronesis_contracts.documents import KEEP_DOCUMENT, DocumentList, FoundPassage, FoundPassages, KeptDocument
from phronesis_contracts.facts import LEARN, AnsweredFacts, Learnt, LearntFact, RecalledFacts
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import MediaRef, TextRef
from phronesis_contracts.memory import AugmentedMemoryContext, Profile, Recalled, RecalledMemories
from phronesis_contracts.orchestrator import Directive
from phronesis_contracts.tools import Tool

from ..conversations.history import Past, PastTurn
from ..understanding.plan import Focus


@dataclass
class MeasuredOutcome:
    """What came of a part; the block may say more."""

    name: str = "ok"


@contextmanager
def measure(tracing: Tracing, metric: Metric, span: str, label: str) -> Iterator[MeasuredOutcome]:
    """Measure a block. One that raises is counted by the code of the error, or by its class.

    Args:
        tracing: where the span and the figure go.
    """
    began, outcome = time.perf_counter(), MeasuredOutcome()
    try:
        with tracing.span(span):
            yield outcome
    except BaseException as error:
        outcome.name = getattr(error, "code", None) or type(error).__name__
        raise
    finally:
        tracing.metrics.observe(metric, time.perf_counter() - began, label, outcome.name)


MOST_BYTES = 2_000_000
"""Bytes of the answers that are recorded of one turn; a replay of what is beyond them is told that it is not recorded."""
_NOTED = ("mode", "tone", "tier", "intent", "decision", "plan", "planning", "prose")
"""What a line of progress may say that belongs in the trace."""


class Item(Message):
    """A memory in an answer."""

    id: str
    kind: str
    score: float | None = None


class Question(Message):
    """One question to a service, and its answer."""

    subject: str
    digest: str
    """Of the arguments."""
    tool: str = ""
    """Name of the tool that was called; empty for what a stage reads by itself."""
    step: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """With secrets masked; empty for what is no tool."""
    answer: dict[str, Any] | None = None
    """Absent where its owner alone holds it, and where it was no answer."""
    held: str | None = None
    """Digest of an answer that its owner alone holds."""
    items: tuple[Item, ...] = ()
    problem: dict[str, Any] | None = None
    ms: int = 0


class ShownHistory(Message):
    """The history that the turn was shown: numbers of messages, and no text."""

    directive: Directive = Directive.SUPPORTIVE_COMPANION
    focus: Focus = Focus()
    labels: tuple[Label, ...] = UNKNOWN
    summary_through: int = 0
    kept: tuple[int, ...] = ()
    aged: tuple[int, ...] = ()
    window: tuple[int, ...] = ()


class StoredRecord(Message):
    """A record as it is stored."""

    stages: tuple[StageRun, ...] = ()
    questions: tuple[Question, ...] = ()
    notes: dict[str, Any] = Field(default_factory=dict)
    past: ShownHistory = ShownHistory()
    profile: str = ""
    """Digest of the agent's profile."""
    version: str = ""
    release: str = ""
    arms: dict[str, str] = Field(default_factory=dict)
    cut: bool = False


@dataclass
class TurnRecord:
    """The record of one attempt at a turn."""

    stages: list[StageRun] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    past: ShownHistory = field(default_factory=ShownHistory)
    profile: AgentProfile | None = None
    cut: bool = False
    _bytes: int = 0

    @contextmanager
    def staged(self, name: str, part: AbstractContextManager[MeasuredOutcome]) -> Iterator[MeasuredOutcome]:
        """Note a stage, which is measured by `part` as well."""
        began, at, outcome = time.perf_counter(), len(self.stages), MeasuredOutcome()
        if at < MAX_STAGES:
            self.stages.append(StageRun(name=name, ms=0, outcome="cut"))
        else:
            self.cut = True
        try:
            with part as outcome:
                yield outcome
        finally:
            if at < MAX_STAGES:
                ms = round((time.perf_counter() - began) * 1000)
                self.stages[at] = StageRun(name=name, ms=ms, outcome=outcome.name)

    def note(self, detail: dict[str, Any]) -> None:
        """Note what a line of progress says."""
        self.notes |= {name: detail[name] for name in _NOTED if name in detail}

    def remember(self, past: Past) -> None:
        """Note which messages the turn was shown."""
        self.past = ShownHistory(
            directive=past.directive,
            focus=past.focus,
            labels=past.labels,
            summary_through=past.summary.through,
            **{part: _numbers(getattr(past, part)) for part in ("kept", "aged", "window")},
        )

    def ask(self, question: Question) -> None:
        """Note a question; its answer only as long as there is room."""
        if len(self.questions) >= 2 * MAX_CALLS:
            self.cut = True
            return
        size = len(json.dumps(question.answer)) if question.answer is not None else 0
        if self._bytes + size > MOST_BYTES:
            question, size, self.cut = question.model_copy(update={"answer": None}), 0, True
        self._bytes += size
        self.questions.append(question)

    def kept(self) -> StoredRecord:
        agent = self.profile
        return StoredRecord(
            stages=tuple(self.stages),
            questions=tuple(self.questions),
            notes=self.notes,
            past=self.past,
            profile=_profile_digest(agent) if agent else "",
            version=agent.version if agent else "",
            release=agent.release if agent else "",
            arms=agent.arms if agent else {},
            cut=self.cut,
        )


def join_records(earlier: StoredRecord, later: StoredRecord) -> StoredRecord:
    """Two attempts as one record. What the later one asked again, as after an approval, stands once."""
    again = {(one.subject, one.digest, one.step) for one in later.questions}
    kept = (one for one in earlier.questions if (one.subject, one.digest, one.step) not in again)
    return later.model_copy(
        update={
            "stages": (*earlier.stages, *later.stages)[:MAX_STAGES],
            "questions": (*kept, *later.questions)[: 2 * MAX_CALLS],
            "notes": earlier.notes | later.notes,
            "cut": earlier.cut or later.cut,
        }
    )


def list_memories(record: StoredRecord) -> tuple[Item, ...]:
    """The memories that a record names, each once with its best score."""
    found: dict[tuple[str, str], Item] = {}
    for item in (item for question in record.questions for item in question.items):
        known = found.get((item.kind, item.id))
        if known is None or (item.score or 0) > (known.score or 0):
            found[item.kind, item.id] = item
    return tuple(found.values())[:MAX_USED]


def message_digest(message: Message) -> str:
    """A digest that equal messages share."""
    if isinstance(message, TextRef) and not message.offset:
        message = MediaRef(media_id=message.media_id)  # as it was asked before texts were read in pieces
    # A question is the same though the turn has read more by then, and so is an answer from before there were labels.
    return json_digest(without_labels(message.model_dump(mode="json")))


_PROFILES = 300
"""Digests of profiles that are kept."""
_digests: OrderedDict[int, tuple[AgentProfile, str]] = OrderedDict()


def _profile_digest(profile: AgentProfile) -> str:
    """The digest of a profile, which turns share for as long as it is cached: it holds every prompt of its agent."""
    kept = _digests.get(id(profile))
    if kept is None:
        kept = _digests[id(profile)] = (profile, message_digest(profile))  # its own object, so that the id stays its own
        if len(_digests) > _PROFILES:
            _digests.popitem(last=False)
    return kept[1]


def json_digest(value: Any) -> str:
    """A digest that equal values of JSON share, whatever the order of their members."""
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _numbers(turns: tuple[PastTurn, ...]) -> tuple[int, ...]:
    return tuple(turn.seq for turn in turns)


_OWNERS = ("memory", "media")
"""Services whose texts are people's own: memories, profiles, attachments."""
_NAMING = ("scope", "key", "ids", "external_id", "kind")
"""Arguments of a write that say which memory it is about."""
_WRITES = frozenset({LEARN.subject, KEEP_DOCUMENT.subject})
"""Writes that are no tool."""
_OF_THE_GRAPH = "memory.v1.constitution."
"""Searches of nodes that the graph owns."""
_BY_SUBJECT: dict[str, Tool[Any, Any]] = {tool.rpc.subject: tool for tool in reversed(TOOLS.values())}


def find_tool(rpc: Rpc[Any, Any]) -> Tool[Any, Any] | None:
    """The tool that a contract is, if it is one; of several names the first."""
    return _BY_SUBJECT.get(rpc.subject)


def trace_arguments(who: Principal, rpc: Rpc[Any, Any], request: Message) -> dict[str, Any]:
    """The arguments of a tool call as a trace shows them: secrets masked, long texts cut, and of a memory that is written
    its name alone, since it may be forgotten.
    """
    given = request.model_dump(mode="json", exclude_none=True)
    tool = find_tool(rpc)
    if rpc.service in _OWNERS and (tool is None or tool.risk > Risk.READ):
        given = {name: value for name, value in given.items() if name in _NAMING}
    return audit_entry(who, rpc.subject, given).arguments


def is_held(rpc: Rpc[Any, Any], answer: Message) -> bool:
    """Whether its owner alone keeps the text of an answer. An answer without any is recorded as it is."""
    if rpc.service not in _OWNERS or rpc.subject.startswith(_OF_THE_GRAPH):
        return False
    tool = find_tool(rpc)
    if rpc.subject in _WRITES or (tool is not None and tool.risk > Risk.READ):
        return False  # the receipt of a write; it must never be asked for again
    return not _is_empty(answer)


def strip_texts(answer: Message) -> Message:
    """The receipt of a write, or what a forgetting would remove, as it is recorded: without the texts that its owner keeps."""
    if isinstance(answer, Learnt):
        return answer.model_copy(update={"facts": tuple(LearntFact(id=one.id, status=one.status) for one in answer.facts)})
    if isinstance(answer, KeptDocument):
        return answer.model_copy(update={"name": ""})
    if isinstance(answer, SourcePreview):
        return answer.model_copy(update={"things": ()})
    return answer


def _is_empty(answer: Message) -> bool:
    match answer:
        case AugmentedMemoryContext():
            return not answer.memory_units and not answer.concepts
        case RecalledMemories():
            return not answer.snippets
        case Recalled():
            return not answer.items
        case RecalledFacts() | AnsweredFacts():
            return not answer.facts
        case Profile():
            return not answer.profile
        case FoundPassages():
            return not answer.passages
        case DocumentList():
            return not answer.documents
    return False


def list_items(answer: Message) -> tuple[Item, ...]:
    """The memories in an answer, best first."""
    match answer:
        case AugmentedMemoryContext():
            found = (*answer.memory_units, *answer.concepts)
            return tuple(Item(id=one.id, kind=one.kind, score=one.score) for one in found)
        case RecalledMemories():
            return tuple(Item(id=f"{answer.scope}:{one.key}", kind="scoped", score=one.score) for one in answer.snippets)
        case Recalled():
            return tuple(Item(id=one.id, kind=one.kind, score=one.score) for one in answer.items)
        case RecalledFacts():
            return tuple(Item(id=one.fact.id, kind="fact", score=one.score) for one in answer.facts)
        case AnsweredFacts():
            return tuple(Item(id=one.fact.id, kind="fact", score=one.confidence) for one in answer.facts)
        case FoundPassages():
            return tuple(Item(id=_passage_id(one), kind="passage", score=one.score) for one in answer.passages)
    return ()


def restore_answer(answer: Message, items: tuple[Item, ...]) -> tuple[Message, tuple[str, ...]]:
    """An answer that was asked for again, with the recorded memories alone, in their order and with their scores.

    Returns:
        The answer, and the ids that it no longer holds.
    """
    ranks = {item.id: (at, item.score or 0.0) for at, item in enumerate(items)}
    match answer:
        case AugmentedMemoryContext():
            parts = {name: _in_recorded_order(getattr(answer, name), ranks) for name in ("memory_units", "concepts")}
            there = {one.id for part in parts.values() for one in part}
            again: Message = answer.model_copy(update=parts)
        case RecalledMemories():
            keys = {id.partition(":")[2]: rank for id, rank in ranks.items()}
            snippets = _in_recorded_order(answer.snippets, keys, name="key")
            there = {f"{answer.scope}:{one.key}" for one in snippets}
            again = answer.model_copy(update={"snippets": snippets})
        case Recalled():
            listed = _in_recorded_order(answer.items, ranks)
            there, again = {one.id for one in listed}, answer.model_copy(update={"items": listed})
        case RecalledFacts() | AnsweredFacts():
            known = tuple(one for one in answer.facts if one.fact.id in ranks)
            facts = tuple(sorted(known, key=lambda one: ranks[one.fact.id][0]))
            there, again = {one.fact.id for one in facts}, answer.model_copy(update={"facts": facts})
        case FoundPassages():
            near = sorted(
                (one for one in answer.passages if _passage_id(one) in ranks), key=lambda one: ranks[_passage_id(one)][0]
            )
            there, again = {_passage_id(one) for one in near}, answer.model_copy(update={"passages": tuple(near)})
        case _:
            return answer, ()
    return again, tuple(id for id in ranks if id not in there)


def _passage_id(passage: FoundPassage) -> str:
    return f"{passage.media_id}/{passage.position}"


def _in_recorded_order(found: tuple[Any, ...], ranks: dict[str, tuple[int, float]], name: str = "id") -> tuple[Any, ...]:
    known = sorted((one for one in found if getattr(one, name) in ranks), key=lambda one: ranks[getattr(one, name)][0])
    return tuple(one.model_copy(update={"score": ranks[getattr(one, name)][1]}) for one in known)
