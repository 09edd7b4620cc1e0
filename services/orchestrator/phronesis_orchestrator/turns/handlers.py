"""What the orchestrator answers about turns: submitted, read, cancelled and tried again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import nullcontext
from uuid import uuid4

from phronesis_bus import Call, News, correlation, traceparent
from phronesis_contracts import BadRequest, Forbidden, NotFound, Principal, ServiceError, TimedOut, Unavailable
from phronesis_contracts.errors import Busy
from phronesis_contracts.instructions import Released
from phronesis_contracts.orchestrator import (
    ListTurns,
    RateTurn,
    SubmitTurn,
    Turn,
    TurnProgress,
    TurnRef,
    Turns,
    TurnStatus,
    turn_id,
)
from phronesis_contracts.service import KeyRevoked

from ..agents.client import check_client_request
from ..models.reasoner import RULES, Reasoner
from ..settings import OrchestratorSettings
from .ports import Neighbours, ShowProgress, Slots
from .store import PostgresTurns
from .turn import Accepted, NewTurn, check_task_order, expiry_seconds, hash_request, problem_from_error, with_goal

log = logging.getLogger(__name__)


class TurnHandlers:
    """The handlers.

    Args:
        neighbours: the services it may ask.
        accepted: called when a turn was queued, to wake a worker.
        cancelled: called with the id of a cancelled turn, to stop it where it runs.
        released: called when instructions changed.
        reasoner: what answers turns.
        slots: where a turn may run at once; all are queued without it.
    """

    def __init__(
        self,
        turns: PostgresTurns,
        neighbours: Neighbours,
        settings: OrchestratorSettings,
        progress: ShowProgress,
        accepted: Callable[[], None],
        cancelled: Callable[[str], None],
        released: Callable[[], None],
        reasoner: Reasoner = RULES,
        slots: Slots | None = None,
    ) -> None:
        self._turns, self._neighbours, self._settings, self._progress = turns, neighbours, settings, progress
        self._reasoner, self._slots = reasoner, slots
        self._accepted, self._cancelled, self._released = accepted, cancelled, released

    async def turn(self, call: Call, request: SubmitTurn) -> None:
        """Intake: commit the turn's row and say `accepted`, or say `refused` and why."""
        id = turn_id(call.who.tenant, call.who.user, request.idempotency_key)
        try:
            await self._validate(call.who, with_goal(request))
            accepted = await self._accept(self._new_turn(id, call.who, request))
        except ServiceError as error:
            if isinstance(error, (Unavailable, TimedOut)) and not isinstance(error, Busy):
                raise  # a store is away: the job stays in its queue
            await self._progress(call.who, TurnProgress(turn_id=id, kind="refused", problem=problem_from_error(error)))
            return
        await self._show_accepted(call.who, accepted)

    async def _accept(self, turn: NewTurn) -> Accepted:
        with self._slots.hold(turn.who, turn.request) if self._slots is not None else nullcontext() as offer:
            accepted = await self._turns.accept(turn, self._settings.open_turns, offer)
            if accepted.claim is not None and self._slots is not None:
                self._slots.begin(accepted.claim)
        return accepted

    async def _show_accepted(self, who: Principal, accepted: Accepted) -> None:
        if accepted.status is TurnStatus.QUEUED:
            self._accepted()
        line = TurnProgress(turn_id=accepted.turn_id, kind="accepted", conversation_id=accepted.conversation_id)
        await self._progress(who, line)
        if accepted.status.ended:
            await self._progress(who, line.model_copy(update={"kind": "ended"}))

    def _new_turn(self, id: str, who: Principal, request: SubmitTurn) -> NewTurn:
        fingerprint = request.fingerprint or hash_request(request)
        return NewTurn(
            id,
            who,
            request,
            fingerprint,
            expiry_seconds(request, self._settings.expiry),
            traceparent(),
            correlation.get() or id,
        )

    async def _validate(self, who: Principal, request: SubmitTurn) -> None:
        if not request.text.strip() and not request.media:
            raise BadRequest("a message needs text or media", field="currentMessageText")
        check_task_order(request)
        if "\x00" in request.text:
            raise BadRequest("the text holds a NUL character", field="currentMessageText")
        if "\x00" in request.idempotency_key + (request.fingerprint or ""):
            raise BadRequest("the key holds a NUL character", field="idempotency_key")
        try:
            profile = await self._neighbours.agent(who, request.agent)
        except NotFound as error:
            raise BadRequest(f"there is no agent {request.agent!r}"[:200], field="agent") from error
        if request.client is not None:
            check_client_request(request.client, profile, self._reasoner)
        try:
            await asyncio.gather(*(self._neighbours.media(who, id) for id in request.media))
        except NotFound as error:
            raise NotFound("no such media", field="currentMessageMedia") from error

    async def get(self, call: Call, request: TurnRef) -> Turn:
        return await self._turns.get(call.who, request.turn_id)

    async def rate(self, call: Call, request: RateTurn) -> Turn:
        """Keep what the caller thinks of an answer of theirs; a repeat changes nothing."""
        if "\x00" in request.remark:
            raise BadRequest("the remark holds a NUL character", field="remark")
        return await self._turns.rate(call.who, request)

    async def list(self, call: Call, request: ListTurns) -> Turns:
        """Turns of the caller, or of others. Raises `Forbidden`: others' are asked for by no administrator."""
        if request.user not in (None, call.who.user) and not call.who.administers:
            raise Forbidden("the turns of others are for administrators", field="user")
        return await self._turns.list(call.who, request)

    async def cancel(self, call: Call, request: TurnRef) -> Turn:
        turn = await self._turns.cancel(call.who, request.turn_id)
        self._cancelled(turn.turn_id)
        line = TurnProgress(turn_id=turn.turn_id, kind="ended", conversation_id=turn.conversation_id)
        await self._progress(call.who, line)
        return turn

    async def retry(self, call: Call, request: TurnRef) -> Turn:
        """Make a new turn of a failed or parked one, linked to it."""
        key = f"retry/{request.turn_id}/{call.key or uuid4().hex}"[:255]
        again = (await self._turns.retryable(call.who, request.turn_id)).model_copy(
            update={"idempotency_key": key, "retry_of": request.turn_id, "fingerprint": None}
        )
        new = self._new_turn(turn_id(call.who.tenant, call.who.user, key), call.who, again)
        await self._show_accepted(call.who, await self._accept(new))
        return await self._turns.get(call.who, new.id)

    async def on_key_revoked(self, news: News, event: KeyRevoked) -> None:
        """Turns of a revoked key end at their next claim."""
        await self._turns.revoke(news.tenant, event.key)

    async def on_released(self, news: News, event: Released) -> None:
        """Instructions changed: profiles are looked up anew."""
        self._released()
