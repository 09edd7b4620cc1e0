"""One purpose's call to a language model: limits, options, few tries in the time left, and a circuit breaker."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from phronesis_bus.envelope import remaining
from phronesis_bus.tracing import Tracing
from phronesis_contracts import Message, ModelRateLimited, ModelUnavailable, ServiceError
from phronesis_contracts.instructions import AgentProfile

from ..ledger.usage import AskedModel, CallUsage, admission
from .client import CallTelemetry, ChatClient, ChatRequest, Completion, TryFailed
from .reasoner import Answer, CallFailed, Fault, TurnContext, current_call
from .templates import SCHEMAS, BadTemplate

log = logging.getLogger(__name__)


class Breaker:
    """Counts the failures in a row of one model's endpoint, for all turns of the process.

    Closed, it lets every call through. After `failures` in a row it opens: calls are refused at once, so that a turn
    falls back instead of waiting. After `rest` seconds it is half open: one call is let through, and closes or opens it.

    Args:
        endpoint: what is asked, as logs name it.
        failures: in a row, until it opens.
        rest: seconds that it stays open.
        clock: seconds that only grow.
    """

    def __init__(
        self, endpoint: str = "the model", failures: int = 5, rest: float = 15.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._endpoint, self._limit, self._rest, self._clock = endpoint, failures, rest, clock
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False
        self._era = 0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused at this moment."""
        return self._open_until is not None and self._clock() < self._open_until

    def enter(self) -> int:
        """Ask to make a call.

        Returns:
            The era that the call belongs to, for `leave()`.

        Raises:
            ModelUnavailable: it is open, or another call is the probe.
        """
        if self._open_until is not None:
            wait = self._open_until - self._clock()
            if wait > 0 or self._probing:
                raise ModelUnavailable("the language model failed several times in a row", retry_after=round(max(wait, 1.0), 1))
            self._probing = True
        return self._era

    def leave(self, era: int, healthy: bool | None) -> None:
        """Say how a call went; `None` where it says nothing of the endpoint's health."""
        if era != self._era:
            return  # begun before it opened or closed: its end is old news
        self._probing = False
        if healthy:
            self._failures = 0
            if self._open_until is not None:
                self._open_until, self._era = None, era + 1
                log.info("%s answers again; calls go through", self._endpoint)
        elif healthy is False:
            self._failures += 1
            if self._open_until is not None or self._failures >= self._limit:
                self._open_until, self._era = self._clock() + self._rest, era + 1
                log.warning("%s failed %d times in a row; no calls for %g s", self._endpoint, self._failures, self._rest)


TRIES = 3
_LONGEST_WAIT = 4.0
_LEAST = 0.2
"""Seconds below which a try is not begun."""
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class TriedResult(Generic[Returned]):
    """A value, and what the tries before it used."""

    value: Returned
    before: CallUsage


class RetryPolicy:
    """Tries a call up to three times within its limit and the deadline of the work at hand.

    Args:
        breaker: shared by all calls to one endpoint.
        backoff: seconds that the first wait may take; doubled for the second. The wait is drawn evenly below that, and
            comes on top of what the provider asks for, so that those who failed together do not come back together.
    """

    def __init__(self, breaker: Breaker, backoff: float = 0.5) -> None:
        self._breaker = breaker
        self._backoff = backoff

    @property
    def is_open(self) -> bool:
        """Whether the breaker refuses calls at this moment."""
        return self._breaker.is_open

    async def run(
        self, attempt: Callable[[float], Awaitable[Returned]], limit: float, tries: int = TRIES
    ) -> TriedResult[Returned]:
        """Call `attempt` with the seconds it may take, at most `tries` times.

        Raises:
            CallFailed: it failed for good, no time is left, or the breaker is open.
        """
        due = time.monotonic() + remaining(limit)
        spent = CallUsage()
        for number in range(1, tries + 1):
            left = due - time.monotonic()
            if left < _LEAST:
                raise CallFailed(ModelUnavailable("no time is left for the language model"), spent)
            try:
                era = self._breaker.enter()
            except ModelUnavailable as error:
                raise CallFailed(error, spent) from error
            healthy: bool | None = None
            try:
                value = await attempt(left)
                healthy = True
                return TriedResult(value, spent)
            except TryFailed as failed:
                log.warning("model call, try %d of %d: %s", number, tries, failed.detail)
                spent = spent.plus(failed.spent)
                wait = self._wait(failed, number)
                last = not failed.again or number == tries or wait + _LEAST > due - time.monotonic()
                # One that is asked too often is not ill; not when the call came to nothing over it, though.
                healthy = False if failed.again and (last or not failed.busy) else None
                if last:
                    raise CallFailed(_final_error(failed), spent) from failed
            finally:
                self._breaker.leave(era, healthy)
            await asyncio.sleep(wait)
        raise AssertionError("every try returns, waits or raises")

    def _wait(self, failed: TryFailed, number: int) -> float:
        return (failed.after or 0.0) + random.uniform(0, min(_LONGEST_WAIT, self._backoff * 2 ** (number - 1)))


