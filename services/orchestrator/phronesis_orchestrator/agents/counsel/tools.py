"""The tools of a turn, the nodes that they named, the rules that were broken, and their wording."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phronesis_contracts import Forbidden, Message, Principal, ServiceError, Tool
from phronesis_contracts.approvals import Ruling
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution.insight import CHECK_POLICY_TOOL, CheckPolicy, PolicyChecked, RuleHit
from phronesis_contracts.constitution.lists import VisionNode
from phronesis_contracts.constitution.paths import Step
from phronesis_contracts.constitution.session import SET_CALENDAR_TOOL, SessionStarted
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.messages import In, Out_
from phronesis_contracts.orchestrator import TURN_GET_TOOL, Source
from phronesis_contracts.tools import legal_name, schema_of_input
from phronesis_tokens import clean, count, cut

from ...approvals.policy import call_arguments, judge
from ...outside_tools.schemas import fetch_outside_tools
from ...turns.execution import TurnRun
from ..binding import labels_of, outside_label
from ..text import shorten
from ..tools import Toolbox, may_use

CITED = re.compile(r"\[([A-Za-z0-9][A-Za-z0-9_.:-]{0,199})\](?!\()")
"""An id in square brackets, which is no link."""
MAX_SOURCES = 20
_SNIPPET = 240
"""Characters of what a source says."""
_SCORES = ("score", "finalScore", "goalScore")
_TEXTS = ("summary", "statement", "description", "narrative")


@dataclass(frozen=True)
class SeenNode:
    """A node in few words."""

    id: str
    type: str
    """Only tasks are told without one."""
    title: str
    text: str = ""
    score: float = 1.0
    """Cosine where a search found it, else 1."""


class SeenNodes:
    """The nodes of one turn by id."""

    def __init__(self) -> None:
        self._seen: dict[str, SeenNode] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._seen

    def __iter__(self) -> Iterator[SeenNode]:
        return iter(self._seen.values())

    def get(self, id: str) -> SeenNode | None:
        return self._seen.get(id)

    def note(self, answer: Message) -> None:
        """Note every node that an answer names."""
        for one in _nodes(answer.model_dump(mode="json", by_alias=True), 1.0):
            known = self._seen.get(one.id)
            if known is None or (one.text and not known.text):
                self._seen[one.id] = one

    def unknown(self, text: str) -> list[str]:
        """Ids that a text cites and nobody gave."""
        return [id for id in dict.fromkeys(CITED.findall(text)) if id not in self._seen]

    def kept(self, text: str) -> str:
        """A text without citations of what was not seen."""
        return re.sub(r"[ \t]?" + CITED.pattern, lambda found: found[0] if found[1] in self._seen else "", text)

    def sources(self, text: str) -> tuple[Source, ...]:
        """The nodes that a text cites, in its order."""
        found = [one for id in dict.fromkeys(CITED.findall(text)) if (one := self._seen.get(id)) is not None]
        return tuple(
            Source(id=one.id, type=one.type, title=one.title, score=round(max(0.0, min(1.0, one.score)), 4), snippet=one.text)
            for one in found[:MAX_SOURCES]
        )


def _nodes(value: Any, score: float) -> Iterator[SeenNode]:
    match value:
        case dict():
            told = next((value[name] for name in _SCORES if isinstance(value.get(name), int | float)), score)
            id, title = value.get("id", value.get("nodeId")), value.get("title")
            if isinstance(id, str) and isinstance(title, str):
                text = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), "")
                yield SeenNode(id, str(value.get("type", "task")), title, shorten(text, _SNIPPET), float(told))
            for member in value.values():
                yield from _nodes(member, float(told))
        case list():
            for member in value:
                yield from _nodes(member, score)


_ROOM = 3_000
"""Tokens of one answer that a model is told."""
_SESSION = 5_000
"""The same for the start of a session."""
_LEFT_OUT = {"provenance", "metadata", "createdAt", "updatedAt", "version", "tokenEstimate", "stats"}
"""Members of an answer that a model is not told: a question about them has a tool of its own."""


def build_counsel_toolbox(tools: dict[str, Tool[Any, Any]]) -> Toolbox:
    """The box of a turn."""
    return Toolbox({legal_name(name): tool for name, tool in tools.items()}, (), schema_of_input)


def render_answer(answer: Message) -> str:
    """What a tool gave, as the model is told it: JSON, cut to its room."""
    if isinstance(answer, SessionStarted):
        return cut(clean(_session(answer)), _SESSION)
    said = _short(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
    return cut(clean(json.dumps(said, ensure_ascii=False)), _ROOM)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(member) for name, member in value.items() if name not in _LEFT_OUT and member not in ([], {})}
    return [_short(member) for member in value] if isinstance(value, list) else value


_WIDTHS = (800, 400, 200, 100)
"""Characters of one text of a node at the start of a session: the widest with which the whole keeps to its room."""
_SAID = ("statement", "rationale", "trigger", "response", "severity", "narrative", "target", "deadline", "horizon")


def _session(started: SessionStarted) -> str:
    work = started.workload
    room = (
        json.dumps(_short(work.model_dump(mode="json", by_alias=True, exclude_none=True)), ensure_ascii=False) if work else ""
    )
    missing = [f"Could not be loaded: {', '.join(started.warnings)}."] if started.warnings else []
    head = [*missing, *([f"Workload: {room}"] if room else [])]
    text = ""
    for width in _WIDTHS:
        text = "\n".join([*head, *(_line(node, width) for node in (*started.vision, *started.foundation))])
        if count(text) <= _SESSION:
            break
    return text


def _line(node: ConstitutionNode, width: int) -> str:
    own = node.model_extra or {}
    texts = {"": node.summary, "description": node.description} | {name: own.get(name) for name in _SAID}
    said = [f"{name}: {str(text)[:width]}" if name else text[:width] for name, text in texts.items() if text]
    parents = [f"{one.relationship} {one.id}" for one in (node.parents or ())] if isinstance(node, VisionNode) else []
    return " | ".join(part for part in (node.id, node.type, node.title, *said, "; ".join(parents)) if part)


log = logging.getLogger(__name__)

_OUTSIDE = frozenset({TURN_GET_TOOL.name, SET_CALENDAR_TOOL.name})
"""Tools on a list that are for callers from outside: to look after a turn, and to state a password that no model should see."""


class NotOffered(Exception):
    """A tool is needed that the agent, or its caller's rights, do not have."""

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.tool = tool


