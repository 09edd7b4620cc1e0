"""Running turns: the worker that claims them side by side, the stages of one in order, and its one end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from opentelemetry.trace import Span, get_current_span

from phronesis_bus import Bus, correlation
from phronesis_bus.envelope import deadline as answer_due
from phronesis_bus.tracing import Tracing, conversation, user
from phronesis_bus.tracing import turn as turn_at_hand
from phronesis_contracts import (
    Internal,
    Label,
    OriginKind,
    Principal,
    ServiceError,
    TimedOut,
    Unauthorized,
    UnsupportedMedia,
    merge_labels,
)
from phronesis_contracts.agents import AnswerSource
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import Reply, SubmitTurn, ToolOutcome, Turn, TurnProgress, TurnStatus, Usage

from ..agents.binding import Origins
from ..agents.client import serve_client
from ..agents.cognition.preparation import detect_tone_and_intent, weigh_history
from ..agents.cognition.state import Cognition
from ..agents.context import (
    MediaText,
    carry_on_summary,
    join_input,
    keep_documents,
    list_sources,
    load_background,
    read_media,
    recalled_ids,
    run_beside,
    tag_agent,
)
from ..agents.loops import LOOPS
from ..agents.presentation import disarm_links
from ..agents.text import focus
from ..agents.tools import may_read
from ..approvals.egress import is_allowed, named_hosts, normal_host
from ..approvals.policy import ApprovalWaits, LoadPolicy, Paused, load_default, pause_turn
from ..conversations.history import Past
from ..ledger.budgets import NO_LEDGER, Ledger
from ..metrics import DEGRADED, TURN_SECONDS, TURNS
from ..models.reasoner import RULES, Probed, Reasoner, TurnContext
from ..settings import OrchestratorSettings
from ..tasks.background import Background, can_plan
from ..traces.record import TurnRecord
from ..understanding.reader import Vocabularies
from .execution import RecordingNeighbours, Steps, TurnRun, measured_name
from .ports import Conversations, Journal, Neighbours, ShowProgress, TurnEnding, TurnQueue
from .turn import (
    Claim,
    Completed,
    Deferred,
    Failed,
    LostClaim,
    Offer,
    attempt_limit,
    expired_problem,
    fill_goal,
    goal_ids,
    problem_from_error,
    retry_delay,
    starting_event,
    wait_after,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TurnServices:
    """What turns run on, in a process or in a replay."""

    turns: TurnEnding
    journal: Journal
    conversations: Conversations
    neighbours: Neighbours
    reasoner: Reasoner
    settings: OrchestratorSettings
    tracing: Tracing
    show: ShowProgress
    ended: Callable[[], None]
    """Called when an end is committed, to wake the relay."""
    ledger: Ledger = NO_LEDGER
    approvals: ApprovalWaits | None = None
    """`None` where nobody can be asked."""
    load_policy: LoadPolicy = load_default
    cognition: Cognition = field(default_factory=Cognition)
    vocabularies: Vocabularies | None = None
    """`None` where no twin can be read."""
    background: Background | None = None
    """`None` where no background tasks run."""


class TurnRunner:
    def __init__(self, services: TurnServices) -> None:
        self._services = services

    async def run(self, claim: Claim, record: TurnRecord | None = None) -> None:
        """Run the turn to its end. Raises `LostClaim`, and what makes another attempt worth while."""
        record = TurnRecord() if record is None else record
        correlation.set(claim.correlation_id)
        answer_due.set(time.time() + attempt_limit(claim, self._services.settings.turn_limit))
        turn_at_hand.set(claim.turn_id)
        conversation.set(claim.conversation_id)
        user.set(claim.who.user)
        with self._span(claim) as span:
            try:
                end = self._check_runnable(claim) or await self._attempt(claim, record)
            except Deferred as deferred:
                span.set_attribute("error.type", deferred.error.code)
                raise
            except Paused as paused:
                assert self._services.approvals is not None, "nobody waits where nobody can be asked"
                await self._keep_record(claim, record)
                return await pause_turn(self._services.approvals, self._services.show, claim, paused)
            if isinstance(end, Failed):
                span.set_attribute("error.type", end.problem.code)
            turn = await self._services.turns.end(claim, end, record.kept(), record.profile)
            self._services.cognition.pasts.note(claim, end)
            self._count(claim, end, record.profile)
            self._services.ended()
            await self._services.show(claim.who, _last_line(claim, turn))

    async def _keep_record(self, claim: Claim, record: TurnRecord) -> None:
        """One that cannot be kept is logged, and the turn ends without."""
        try:
            await self._services.journal.keep_record(claim, record.kept(), record.profile)
        except ServiceError as error:
            log.warning("the record of turn %s could not be kept: %s", claim.turn_id, error.code)

    def _span(self, claim: Claim) -> AbstractContextManager[Span]:
        return self._services.tracing.span(
            f"invoke_agent {claim.agent}",
            parent=claim.traceparent,
            gen_ai__operation__name="invoke_agent",
            gen_ai__provider__name=self._services.reasoner.name,
            gen_ai__agent__name=claim.agent,
            gen_ai__conversation__id=claim.conversation_id,
            phronesis__turn__id=claim.turn_id,
            phronesis__turn__attempt=claim.attempts,
        )

    def _count(self, claim: Claim, end: Completed | Failed, profile: AgentProfile | None) -> None:
        metrics, parts = self._services.tracing.metrics, end.reply.degraded if isinstance(end, Completed) else ()
        agent = measured_name(claim.agent, profile)
        outcome = "completed" if isinstance(end, Completed) else end.status.value
        metrics.count(TURNS, agent, outcome, "yes" if parts else "no")
        metrics.observe(TURN_SECONDS, (datetime.now(UTC) - claim.created_at).total_seconds(), agent, outcome)
        for part in parts:
            metrics.count(DEGRADED, part)

    def _check_runnable(self, claim: Claim) -> Failed | None:
        if claim.key_revoked:
            return Failed(TurnStatus.FAILED, problem_from_error(Unauthorized("the key of this turn was revoked")))
        if claim.idle_claims > self._services.settings.idle_claims:
            return Failed(TurnStatus.PARKED, problem_from_error(Internal("the turn was begun again and again and got nowhere")))
        if claim.expired:
            return Failed(TurnStatus.FAILED, expired_problem(claim.wait))
        return None

    async def _attempt(self, claim: Claim, record: TurnRecord) -> Completed | Failed:
        tools: list[ToolOutcome] = []
        try:
            async with asyncio.timeout(attempt_limit(claim, self._services.settings.turn_limit)):
                end = await self._run_stages(claim, record, tools)
        except TimeoutError:
            end = Failed(TurnStatus.FAILED, problem_from_error(TimedOut("the turn took too long")))
        return replace(end, tools=tuple(tools))

    async def _run_stages(self, claim: Claim, record: TurnRecord, tools: list[ToolOutcome]) -> Completed | Failed:
        services, request = self._services, claim.request
        settings, neighbours = services.settings, RecordingNeighbours(services.neighbours, record)
        running = TurnRun(
            claim,
            Steps(services.journal, claim, services.tracing, services.ledger),
            services.tracing,
            neighbours,
            settings,
            services.show,
            [],
            tools=tools,
            approvals=services.approvals,
            policy=await services.load_policy(claim.who.tenant),
            record=record,
            cognition=services.cognition,
            vocabularies=services.vocabularies,
        )
        of_turn = get_current_span()
        with running.phase("I media"):
            past, weigh = (
                partial(self._services.cognition.pasts.read, self._services.conversations),
                partial(weigh_history, running),
            )
            background = await load_background(neighbours, past, claim.who, claim.agent, claim.conversation_id, weigh)
            record.remember(background.past)
            running.degraded.extend(background.degraded)
            if background.agent is not None:
                tag_agent(of_turn, background.agent)
                running.work_for(background.agent)
            attached = request.media if may_read(background.agent, AnswerSource.DOCUMENTS) else ()
            media = await read_media(neighbours, claim.who, attached, background.agent, settings.media_limit)
            await keep_documents(running, media.documents)
        if len(attached) < len(request.media):
            running.degrade("documents")
        if media.unreadable:
            running.degrade("media")
        await running.show("preprocessed", attachments=len(request.media))
        words = fill_goal(request)
        turn = TurnContext(
            agent=background.agent,
            profile=background.profile if may_read(background.agent, AnswerSource.MEMORY) else {},
            history=background.history,
            directive=background.past.directive,
            final_input=join_input(words, media.text),
            user_text=words,
            media_text=media.text,
            summary=background.summary,
            focus=background.past.focus,
            client=request.client,
        )
        if not request.text.strip() and not media.documents:
            if media.away is not None:
                running.defer(media.away)
            error = UnsupportedMedia("no attachment of this message could be read", field="currentMessageMedia")
            return Failed(TurnStatus.FAILED, problem_from_error(error))
        begin_origins(running.origins, turn, request, (*background.labels, *media.labels))
        return await self._run_loop(running, detect_tone_and_intent(running, turn), background.past, media)

    async def _run_loop(self, running: TurnRun, turn: TurnContext, past: Past, media: MediaText) -> Completed | Failed:
        claim = running.claim
        loop = LOOPS.get(turn.agent.loop if turn.agent else "router", LOOPS["router"])
        # No prompt text stands in the code: without instructions only the rules can answer.
        reasoner: Reasoner = self._services.reasoner if turn.agent else RULES
        if claim.request.task is not None and self._services.background is not None:
            loop, reasoner = self._services.background.run, reasoner if can_plan(reasoner, turn) else RULES
        running.reasoner = reasoner
        limit = running.seconds if claim.request.task is None else None
        if limit is not None:
            answer_due.set(min(answer_due.get() or math.inf, time.time() + limit))
        if turn.agent and turn.agent.model and isinstance(reasoner, Probed) and turn.agent.model not in reasoner.models:
            running.degrade("agent_model")
        try:
            async with (
                asyncio.timeout(limit),
                run_beside(carry_on_summary(running, reasoner, self._services.conversations, turn, past)),
            ):
                answer = await (
                    loop(running, reasoner, turn) if turn.client is None else serve_client(running, reasoner, turn, loop)
                )
        except Deferred as deferred:
            deferred.progressed = running.steps.progressed
            raise
        except ServiceError as error:
            running.defer(error)
            return Failed(TurnStatus.FAILED, problem_from_error(error))
        await running.show("answered")
        reply = Reply(
            conversation_id=claim.conversation_id,
            turn_id=claim.turn_id,
            user_response=disarm_links(answer.text, _linked_hosts(running)),
            next_agent_directive=answer.directive,
            reasoner=answer.reasoner or reasoner.name,
            degraded=tuple(running.degraded),
            sources=answer.sources if answer.sources is not None else list_sources(focus(turn), media.documents, answer.memory),
            usage=_usage(running, claim, turn),
            analysis=answer.analysis,
            tool_calls=answer.tool_calls,
        )
        return Completed(
            reply,
            "" if reply.tool_calls else claim.request.text.strip(),
            answer.directive,
            answer.reasoning,
            recalled=recalled_ids(answer.memory),
            tier=running.tier,
            focus=answer.focus,
            attached=media.names,
            labels=merge_labels((Label(kind=OriginKind.USER),), running.origins.labels),
        )


_MOST_SHOWN = 32_000
"""Characters of an ended turn that its last line carries; a larger one is asked for."""


def _last_line(claim: Claim, turn: Turn | None) -> TurnProgress:
    """The line that says that a turn has ended, with the turn, so that nobody who waits for it need ask."""
    if turn is not None and len(turn.model_dump_json()) > _MOST_SHOWN:
        turn = None
    return TurnProgress(turn_id=claim.turn_id, kind="ended", conversation_id=claim.conversation_id, turn=turn)


def begin_origins(origins: Origins, turn: TurnContext, request: SubmitTurn, labels: Iterable[Label]) -> None:
    """Note what a turn begins with: its user's own words, and what else is there. `labels`: of that."""
    # Ids may be other people's choice: they stand in the goal, and are none of its owner's words.
    origins.begin(replace(turn, user_text=request.text), labels, goal_ids(request))
    if (event := starting_event(request)) is not None:
        origins.read([event.label], [thing.model_dump(mode="json") for thing in event.things])


