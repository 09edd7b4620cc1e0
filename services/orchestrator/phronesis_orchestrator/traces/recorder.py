"""The neighbours of a turn with everything they are asked recorded, and storing the record."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from phronesis_contracts import Message, Nothing, Principal, Rpc, ServiceError
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import CAPTION, EXTRACT_TEXT, MEDIA_GET, TRANSCRIBE, ExtractedText, Media, MediaKind, MediaRef
from phronesis_contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, Profile, Retrieve
from phronesis_contracts.messages import In, Out_

from ..turns.execution import current_step
from ..turns.ports import Neighbours, TraceStore
from ..turns.turn import Claim
from .record import Question, TurnRecord, find_tool, is_held, list_items, message_digest, trace_arguments

Given = TypeVar("Given", bound=Message)
TEXT_OF = {MediaKind.DOCUMENT: EXTRACT_TEXT, MediaKind.IMAGE: CAPTION, MediaKind.AUDIO: TRANSCRIBE}
"""The contract that gives the text of each kind of medium."""


class RecordingNeighbours:
    """Passes each question on, and records it with its answer.

    Args:
        neighbours: who answers.
        record: the record of the turn.
    """

    def __init__(self, neighbours: Neighbours, record: TurnRecord) -> None:
        self._neighbours = neighbours
        self._record = record

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        """An agent's profile; the record keeps it once, whole."""
        profile = self._record.profile = await self._neighbours.agent(who, name)
        return profile

    async def profile(self, who: Principal) -> dict[str, object]:
        """What memory knows of the user."""

        async def asked() -> Profile:
            return Profile(profile=await self._neighbours.profile(who))

        return (await self._noted(who, PROFILE_GET, Nothing(), asked())).profile

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        """Hybrid retrieval for key phrases."""
        request = Retrieve(key_phrases=phrases, budget_tokens=budget)
        return await self._noted(who, RETRIEVE, request, self._neighbours.retrieve(who, phrases, budget, limit))

    async def media(self, who: Principal, media_id: str) -> Media:
        """One medium of the caller."""
        return await self._noted(who, MEDIA_GET, MediaRef(media_id=media_id), self._neighbours.media(who, media_id))

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        """The text of a medium."""
        asked = self._neighbours.medium_text(who, medium, limit)
        return await self._noted(who, TEXT_OF[medium.kind], MediaRef(media_id=medium.id), asked)

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        """Ask a tool's owner."""
        tool, asked = find_tool(rpc), self._neighbours.ask(who, rpc, request, key=key)
        return await self._noted(who, rpc, request, asked, tool.name if tool else rpc.subject)

    async def _noted(self, who: Principal, rpc: Rpc[In, Given], request: In, asked: Awaitable[Given], tool: str = "") -> Given:
        began, step = time.perf_counter(), current_step.get()
        question = Question(
            subject=rpc.subject,
            digest=message_digest(request),
            tool=tool,
            step=step,
            arguments=trace_arguments(who, rpc, request) if tool else {},
        )
        try:
            answer = await asked
        except ServiceError as error:
            self._record.ask(question.model_copy(update={"problem": error.body(), "ms": _elapsed_ms(began)}))
            raise
        self._record.ask(question.model_copy(update={**_recorded_answer(rpc, answer), "ms": _elapsed_ms(began)}))
        return answer


def _recorded_answer(rpc: Rpc[In, Given], answer: Given) -> dict[str, object]:
    """What is recorded of an answer: all of it, or, where its owner alone keeps the text, a digest."""
    if is_held(rpc, answer):
        return {"held": message_digest(answer), "items": list_items(answer)}
    return {"answer": answer.model_dump(mode="json", by_alias=True), "items": list_items(answer)}


def _elapsed_ms(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)


log = logging.getLogger(__name__)

KeepRecord = Callable[[Claim, TurnRecord], Awaitable[None]]


def build_record_keeper(traces: TraceStore) -> KeepRecord:
    """Keeps records in the store; one that cannot be kept is logged, and the turn ends without."""

    async def keep(claim: Claim, record: TurnRecord) -> None:
        try:
            await traces.keep_record(claim, record.kept(), record.profile)
        except ServiceError as error:
            log.warning("the record of turn %s could not be kept: %s", claim.turn_id, error.code)

    return keep


async def discard_record(claim: Claim, record: TurnRecord) -> None:
    """Keep nothing: the record is the caller's."""
