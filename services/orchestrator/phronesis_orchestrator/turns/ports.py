"""What a running turn needs: where it ends, its journal, its conversation, and the services that it asks over the bus."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from phronesis_bus import Bus, Call, Metrics, ask, show
from phronesis_bus.envelope import remaining
from phronesis_contracts import Nothing, Principal, Rpc, ServiceError, TimedOut, Tool, Unavailable
from phronesis_contracts.catalog import ASKS
from phronesis_contracts.episodes import (
    MAX_TOOLS,
    MEMORY_QUERY,
    RECALL_EPISODES,
    RECALL_STRATEGIES,
    TOOL_STATISTICS,
    AskToolStatistics,
    MemoryOperation,
    MemoryQuery,
    RecallEpisodes,
    RecallStrategies,
)
from phronesis_contracts.instructions import AGENT_GET, AgentProfile, AgentRef
from phronesis_contracts.media import (
    CAPTION,
    EXTRACT_TEXT,
    MEDIA_GET,
    TRANSCRIBE,
    ExtractedText,
    Media,
    MediaKind,
    MediaRef,
    TextRef,
)
from phronesis_contracts.memory import PROFILE_GET, RETRIEVE, AugmentedMemoryContext, Profile, Retrieve
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import PROGRESS, Conversation, ConversationRef, SubmitTurn, Turn, TurnProgress

from ..agents.cognition.thought import KnownStrategy, PastEpisode, StyleExample, ToolRecord
from ..conversations.history import Past, Summary
from ..ledger.usage import LedgerEntry
from ..metrics import BREAKER_STATE
from ..models.limits import OPTIONAL_CALLS, Breaker, BreakerState, OptionalCall
from ..models.templates import without_calls
from ..traces.record import StoredRecord
from .turn import Claim, Completed, Failed, Offer, Wait


class TurnEnding(Protocol):
    """Where a turn ends."""

    async def end(
        self, claim: Claim, end: Completed | Failed, record: StoredRecord | None = None, profile: AgentProfile | None = None
    ) -> Turn | None:
        """End a turn in one transaction.

        Args:
            record: what was recorded of it, which is kept in the same transaction.
            profile: the profile that it ran with.

        Returns:
            The turn, where it has a row.

        Raises:
            LostClaim: the fence or the lease is no longer mine.
        """


class TurnQueue(Protocol):
    """What a worker needs of the store of turns. Every write of a running turn is conditional on its fence and its lease."""

    async def claim(
        self,
        worker: str,
        limit: int,
        lease: float,
        tasks: int | None = None,
        away: Collection[str] = (),
        most: tuple[str, int] | None = None,
    ) -> list[Claim]:
        """Claim up to `limit` turns, at most `tasks` of them background tasks: the lowest open one of each conversation,
        people's before tasks, tenants with the fewest running first.

        Args:
            away: services that are not asked at the moment; a turn that waits for one of them is left until it expires.
            most: a tenant, and how many of its turns this worker may run then, its tasks apart.
        """

    async def renew(self, worker: str, claims: list[Claim], lease: float) -> set[str]:
        """Renew the leases of `claims`; the ids of those that are still this worker's."""

    async def give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
        """Give a claim up, to be claimed again after `delay` seconds; `counts` says whether it counts as an idle one."""

    async def put_back(self, claim: Claim, wait: Wait, delay: float) -> bool:
        """Give a claim up for what does not answer, to be claimed again after `delay` seconds or when the turn expires.

        It does not count as an idle claim.

        Returns:
            Whether the turn was still mine.
        """


class Slots(Protocol):
    """The free slots of this process's worker."""

    def hold(self, who: Principal, request: SubmitTurn) -> AbstractContextManager[Offer | None]:
        """For a block: a free slot for a turn of `who`, which nobody else gets meanwhile; `None` where it may have none now."""

    def begin(self, claim: Claim) -> None:
        """Run a turn that was accepted into the held slot."""


class Journal(Protocol):
    async def intend(self, claim: Claim, step: str, intent: dict[str, Any], *, once: bool = False) -> dict[str, Any] | None:
        """Write down that `step` is about to be made; the result where it was made before.

        Args:
            claim: the turn.
            step: its name in the turn.
            intent: what is about to be done.
            once: whether it may not be begun a second time.

        Raises:
            LostClaim: the turn is no longer mine.
            AlreadyBegun: with `once`, an earlier attempt began it and wrote no result down.
        """

    async def known(self, claim: Claim, step: str) -> dict[str, Any] | None:
        """The result of `step` where an earlier attempt made it. Nothing is written down."""

    async def result(self, claim: Claim, step: str, result: dict[str, Any], spend: LedgerEntry | None = None) -> None:
        """Write down what `step` gave and, in the same transaction, what its model call used. Raises `LostClaim`.

        A call that is simply made again need not have been intended before. Where the claim is lost, what was used is entered
        all the same.
        """

    async def keep_record(self, claim: Claim, record: StoredRecord, profile: AgentProfile | None) -> None:
        """Keep what was recorded of a turn, while its claim is mine; what an earlier attempt left stands before it."""


