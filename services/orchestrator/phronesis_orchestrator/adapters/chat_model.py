"""The reasoner that asks a language model: Groq, or any address that speaks OpenAI's API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from phronesis_bus.tracing import Tracing
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import Directive

from ..answers import MAX_SAID, parse_composed, parse_routed, parse_summarised, storable
from ..budget import ANSWER
from ..cognition.said import parse_decided, parse_look_ahead, parse_reflected
from ..cognition.thinker import Decided, LookAhead, Reflected
from ..cognition.tiers import models
from ..drafts import parse_classified, parse_draft
from ..exchanges import classify_messages, inquiry_messages
from ..history import PastTurn, Summary
from ..inquiry import Classified, Draft, Inquiry, Move
from ..learning.domain import Drawn, EndedTurn, lines_of, parse_drawn
from ..measures import BREAKER
from ..prompts import final_messages, opening, router_messages, summarise_messages
from ..reasoner import Answer, Composed, Fault, Routed, Summarised, TurnContext
from .breaker import Breaker
from .chat_bodies import Completion
from .chat_calls import STEP_HEADER, CallLimits, Calls, Purpose, filled, parsed
from .chat_client import ChatClient, Provider
from .chat_planner import ChatPlanner, limits_of_tasks
from .chat_retry import Patience

__all__ = ["STEP_HEADER", "CallLimits", "LanguageModel", "language_model"]

_SUMMARISE = 4.0
"""Seconds for a summary: it runs beside the loop, and the reply waits for it no longer than this."""
_CLASSIFY = 12.0
"""Seconds for the first call of an analyst, which for most messages is the only one."""
_LEARN, _DRAWN = 30.0, 4_000
"""Seconds and tokens of drawing facts from a batch of ended turns; nobody waits for it."""
_INTENT = 4.0
"""Seconds for saying what a message is; rules say it after that."""
_REFLECT = 8.0
"""Seconds for looking back at a text."""
_ROUNDS = 2
"""How many times the room of another prompt the analysts' has: it carries instructions and what was read."""


