"""The people who use it: they send turns, cancel some, and answer what they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phronesis_bus import Call
from phronesis_bus.envelope import PRINCIPAL, SERVICE, encode
from phronesis_contracts import KeyReused, Principal, ServiceError, TimedOut, Unavailable
from phronesis_contracts.approvals import AnswerApproval, Decision
from phronesis_contracts.orchestrator import TURN, SubmitTurn, TurnProgress, TurnRef
from phronesis_contracts.orchestrator import turn_id as make_turn_id
from phronesis_orchestrator.turns.turn import new_conversation_id

if TYPE_CHECKING:
    from .world import Orchestrator, World


@dataclass
class Submitted:
    """A turn that a client has sent."""

    id: str
    who: Principal
    text: str
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    answer: TurnProgress | None = None
    """`accepted` or `refused`, as it was heard first."""
    conversation: str | None = None
    """The conversation that it was sent to, or that it began; `None` until that is heard."""


class Clients:
    """Everybody who sends turns."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.submitted: dict[str, Submitted] = {}

    async def converse(self, tenant: str, user: str, number: int) -> None:
        """One person's conversation: its first turn, and the others behind it as soon as that one is accepted."""
        chance, options = self._world.loop.random, self._world.options
        who = Principal(tenant=tenant, user=user)
        await asyncio.sleep(chance.random() * 4)
        first = await self._submit(who, f"{number}/0", None)
        if first is None or first.kind != "accepted":
            return
        following = []
        for turn in range(1, chance.randint(1, options.turns)):
            await asyncio.sleep(chance.random() * 2 if chance.random() < 0.5 else 0)
            following.append(asyncio.create_task(self._submit(who, f"{number}/{turn}", first.conversation_id)))
        await asyncio.gather(*following)

    async def _submit(self, who: Principal, key: str, conversation: str | None) -> TurnProgress | None:
        """Send a turn until somebody says `accepted` or `refused`."""
        chance, options = self._world.loop.random, self._world.options
        steps = "".join(chance.choices("mwoa", (6, 5, 2, 2), k=chance.randint(1, 4)))
        request = SubmitTurn(idempotency_key=key, conversation_id=conversation, text=f"{steps} {key}")
        id = make_turn_id(who.tenant, who.user, key)
        submitted = self.submitted[id] = Submitted(id, who, request.text, conversation=conversation)
        while not submitted.heard.is_set():
            self._publish(who, request)
            if self._world.restless and options.repeats and chance.random() < options.repeats:
                self._publish(who, request)
                if chance.random() < 0.3:
                    self._publish(who, request.model_copy(update={"text": f"m another {key}"}))
            try:
                async with asyncio.timeout(1 + chance.random() * 2):
                    await submitted.heard.wait()
            except TimeoutError:
                continue
        if self._world.restless and chance.random() < options.cancels:
            self._world.spawn(self._cancel(who, id, chance.random() * 3))
        return submitted.answer

    def _publish(self, who: Principal, request: SubmitTurn) -> None:
        broker, network = self._world.broker, self._world.network
        headers = {SERVICE: "gateway", PRINCIPAL: who.model_dump_json()}
        for _ in range(network.times()):
            if broker.up:
                broker.later(network.delay(), broker.store, TURN.on(who.tenant), encode(request), headers)

    def hear(self, subject: str, data: bytes) -> None:
        line = TurnProgress.model_validate_json(data)
        submitted = self.submitted.get(line.turn_id)
        if submitted is None:
            self._world.monitor.break_off(f"progress of a turn that nobody sent: {line.turn_id}")
            return
        self._world.tell(line.kind, line.turn_id[:8])
        if line.kind in ("accepted", "refused"):
            self._world.monitor.hear_intake(line)
            # Of two messages with one key and different texts either is the turn; the other is refused.
            if not submitted.heard.is_set():
                if line.problem is not None and line.problem.code == KeyReused.code:
                    its = submitted.conversation or new_conversation_id(line.turn_id)
                    line = TurnProgress(turn_id=line.turn_id, kind="accepted", conversation_id=its)
                submitted.answer, submitted.conversation = line, line.conversation_id
                submitted.heard.set()
        elif line.kind == "waiting":
            self._world.spawn(self._answer(submitted, line.detail["approval_id"]))

    async def _cancel(self, who: Principal, turn: str, wait: float) -> None:
        await asyncio.sleep(wait)

        async def cancel(life: Orchestrator) -> None:
            assert life.handlers is not None
            await life.handlers.cancel(Call(who, "gateway"), TurnRef(turn_id=turn))

        await self._ask_orchestrator(cancel)

    async def _answer(self, submitted: Submitted, approval: str) -> None:
        chance = self._world.loop.random
        if chance.random() < 0.2:
            return  # it runs out
        await asyncio.sleep(chance.random() * 6)
        decision = Decision.APPROVE if chance.random() < 0.7 else Decision.REFUSE

        async def answer(life: Orchestrator) -> None:
            assert life.approvals is not None
            await life.approvals.answer(Call(submitted.who, "gateway"), AnswerApproval(approval_id=approval, decision=decision))

        if submitted.conversation is not None and self._world.restless and chance.random() < 0.6:
            key = f"beside {approval[:6]}"
            if make_turn_id(submitted.who.tenant, submitted.who.user, key) not in self.submitted:
                self._world.spawn(self._submit(submitted.who, key, submitted.conversation))
                await asyncio.sleep(chance.random() * 0.008)
        await self._ask_orchestrator(answer)

    async def _ask_orchestrator(self, question: Callable[[Orchestrator], Awaitable[None]]) -> None:
        """Ask until there is an answer, whatever it is."""
        while True:
            ready = [life for life in self._world.alive() if life.handlers is not None and life.client.is_connected]
            if ready:
                life = self._world.loop.random.choice(ready)
                asked = self._world.loop.create_task(_outcome(question, life), context=life.process.context.copy())
                done, _ = await asyncio.wait([asked], timeout=3)
                if done and asked.result() and self._world.loop.random.random() >= self._world.network.lost:
                    return
            await asyncio.sleep(1)


async def _outcome(question: Callable[[Orchestrator], Awaitable[None]], life: Orchestrator) -> bool:
    """Whether there is an answer; what is away for a while is asked again."""
    try:
        await question(life)
    except (Unavailable, TimedOut):
        return False
    except ServiceError:
        return True
    return True
