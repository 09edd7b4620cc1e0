"""The neighbours of a turn, with everything they are asked recorded."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TypeVar

from phronesis_contracts import Message, Nothing, Principal, Rpc, ServiceError
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.media import CAPTION, EXTRACT_TEXT, MEDIA_GET, TRANSCRIBE, ExtractedText, Media, MediaKind, MediaRef
from phronesis_contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, Profile, Retrieve
from phronesis_contracts.messages import In, Out_

from ..ports import Neighbours
from ..steps import at_hand
from .holding import arguments_of, is_held, items_of, tool_of
from .record import Question, Record, digest_of

Given = TypeVar("Given", bound=Message)
TEXT_OF = {MediaKind.DOCUMENT: EXTRACT_TEXT, MediaKind.IMAGE: CAPTION, MediaKind.AUDIO: TRANSCRIBE}
"""The contract that gives the text of each kind of medium."""


class Recording:
    """Passes each question on, and records it with its answer.

    Args:
        neighbours: who answers.
        record: the record of the turn.
    """

    def __init__(self, neighbours: Neighbours, record: Record) -> None:
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
        tool, asked = tool_of(rpc), self._neighbours.ask(who, rpc, request, key=key)
        return await self._noted(who, rpc, request, asked, tool.name if tool else rpc.subject)

    async def _noted(self, who: Principal, rpc: Rpc[In, Given], request: In, asked: Awaitable[Given], tool: str = "") -> Given:
        began, step = time.perf_counter(), at_hand.get()
        question = Question(
            subject=rpc.subject,
            digest=digest_of(request),
            tool=tool,
            step=step,
            arguments=arguments_of(who, rpc, request) if tool else {},
        )
        try:
            answer = await asked
        except ServiceError as error:
            self._record.ask(question.model_copy(update={"problem": error.body(), "ms": _since(began)}))
            raise
        self._record.ask(question.model_copy(update={**_answered(rpc, answer), "ms": _since(began)}))
        return answer


def _answered(rpc: Rpc[In, Given], answer: Given) -> dict[str, object]:
    """What is recorded of an answer: all of it, or, where its owner alone keeps the text, a digest."""
    if is_held(rpc, answer):
        return {"held": digest_of(answer), "items": items_of(answer)}
    return {"answer": answer.model_dump(mode="json", by_alias=True), "items": items_of(answer)}


def _since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
