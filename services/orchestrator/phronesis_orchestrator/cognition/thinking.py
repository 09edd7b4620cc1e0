"""The stages before the work on a message: tone, intent, recall, signals, a look ahead, and the plan block of all of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from phronesis_contracts import ServiceError
from phronesis_contracts.tools import Tool

from ..history import Past, PastMessage, Summary
from ..measures import STAGE
from ..reasoner import Answer, Reasoner, TurnContext
from ..running import Running
from ..summary import view
from ..timing import timed
from .ahead import looked_ahead
from .gathering import gathered
from .intent import intent as intent_of
from .measures import HISTORY, REASONING, capability
from .plan import HEADERS, Line, Section, composed, harmless, own, recalled, signals, strategies
from .reasoning import ReasoningContext
from .remembered import Remembered
from .thinker import Decided, Thinker
from .thought import CONTENT_WRITER, DEEP, Intent, Thought, Tier
from .tone import tone

log = logging.getLogger(__name__)

_CALIBRATION = 200
"""Characters of one calibration."""


def weighed(running: Running, past: Past) -> tuple[Summary, tuple[PastMessage, ...]]:
    """What a prompt shows of a conversation, the weighty turns word for word (V-008, V-155)."""
    with capability(running.tracing, HISTORY):
        return view(past, running.cognition.scoring)


def noticed(running: Running, turn: TurnContext) -> TurnContext:
    """The turn with its tone and with its intent by rules, as far as the agent has these stages (V-074, V-012)."""
    stages = turn.agent.stages if turn.agent else ()
    sound = None
    if "tone" in stages:
        with timed(running.tracing, STAGE, "tone", "tone"):
            sound = tone(turn.user_text)
    kind = intent_of(turn.user_text, bool(turn.media_text)) if "intent" in stages else None
    running.tier = kind.tier.value if kind else None
    return replace(turn, thought=Thought(sound, kind))


def as_said(running: Running, turn: TurnContext, tier: Tier | None, action: bool) -> TurnContext:
    """The turn with the intent that a loop's own first call came to; what the rules found light stays so (V-009).

    Args:
        running: the turn in hand.
        turn: its context, with the intent of the rules.
        tier: as the model named it; `None` where it named none.
        action: whether it asked for data.
    """
    ruled = turn.thought.intent
    if ruled is None:
        return turn
    chosen = ruled.tier if ruled.tier is Tier.FLASH or tier is None else tier
    running.tier = chosen.value
    return replace(turn, thought=replace(turn.thought, intent=replace(ruled, tier=chosen, action=action)))


async def decided(running: Running, reasoner: Reasoner, turn: TurnContext) -> TurnContext:
    """The turn with its intent: of rules where these see a simple one, else of one call, the first of the turn (V-011).

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


async def _by_model(running: Running, reasoner: Thinker, turn: TurnContext, ruled: Intent) -> Intent:
    try:
        with running.phase("0 intent"):
            answer = await running.steps.made("intent", Decided, lambda: reasoner.decide(turn))
    except ServiceError as error:
        log.warning("the intent call failed: %s", error.code)
        answer = Answer(None)
    if answer.value is None:
        running.degrade("intent")
        return ruled
    said = answer.value
    return Intent(said.tier, said.action, said.persona or ruled.persona, said.topic or ruled.topic)


async def prepared(
    running: Running,
    reasoner: Reasoner,
    turn: TurnContext,
    tools: Sequence[Tool[Any, Any]] = (),
    found: int | None = None,
) -> TurnContext:
    """The turn with its plan block, where it is an action; nothing that fails here ends the turn (V-084, V-111).

    Args:
        running: the turn.
        reasoner: what may look ahead.
        turn: its context, with its intent.
        tools: those at hand.
        found: characters that a retrieval of the loop's own gave.
    """
    intent = turn.thought.intent
    if intent is None or not intent.action or turn.agent is None or "plan" not in turn.agent.stages:
        return turn
    cognition = running.cognition
    known = await gathered(running, turn, intent, tools)
    with capability(running.tracing, REASONING):
        context = _context(running, turn, tools, known, found)
    lines = [*recalled(known), *_research(turn, intent), *signals(context)]
    if intent.tier in DEEP:
        shown = composed([*strategies(known), *signals(context)])
        lines += own(Section.PREFLIGHT, await looked_ahead(running, reasoner, turn, shown))
    plan = composed(lines, cognition.settings.plan_tokens)
    _told(lines, plan)
    return replace(turn, thought=replace(turn.thought, plan=plan))


def _context(
    running: Running, turn: TurnContext, tools: Sequence[Tool[Any, Any]], known: Remembered, found: int | None
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
    """How the person wants to be answered, as the profile has it: `calibrations`, a list of texts, or one (V-082, V-T07)."""
    given = profile.get("calibrations")
    texts = given if isinstance(given, list | tuple) else [given]
    return tuple(told for one in texts if isinstance(one, str) and (told := harmless(one, _CALIBRATION)))


def _research(turn: TurnContext, intent: Intent) -> list[Line]:
    """The directive to look facts up first, for a text on a topic (V-108)."""
    text = turn.agent.prompts.get("research", "") if turn.agent and intent.topic else ""
    return own(Section.RESEARCH, text)


def _told(lines: list[Line], plan: str) -> None:
    """The markers of the log; what the sections say is told at the finest level alone (V-167, V-170)."""
    for section in (Section.STRATEGIES, Section.REASONING, Section.PREFLIGHT):
        if HEADERS[section] in plan:
            log.info("%s: %d lines", HEADERS[section], sum(line.section is section for line in lines))
    log.debug("the plan block:\n%s", plan)


def writes_content(turn: TurnContext) -> bool:
    """Whether the turn has the persona that writes for others, and its agent looks back at such texts (V-045)."""
    intent = turn.thought.intent
    wanted = intent is not None and intent.persona == CONTENT_WRITER and intent.tier is not Tier.FLASH
    return wanted and turn.agent is not None and "reflect" in turn.agent.stages and "reflect" in turn.agent.prompts