class LanguageModel(ChatPlanner):
    """A `Reasoner` with a language model behind it.

    Args:
        client: the provider.
        tracing: where the spans go.
        router: limits of the router call.
        final: limits of the final call.
        budget: tokens of a prompt.
        patience: makes the patience with one model's endpoint, from the model's name; purposes with one model share it.
    """

    def __init__(
        self,
        client: ChatClient,
        tracing: Tracing,
        router: CallLimits,
        final: CallLimits,
        budget: int,
        patience: Callable[[str], Patience],
    ) -> None:
        self.name: str = client.provider
        self._client = client
        limits: dict[Purpose, CallLimits] = {
            "router": router,
            "final": final,
            "summarise": replace(router, seconds=min(router.seconds, _SUMMARISE)),
            "classify": replace(final, seconds=min(final.seconds, _CLASSIFY), effort="low"),
            "tools": final,
            "rewrite": final,
            "learn": replace(router, seconds=_LEARN, max_tokens=_DRAWN),
            "intent": replace(router, seconds=min(router.seconds, _INTENT)),
            "preflight": replace(router, tries=1),  # V-102
            "reflect": replace(final, seconds=min(final.seconds, _REFLECT), effort="low"),
            **limits_of_tasks(router, final),
        }
        self._models = models(router.model, final.model)
        self._budget = budget
        patiences = {model: patience(model) for model in {router.model, final.model}}
        self._calls = Calls(client, tracing, limits, patiences)
        super().__init__(self._calls, _ROUNDS * budget)
        for name, patient in patiences.items():
            tracing.metrics.watch(BREAKER, partial(_is_open, patient), name)

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Routed]:
        """Decide whether memory is needed. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: router_messages(agent, turn, fault, self._budget))
        return await self._calls.ask("router", messages, parsed(parse_routed))

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[Composed]:
        """Write the reply and choose the next stance. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: final_messages(agent, turn, draft, memory, fault, self._budget))
        return await self._calls.ask("final", messages, parsed(parse_composed), model=self._model(turn))

    async def summarise(self, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...]) -> Answer[Summarised]:
        """Put older turns in short, by the light model. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: summarise_messages(agent, turn, earlier, dropped, self._budget))
        return await self._calls.ask("summarise", messages, parsed(parse_summarised))

    async def classify(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Classified]:
        """Choose the mode, and answer at once where it reads no data. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: classify_messages(agent, turn, fault, self._budget))
        return await self._calls.ask("classify", messages, parsed(parse_classified))

    async def proceed(self, turn: TurnContext, inquiry: Inquiry) -> Answer[Move]:
        """Make the next move with the tools of an inquiry. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: inquiry_messages(agent, turn, inquiry, _ROUNDS * self._budget))
        offered = {"tools": list(inquiry.tools), "tool_choice": "none" if inquiry.closing else "auto"}
        return await self._calls.ask("tools", messages, _moved, offered, self._model(turn))

    async def rewrite(self, turn: TurnContext, inquiry: Inquiry, fault: Fault) -> Answer[Draft]:
        """Write the final answer again, as JSON and with no tool. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: inquiry_messages(agent, turn, inquiry, _ROUNDS * self._budget, fault))
        return await self._calls.ask("rewrite", messages, parsed(parse_draft), model=self._model(turn))

    async def decide(self, turn: TurnContext) -> Answer[Decided]:
        """Say what the message is, by the light model. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: opening("intent", agent, turn, None, self._budget))
        return await self._calls.ask("intent", messages, parsed(parse_decided))

    async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
        """Think ahead, by the light model, in one try. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: opening("preflight", agent, turn, None, self._budget))
        return await self._calls.ask("preflight", messages, parsed(parse_look_ahead))

    async def reflect(self, turn: TurnContext, draft: Draft) -> Answer[Reflected]:
        """Look at a draft again. Raises `CallFailed`."""
        messages = filled(turn, lambda agent: opening("reflect", agent, turn, None, self._budget, draft=draft.answer))
        return await self._calls.ask("reflect", messages, parsed(parse_reflected))

    def _model(self, turn: TurnContext) -> str | None:
        """The model of the turn's tier; none where it has no tier."""
        intent = turn.thought.intent
        return self._models[intent.tier] if intent else None

    async def draw(self, agent: AgentProfile, batch: Sequence[EndedTurn]) -> Answer[Drawn]:
        """Draw statements from ended turns, by the light model. Raises `CallFailed`."""
        shown = TurnContext(agent, {}, lines_of(batch), Directive.FOCUSED_ANALYST, "", "")
        messages = filled(shown, lambda whose: opening("learn", whose, shown, None, self._budget))
        return await self._calls.ask("learn", messages, parsed(parse_drawn))


def _moved(done: Completion) -> Move:
    return Move(text=storable(done.text[:MAX_SAID]), calls=done.calls)


def _is_open(patience: Patience) -> float:
    return float(patience.is_open)


def language_model(
    provider: Provider,
    key: str,
    tracing: Tracing,
    *,
    url: str | None = None,
    model: str = "openai/gpt-oss-120b",
    light_model: str = "openai/gpt-oss-20b",
    budget: int = 12_000,
    backoff: float = 0.5,
) -> LanguageModel:
    """A reasoner on one provider, with the limits of D-147: 8 s for the router, 20 s for the final call.

    Args:
        provider: `groq`, or `openai` for any address that speaks OpenAI's API.
        key: the provider's key.
        tracing: where the spans go.
        url: address instead of the provider's own; for `groq` without, for `openai` with the `/v1`.
        model: model of the final call.
        light_model: model of the router call.
        budget: tokens of a prompt.
        backoff: seconds that the first wait between tries may take.
    """
    router = CallLimits(light_model, seconds=8.0, max_tokens=2_000, effort="low")
    final = CallLimits(model, seconds=20.0, max_tokens=ANSWER, effort="medium")
    client = ChatClient(provider, key, url)
    return LanguageModel(client, tracing, router, final, budget, lambda asked: Patience(Breaker(f"the model {asked}"), backoff))
