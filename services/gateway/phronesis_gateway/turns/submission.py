"""Handing a turn in, waiting until it is accepted and until it has ended, and its trace."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

from pydantic import BaseModel

from phronesis_bus import Bus, Listener, Watch, ask, ask_each, correlation, tell
from phronesis_contracts import BadRequest, NotFound, Principal, ServiceError, TimedOut, Unavailable
from phronesis_contracts.media import FETCH, FetchUrl
from phronesis_contracts.orchestrator import (
    TURN,
    TURN_GET,
    ClientRequest,
    Problem,
    SubmitTurn,
    TaskOrder,
    Turn,
    TurnProgress,
    TurnRef,
    TurnStatus,
    turn_id,
)
from phronesis_contracts.service import SERVICES, SPANS, Span, TraceRef
from phronesis_contracts.tasks import SubmitTask

from ..http.requests import AcceptedTurn, MediaGiven, MessageGiven

LIMIT = 1.5
"""Seconds that a service has to answer."""
OWNER = "phronesis.owner"
"""Attribute of a request's span: tenant and user it acted for."""


class TurnTrace(BaseModel):
    """Every span of a turn that is still remembered, in order of start."""

    turn_id: str
    """The turn."""
    trace_id: str | None
    """Id of the trace; null where the turn came without one."""
    spans: tuple[Span, ...] = ()
    """The spans, in the order in which they began."""
    missing: tuple[str, ...] = ()
    """Services that did not answer, whose spans are not among these."""


def owner_of(who: Principal) -> str:
    """How a span names the caller."""
    return f"{who.tenant}/{who.user}"


class TraceCollector:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def of(self, who: Principal, turn_id: str, trace_id: str | None) -> TurnTrace:
        if trace_id is None:
            return TurnTrace(turn_id=turn_id, trace_id=None)
        ref = TraceRef(trace_id=trace_id)
        answers = await asyncio.gather(*(self._ask(who, name, ref) for name in SERVICES))
        # Other copies of this service answer like any other; what this one knows is there without the broker.
        known = {span.span_id: span for found in answers for span in found or ()}
        known |= {span.span_id: span for span in self._bus.tracing.recent.of(ref).spans}
        return TurnTrace(
            turn_id=turn_id,
            trace_id=trace_id,
            spans=tuple(sorted(_spans_of(owner_of(who), known.values()), key=lambda span: span.start_ns)),
            missing=tuple(
                name for name, found in zip(SERVICES, answers, strict=True) if found is None and name != self._bus.name
            ),
        )

    async def _ask(self, who: Principal, service: str, ref: TraceRef) -> list[Span] | None:
        answers = await ask_each(self._bus, who, SPANS[service], ref, timeout=LIMIT)
        return [span for found in answers.values() for span in found.spans] if answers else None


def _spans_of(owner: str, spans: Iterable[Span]) -> list[Span]:
    """The spans without those that another caller's request began: callers choose trace ids, and may choose the same."""
    left = list(spans)
    foreign = {span.span_id for span in left if span.attributes.get(OWNER, owner) != owner}
    while foreign:
        left = [span for span in left if span.span_id not in foreign]
        foreign = {span.span_id for span in left if span.parent_id in foreign}
    return left


log = logging.getLogger(__name__)

TELL_AGAIN = 2.0
"""Seconds without an answer after which the turn is published again; a repeat does no harm."""
LOOK = 3.0
"""Seconds without a hint after which the turn's row is asked for."""

_ProgressListener = Callable[[TurnProgress], Awaitable[None]] | None
_FIELDS = {"conversation_id": "conversationId", "text": "currentMessageText", "media": "currentMessageMedia"}


