"""The reasoner that asks a language model: Groq, or any address that speaks OpenAI's API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from phronesis_bus.tracing import Tracing
from phronesis_contracts import Message
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import Directive

from ..agents.cognition.thought import LIGHT, Tier
from ..conversations.history import PastTurn, Summary
from ..learning.statements import Drawn, EndedTurn, batch_lines, parse_drawn
from ..metrics import BREAKER
from ..tasks.decisions import CRITICISM, DECOMPOSITION, EVALUATION
from ..tasks.plan import Plan
from ..tasks.ports import Criticism, GoalKnowledge, Verdict, WrittenReport
from ..tasks.report import WRITING, block_text, plan_lines, result_lines, state_lines
from .calls import Breaker, CallLimits, Calls, Purpose, RetryPolicy, fill_prompt, parse_text
from .client import ChatClient, Completion, Provider
from .parsing import (
    MAX_SAID,
    make_storable,
    parse_classified,
    parse_composed,
    parse_criticism,
    parse_decided,
    parse_draft,
    parse_look_ahead,
    parse_plan,
    parse_reflected,
    parse_report,
    parse_routed,
    parse_summarised,
    parse_verdict,
)
from .prompts import classify_messages, final_messages, inquiry_messages, opening_messages, router_messages, summarise_messages
from .reasoner import (
    Answer,
    Classification,
    ComposedReply,
    Draft,
    Fault,
    Inquiry,
    IntentDecision,
    LookAhead,
    ModelSummary,
    Move,
    Reflection,
    RouteDecision,
    TurnContext,
)
from .templates import ANSWER, Line


def models_by_tier(light: str, deep: str) -> Mapping[Tier, str]:
    """The model of each tier.

    Args:
        light: the setting `light_model`.
        deep: the setting `model`.
    """
    return {tier: light if tier in LIGHT else deep for tier in Tier}


_SHARE = 2
"""What was done of a task takes at most one part in so many of its prompt."""
Said = TypeVar("Said", bound=Message)


def task_call_limits(router: CallLimits, final: CallLimits) -> dict[Purpose, CallLimits]:
    """Limits of the calls of tasks, each made once: the evaluation by the fast model (V-026), the others by the better one."""
    return {
        "decompose": replace(final, seconds=DECOMPOSITION, tries=1),
        "evaluate": replace(router, seconds=EVALUATION, tries=1),
        "criticise": replace(final, seconds=CRITICISM, effort="low", tries=1),
        "task_report": replace(final, seconds=WRITING, tries=1),
    }


class ChatPlanner:
    """A `Planner` with a language model behind it.

    Args:
        calls: makes the calls.
        budget: tokens of a prompt.
    """

    def __init__(self, calls: Calls, budget: int) -> None:
        self._of_tasks = calls
        self._room = budget

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        """Make a plan for a goal, or a new one for what is left of it. Raises `CallFailed`."""
        return await self._decided("decompose", turn, plan_lines(known), parse_plan)

    async def evaluate(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Verdict]:
        """Say whether what is left still makes sense, by the fast model. Raises `CallFailed`."""
        return await self._decided("evaluate", turn, state_lines(known), parse_verdict)

    async def criticise(self, turn: TurnContext, known: GoalKnowledge, written: WrittenReport) -> Answer[Criticism]:
        """Say how well the goal was met. Raises `CallFailed`."""
        return await self._decided("criticise", turn, result_lines(known), parse_criticism, written.text)

    async def write(self, turn: TurnContext, known: GoalKnowledge) -> Answer[WrittenReport]:
        """Write the report, and name the steps that it rests on: of those that worked alone. Raises `CallFailed`."""
        answer = await self._decided("task_report", turn, result_lines(known), parse_report)
        if answer.value is None:
            return answer
        worked = {result.step.id for result in known.worked}
        used = tuple(id for id in dict.fromkeys(answer.value.used) if id in worked)
        return replace(answer, value=answer.value.model_copy(update={"used": used}))

    async def _decided(
        self,
        purpose: Purpose,
        turn: TurnContext,
        lines: Iterable[Line],
        parse: Callable[[str], Said | Fault],
        draft: str | None = None,
    ) -> Answer[Said]:
        block = block_text(lines, self._room // _SHARE)
        shown = replace(turn, thought=replace(turn.thought, plan=block))
        messages = fill_prompt(turn, lambda agent: opening_messages(purpose, agent, shown, None, self._room, draft=draft))
        return await self._of_tasks.ask(purpose, messages, parse_text(parse))


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
        patience: Callable[[str], RetryPolicy],
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
            **task_call_limits(router, final),
        }
        self._models = models_by_tier(router.model, final.model)
        self._budget = budget
        patiences = {model: patience(model) for model in {router.model, final.model}}
        self._calls = Calls(client, tracing, limits, patiences)
        super().__init__(self._calls, _ROUNDS * budget)
        for name, patient in patiences.items():
            tracing.metrics.watch(BREAKER, partial(_is_open, patient), name)

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[RouteDecision]:
        """Decide whether memory is needed. Raises `CallFailed`."""
        messages = fill_prompt(turn, lambda agent: router_messages(agent, turn, fault, self._budget))
        return await self._calls.ask("router", messages, parse_text(parse_routed))

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[ComposedReply]:
        """Write the reply and choose the next stance. Raises `CallFailed`."""
        messages = fill_prompt(turn, lambda agent: final_messages(agent, turn, draft, memory, fault, self._budget))
        return await self._calls.ask("final", messages, parse_text(parse_composed), model=self._model(turn))

    async def summarise(self, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...]) -> Answer[ModelSummary]:
        """Put older turns in short, by the light model. Raises `CallFailed`."""
        messages = fill_prompt(turn, lambda agent: summarise_messages(agent, turn, earlier, dropped, self._budget))
        return await self._calls.ask("summarise", messages, parse_text(parse_summarised))

    async def classify(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Classification]:
        """Choose the mode, and answer at once where it reads no data. Raises `CallFailed`."""
        messages = fill_prompt(turn, lambda agent: classify_messages(agent, turn, fault, self._budget))
        return await self._calls.ask("classify", messages, parse_text(parse_classified))

    async def proceed(self, turn: TurnContext, inquiry: Inquiry) -> Answer[Move]:
        """Make the next move with the tools of an inquiry. Raises `CallFailed`."""
        messages = fill_prompt(turn, lambda agent: inquiry_messages(agent, turn, inquiry, _ROUNDS * self._budget))
        offered = {"tools": list(inquiry.tools), "tool_choice": "none" if inquiry.closing else "auto"}
        return await self._calls.ask("tools", messages, _parse_move, offered, self._model(turn))

    async def rewrite(self, turn: TurnContext, inquiry: Inquiry, fault: Fault) -> Answer[Draft]:
        """Write the final answer again, as JSON and with no tool. Raises `CallFailed`."""
        messages = fill_prompt(turn, lambda agent: inquiry_messages(agent, turn, inquiry, _ROUNDS * self._budget, fault))
        return await self._calls.ask("rewrite", messages, parse_text(parse_draft), model=self._model(turn))

    async def decide(self, turn: TurnContext) -> Answer[IntentDecision]:
        """Say what the message is, by the light model. Raises `CallFailed`."""
        messages = fill_prompt(turn, lambda agent: opening_messages("intent", agent, turn, None, self._budget))
        return await self._calls.ask("intent", messages, parse_text(parse_decided))

    async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
        """Think ahead, by the light model, in one try. Raises `CallFailed`."""
        messages = fill_prompt(turn, lambda agent: opening_messages("preflight", agent, turn, None, self._budget))
        return await self._calls.ask("preflight", messages, parse_text(parse_look_ahead))

    async def reflect(self, turn: TurnContext, draft: Draft) -> Answer[Reflection]:
        """Look at a draft again. Raises `CallFailed`."""
        messages = fill_prompt(
            turn, lambda agent: opening_messages("reflect", agent, turn, None, self._budget, draft=draft.answer)
        )
        return await self._calls.ask("reflect", messages, parse_text(parse_reflected))

    def _model(self, turn: TurnContext) -> str | None:
        """The model of the turn's tier; none where it has no tier."""
        intent = turn.thought.intent
        return self._models[intent.tier] if intent else None

    async def draw(self, agent: AgentProfile, batch: Sequence[EndedTurn]) -> Answer[Drawn]:
        """Draw statements from ended turns, by the light model. Raises `CallFailed`."""
        shown = TurnContext(agent, {}, batch_lines(batch), Directive.FOCUSED_ANALYST, "", "")
        messages = fill_prompt(shown, lambda whose: opening_messages("learn", whose, shown, None, self._budget))
        return await self._calls.ask("learn", messages, parse_text(parse_drawn))


def _parse_move(done: Completion) -> Move:
    return Move(text=make_storable(done.text[:MAX_SAID]), calls=done.calls)


def _is_open(patience: RetryPolicy) -> float:
    return float(patience.is_open)


def build_language_model(
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
    return LanguageModel(
        client, tracing, router, final, budget, lambda asked: RetryPolicy(Breaker(f"the model {asked}"), backoff)
    )
