"""The reasoner that asks a language model, Groq or any address that speaks OpenAI's API, and finds out what it can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pydantic_core import from_json

from phronesis_bus.tracing import Tracing
from phronesis_contracts import Message
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import AnswerForm, ClientRequest, Directive
from phronesis_tokens import count

from ..agents.cognition.thought import LIGHT, Tier
from ..conversations.history import PastTurn, Summary
from ..learning.statements import Drawn, EndedTurn, batch_lines, parse_drawn
from ..ledger.usage import CallUsage
from ..metrics import BREAKER, BREAKER_STATE
from ..settings import ModelSettings
from ..tasks.ports import Criticism, GoalKnowledge, Plan, Verdict, WrittenReport
from ..tasks.report import block_text, plan_lines, result_lines, state_lines
from .calls import Calls, Prompt, RetryPolicy, ToolOffer, fill_prompt, parse_text
from .capabilities import CapabilityCache, Probed, Refused
from .client import ChatClient, ChatRequest, Provider
from .completions import Completion, TryFailed
from .limits import Breaker, BreakerState, Limits, ModelProfile, Purpose
from .parsing import (
    MAX_SAID,
    make_storable,
    parse_chosen,
    parse_classified,
    parse_composed,
    parse_criticism,
    parse_decided,
    parse_draft,
    parse_formulated,
    parse_look_ahead,
    parse_plan,
    parse_reflected,
    parse_report,
    parse_routed,
    parse_summarised,
    parse_verdict,
    parse_wishes,
)
from .prompts import (
    classify_messages,
    client_definitions,
    client_messages,
    final_messages,
    form_messages,
    inquiry_messages,
    keys_of,
    opening_messages,
    router_messages,
    summarise_messages,
)
from .reasoner import (
    Answer,
    ChosenPlan,
    Classification,
    ComposedReply,
    Draft,
    Fault,
    FormedAnswer,
    FormulatedPlan,
    Inquiry,
    IntentDecision,
    LookAhead,
    ModelSummary,
    Move,
    ParseSaid,
    PlanQuestion,
    Reflection,
    RouteDecision,
    TurnContext,
    Wishes,
)
from .templates import BadTemplate, Line

STEP = "probe"
"""What the step's header says of a probe."""
_SECONDS = 60.0
"""Seconds for one probe: a local model may be loaded by the first."""
_WORD = ({"role": "user", "content": "Say the word hello, and nothing else. Reply in plain words, not in JSON."},)
_FEW = "output limit was reached"
"""What OpenAI says where a model that thinks first has no token left to answer with."""
_CONTEXT = ("max_model_len", "context_window", "context_length", "max_context_length", "n_ctx")
"""Names under which servers list the size of a model's context."""
_LARGEST = 100_000_000


class EndpointProber:
    """A `Prober` on one provider's client."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client

    async def complete(self, model: str, options: Mapping[str, Any]) -> Probed:
        try:
            done = await self._client.send(_request(model, options), _SECONDS)
        except TryFailed as failed:
            if _FEW in failed.told:
                return Probed("", cut=True, rejected=True)
            raise _sorted(failed) from failed
        return Probed(done.text, cut=done.finish == "length", rejected=done.finish == "rejected")

    async def stream(self, model: str, options: Mapping[str, Any]) -> bool:
        try:
            return (await self._client.send(_request(model, options), _SECONDS, _ignore)).streamed
        except TryFailed as failed:
            if _FEW in failed.told:
                return True
            raise _sorted(failed) from failed

    async def context(self, model: str) -> int | None:
        for path, read in (("models", _of_models), ("/props", _of_props)):
            body = await self._client.get(path, _SECONDS)
            if body is not None and (found := read(_json(body), model)) is not None:
                return found
        return None


async def _ignore(text: str) -> None:
    """Whether the text came in pieces is all that is asked."""


def _request(model: str, options: Mapping[str, Any]) -> ChatRequest:
    return ChatRequest(model, _WORD, dict(options), {"X-Phronesis-Step": STEP})


def _sorted(failed: TryFailed) -> Exception:
    """A failure as what it says of the form; no turn pays for it."""
    failed.spent = CallUsage()
    return Refused(failed) if failed.refuses_form else failed


def _json(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError:
        return None


def _of_models(body: Any, model: str) -> int | None:
    """The size in a list of models: of the model asked for, or of the only one."""
    listed = body.get("data") if isinstance(body, dict) else None
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    entry = next((one for one in entries if one.get("id") == model), entries[0] if len(entries) == 1 else {})
    return next((size for name in _CONTEXT if (size := _size(entry.get(name))) is not None), None)


def _of_props(body: Any, model: str) -> int | None:
    """The size in the properties of llama.cpp's own server."""
    found = body if isinstance(body, dict) else {}
    settings = found.get("default_generation_settings")
    inner = settings.get("n_ctx") if isinstance(settings, dict) else None
    return _size(inner) or _size(found.get("n_ctx"))


