"""One purpose's call to a language model: limits, options, few tries in the time left."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from phronesis_bus.envelope import remaining
from phronesis_bus.tracing import Tracing
from phronesis_contracts import Message, ModelRateLimited, ModelUnavailable, ServiceError
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.orchestrator import AnswerForm

from ..ledger.usage import AskedModel, CallUsage, admission
from .capabilities import Capabilities, CapabilityCache, schema_options
from .client import CallTelemetry, ChatClient, ChatRequest, OnText
from .completions import LIVE_FIELDS, Completion, FieldText, LiveSink, TryFailed, live_sink
from .limits import TRIES, Breaker, CallLimits, Limits, Purpose
from .prompts import fit_tools, with_keys
from .reasoner import Answer, CallFailed, Fault, TurnContext, current_call
from .templates import FREE_SCHEMAS, SCHEMAS, BadTemplate

log = logging.getLogger(__name__)


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
    def breaker(self) -> Breaker:
        """What refuses calls while they would be in vain."""
        return self._breaker

    async def run(
        self, attempt: Callable[[float], Awaitable[Returned]], limit: float, tries: int = TRIES, reserve: float = 0.0
    ) -> TriedResult[Returned]:
        """Call `attempt` with the seconds it may take, at most `tries` times.

        Args:
            reserve: seconds of the work at hand that are left for what follows.

        Raises:
            CallFailed: it failed for good, no time is left, or the breaker is open.
        """
        due = time.monotonic() + remaining(limit + reserve) - reserve
        spent = CallUsage()
        for number in range(1, tries + 1):
            left = due - time.monotonic()
            if left < _LEAST:
                raise CallFailed(ModelUnavailable("no time is left for the language model"), spent)
            try:
                era = self._breaker.enter()
            except ServiceError as error:
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
                # Nor is one that a prompt was too long for.
                ill = failed.again and not failed.too_long and (last or not failed.busy)
                healthy = False if ill else None
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
_WHY = {
    "tool_calls": " No tool is offered: answer with the JSON object.",
    "length": " The answer was cut at its greatest length: be shorter.",
    "content_filter": " A filter held the answer back.",
}
"""What the end of an answer adds to what is wrong with it, by the provider's name for that end."""
_SMALLER, _LEAST_SCALE = 0.75, 0.3
"""What the room of a prompt is multiplied by where the endpoint counts more tokens than we do, and where that ends."""
Value = TypeVar("Value", bound=Message)
Prompt = Sequence[Mapping[str, Any]]
BuildPrompt = Callable[[int], Prompt]
"""Makes a prompt of at most so many tokens."""


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


@dataclass(frozen=True)
class ToolOffer:
    """The tools that a call may make."""

    definitions: tuple[dict[str, Any], ...]
    """As the chat API takes them."""
    closing: bool
    """Whether the model may call none any more, and has to answer."""
    choice: Any = "auto"
    """Which it has to call, as the chat API takes it."""
    parallel: bool = True
    """Whether one answer may make several calls."""


