"""What learning is about: ended turns, and what a model drew from them; what learning needs from outside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from pydantic import Field, field_validator

from phronesis_contracts import UNKNOWN, Label, Message, Principal, merge_labels, untrusted
from phronesis_contracts.facts import CopiesPurged, FactKind, MemoryForgotten, Origin, Statement
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import ExtractedText

from ..conversations.history import PastMessage
from ..models.parsing import make_fault, read_object, strict_object, validate_answer
from ..models.reasoner import Answer, Fault

PURPOSE = "learn"
"""The prompt by which a model draws statements."""
MOST = 40
"""Statements of one batch."""
_SHORTEST = 3
"""Characters of a quotation: fewer stand anywhere."""
_TEXT = 6_000
"""Characters of one part of a turn that a model is shown."""
_AUTHORS = (Origin.USER, Origin.MEDIA, Origin.REPLY)
_FUNCTION_WORDS = frozenset(
    """a an the of in on at to for from by with and or not no is are was were be been has have had does do did user s their his
    her its my your our that this it they he she we you i as""".split()
)
"""Words of any sentence about somebody: that a document has them too says nothing."""
_ROLES = {Origin.USER: "user", Origin.MEDIA: "document", Origin.REPLY: "assistant"}


@dataclass(frozen=True)
class EndedTurn:
    """A turn that was completed and not learnt from yet."""

    turn_id: str
    conversation_id: str
    who: Principal
    said: str
    """The user's own words."""
    reply: str
    at: datetime
    attempts: int
    agent: str
    """The agent that answered it."""
    media: tuple[str, ...] = ()
    """Ids of what was attached."""
    labels: tuple[Label, ...] = ()
    """Where the texts come from that the reply may rest on."""
    documents: tuple[ExtractedText, ...] = ()
    """What was attached, once it is read."""

    def part(self, origin: Origin) -> str:
        """What one of the three said in it."""
        if origin is Origin.USER:
            return self.said
        return self.reply if origin is Origin.REPLY else "\n\n".join(one.text for one in self.documents)


class DrawnStatement(Message):
    """One statement that a model drew, with the words that it rests on."""

    turn: int
    kind: FactKind
    subject: str = Field(min_length=1, max_length=200)
    predicate: str = Field(min_length=1, max_length=100)
    object: str = Field(min_length=1, max_length=1_000)
    text: str = Field(min_length=1, max_length=2_000)
    negated: bool = False
    quote: str = Field(max_length=2_000)
    confidence: float = Field(default=0.7, ge=0.0, le=1.0)


class Drawn(Message):
    """What a model drew from a batch."""

    statements: tuple[DrawnStatement, ...] = ()

    @field_validator("statements")
    @classmethod
    def _bounded(cls, found: tuple[DrawnStatement, ...]) -> tuple[DrawnStatement, ...]:
        return found[:MOST]


DRAWN_SCHEMA = strict_object(
    statements={
        "type": "array",
        "items": strict_object(
            turn={"type": "integer"},
            kind={"type": "string", "enum": [kind.value for kind in FactKind if kind is not FactKind.NOTE]},
            subject={"type": "string"},
            predicate={"type": "string"},
            object={"type": "string"},
            text={"type": "string"},
            negated={"type": "boolean"},
            quote={"type": "string"},
            confidence={"type": "number"},
        ),
    }
)
"""JSON Schema of what is drawn, in the form that strict modes ask for."""