class TurnRefused(Exception):
    """The orchestrator refused the turn."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


@dataclass
class SubmittedTurn:
    """An accepted turn, and the ear that hears of it."""

    turn_id: str
    conversation_id: str
    listener: Listener[TurnProgress]
    ended: TurnProgress | None = None
    """The hint at its end, once it was heard; most carry the ended turn."""


class TurnService:
    """Hands turns in and waits for them. `accept_wait`: seconds that a turn may take to be accepted."""

    def __init__(self, bus: Bus, watch: Watch[TurnProgress], accept_wait: float) -> None:
        self._bus = bus
        self._watch = watch
        self._accept_wait = accept_wait

    @asynccontextmanager
    async def submitted(
        self, who: Principal, given: MessageGiven, key: str | None, client: ClientRequest | None = None
    ) -> AsyncIterator[SubmittedTurn]:
        """An accepted turn, for the length of a block in which its end can be waited for.

        Args:
            client: what the program that sends the message adds to it.

        Raises:
            BadRequest: the message is empty, or one of its addresses cannot be fetched.
            Refused: the orchestrator refused it.
            Unavailable: the broker is away, the queue is full, or nobody accepted it in time.
        """
        if given.empty:
            raise BadRequest("a message needs text or media", field="currentMessageText")
        key = key or uuid4().hex
        id = turn_id(who.tenant, who.user, key)
        # Heard from before the turn is published: nothing that is said of it can be missed.
        with self._watch.turn(who, id) as listener:
            submit = SubmitTurn(
                idempotency_key=key,
                conversation_id=given.conversation_id,
                text=given.current_message_text or "",
                media=await self._media(who, id, given.current_message_media),
                agent=given.agent,
                fingerprint=given.fingerprint if client is None else _fingerprint(given, client),
                client=client,
            )
            yield await self._accepted(who, id, submit, listener)

    @asynccontextmanager
    async def ordered(self, who: Principal, order: SubmitTask, key: str | None) -> AsyncIterator[SubmittedTurn]:
        """The same for a background task: a turn in a conversation of its own."""
        key = key or uuid4().hex
        id = turn_id(who.tenant, who.user, key)
        task = TaskOrder(budget=order.budget, dry_run_of=order.goal if order.dry_run else None)
        submit = SubmitTurn(idempotency_key=key, text="" if order.dry_run else order.goal, agent=order.agent, task=task)
        with self._watch.turn(who, id) as listener:
            yield await self._accepted(who, id, submit, listener)

    async def state(self, who: Principal, id: str) -> Turn:
        return await ask(self._bus, who, TURN_GET, TurnRef(turn_id=id))

    async def accepted(self, who: Principal, turn: SubmittedTurn) -> AcceptedTurn:
        """Where an accepted turn is now; `queued` while nobody can say."""
        try:
            status = (await self.state(who, turn.turn_id)).status
        except ServiceError:
            status = TurnStatus.QUEUED
        return AcceptedTurn(turn_id=turn.turn_id, conversation_id=turn.conversation_id, status=status)

    async def ended(
        self, who: Principal, turn: SubmittedTurn, seconds: float, on_progress: _ProgressListener = None
    ) -> Turn | None:
        """The turn once it has ended, or `None` when it has not within `seconds` or waits for a person, which may take days.

        What is said meanwhile goes to `heard`.
        """
        due = time.monotonic() + seconds
        while (left := due - time.monotonic()) > 0 and not turn.listener.closed:
            if turn.ended is None:
                turn.ended = await _wait_for_hint(turn.listener, min(LOOK, left), on_progress)
            if turn.ended is not None and turn.ended.turn is not None:
                return turn.ended.turn
            try:
                found = await self.state(who, turn.turn_id)
            except NotFound:
                raise  # it was there when it was accepted: its conversation was deleted
            except ServiceError as error:
                log.warning("a turn that is waited for could not be read: %s", error.code)
                await asyncio.sleep(min(0.2, left))
                continue
            if found.status.ended:
                return found
            if found.status is TurnStatus.WAITING:
                return None
            turn.ended = None
        return None

    async def _media(self, who: Principal, turn: str, given: tuple[MediaGiven, ...]) -> tuple[str, ...]:
        async def id_of(place: int, one: MediaGiven) -> str:
            if one.url is None:
                assert one.media_id is not None
                return one.media_id
            try:
                fetched = await ask(self._bus, who, FETCH, FetchUrl(url=one.url), key=f"fetch/{turn}/{place}")
            except BadRequest as error:
                error.field = f"currentMessageMedia.{place}.url"
                raise
            return fetched.id

        return tuple(await asyncio.gather(*(id_of(place, one) for place, one in enumerate(given))))

    async def _accepted(self, who: Principal, id: str, submit: SubmitTurn, listener: Listener[TurnProgress]) -> SubmittedTurn:
        due = time.monotonic() + self._accept_wait
        answers = _Answers(listener, correlation.get())
        stored = False
        while (left := due - time.monotonic()) > 0 and not listener.closed:
            stored = await self._told(who, submit, stored)
            answer = await answers.next(min(TELL_AGAIN, left))
            if answer is None:
                continue
            if answer.kind == "refused":
                raise TurnRefused(_with_sent_field(answer.problem or Problem(code="bad_request", status=400)))
            return SubmittedTurn(id, answer.conversation_id or submit.conversation_id or "", listener, answers.ended)
        raise Unavailable("the turn was not accepted in time; send it again with the same key", retry_after=2)

    async def _told(self, who: Principal, submit: SubmitTurn, stored: bool) -> bool:
        """Publish the turn; returns whether it was ever stored, or may have been."""
        try:
            await tell(self._bus, who, TURN, submit)
        except TimedOut:
            log.warning("it is not known whether a turn was stored; it is published again")
        except Unavailable:
            if not stored:
                raise
            log.warning("a turn could not be published again")
        return True


def _fingerprint(given: MessageGiven, client: ClientRequest) -> str:
    return hashlib.sha256(f"{given.fingerprint} {client.model_dump_json()}".encode()).hexdigest()


class _Answers:
    """What was said to one submission. Another one with the same key has answers of its own."""

    def __init__(self, listener: Listener[TurnProgress], id: str | None) -> None:
        self._listener = listener
        self._id = id
        self.ended: TurnProgress | None = None

    async def next(self, seconds: float) -> TurnProgress | None:
        """`accepted` or `refused`, or `None` when neither came within `seconds`."""
        due = time.monotonic() + seconds
        while shown := await self._listener.next(due - time.monotonic()):
            match shown.message.kind:
                case "accepted" | "refused" if shown.correlation in (None, self._id):
                    return shown.message
                case "ended":
                    self.ended = shown.message
        return None


def _with_sent_field(problem: Problem) -> Problem:
    head, dot, rest = (problem.field or "").partition(".")
    return problem.model_copy(update={"field": _FIELDS[head] + dot + rest}) if head in _FIELDS else problem


async def _wait_for_hint(
    listener: Listener[TurnProgress], seconds: float, on_progress: _ProgressListener
) -> TurnProgress | None:
    due = time.monotonic() + seconds
    while shown := await listener.next(due - time.monotonic()):
        if on_progress is not None:
            await on_progress(shown.message)
        if shown.message.kind in ("ended", "waiting"):
            return shown.message
    return None