class Calls:
    """Makes calls to one provider.

    Args:
        tracing: where the spans go.
        capabilities: what the endpoint can do with each model.
        concurrency: calls that it is asked at once; others wait for their turn.
        reserve: seconds of a turn's time that calls leave for the rules to answer in.
        streams: whether every answer is had in pieces, so that a server learns at once that nobody waits for it any more.
    """

    def __init__(
        self,
        client: ChatClient,
        tracing: Tracing,
        limits: Limits,
        patience: Mapping[str, RetryPolicy],
        capabilities: CapabilityCache,
        concurrency: int,
        reserve: float,
        streams: bool,
    ) -> None:
        self._client, self._tracing, self._limits, self._patience = client, tracing, limits, patience
        self._capabilities, self._reserve, self._streams = capabilities, reserve, streams
        self._turns = asyncio.Semaphore(concurrency)
        self._scales: dict[str, float] = {}

    async def ask(
        self,
        purpose: Purpose,
        build: BuildPrompt,
        room: int,
        parse: Callable[[Completion], Value | Fault],
        offer: ToolOffer | None = None,
        model: str | None = None,
        schema: dict[str, Any] | None = None,
        form: AnswerForm | None = None,
    ) -> Answer[Value]:
        """Ask once, with patience.

        Args:
            room: tokens of the prompt at most; fewer where the model holds fewer.
            offer: the tools that may be called.
            model: in place of the purpose's own, where the turn's tier names one.
            schema: what the answer must fit, where that is not the same for every call of the purpose.
            form: a client's form, which its prompt shows; the endpoint is held to it where it can be.

        Raises:
            CallFailed: no answer came.
            ModelUnavailable: the prompt cannot be filled.
            BudgetExceeded: a limit of the turn's tenant is reached.
        """
        limits = self._limits[purpose] if model is None else replace(self._limits[purpose], model=model)
        asked = AskedModel(purpose, limits.model)
        if (admit := admission.get()) is not None:
            await admit()
        watch = CallTelemetry(self._tracing, self._client.provider, purpose, limits.max_tokens)

        async def attempt(left: float) -> Completion:
            return await self._attempt(purpose, limits, build, room, offer, watch, time.monotonic() + left, schema, form)

        try:
            tried = await self._patience[limits.model].run(attempt, limits.seconds, limits.tries, self._reserve)
        except CallFailed as failed:
            failed.cost_usd, failed.asked = watch.cost(limits.model, failed.spent), asked
            raise
        done = tried.value
        sink = live_sink.get() if purpose in LIVE_FIELDS else None
        spent = tried.before.plus(done.spent)
        paid = watch.cost(limits.model, spent)
        parsed = parse(done)
        if isinstance(parsed, Fault):
            log.warning("the model's answer for %s is no good (finish: %s)", purpose, done.finish)
            if sink is not None:
                await sink.restart()
            return Answer(None, Fault(parsed.said, f"{parsed.wrong}{_WHY.get(done.finish or '', '')}"), spent, paid, asked)
        if sink is not None:
            await sink.flush()
        return Answer(parsed, None, spent, paid, asked)

    async def _attempt(
        self,
        purpose: Purpose,
        limits: CallLimits,
        build: BuildPrompt,
        room: int,
        offer: ToolOffer | None,
        watch: CallTelemetry,
        due: float,
        schema: dict[str, Any] | None,
        form: AnswerForm | None,
    ) -> Completion:
        """One try: with what the endpoint can do, in a size that the model holds, when its turn has come."""
        able = await self._able(limits.model, due)
        if offer is not None and not able.tools:
            raise TryFailed("the language model takes no tools", again=False, spent=CallUsage())
        async with self._turn(due):
            fitting = int(self._scales.get(limits.model, 1.0) * min(room, (able.context_tokens or room) - limits.max_tokens))
            messages = build(fitting)
            schema = schema or SCHEMAS.get(purpose)
            options = self._options(purpose, limits, offer, able, fitting, schema, form)
            if not able.structured.enforces and schema is not None and offer is None:
                messages = with_keys(messages, schema)
            call = ChatRequest(limits.model, messages, options, {STEP_HEADER: current_call.get() or purpose})
            sink = live_sink.get() if purpose in LIVE_FIELDS else None
            try:
                return await watch.send(self._client, call, due - time.monotonic(), self._on_text(purpose, able, sink))
            except TryFailed as failed:
                if sink is not None:
                    await sink.restart()
                if failed.too_long:
                    failed.again = self._made_smaller(limits.model)
                elif failed.refuses_form and await self._changed(limits.model, able, due):
                    failed.again = True
                raise

    def _on_text(self, purpose: Purpose, able: Capabilities, sink: LiveSink | None) -> OnText | None:
        """What takes an answer in pieces; `None` where it is had as a whole."""
        if not able.streaming or (sink is None and not self._streams):
            return None
        field = FieldText(LIVE_FIELDS.get(purpose, ""))

        async def take(piece: str) -> None:
            if sink is not None and (text := field.feed(piece)):
                await sink.add(text)

        return take

    def _made_smaller(self, model: str) -> bool:
        """Make this model's prompts smaller, since it counts more tokens than we do; whether that is still of use."""
        scale = self._scales.get(model, 1.0) * _SMALLER
        if scale < _LEAST_SCALE:
            return False
        self._scales[model] = scale
        return True

    async def _able(self, model: str, due: float) -> Capabilities:
        try:
            async with asyncio.timeout(max(0.0, due - time.monotonic())):
                return await self._capabilities.of(model)
        except TimeoutError as error:
            raise TryFailed("the language model did not answer in time", again=True, spent=CallUsage()) from error

    async def _changed(self, model: str, before: Capabilities, due: float) -> bool:
        """Whether an endpoint that refused a request turns out to take other forms than it did."""
        return self._capabilities.doubt(model) and await self._able(model, due) != before

    @asynccontextmanager
    async def _turn(self, due: float) -> AsyncIterator[None]:
        """A place among the calls that are made at once."""
        try:
            async with asyncio.timeout(max(0.0, due - time.monotonic())):
                await self._turns.acquire()
        except TimeoutError as error:
            detail = "other calls to the language model took all the time"
            raise TryFailed(detail, again=False, busy=True, spent=CallUsage()) from error
        try:
            yield
        finally:
            self._turns.release()

    def _options(
        self,
        purpose: Purpose,
        limits: CallLimits,
        offer: ToolOffer | None,
        able: Capabilities,
        room: int,
        schema: dict[str, Any] | None,
        form: AnswerForm | None,
    ) -> dict[str, Any]:
        options: dict[str, Any] = {able.limit_field: limits.max_tokens}
        free = FREE_SCHEMAS.get(purpose) if able.structured.takes_free_schemas else None
        if offer is not None and not (offer.closing and free):
            choice = "none" if offer.closing else offer.choice
            options |= {"tools": fit_tools(offer.definitions, room), "tool_choice": choice}
            if not offer.parallel:
                options["parallel_tool_calls"] = False
        elif form is not None:
            options |= _form_options(able, form)
        elif schema is not None:
            options |= schema_options(able.structured, purpose, schema)
        elif free:
            options |= schema_options(able.structured, purpose, free)
        elif able.json_object:
            options["response_format"] = {"type": "json_object"}
        if self._client.provider == "groq" and limits.model.startswith("openai/gpt-oss-"):
            options |= {"reasoning_effort": limits.effort, "include_reasoning": False}
        return options


def _form_options(able: Capabilities, form: AnswerForm) -> dict[str, Any]:
    """The options that ask for a client's form: its schema where the endpoint takes it as it is, else any object."""
    takes = able.structured.takes_free_schemas or (form.strict and able.structured.enforces)
    if form.schema_ is not None and takes:
        return schema_options(able.structured, form.name, form.schema_)
    return {"response_format": {"type": "json_object"}} if able.json_object else {}