class Conversations(Protocol):
    async def recent(self, tenant: str, conversation_id: str) -> Past:
        """The directive in force, the newest turns, and the summary with the turns that it does not cover yet."""

    async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
        """Store a summary, unless one that reaches as far is there."""

    async def get(self, who: Principal, ref: ConversationRef) -> Conversation:
        """A conversation of the caller. Raises `NotFound`."""


class Neighbours(Protocol):
    """The services that a turn asks, on behalf of its caller."""

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        """An agent's profile, from the cache where it is fresh. Raises `NotFound`."""

    async def profile(self, who: Principal) -> Profile:
        """What memory knows of the user."""

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        """Hybrid retrieval for key phrases."""

    async def media(self, who: Principal, media_id: str) -> Media:
        """One medium of the caller. Raises `NotFound`."""

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        """The text of a medium, by the tool of its kind."""

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        """Ask a tool's owner. Raises the `ServiceError` that it answers with.

        Args:
            who: the caller of the turn.
            rpc: the tool's contract.
            request: its arguments.
            key: idempotency key of a write.
        """


log = logging.getLogger(__name__)

_FRESH = 60.0
_PROFILE_LIMIT = 1.0
_PROFILES = 300
"""Profiles that are kept at most: one for each agent and tenant, and for each user who is in an experiment."""
_TOOLS = {MediaKind.DOCUMENT: EXTRACT_TEXT, MediaKind.IMAGE: CAPTION, MediaKind.AUDIO: TRANSCRIBE}
"""The kind alone decides which tool reads a medium."""


ShowProgress = Callable[[Principal, TurnProgress], Awaitable[None]]
"""Shows a line of a turn's progress to the turn's user."""


def progress_on(bus: Bus) -> ShowProgress:
    """Progress by the bus."""

    async def progress(who: Principal, line: TurnProgress) -> None:
        await show(bus, who, PROGRESS, line.turn_id, line)

    return progress