def parse_drawn(said: str) -> Drawn | Fault:
    """What a model drew, or what is wrong with its answer. A statement that does not fit is left out alone."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    listed = found.get("statements")
    if not isinstance(listed, list):
        return make_fault(said, "statements: a list is wanted")
    fit = [one for one in (validate_answer(DrawnStatement, each, said) for each in listed if isinstance(each, dict))]
    return Drawn(statements=tuple(one for one in fit if isinstance(one, DrawnStatement)))


def batch_lines(batch: Sequence[EndedTurn]) -> tuple[PastMessage, ...]:
    """A batch as a model is shown it: each part with the number of its turn, from 1, and with who said it."""
    return tuple(
        PastMessage(_ROLES[origin], turn.part(origin)[:_TEXT], number)
        for number, turn in enumerate(batch, 1)
        for origin in _AUTHORS
        if turn.part(origin).strip()
    )


def match_statements(drawn: Drawn, batch: Sequence[EndedTurn]) -> dict[str, tuple[Statement, ...]]:
    """What was drawn, by turn, as statements. Who made one is where its quotation stands; without one it is left out."""
    found: dict[str, list[Statement]] = {turn.turn_id: [] for turn in batch}
    for one in drawn.statements:
        if not 1 <= one.turn <= len(batch):
            continue
        turn = batch[one.turn - 1]
        origin = _author(one.quote, turn)
        if origin is Origin.USER and not _in_own_words(one, turn, batch):
            origin = Origin.MEDIA
        if origin is None or (one.kind is FactKind.PREFERENCE and origin is not Origin.USER):
            continue
        fields = one.model_dump(exclude={"turn", "quote"})
        labels = _labels(origin, one, turn, batch)
        found[turn.turn_id].append(Statement.model_validate({**fields, "origin": origin, "labels": labels}))
    return {id: tuple(statements) for id, statements in found.items()}


def _author(quote: str, turn: EndedTurn) -> Origin | None:
    wanted = _plain(quote)
    if len(wanted) < _SHORTEST:
        return None
    return next((origin for origin in _AUTHORS if wanted in _plain(turn.part(origin))), None)


_WORD = re.compile(r"\w+")
_STEM = 4
"""Letters by which words are the same here: who works at a place said “I work there”."""


def _in_own_words(one: DrawnStatement, turn: EndedTurn, batch: Sequence[EndedTurn]) -> bool:
    """Whether a statement with a quotation of the user's holds no word that a document before the model says and they do not.

    A document may tell the model what to put behind words of the user's.
    """
    others = {word for other in batch for part in (*other.documents,) for word in _words(part.text)}
    others |= {word for other in batch if untrusted(other.labels) for word in _words(other.reply)}
    stated = _words(f"{one.subject} {one.predicate} {one.object} {one.text}")
    said = {word[:_STEM] for word in _words(turn.said)}
    return all(word[:_STEM] in said for word in (stated & others) - _FUNCTION_WORDS)


def _labels(origin: Origin, one: DrawnStatement, turn: EndedTurn, batch: Sequence[EndedTurn]) -> tuple[Label, ...]:
    """Where a statement comes from: of a document the one that is quoted, else every one that the model was shown."""
    if origin is Origin.USER:
        return ()
    if origin is Origin.REPLY:
        return turn.labels or UNKNOWN
    wanted = _plain(one.quote)
    quoted = [found.label for found in turn.documents if wanted in _plain(found.text)]
    every = (found.label for other in batch for found in other.documents)
    read = (label for other in batch for label in untrusted(other.labels))
    return merge_labels(quoted) or merge_labels(every, read) or UNKNOWN


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _plain(text: str) -> str:
    return " ".join(text.replace("’", "'").replace("“", '"').replace("”", '"').casefold().split())


@runtime_checkable
class Drawer(Protocol):
    """A reasoner that can also draw statements from ended turns. One that cannot leaves it to rules."""

    async def draw(self, agent: AgentProfile, batch: Sequence[EndedTurn]) -> Answer[Drawn]:
        """Draw statements from a batch of one user's turns, by one call; it is never repaired. Raises `CallFailed`."""


class Unlearnt(Protocol):
    """The ended turns that were not learnt from yet."""

    async def claim(self, most: int, after: float, lease: float) -> list[EndedTurn]:
        """Turns of one user, oldest first, once there are `most` or the oldest ended `after` seconds ago; none otherwise.

        Nobody else gets them for `lease` seconds.
        """

    async def learnt(self, turns: Sequence[EndedTurn]) -> None:
        """Note that these were learnt from."""

    async def give_back(self, turns: Sequence[EndedTurn]) -> None:
        """Hand these out again at once, as if they had not been claimed; but for those that others have claimed since."""


class Copies(Protocol):
    """What this service holds of memories in its turns."""

    async def forget(self, tenant: str, event: MemoryForgotten) -> CopiesPurged:
        """Remove the texts of the turns in which something was said, or before which memory put it, and report, once."""

    async def erased(self, tenant: str, user: str, seconds: float) -> tuple[str, ...]:
        """A user's turns that hold no text any more and ended within the last `seconds`, the newest first."""


class Streams(Protocol):
    """What the broker keeps of turns."""

    async def erase_shown(self, tenant: str, user: str, turns: Sequence[str]) -> None:
        """Erase the progress of a user's turns. Raises `Unavailable`."""

    async def erase_parked(self, tenant: str, ids: Sequence[str]) -> None:
        """Erase a tenant's parked messages that name one of these ids. Raises `Unavailable` and `TimedOut`."""
