"""The stages around a turn's work: tone, intent, recall, signals, look ahead, plan block, reflection."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from phronesis_contracts import ServiceError
from phronesis_contracts.tools import Tool

from ...conversations.history import Past, PastMessage, Summary
from ...conversations.summary import select_history
from ...metrics import STAGE
from ...models.reasoner import (
    Answer,
    CallFailed,
    Draft,
    Inquirer,
    IntentDecision,
    LookAhead,
    Reasoner,
    Reflection,
    Thinker,
    TurnContext,
)
from ...traces.record import measure
from ...turns.execution import TurnRun
from ..text import courtesy
from .state import HISTORY, PREFLIGHT, REASONING, STRATEGIES, measure_capability
from .thought import (
    CONTENT_WRITER,
    DEEP,
    HEADERS,
    MAX_EPISODES,
    MAX_EXAMPLES,
    Intent,
    KnownStrategy,
    PlanLine,
    ReasoningContext,
    RecalledMemory,
    Section,
    Thought,
    Tier,
    Tone,
    ToneLabel,
    ToolRecord,
    compose_plan,
    recalled_lines,
    sanitize_line,
    section_lines,
    signal_lines,
    strategy_lines,
)

log = logging.getLogger(__name__)


_LONGEST_FOR_TONE = 1_500
"""Characters of a message that are looked at."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SHOUTED = re.compile(r"\b[A-Z]{4,}\b")
_SHOUTS = 2
"""Words in capitals from which on a message shouts; one may be an abbreviation."""


@cache
def _tone_rules() -> dict[str, Any]:
    rules: dict[str, Any] = json.loads((files(__package__) / "tone.json").read_text("utf-8"))
    weights = [(float(weight), phrases) for weight, phrases in rules["urgency"].items()]
    rules["urgency"] = sorted(((weight, f" {phrase} ") for weight, phrases in weights for phrase in phrases), reverse=True)
    for kind in ("calm", "frustrated"):
        rules[kind] = [f" {phrase} " for phrase in rules[kind]]
    return rules


def detect_tone(text: str) -> Tone:
    """The tone of what a person wrote; neutral where nothing tells of another.

    Args:
        text: the person's own words, without the text of attachments.
    """
    looked_at = text[:_LONGEST_FOR_TONE].replace("\u2019", "'")
    words = _WORD.findall(looked_at.casefold())
    if not words:
        return Tone()
    said, rules = f" {' '.join(words)} ", _tone_rules()
    urgency = _urgency(said, looked_at, rules)
    return Tone(_label(said, urgency, rules), urgency)


def _urgency(said: str, text: str, rules: dict[str, Any]) -> float:
    if any(phrase in said for phrase in rules["calm"]):
        return 0.0
    weight = next((weight for weight, phrase in rules["urgency"] if phrase in said), 0.0)
    if weight:
        weight += rules["exclamation"] * min(rules["exclamations"], text.count("!"))
        weight += rules["shouting"] if len(_SHOUTED.findall(text)) >= _SHOUTS else 0.0
    return round(min(1.0, max(0.0, weight)), 1)


def _label(said: str, urgency: float, rules: dict[str, Any]) -> ToneLabel:
    if urgency >= rules["urgent_from"]:
        return ToneLabel.URGENT
    if any(phrase in said for phrase in rules["frustrated"]):
        return ToneLabel.FRUSTRATED
    good, denied_good = _count_phrases(said, rules["positive"], rules["negations"])
    bad, denied_bad = _count_phrases(said, rules["negative"], rules["negations"])
    balance = good - bad + denied_bad - denied_good
    return ToneLabel.POSITIVE if balance > 0 else ToneLabel.NEGATIVE if balance < 0 else ToneLabel.NEUTRAL


def _count_phrases(said: str, phrases: Iterable[str], negations: list[str]) -> tuple[int, int]:
    """How many of the phrases stand there, and how many of them a word before denies."""
    plain = denied = 0
    for phrase in phrases:
        before, found, _ = said.partition(f" {phrase} ")
        if found and before.rpartition(" ")[2] in negations:
            denied += 1
        elif found:
            plain += 1
    return plain, denied


_LONGEST_FOR_INTENT = 4_000
"""Characters of a message that are looked at."""


@cache
def _limits() -> dict[str, int]:
    return {name: value for name, value in _intent_rules().items() if isinstance(value, int)}


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(value, re.I) for name, value in _intent_rules().items() if isinstance(value, str)}