class ServiceBreakers:
    """One breaker for each service that turns ask.

    Args:
        failures: failures in a row after which a service is not asked.
        rest: seconds until it is asked again, by one call.
        clock: seconds that only grow.
    """

    def __init__(self, failures: int = 5, rest: float = 3.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._all = {
            name: Breaker(f"the service {name}", failures, rest, clock, partial(_refuse_service, name))
            for name in sorted(ASKS["orchestrator"])
        }

    def of(self, service: str) -> Breaker:
        """The breaker of a service that turns may ask."""
        return self._all[service]

    def away(self) -> tuple[str, ...]:
        """The services that are not asked at the moment."""
        return tuple(name for name, breaker in self._all.items() if breaker.refuses)

    def states(self) -> dict[str, str]:
        """The services that are not asked as always, with the state of the breaker."""
        states = {name: breaker.state for name, breaker in self._all.items()}
        return {name: state.name.lower() for name, state in states.items() if state is not BreakerState.CLOSED}

    def watch(self, metrics: Metrics) -> None:
        """Show the state of each among the figures."""
        for name, breaker in self._all.items():
            metrics.watch(BREAKER_STATE, breaker.figure, name)


def _refuse_service(name: str, wait: float) -> ServiceError:
    refusal = Unavailable(f"{name} failed several times in a row", retry_after=wait)
    refusal.dependency = name
    return refusal


def _is_healthy(error: ServiceError, reached: bool, *, patient: bool) -> bool | None:
    """What an error says of the health of the service that was asked; `None` for nothing.

    Args:
        reached: whether it could be asked at all.
        patient: whether it had the whole time of its contract.
    """
    if not reached:
        return None
    if isinstance(error, TimedOut):
        return False if patient else None
    if isinstance(error, Unavailable):
        # One that is busy works; other codes, and what no time mends, are of a part of it, or of something else.
        return False if error.code == Unavailable.code and error.retry_after is not None else None
    return True


class BusNeighbours:
    """Asks over the bus. Agents' profiles are cached, dropped at a release, and looked up anew every minute.

    Args:
        optional: optional model calls that are made; the prompts of the others are left out of every profile.
        breakers: what keeps from asking a service in vain.
    """

    def __init__(
        self, bus: Bus, optional: Collection[OptionalCall] = OPTIONAL_CALLS, breakers: ServiceBreakers | None = None
    ) -> None:
        self._bus, self._breakers = bus, breakers or ServiceBreakers()
        self._optional = optional
        self._agents: dict[tuple[str, str, str], tuple[AgentProfile, float]] = {}
        self._inside: dict[str, Callable[[Call, Any], Awaitable[Any]]] = {}

    def inside(self, asked: Tool[In, Out_] | Rpc[In, Out_], handler: Callable[[Call, In], Awaitable[Out_]]) -> None:
        """Let turns ask this service itself: on the bus no service may ask its own."""
        self._inside[(asked.rpc if isinstance(asked, Tool) else asked).subject] = handler

    async def agent(self, who: Principal, name: str) -> AgentProfile:
        of_user, of_all = (who.tenant, who.user, name), (who.tenant, "", name)
        cached = self._agents.get(of_user) or self._agents.get(of_all)
        if cached is not None and time.monotonic() - cached[1] < _FRESH:
            return cached[0]
        try:
            found = await self._ask(who, AGENT_GET, AgentRef(agent=name), timeout=2)
            profile = without_calls(found, self._optional)
        except (Unavailable, TimedOut):
            if cached is None:
                raise
            log.warning("instructions are away; the profile of %s is an older one", name)
            return cached[0]
        for key in (of_user, of_all):
            self._agents.pop(key, None)
        self._agents[of_user if profile.arms else of_all] = (profile, time.monotonic())
        if len(self._agents) > _PROFILES:
            del self._agents[next(iter(self._agents))]
        return profile

    def forget_agents(self) -> None:
        """Look every profile up anew; those at hand still serve while the instructions service is away."""
        self._agents = {key: (profile, -_FRESH) for key, (profile, _) in self._agents.items()}

    async def _ask(
        self, who: Principal, rpc: Rpc[In, Out_], request: In, *, timeout: float | None = None, key: str | None = None
    ) -> Out_:
        """Ask, unless the service failed again and again a moment ago, and note on an error who did not answer."""
        left = remaining(rpc.timeout)
        late, patient = left <= 0, timeout is None and left >= rpc.timeout
        breaker = self._breakers.of(rpc.service)
        era = breaker.enter()
        healthy: bool | None = None
        try:
            answer = await ask(self._bus, who, rpc, request, timeout=timeout, key=key)
            healthy = True
            return answer
        except ServiceError as error:
            if isinstance(error, (Unavailable, TimedOut)) and not late:  # else the turn itself took all its time
                error.dependency = rpc.service if self._bus.connected else "nats"
            healthy = _is_healthy(error, self._bus.connected and not late, patient=patient)
            raise
        finally:
            breaker.leave(era, healthy)

    async def profile(self, who: Principal) -> Profile:
        return await self._ask(who, PROFILE_GET, Nothing(), timeout=_PROFILE_LIMIT)

    async def retrieve(self, who: Principal, phrases: tuple[str, ...], budget: int, limit: float) -> AugmentedMemoryContext:
        return await self._ask(who, RETRIEVE, Retrieve(key_phrases=phrases, budget_tokens=budget), timeout=limit)

    async def media(self, who: Principal, media_id: str) -> Media:
        return await self._ask(who, MEDIA_GET, MediaRef(media_id=media_id))

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        return await self._ask(who, _TOOLS[medium.kind], TextRef(media_id=medium.id), timeout=limit)

    async def ask(self, who: Principal, rpc: Rpc[In, Out_], request: In, *, key: str | None = None) -> Out_:
        if handler := self._inside.get(rpc.subject):
            own: Out_ = await handler(Call(who, self._bus.name, key), request)
            return own
        if rpc.subject.startswith(f"{self._bus.name}."):
            raise Unavailable(f"turns cannot ask {rpc.subject}")
        return await self._ask(who, rpc, request, key=key)


_NAMED = 50
"""Tools that one question names; of more of them the most used are asked for."""


class BusExperience:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def recall_episodes(self, who: Principal, query: str, limit: int) -> tuple[PastEpisode, ...]:
        found = await ask(self._bus, who, RECALL_EPISODES, RecallEpisodes(query=query, limit=limit))
        return tuple(PastEpisode(one.text, one.outcome.value, f"{one.at:%Y-%m-%d}", one.labels) for one in found.episodes)

    async def tool_statistics(self, who: Principal, tools: tuple[str, ...]) -> tuple[ToolRecord, ...]:
        named = tools if len(tools) <= _NAMED else ()
        found = await ask(self._bus, who, TOOL_STATISTICS, AskToolStatistics(tools=named))
        return tuple(ToolRecord(one.name, one.uses, one.successes) for one in found.tools)

    async def recall_strategies(
        self, who: Principal, query: str, limit: int, agent: str, tools: tuple[str, ...]
    ) -> tuple[KnownStrategy, ...]:
        wanted = RecallStrategies(goal=query, n=limit, agent=agent, tools=tools[:MAX_TOOLS])
        found = await ask(self._bus, who, RECALL_STRATEGIES, wanted)
        return tuple(
            KnownStrategy(one.goal, one.approach, one.tools_used, one.score, one.avoid, one.labels) for one in found.strategies
        )

    async def style_examples(self, who: Principal, query: str, limit: int) -> tuple[StyleExample, ...]:
        wanted = MemoryQuery(operation=MemoryOperation.STYLE, query=query, limit=limit)
        found = await ask(self._bus, who, MEMORY_QUERY, wanted)
        if found.error:
            raise Unavailable(found.error)
        return tuple(StyleExample(one.text, one.labels) for one in found.results)