def list_offered_tools(agent: AgentProfile, who: Principal) -> tuple[Tool[Any, Any], ...]:
    """The tools of an agent for a caller: the agent's list, less what its sources bar and what the caller may not call.

    The caller's rights come from its token; no text and no argument can change it.
    """
    tools = (TOOLS[name] for name in agent.tools if name in TOOLS and name not in _OUTSIDE)
    return tuple(tool for tool in tools if tool.open_to(who) and may_use(agent, tool))


async def reach_outside_tools(running: TurnRun, agent: AgentProfile) -> dict[str, Tool[Any, Any]]:
    """The outside tools that an agent's profile allows; without them the turn goes on, and says so."""
    try:
        found = await fetch_outside_tools(running.neighbours, running.claim.who, agent.outside)
        running.origins.read(map(outside_label, found.values()))
        return found
    except ServiceError as error:
        log.warning("the outside tools cannot be had: %s", error.code)
        running.degrade("outside")
        return {}


class TurnTools:
    """The tools of one turn."""

    def __init__(self, running: TurnRun, agent: AgentProfile) -> None:
        self._running = running
        self.agent = agent
        self.tools = {tool.name: tool for tool in list_offered_tools(agent, running.claim.who)}
        self.record = SeenNodes()

    async def reach_outside(self) -> None:
        """Add the outside tools that the agent's profile allows; without them the turn goes on, and says so."""
        self.tools |= await reach_outside_tools(self._running, self.agent)

    def has(self, tool: Tool[Any, Any]) -> bool:
        """Whether a tool is at hand."""
        return tool.name in self.tools

    async def ask(self, tool: Tool[In, Out_], request: In) -> Out_:
        """Ask a tool's owner, and note the nodes that it names.

        Raises:
            NotOffered: the tool is not at hand.
            ServiceError: what the owner answered; `Forbidden` of a call that needs a person, whom rules do not ask.
        """
        if not self.has(tool):
            raise NotOffered(tool.name)
        verdict = judge(tool.name, call_arguments(request))
        if verdict.ruling is not Ruling.ALLOW:
            raise Forbidden(verdict.reason)
        answer = await self._running.neighbours.ask(self._running.claim.who, tool.rpc, request)
        self._running.origins.read(labels_of(tool, answer), answer)
        self.record.note(answer)
        return answer