def _linked_hosts(running: TurnRun) -> Callable[[str], bool]:
    """Which hosts a reply may link to: those that the user or an admin named, and those of pages that the turn has read."""
    pages = (label.name for label in running.origins.labels if label.kind is OriginKind.WEB)
    named = named_hosts(running.origins.said) | {host for page in pages if (host := normal_host(page)) is not None}
    return lambda host: is_allowed(host, named, running.policy)


def _usage(running: TurnRun, claim: Claim, turn: TurnContext) -> Usage:
    steps, agent = running.steps, turn.agent
    spent = steps.spent
    ms = int((datetime.now(UTC) - claim.created_at).total_seconds() * 1000)
    return Usage(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        model_calls=spent.model_calls,
        ms=max(0, ms),
        cost_usd=steps.cost_usd,
        instruction_tokens=running.instruction_tokens,
        release=agent.release if agent else "",
        arms=agent.arms if agent else {},
    )


Given = TypeVar("Given")
SWEEP = 1.0
"""Seconds after which the queue is looked at though nothing announced a turn."""
_RETRY = 1.0
_GIVE_BACK_WAITS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each try to give a claim back."""


@dataclass(frozen=True)
class Patience:
    """How turns are put back for what does not answer.

    Args:
        show: shows the turn's user what it waits for.
        first: seconds that the first wait may take; doubled for each further one.
        longest: seconds that any wait may take.
        away: services that are not asked at the moment, whose turns are not claimed.
    """

    show: ShowProgress
    first: float = 0.5
    longest: float = 15.0
    away: Callable[[], Collection[str]] = tuple


_LATE = 0.008
"""Seconds by which this process is late on average, from which on its time is what turns wait for: measured 0.001 to 0.004
with nothing to do, 0.015 to 0.025 with slots full of turns that compute."""
_LOOK = 0.05
"""Seconds between two looks at that."""
_GONE = 0.1
"""Turns of a tenant on average, below which it has none here."""
_RECENT = 2.0
"""Seconds for which the process counts as late."""


_KNOWN, _KNOWN_MOST = 600.0, 100
"""Seconds for which a tenant that had turns here may come again, and how many are remembered."""


class Contention:
    """Whether turns wait for this process's time, and how many of one tenant may then run in it.

    A slot is worth little by itself where turns compute: of two tenants, one with three times the turns under way has three
    times the time. As long as the process is late, the tenant with the most may therefore have as many turns here as the next
    one has on average. And where several come, a quarter of the slots is kept from it: turns that wait for a model, or for a
    medium that is read, would leave the next one none for long.

    Args:
        slots: turns that run here side by side.
    """

    def __init__(self, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._clock = clock
        self._late, self._late_at = 0.0, -math.inf
        self._running: dict[str, float] = {}
        self._known: dict[str, float] = {}

    def note(self, late: float, tenants: Iterable[str]) -> None:
        """Note by how many seconds the process was late this time, and of which tenants turns run, once for each turn."""
        self._late += (late - self._late) / 10
        if self._late >= _LATE:
            self._late_at = self._clock()
        now = Counter(tenants)
        for of in now:
            self._known.pop(of, None)
            self._known[of] = self._clock()
        while self._known and (len(self._known) > _KNOWN_MOST or self._clock() - next(iter(self._known.values())) > _KNOWN):
            del self._known[next(iter(self._known))]
        means = {of: (mean := self._running.get(of, 0.0)) + (now[of] - mean) / 20 for of in {*self._running, *now}}
        self._running = {of: mean for of, mean in means.items() if mean > _GONE}

    @property
    def most(self) -> tuple[str, int] | None:
        """The tenant with the most turns, and how many of them may run here; `None` where the slots alone say it."""
        if not self._running or len(self._known) < 2:
            return None
        first, *others = sorted(self._running, key=lambda of: -self._running[of])
        if others and self._clock() - self._late_at <= _RECENT:
            return first, math.ceil(self._running[others[0]])
        return first, self._slots - self._slots // 4


class Worker:
    """Runs turns.

    Args:
        bus: its process is this worker's name, unique among all; a worker that cannot reach it claims nothing.
        lease: seconds that a claim lasts.
        patience: how turns are put back for what does not answer.
        task_slots: how many of the slots background tasks may take, so that a person's turn finds one; all if not stated.
    """

    def __init__(
        self,
        bus: Bus,
        turns: TurnQueue,
        run: Callable[[Claim], Awaitable[None]],
        slots: int,
        lease: float,
        patience: Patience,
        task_slots: int | None = None,
    ) -> None:
        self._bus, self._turns, self._run_turn, self._slots = bus, turns, run, slots
        self._lease, self._patience = lease, patience
        self._task_slots = slots if task_slots is None else task_slots
        self._contention = Contention(slots)
        self._wake = asyncio.Event()
        self._running: dict[asyncio.Task[None], Claim] = {}
        self._held = 0
        """Slots that are held for turns that are being accepted or claimed."""
        self._context = copy_context()
        self._loops: list[asyncio.Task[None]] = []
        self._stopping = False

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def _free(self) -> int:
        return self._slots - len(self._running) - self._held

    @property
    def _free_for_tasks(self) -> int:
        taken = sum(1 for claim in self._running.values() if claim.request.task is not None)
        return max(0, self._task_slots - taken)

    def start(self) -> None:
        """Begin to claim."""
        self._context = copy_context()
        self._loops = [asyncio.create_task(each()) for each in (self._claim_loop, self._lease_loop, self._watch_loop)]

    def wake(self) -> None:
        """Say that there may be a turn to claim."""
        self._wake.set()

    @contextmanager
    def hold(self, who: Principal, request: SubmitTurn) -> Iterator[Offer | None]:
        """For a block: a free slot for a turn of `who`, which nobody else gets meanwhile; `None` where it may have none now.

        Background tasks have none: they wait until nobody's message does.
        """
        if self._stopping or request.task is not None or self._free <= 0 or not self._bus.connected or self._has_most(who):
            yield None
            return
        self._held += 1
        try:
            yield Offer(self._bus.process, self._lease)
        finally:
            self._held -= 1

    def _has_most(self, who: Principal) -> bool:
        """Whether no further turn of a tenant may run here now."""
        if (most := self._contention.most) is None or most[0] != who.tenant:
            return False
        return self._held + sum(claim.who.tenant == who.tenant for claim in self._people) >= most[1]

    @property
    def _people(self) -> list[Claim]:
        return [claim for claim in self._running.values() if claim.request.task is None]

    def begin(self, claim: Claim) -> None:
        """Run a turn that is claimed; a worker that stops gives it back."""
        work = self._give_back(claim, 0, counts=False) if self._stopping else self._run(claim)
        # In the worker's own context: a turn inherits neither deadline nor span of the work that it was accepted in.
        task = asyncio.get_running_loop().create_task(work, name=f"turn-{claim.turn_id}", context=self._context.copy())
        self._running[task] = claim
        task.add_done_callback(self._ended)

    def cancel(self, turn_id: str) -> None:
        """Stop a turn that was cancelled, if it runs here; elsewhere the next look at its lease stops it."""
        for task, claim in self._running.items():
            if claim.turn_id == turn_id:
                task.cancel()

    async def stop(self) -> None:
        """Claim nothing more, stop what runs and give it back at once."""
        self._stopping = True
        for task in [*self._loops, *self._running]:
            task.cancel()
        await asyncio.gather(*self._loops, *self._running, return_exceptions=True)

    async def _claim_loop(self) -> None:
        while True:
            self._wake.clear()
            free = self._free
            claims: list[Claim] = []
            if free > 0 and self._bus.connected:
                self._held += free
                try:
                    wanted = (self._free_for_tasks, self._patience.away(), self._contention.most)
                    claims = await self._turns.claim(self._bus.process, free, self._lease, *wanted)
                except ServiceError as error:
                    log.warning("no turn could be claimed: %s", error.code)
                    await asyncio.sleep(_RETRY)
                except Exception:
                    # The loop may not end: turns would wait with nobody to take them.
                    log.exception("claiming failed")
                    await asyncio.sleep(_RETRY)
                finally:
                    self._held -= free
            for claim in claims:
                self.begin(claim)
            if not claims:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SWEEP):
                        await self._wake.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._wake.set()

    async def _run(self, claim: Claim) -> None:
        try:
            await self._run_turn(claim)
        except LostClaim:
            log.info("turn %s is no longer this worker's", claim.turn_id)
        except asyncio.CancelledError:
            if self._stopping:
                await self._give_back(claim, 0, counts=False)
        except Deferred as deferred:
            await self._put_back(claim, deferred.error, progressed=deferred.progressed)
        except ServiceError as error:
            await self._put_back(claim, error, progressed=False)
        except Exception:
            log.exception("turn %s failed", claim.turn_id)
            await self._give_back(claim, _RETRY * claim.idle_claims, counts=True)

    async def _put_back(self, claim: Claim, error: ServiceError, *, progressed: bool) -> None:
        """Let a turn wait for what did not answer; what may not pass by itself counts as an idle claim."""
        log.warning("turn %s stopped: %r of %s", claim.turn_id, error, error.dependency)
        wait = wait_after(error, claim.wait, progressed=progressed)
        if wait is None:
            return await self._give_back(claim, _RETRY * claim.idle_claims, counts=True)
        delay = retry_delay(wait, error, self._patience.first, self._patience.longest)
        if await self._until_stored(claim, lambda: self._turns.put_back(claim, wait, delay)):
            line = TurnProgress(
                turn_id=claim.turn_id,
                kind="phase",
                conversation_id=claim.conversation_id,
                phase="waiting_for",
                detail={"waiting_for": wait.service, "code": wait.code, "tries": wait.tries},
            )
            await self._patience.show(claim.who, line)

    async def _give_back(self, claim: Claim, delay: float, *, counts: bool) -> None:
        await self._until_stored(claim, lambda: self._turns.give_back(claim, delay, counts=counts))

    async def _until_stored(self, claim: Claim, give: Callable[[], Awaitable[Given]]) -> Given | None:
        """Give a claim up; while the store is away, again and again until the lease runs out anyway."""
        for wait in _GIVE_BACK_WAITS:
            await asyncio.sleep(wait)
            try:
                return await give()
            except ServiceError as error:
                log.warning("turn %s could not be given back yet: %s", claim.turn_id, error.code)
        return None

    async def _watch_loop(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await asyncio.sleep(_LOOK)
            self._contention.note(loop.time() - began - _LOOK, [claim.who.tenant for claim in self._people])

    async def _lease_loop(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            running = dict(self._running)
            if not running:
                continue
            try:
                mine = await self._turns.renew(self._bus.process, list(running.values()), self._lease)
            except ServiceError as error:
                log.warning("leases could not be renewed: %s", error.code)
                continue
            except Exception:
                # The loop may not end: every lease would run out under work that goes on.
                log.exception("renewing failed")
                continue
            for task, claim in running.items():
                if claim.turn_id not in mine:
                    task.cancel()