def _intent_rules() -> dict[str, str | int]:
    found: dict[str, str | int] = json.loads((files(__package__) / "intent.json").read_text("utf-8"))
    return found


def classify_intent(text: str, attached: bool = False) -> Intent:
    """What a message is.

    Args:
        text: the person's own words.
        attached: whether something was attached, which then has to be worked on.
    """
    said = " ".join(text[:_LONGEST_FOR_INTENT].replace("\u2019", "'").split())
    if not attached and courtesy(said):
        return Intent(Tier.FLASH, action=False)
    if not attached and len(said) <= _limits()["longest_simple"] and (_matches("reminder", said) or _matches("clock", said)):
        return Intent(Tier.FLASH)
    if not attached and _matches("conversation", said):
        return Intent(Tier.HAIKU, action=False)
    persona = CONTENT_WRITER if _matches("content_writer", said) else None
    return Intent(_tier(said, len(text), attached), persona=persona, topic=_matches("topic", said))


def _tier(said: str, length: int, attached: bool) -> Tier:
    if _matches("quality", said) or length >= _limits()["long"]:
        return Tier.QUALITY
    short = len(said.split()) <= _limits()["longest_lookup_words"] and not attached
    return Tier.HAIKU if short and _matches("lookup", said) and not _matches("thinking", said) else Tier.SONNET


def _matches(name: str, said: str) -> bool:
    return _patterns()[name].search(said) is not None


def can_look_ahead(reasoner: Reasoner, turn: TurnContext) -> bool:
    """Whether the turn's agent has the stage and a prompt for it, and its reasoner thinks at all."""
    agent = turn.agent
    return isinstance(reasoner, Thinker) and agent is not None and {"preflight"} <= set(agent.stages) & set(agent.prompts)


async def request_look_ahead(running: TurnRun, reasoner: Reasoner, turn: TurnContext, plan: str) -> str:
    """The look ahead, or nothing: it is asked once, has its limit, and what it fails with costs nothing but itself.

    Args:
        reasoner: who may look ahead.
        plan: the block that it is shown: what worked before, and signals.
    """
    if not isinstance(reasoner, Thinker) or not can_look_ahead(reasoner, turn):
        return ""
    given = replace(turn, thought=replace(turn.thought, plan=plan))

    async def asked() -> Answer[LookAhead]:
        # What came to nothing is journalled too, so that whoever takes the turn over does not ask again.
        try:
            async with asyncio.timeout(running.cognition.settings.preflight_limit):
                answer = await reasoner.look_ahead(given)
        except CallFailed as failed:
            log.warning("the look ahead failed: %s", failed.error.code)
            return Answer(LookAhead(), None, failed.spent, failed.cost_usd)
        except (ServiceError, TimeoutError) as error:
            log.warning("the look ahead failed: %s", getattr(error, "code", "too slow"))
            return Answer(LookAhead())
        return answer if answer.value else replace(answer, value=LookAhead(), fault=None)

    with measure_capability(running.tracing, PREFLIGHT) as outcome:
        answer = await running.steps.made("preflight", LookAhead, asked)
        text = answer.value.text() if answer.value else ""
        if not text:
            outcome.name = "nothing"
            running.degrade("preflight")
    await running.show("preflight", used=bool(text))
    return text


_QUERY = 500
"""Characters of the message that memory is asked with."""


async def gather_memory(running: TurnRun, turn: TurnContext, intent: Intent, tools: Sequence[Tool[Any, Any]]) -> RecalledMemory:
    """What memory gives for a message, as far as the agent's stages ask for it. A part that fails is left out, and marked."""
    who, stages, experience = running.claim.who, turn.agent.stages if turn.agent else (), running.cognition.experience
    query = " ".join((turn.user_text or turn.final_input).split())[:_QUERY]
    if intent.tier is Tier.FLASH or not query:
        return RecalledMemory(records=running.cognition.records.get(who) or ())
    recall, shown = "recall" in stages, running.cognition.settings.strategies
    styled = recall and intent.persona == CONTENT_WRITER
    at_hand = tuple(tool.name for tool in tools)
    episodes, style, known, records = await asyncio.gather(
        _part(running, "episodes", recall, lambda: experience.recall_episodes(who, query, MAX_EPISODES)),
        _part(running, "style", styled, lambda: experience.style_examples(who, query, MAX_EXAMPLES)),
        _part(
            running,
            STRATEGIES,
            "strategies" in stages and shown > 0,
            lambda: experience.recall_strategies(who, query, shown, running.claim.agent, at_hand),
        ),
        fetch_tool_records(running, tools, wanted=recall),
    )
    recalled = (*(episodes or ()), *(style or ()), *(known or ())[:shown])
    texts = [f"{one.goal} {one.approach} {one.avoid}" if isinstance(one, KnownStrategy) else one.text for one in recalled]
    running.origins.read((label for one in recalled for label in one.labels), texts)
    return RecalledMemory(episodes or (), style or (), (known or ())[:shown], records, asked=recall or known is not None)


