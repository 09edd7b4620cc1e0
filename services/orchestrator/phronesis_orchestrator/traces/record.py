"""What is recorded of a turn while it runs: stages, questions to other services with their answers, and what was shown."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from pydantic import Field

from phronesis_contracts import Message
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import Directive
from phronesis_contracts.traces import MAX_CALLS, MAX_STAGES, MAX_USED, StageRun

from ..history import Past, PastTurn
from ..timing import Outcome

MOST_BYTES = 2_000_000
"""Bytes of the answers that are recorded of one turn; a replay of what is beyond them is told that it is not recorded."""
_NOTED = ("mode", "tone", "tier", "intent", "decision", "plan")
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


class Remembered(Message):
    """The history that the turn was shown: numbers of messages, and no text."""

    directive: Directive = Directive.SUPPORTIVE_COMPANION
    summary_through: int = 0
    kept: tuple[int, ...] = ()
    aged: tuple[int, ...] = ()
    window: tuple[int, ...] = ()


class KeptRecord(Message):
    """A record as it is stored."""

    stages: tuple[StageRun, ...] = ()
    questions: tuple[Question, ...] = ()
    notes: dict[str, Any] = Field(default_factory=dict)
    past: Remembered = Remembered()
    profile: str = ""
    """Digest of the agent's profile."""
    version: str = ""
    release: str = ""
    arms: dict[str, str] = Field(default_factory=dict)
    cut: bool = False


@dataclass
class Record:
    """The record of one attempt at a turn."""

    stages: list[StageRun] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    past: Remembered = field(default_factory=Remembered)
    profile: AgentProfile | None = None
    cut: bool = False
    _bytes: int = 0

    @contextmanager
    def staged(self, name: str, part: AbstractContextManager[Outcome]) -> Iterator[Outcome]:
        """Note a stage, which is measured by `part` as well."""
        began, at, outcome = time.perf_counter(), len(self.stages), Outcome()
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
        self.past = Remembered(
            directive=past.directive,
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

    def kept(self) -> KeptRecord:
        """The record as it is stored."""
        agent = self.profile
        return KeptRecord(
            stages=tuple(self.stages),
            questions=tuple(self.questions),
            notes=self.notes,
            past=self.past,
            profile=digest_of(agent) if agent else "",
            version=agent.version if agent else "",
            release=agent.release if agent else "",
            arms=agent.arms if agent else {},
            cut=self.cut,
        )


def joined(earlier: KeptRecord, later: KeptRecord) -> KeptRecord:
    """Two attempts as one record."""
    return later.model_copy(
        update={
            "stages": (*earlier.stages, *later.stages)[:MAX_STAGES],
            "questions": (*earlier.questions, *later.questions)[: 2 * MAX_CALLS],
            "notes": earlier.notes | later.notes,
            "cut": earlier.cut or later.cut,
        }
    )


def memories(record: KeptRecord) -> tuple[Item, ...]:
    """The memories that a record names, each once with its best score."""
    found: dict[tuple[str, str], Item] = {}
    for item in (item for question in record.questions for item in question.items):
        known = found.get((item.kind, item.id))
        if known is None or (item.score or 0) > (known.score or 0):
            found[item.kind, item.id] = item
    return tuple(found.values())[:MAX_USED]


def digest_of(message: Message) -> str:
    """A digest that equal messages share."""
    return digest(message.model_dump(mode="json"))


def digest(value: Any) -> str:
    """A digest that equal values of JSON share, whatever the order of their members."""
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _numbers(turns: tuple[PastTurn, ...]) -> tuple[int, ...]:
    return tuple(turn.seq for turn in turns)