LEADS = {
    "SERVES": ("serves", "is served by"),
    "ALIGNS_WITH": ("aligns with", "is what it is aligned with by"),
    "SUPPORTED_BY": ("rests on", "supports"),
    "ENFORCED_BY": ("is enforced by", "enforces"),
    "PART_OF": ("is part of", "contains"),
    "LEADS_TO": ("led to", "came of"),
    "MEASURES": ("measures", "is measured by"),
    "THREATENS": ("threatens", "is threatened by"),
    "CONTRADICTS": ("contradicts", "contradicts"),
}
"""What a relationship says, along it and against it."""
_SHOWN = 8
"""Rows of a list that are told; it says how many more there are."""


class Titled(Protocol):
    """Whatever has an id and a title."""

    @property
    def id(self) -> str:
        """The node's id."""

    @property
    def title(self) -> str:
        """Its title."""


def cite(node: Titled) -> str:
    """A node by its title and its id."""
    return f"{node.title} [{node.id}]"


def joined(parts: Sequence[str]) -> str:
    """Parts as a sentence lists them."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def chain(path: Sequence[Step]) -> str:
    """A path as one sentence, from where it begins."""
    said = [f"{path[0].title} [{path[0].node_id}]"] if path else []
    for step in path[1:]:
        name = step.relationship or ""
        along, against = LEADS.get(name, (f"leads by {name} to", f"is reached by {name} from"))
        said.append(f"{against if step.direction == 'in' else along} {step.title} [{step.node_id}]")
    return f"{said[0]} {', which '.join(said[1:])}." if len(said) > 1 else "".join(said)


def listed(rows: Iterable[str]) -> str:
    """Rows as a list; those that are left out are counted."""
    all_rows = list(rows)
    more = len(all_rows) - _SHOWN
    return "\n".join([*(f"- {row}" for row in all_rows[:_SHOWN]), *([f"- and {more} more"] if more > 0 else [])])


def hours(value: float) -> str:
    """Hours as people write them."""
    return f"{value:.1f}".rstrip("0").rstrip(".") + (" hour" if value == 1 else " hours")


def paragraphs(*parts: str) -> str:
    """The parts that there are, with a line between them."""
    return "\n\n".join(part for part in parts if part)


STAGE = "rules"
"""The stage of agents whose messages are held against the rules before anything is decided or written."""
_TEXT = 20_000
"""Characters of a text that are held against the rules."""


async def find_broken_rules(
    running: TurnRun, desk: TurnTools, text: str, type: str | None = None, fields: dict[str, Any] | None = None
) -> tuple[RuleHit, ...]:
    """The rules that a text goes against; where they cannot be had the reply is marked: its owner checks a write itself."""
    if not desk.has(CHECK_POLICY_TOOL):
        return ()
    try:
        request = CheckPolicy(text=text[:_TEXT] or "-", type=type, fields=fields or {})
        found: PolicyChecked = await desk.ask(CHECK_POLICY_TOOL, request)
    except ServiceError as error:
        log.warning("the rules could not be asked: %s", error.code)
        running.degrade(STAGE)
        return ()
    return found.hits


def describe_hits(hits: Iterable[RuleHit]) -> str:
    """What a reply says of the rules that were hit; empty for none."""
    all_hits = tuple({hit.rule.id: hit for hit in hits}.values())
    blocked = [hit for hit in all_hits if hit.severity == "block"]
    others = [hit for hit in all_hits if hit.severity != "block"]
    ids = ", ".join(f"`{hit.rule.id}`" for hit in others)
    return paragraphs(
        f"This is not allowed:\n{listed(map(_describe_hit, blocked))}" if blocked else "",
        f"This goes against:\n{listed(map(_describe_hit, others))}\nIt can be done once a person has approved that: {ids}."
        if others
        else "",
    )


def _describe_hit(hit: RuleHit) -> str:
    said = f"the {hit.rule.type} {cite(hit.rule)}, because {hit.because}"
    return f"{said}. It says: {hit.response}" if hit.response else said