def _size(told: object) -> int | None:
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 < told <= _LARGEST else None


def models_by_tier(light: str, deep: str) -> Mapping[Tier, str]:
    """The model of each tier. `light`: the setting `light_model`. `deep`: the setting `model`."""
    return {tier: light if tier in LIGHT else deep for tier in Tier}


_AROUND = 200
"""Tokens of a call for a plan beside its instructions, the message and what there is to choose from."""
_OF_BOOTSTRAP = 4
"""The general instructions of an agent stand in the calls for a plan where they take one part in so many of them at most."""
_SHARE = 2
"""What was done of a task takes at most one part in so many of its prompt."""
_SHARES = (_SHARE, 3, 4)
"""The same, each for a model that holds too little for the one before it."""
Said = TypeVar("Said", bound=Message)


class ChatPlanner:
    """A `Planner` with a language model behind it. `room`: tokens of a prompt. `models`: names of those that are asked."""

    def __init__(self, calls: Calls, room: int, models: tuple[str, ...]) -> None:
        self._of_tasks = calls
        self._room = room
        self.models = models

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        return await self._decided("decompose", turn, plan_lines(known), parse_plan)

    async def evaluate(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Verdict]:
        return await self._decided("evaluate", turn, state_lines(known), parse_verdict)

    async def criticise(self, turn: TurnContext, known: GoalKnowledge, written: WrittenReport) -> Answer[Criticism]:
        return await self._decided("criticise", turn, result_lines(known), parse_criticism, written.text)

    async def write(self, turn: TurnContext, known: GoalKnowledge) -> Answer[WrittenReport]:
        answer = await self._decided("task_report", turn, result_lines(known), lambda said: parse_report(said, known.goal))
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
        kept = tuple(lines)

        def filled(agent: AgentProfile, room: int, share: int) -> Prompt:
            shown = replace(turn, thought=replace(turn.thought, plan=block_text(kept, room // share)))
            return opening_messages(purpose, agent, shown, None, room, draft=draft)

        def fit(agent: AgentProfile, room: int) -> Prompt:
            for share in _SHARES[:-1]:
                with suppress(BadTemplate):
                    return filled(agent, room, share)
            return filled(agent, room, _SHARES[-1])

        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: fit(agent, room))

        return await self._of_tasks.ask(purpose, build, self._room, parse_text(parse), model=self._own(turn))

    def _own(self, turn: TurnContext) -> str | None:
        """The model that the turn's agent names, if it is one of those that are asked."""
        named = turn.agent.model if turn.agent else None
        return named if named in self.models else None


_ROOMY = 8_000
"""Tokens of context from which on a hosted model is taken to hold twice as many, for the analysts' prompts."""


class LanguageModel(ChatPlanner):
    """A `Reasoner` with a language model behind it.

    Args:
        tracing: where the spans go.
        limits: of the calls, by purpose.
        budget: tokens of a prompt.
        patience: makes the retry policy of a model.
        rounds: how many times that room the analysts' prompts have: they carry instructions and what was read.
        concurrency: calls that the endpoint is asked at once.
        reserve: seconds of a turn's time that calls leave for the rules to answer in.
        lifetime: seconds after which it is found out anew what the endpoint can do.
        streams: whether every answer is had in pieces; those that are shown while they are written always are.
        others: further models that a tenant's own agents may name.
    """

    def __init__(
        self,
        client: ChatClient,
        tracing: Tracing,
        limits: Limits,
        budget: int,
        patience: Callable[[str], RetryPolicy],
        *,
        rounds: int = 2,
        concurrency: int = 100,
        reserve: float = 0.0,
        lifetime: float = 3_600.0,
        streams: bool = False,
        others: tuple[str, ...] = (),
    ) -> None:
        self.name: str = client.provider
        self._client = client
        self._models = models_by_tier(limits["router"].model, limits["final"].model)
        self._budget, self._of_rounds = budget, rounds * budget
        patiences = {model: patience(model) for model in {*(one.model for one in limits.values()), *others}}
        self.capabilities = CapabilityCache(EndpointProber(client), lifetime)
        self._calls = Calls(client, tracing, limits, patiences, self.capabilities, concurrency, reserve, streams)
        super().__init__(self._calls, self._of_rounds, tuple(dict.fromkeys((*self._models.values(), *others))))
        for name, patient in patiences.items():
            tracing.metrics.watch(BREAKER, partial(_is_open, patient.breaker), name)
            tracing.metrics.watch(BREAKER_STATE, patient.breaker.figure, f"model {name}")

    @property
    def url(self) -> str:
        """The address of the endpoint, without what stands for a secret in it."""
        return self._client.url

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self.capabilities.close()
        await self._client.close()

    async def route(self, turn: TurnContext, fault: Fault | None = None) -> Answer[RouteDecision]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: router_messages(agent, turn, fault, room))

        return await self._calls.ask("router", build, self._budget, parse_text(parse_routed), model=self._own(turn))

    async def compose(
        self, turn: TurnContext, draft: str | None, memory: AugmentedMemoryContext | None, fault: Fault | None = None
    ) -> Answer[ComposedReply]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: final_messages(agent, turn, draft, memory, fault, room))

        return await self._calls.ask("final", build, self._budget, parse_text(parse_composed), model=self._model(turn))

    async def summarise(self, turn: TurnContext, earlier: Summary, dropped: tuple[PastTurn, ...]) -> Answer[ModelSummary]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: summarise_messages(agent, turn, earlier, dropped, room))

        return await self._calls.ask("summarise", build, self._budget, parse_text(parse_summarised), model=self._own(turn))

    async def classify(self, turn: TurnContext, fault: Fault | None = None) -> Answer[Classification]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: classify_messages(agent, turn, fault, room))

        return await self._calls.ask("classify", build, self._budget, parse_text(parse_classified), model=self._own(turn))

    async def proceed(self, turn: TurnContext, inquiry: Inquiry) -> Answer[Move]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: inquiry_messages(agent, turn, inquiry, room))

        offer = ToolOffer(inquiry.tools, inquiry.closing)
        return await self._calls.ask("tools", build, self._of_rounds, _parse_move, offer, self._model(turn))

    async def rewrite(self, turn: TurnContext, inquiry: Inquiry, fault: Fault) -> Answer[Draft]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: inquiry_messages(agent, turn, inquiry, room, fault))

        return await self._calls.ask("rewrite", build, self._of_rounds, parse_text(parse_draft), model=self._model(turn))

    def refuses_tools(self, agent: AgentProfile) -> bool:
        known = self.capabilities.known(agent.model if agent.model in self.models else self._models[Tier.QUALITY])
        return known is not None and not known.tools

    async def serve_client(
        self,
        turn: TurnContext,
        client: ClientRequest,
        memory: AugmentedMemoryContext | None,
        parse: ParseSaid[Move],
        fault: Fault | None = None,
    ) -> Answer[Move]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: client_messages(agent, turn, client, memory, fault, room))

        choice: Any = client.tool_choice
        if choice == "call":
            choice = {"type": "function", "function": {"name": client.tool}}
        definitions = tuple(client_definitions(client))
        offer = ToolOffer(definitions, closing=False, choice=choice, parallel=client.parallel) if client.offers else None
        return await self._calls.ask(
            "client", build, self._of_rounds, lambda done: parse(done.text, done.calls), offer, self._own(turn)
        )

    async def form(
        self, turn: TurnContext, form: AnswerForm, draft: str, parse: ParseSaid[FormedAnswer], fault: Fault | None = None
    ) -> Answer[FormedAnswer]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: form_messages(agent, turn, form, draft, fault, room))

        return await self._calls.ask(
            "form", build, self._of_rounds, lambda done: parse(done.text, done.calls), model=self._own(turn), form=form
        )

    async def decide(self, turn: TurnContext) -> Answer[IntentDecision]:
        return await self._opening("intent", turn, parse_text(parse_decided))

    async def look_ahead(self, turn: TurnContext) -> Answer[LookAhead]:
        return await self._opening("preflight", turn, parse_text(parse_look_ahead))

    async def reflect(self, turn: TurnContext, draft: Draft) -> Answer[Reflection]:
        return await self._opening("reflect", turn, parse_text(parse_reflected), draft.answer)

    async def understand(self, turn: TurnContext, asked: PlanQuestion, fault: Fault | None = None) -> Answer[ChosenPlan]:
        return await self._interpreted("understand", turn, asked, fault, parse_chosen)

    async def formulate(self, turn: TurnContext, asked: PlanQuestion, fault: Fault | None = None) -> Answer[FormulatedPlan]:
        return await self._interpreted("formulate", turn, asked, fault, parse_formulated)

    async def wish(self, turn: TurnContext, tools: tuple[str, ...]) -> Answer[Wishes]:
        def build(room: int) -> Prompt:
            shown = replace(turn, thought=replace(turn.thought, plan=block_text(map(Line.of, tools), room // _SHARE)))
            return fill_prompt(shown, lambda agent: opening_messages("wishes", agent, shown, None, room))

        return await self._calls.ask("wishes", build, self._of_rounds, parse_text(parse_wishes), model=self._own(turn))

    async def _interpreted(
        self,
        purpose: Purpose,
        turn: TurnContext,
        asked: PlanQuestion,
        fault: Fault | None,
        parse: Callable[[str], Said | Fault],
    ) -> Answer[Said]:
        """A call that shows what there is to choose from in place of a turn's plan; where room is short, without the agent's
        general instructions."""
        form = count(keys_of(asked.schema), self._budget)

        def build(room: int) -> Prompt:
            room -= form
            agent = turn.agent
            step = count(agent.prompts.get(purpose, ""), room) if agent is not None else 0
            left = room - step - count(turn.user_text, room) - _AROUND
            known = block_text((Line.of(line) for line in asked.known), max(0, min(left, room // _SHARE)))
            shown = replace(turn, thought=replace(turn.thought, plan=known))
            if agent is not None and count(agent.bootstrap, room) > room // _OF_BOOTSTRAP:
                shown = replace(shown, agent=agent.model_copy(update={"bootstrap": ""}))
            return fill_prompt(shown, lambda agent: opening_messages(purpose, agent, shown, fault, room))

        return await self._calls.ask(purpose, build, self._budget, parse_text(parse), schema=asked.schema)

    def _model(self, turn: TurnContext) -> str | None:
        intent = turn.thought.intent
        return self._own(turn) or (self._models[intent.tier] if intent else None)

    async def draw(self, agent: AgentProfile, batch: Sequence[EndedTurn]) -> Answer[Drawn]:
        shown = TurnContext(agent, {}, batch_lines(batch), Directive.FOCUSED_ANALYST, "", "")
        return await self._opening("learn", shown, parse_text(parse_drawn))

    async def _opening(
        self, purpose: Purpose, turn: TurnContext, parse: Callable[[Completion], Said | Fault], draft: str | None = None
    ) -> Answer[Said]:
        def build(room: int) -> Prompt:
            return fill_prompt(turn, lambda agent: opening_messages(purpose, agent, turn, None, room, draft=draft))

        return await self._calls.ask(purpose, build, self._budget, parse, model=self._own(turn))


def _parse_move(done: Completion) -> Move:
    return Move(text=make_storable(done.text[:MAX_SAID]), calls=done.calls)


def _is_open(breaker: Breaker) -> float:
    return float(breaker.state is BreakerState.OPEN)


def build_language_model(
    provider: Provider, key: str, tracing: Tracing, settings: ModelSettings | None = None, *, backoff: float = 0.5
) -> LanguageModel:
    """A reasoner on one provider.

    Args:
        provider: `groq`, or `openai` for any address that speaks OpenAI's API.
        tracing: where the spans go.
        settings: its address, models and limits; for `groq` the address without, for `openai` with the `/v1`.
        backoff: seconds that the first wait between tries may take.
    """
    settings = settings or ModelSettings()
    limits, context = settings.limits, settings.context_tokens
    roomy = settings.model_profile is ModelProfile.HOSTED and context >= _ROOMY
    return LanguageModel(
        ChatClient(provider, key, settings.model_url),
        tracing,
        limits,
        context - max(one.max_tokens for one in limits.values()),
        lambda asked: RetryPolicy(Breaker(f"the model {asked}"), backoff),
        rounds=2 if roomy else 1,
        concurrency=settings.calls_at_once,
        reserve=settings.rules_reserve,
        lifetime=settings.model_probe_lifetime,
        streams=settings.model_profile is ModelProfile.LOCAL,
        others=settings.agent_models,
    )
