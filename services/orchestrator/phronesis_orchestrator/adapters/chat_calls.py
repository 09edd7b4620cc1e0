"""One purpose's call to a language model: its limits, its options, and what its answer parses to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from phronesis_bus.tracing import Tracing
from phronesis_contracts import Message, ModelUnavailable
from phronesis_contracts.instructions import AgentProfile

from ..ledger.spent import Asked, admission
from ..reasoner import Answer, CallFailed, Fault, TurnContext, step
from ..templates import SCHEMAS, BadTemplate
from .chat_bodies import Completion
from .chat_client import ChatCall, ChatClient
from .chat_retry import TRIES, Patience
from .chat_watch import CallWatch

log = logging.getLogger(__name__)

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


def filled(turn: TurnContext, make: Callable[[AgentProfile], Prompt]) -> Prompt:
    """A prompt of a turn's agent. Raises `ModelUnavailable` where there is none, or where it cannot be filled."""
    if turn.agent is None:
        raise ModelUnavailable("the agent's instructions could not be had, and a language model needs them")
    try:
        return make(turn.agent)
    except BadTemplate as error:
        log.error("a prompt cannot be filled: %s", error)
        raise ModelUnavailable("a prompt of the agent cannot be filled") from error


def parsed(parse: Callable[[str], Value | Fault]) -> Callable[[Completion], Value | Fault]:
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
        self, client: ChatClient, tracing: Tracing, limits: Mapping[Purpose, CallLimits], patience: Mapping[str, Patience]
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
        asked = Asked(purpose, limits.model)
        if (admit := admission.get()) is not None:
            await admit()
        options = self._options(purpose, limits, tools)
        call = ChatCall(limits.model, messages, options, {STEP_HEADER: step.get() or purpose})
        watch = CallWatch(self._tracing, self._client.provider, purpose, limits.max_tokens)
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