async def fetch_tool_records(
    running: TurnRun, tools: Iterable[Tool[Any, Any]], *, wanted: bool = True
) -> tuple[ToolRecord, ...]:
    """How often tools worked for the caller, as memory said within the last minute; none where it does not say.

    Args:
        wanted: whether memory is asked where nothing is kept.
    """
    who, kept = running.claim.who, running.cognition.records
    if (known := kept.get(who)) is not None:
        return known
    names = tuple(tool.name for tool in tools)
    fresh: tuple[ToolRecord, ...] | None = await _part(
        running, "records", wanted, lambda: running.cognition.experience.tool_statistics(who, names)
    )
    if fresh is not None:
        kept.put(who, fresh)
    return fresh or ()


async def _part(running: TurnRun, name: str, wanted: bool, ask: Any) -> Any:
    if not wanted:
        return None
    try:
        with _measure_part(running, name):
            async with asyncio.timeout(running.cognition.settings.recall_limit):
                return await ask()
    except Exception as error:  # whatever a memory did, the turn goes on without it
        log.warning("the turn goes on without %s: %s", name, getattr(error, "code", None) or type(error).__name__)
        running.degrade(name)
        return None


def _measure_part(running: TurnRun, name: str) -> AbstractContextManager[object]:
    return measure_capability(running.tracing, name) if name == STRATEGIES else running.phase(f"0 {name}")


_CALIBRATION = 200
"""Characters of one calibration."""


def weigh_history(running: TurnRun, past: Past) -> tuple[Summary, tuple[PastMessage, ...]]:
    """What a prompt shows of a conversation, the weighty turns word for word."""
    with measure_capability(running.tracing, HISTORY):
        return select_history(past, running.cognition.scoring)


def detect_tone_and_intent(running: TurnRun, turn: TurnContext) -> TurnContext:
    """The turn with its tone and with its intent by rules, as far as the agent has these stages."""
    stages = turn.agent.stages if turn.agent else ()
    sound = None
    if "tone" in stages:
        with measure(running.tracing, STAGE, "tone", "tone"):
            sound = detect_tone(turn.user_text)
    kind = classify_intent(turn.user_text, bool(turn.media_text)) if "intent" in stages else None
    running.tier = kind.tier.value if kind else None
    return replace(turn, thought=Thought(sound, kind))


def apply_decision(running: TurnRun, turn: TurnContext, tier: Tier | None, action: bool) -> TurnContext:
    """The turn with the intent that a loop's own first call came to; what the rules found light stays so.

    Args:
        tier: as the model named it; `None` where it named none.
        action: whether it asked for data.
    """
    ruled = turn.thought.intent
    if ruled is None:
        return turn
    chosen = ruled.tier if ruled.tier is Tier.FLASH or tier is None else tier
    running.tier = chosen.value
    return replace(turn, thought=replace(turn.thought, intent=replace(ruled, tier=chosen, action=action)))


async def decide_intent(running: TurnRun, reasoner: Reasoner, turn: TurnContext) -> TurnContext:
    """The turn with its intent: of rules where these see a simple one, else of one call, the first of the turn.

    A call that fails leaves the intent to the rules.
    """
    ruled = turn.thought.intent
    if ruled is None:
        return turn
    if ruled.tier is not Tier.FLASH and isinstance(reasoner, Thinker) and turn.agent and "intent" in turn.agent.prompts:
        ruled = await _by_model(running, reasoner, turn, ruled)
    log.info("the message has tier %s, %s", ruled.tier, "action" if ruled.action else "conversation")
    await running.show("intent", tier=ruled.tier.value, branch="action" if ruled.action else "conversation")
    running.tier = ruled.tier.value
    return replace(turn, thought=replace(turn.thought, intent=ruled))