def _final_error(failed: TryFailed) -> ServiceError:
    if failed.misconfigured:
        log.error("the language model is set up wrongly: %s", failed.detail)
    kind = ModelRateLimited if failed.busy else ModelUnavailable
    return kind(failed.detail, retry_after=failed.after)


STEP_HEADER = "X-Phronesis-Step"
_STRICT = ("openai/gpt-oss-", "gpt-4o", "gpt-4.1", "gpt-5")
"""Beginnings of the names of models that keep to a JSON Schema while they write; the others are asked for JSON alone."""
_WHY = {
    "tool_calls": " No tool is offered: answer with the JSON object.",
    "length": " The answer was cut at its greatest length: be shorter.",
    "content_filter": " A filter held the answer back.",
}
"""What the end of an answer adds to what is wrong with it, by the provider's name for that end."""
Value = TypeVar("Value", bound=Message)
Prompt = Sequence[Mapping[str, Any]]
Purpose = Literal[
    "router",
    "final",
    "summarise",
    "classify",
    "tools",
    "rewrite",
    "learn",
    "intent",
    "preflight",
    "reflect",
    "decompose",
    "evaluate",
    "criticise",
    "task_report",
]


@dataclass(frozen=True)
class CallLimits:
    """How the calls of one purpose are made."""

    model: str
    seconds: float
    """For all tries together (D-147)."""
    max_tokens: int
    """Tokens that the model may write, its reasoning counted in."""
    effort: str
    """How hard a reasoning model thinks; sent to models that take it."""
    tries: int = TRIES


def fill_prompt(turn: TurnContext, make: Callable[[AgentProfile], Prompt]) -> Prompt:
    """A prompt of a turn's agent. Raises `ModelUnavailable` where there is none, or where it cannot be filled."""
    if turn.agent is None:
        raise ModelUnavailable("the agent's instructions could not be had, and a language model needs them")
    try:
        return make(turn.agent)
    except BadTemplate as error:
        log.error("a prompt cannot be filled: %s", error)
        raise ModelUnavailable("a prompt of the agent cannot be filled") from error


def parse_text(parse: Callable[[str], Value | Fault]) -> Callable[[Completion], Value | Fault]:
    """What parses a completion by its text."""
    return lambda done: parse(done.text)


class Calls:
    """Makes calls to one provider.

    Args:
        client: the provider.
        tracing: where the spans go.
        limits: of each purpose.
        patience: with each model's endpoint, by the model's name.
    """

    def __init__(
        self, client: ChatClient, tracing: Tracing, limits: Mapping[Purpose, CallLimits], patience: Mapping[str, RetryPolicy]
    ) -> None:
        self._client = client
        self._tracing = tracing
        self._limits = limits
        self._patience = patience

    async def ask(
        self,
        purpose: Purpose,
        messages: Sequence[Mapping[str, Any]],
        parse: Callable[[Completion], Value | Fault],
        tools: Mapping[str, Any] | None = None,
        model: str | None = None,
    ) -> Answer[Value]:
        """Ask once, with patience.

        Args:
            purpose: what for.
            messages: the prompt.
            parse: what a completion is worth.
            tools: the options that offer tools; they stand in the place of a response format, since providers refuse both.
            model: in place of the purpose's own, where the turn's tier names one.

        Raises:
            CallFailed: no answer came.
            BudgetExceeded: a limit of the turn's tenant is reached.
        """
        limits = self._limits[purpose] if model is None else replace(self._limits[purpose], model=model)
        asked = AskedModel(purpose, limits.model)
        if (admit := admission.get()) is not None:
            await admit()
        options = self._options(purpose, limits, tools)
        call = ChatRequest(limits.model, messages, options, {STEP_HEADER: current_call.get() or purpose})
        watch = CallTelemetry(self._tracing, self._client.provider, purpose, limits.max_tokens)
        try:
            tried = await self._patience[limits.model].run(
                lambda left: watch.send(self._client, call, left), limits.seconds, limits.tries
            )
        except CallFailed as failed:
            failed.cost_usd, failed.asked = watch.cost(call.model, failed.spent), asked
            raise
        done = tried.value
        spent = tried.before.plus(done.spent)
        paid = watch.cost(call.model, spent)
        parsed = parse(done)
        if isinstance(parsed, Fault):
            log.warning("the model's answer for %s is no good (finish: %s)", purpose, done.finish)
            return Answer(None, Fault(parsed.said, f"{parsed.wrong}{_WHY.get(done.finish or '', '')}"), spent, paid, asked)
        return Answer(parsed, None, spent, paid, asked)

    def _options(self, purpose: Purpose, limits: CallLimits, tools: Mapping[str, Any] | None) -> dict[str, Any]:
        options: dict[str, Any] = {"max_completion_tokens": limits.max_tokens}
        if tools is not None:
            options |= tools
        elif purpose in SCHEMAS and limits.model.startswith(_STRICT):
            schema = {"name": purpose, "strict": True, "schema": SCHEMAS[purpose]}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        else:
            options["response_format"] = {"type": "json_object"}
        if self._client.provider == "groq" and limits.model.startswith("openai/gpt-oss-"):
            options |= {"reasoning_effort": limits.effort, "include_reasoning": False}
        return options