async def _by_model(running: TurnRun, reasoner: Thinker, turn: TurnContext, ruled: Intent) -> Intent:
    try:
        with running.phase("0 intent"):
            answer = await running.steps.made("intent", IntentDecision, lambda: reasoner.decide(turn))
    except ServiceError as error:
        log.warning("the intent call failed: %s", error.code)
        answer = Answer(None)
    if answer.value is None:
        running.degrade("intent")
        return ruled
    said = answer.value
    return Intent(said.tier, said.action, said.persona or ruled.persona, said.topic or ruled.topic)


async def prepare_plan(
    running: TurnRun, reasoner: Reasoner, turn: TurnContext, tools: Sequence[Tool[Any, Any]] = (), found: int | None = None
) -> TurnContext:
    """The turn with its plan block, where it is an action; nothing that fails here ends the turn.

    Args:
        reasoner: what may look ahead.
        found: characters that a retrieval of the loop's own gave.
    """
    intent = turn.thought.intent
    if intent is None or not intent.action or turn.agent is None or "plan" not in turn.agent.stages:
        return turn
    cognition = running.cognition
    known = await gather_memory(running, turn, intent, tools)
    with measure_capability(running.tracing, REASONING):
        context = _context(running, turn, tools, known, found)
    lines = [*recalled_lines(known), *_research(turn, intent), *signal_lines(context)]
    if intent.tier in DEEP:
        shown = compose_plan([*strategy_lines(known), *signal_lines(context)])
        lines += section_lines(Section.PREFLIGHT, await request_look_ahead(running, reasoner, turn, shown))
    plan = compose_plan(lines, cognition.settings.plan_tokens)
    _log_plan(lines, plan)
    return replace(turn, thought=replace(turn.thought, plan=plan))


def _context(
    running: TurnRun, turn: TurnContext, tools: Sequence[Tool[Any, Any]], known: RecalledMemory, found: int | None
) -> ReasoningContext:
    size = known.size + (found or 0) if known.asked or found is not None else None
    return ReasoningContext.build(
        turn.thought.tone,
        tools,
        known.records,
        calibrations(turn.profile),
        size,
        turn.user_text,
        running.cognition.settings.strong_context,
    )


def calibrations(profile: dict[str, object]) -> tuple[str, ...]:
    """How the person wants to be answered, as the profile has it: `calibrations`, a list of texts, or one."""
    given = profile.get("calibrations")
    texts = given if isinstance(given, list | tuple) else [given]
    return tuple(told for one in texts if isinstance(one, str) and (told := sanitize_line(one, _CALIBRATION)))


def _research(turn: TurnContext, intent: Intent) -> list[PlanLine]:
    """The directive to look facts up first, for a text on a topic."""
    text = turn.agent.prompts.get("research", "") if turn.agent and intent.topic else ""
    return section_lines(Section.RESEARCH, text)


def _log_plan(lines: list[PlanLine], plan: str) -> None:
    """The markers of the log; what the sections say is told at the finest level alone."""
    for section in (Section.STRATEGIES, Section.REASONING, Section.PREFLIGHT):
        if HEADERS[section] in plan:
            log.info("%s: %d lines", HEADERS[section], sum(line.section is section for line in lines))
    log.debug("the plan block:\n%s", plan)


def writes_content(turn: TurnContext) -> bool:
    """Whether the turn has the persona that writes for others, and its agent looks back at such texts."""
    intent = turn.thought.intent
    wanted = intent is not None and intent.persona == CONTENT_WRITER and intent.tier is not Tier.FLASH
    return wanted and turn.agent is not None and "reflect" in turn.agent.stages and "reflect" in turn.agent.prompts


async def reflect_on_draft(running: TurnRun, reasoner: Inquirer, turn: TurnContext, draft: Draft) -> Draft:
    """The draft, or the better one that came of a look back. `reasoner`: what may look back."""
    if not isinstance(reasoner, Thinker) or not writes_content(turn):
        return draft
    try:
        with running.phase("4 reflect"):
            async with asyncio.timeout(running.cognition.settings.reflection_limit):
                answer = await running.steps.made("reflect", Reflection, lambda: reasoner.reflect(turn, draft))
    except (ServiceError, TimeoutError) as error:
        log.warning("the look back at the text failed: %s", getattr(error, "code", "too slow"))
        running.degrade("reflection")
        return draft
    if answer.value is None:
        running.degrade("reflection")
        return draft
    await running.show("reflected", score=answer.value.score)
    return draft.model_copy(update={"answer": answer.value.answer}) if answer.value.answer else draft
