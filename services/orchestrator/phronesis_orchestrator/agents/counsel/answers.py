"""Answers by rules, nodes cited: contradictions, losses, precedents, purpose, capacity, strategies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from phronesis_contracts import NotFound, Nothing
from phronesis_contracts.constitution.insight import (
    ANALOGIES_TOOL,
    CONTRADICTIONS_TOOL,
    DRIFT_TOOL,
    DUPLICATES_TOOL,
    EVOLUTION_TOOL,
    PATTERNS_TOOL,
    TOPICS_TOOL,
    WHY_TOOL,
    WITHOUT_TOOL,
    AskEvolution,
    AskWhy,
    Contradiction,
    DetectPatterns,
    Drifted,
    FindAnalogies,
    FindContradictions,
    FindDuplicates,
    ListTopics,
    Loss,
    ReportDrift,
    WithoutNode,
)
from phronesis_contracts.constitution.lists import INVENTORY_TOOL
from phronesis_contracts.constitution.paths import (
    BETWEENNESS_TOOL,
    BRIDGE_TOOL,
    CLIMB_LADDER_TOOL,
    COMMUNITIES_TOOL,
    DISCUSS_COMMUNITIES_TOOL,
    DISCUSS_PAGERANK_TOOL,
    DUE_WORK_TOOL,
    PAGERANK_TOOL,
    SHORTEST_PATH_TOOL,
    BridgeConcepts,
    ClimbLadder,
    DueFound,
    DueWork,
    FindBridges,
    FindCommunities,
    FindShortestPath,
    LadderClimbed,
    RankNodes,
    Step,
)
from phronesis_contracts.constitution.registry import CONSTITUTIONAL
from phronesis_contracts.constitution.search import (
    GOAL_SEARCH_TOOL,
    PRECEDENT_SEARCH_TOOL,
    GoalSearch,
    HybridHit,
    PrecedentSearch,
    Supported,
)
from phronesis_contracts.constitution.session import (
    ASSESS_WORKLOAD_TOOL,
    CONTEXT_USAGE_TOOL,
    GET_CALENDAR_TOOL,
    AskUsage,
    AssessWorkload,
    Capacity,
    TaskShown,
    WorkloadAssessed,
)

from .record import Record
from .tools import SeenNode, Titled, TurnTools, chain, cite, hours, joined, listed, paragraphs

_TYPES = ("goal", "value", "principle", "guardrail", "vision", "strategy")


async def contradictions(desk: TurnTools, text: str) -> str:
    """The answer, of the types that the question names; of all that guide, where it names none.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed.
    """
    types = types_in(text)
    asked = FindContradictions(types=types) if types else FindContradictions()
    found = await desk.ask(CONTRADICTIONS_TOOL, asked)
    what = f"{types[0]}s" if len(types) == 1 else "nodes"
    if not found.pairs:
        return (
            f"I found no {what} that contradict each other: none are marked so, and none that speak of the same want opposites."
        )
    head = (
        f"One pair of {what} contradicts itself"
        if len(found.pairs) == 1
        else f"{len(found.pairs)} pairs of {what} contradict each other"
    )
    return paragraphs(f"{head}:", listed(map(_describe_contradiction, found.pairs)))


def types_in(text: str) -> tuple[str, ...]:
    """The node types that a question names."""
    said = set(re.findall(r"[a-z]+", text.casefold()))
    return tuple(name for name in _TYPES if {name, f"{name}s", f"{name[:-1]}ies"} & said)


def _describe_contradiction(pair: Contradiction) -> str:
    return f"{cite(pair.one)} and {cite(pair.other)}: {pair.because}"


_LOST = 20
"""Nodes that are asked for."""
_NAMED = 3
"""Values and visions that are named with a node that loses its way to them."""


async def losses(desk: TurnTools, node: SeenNode) -> str:
    """The answer. Raises `NotOffered`: the tool for it is not at hand; `ServiceError`: it failed."""
    found = await desk.ask(WITHOUT_TOOL, WithoutNode(id=node.id, limit=_LOST))
    if not found.total:
        return f"Without {cite(node)} nothing would lose its support: all that is joined to it has another way up."
    many = f"{found.total} node{'s' if found.total > 1 else ''} would lose support"
    return paragraphs(
        f"Without {cite(node)}, {many}.",
        f"With no way left to any value or vision:\n{listed(map(_describe_loss, found.orphaned))}" if found.orphaned else "",
        f"With a way left, but not to all that they served:\n{listed(map(_describe_loss, found.weakened))}"
        if found.weakened
        else "",
    )


def _describe_loss(loss: Loss) -> str:
    lost = [cite(one) for one in loss.lost]
    more = [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    return f"{cite(loss.node)} ({loss.node.type})" + (f", which loses {joined([*lost[:_NAMED], *more])}" if lost else "")


_DECISIONS = 6
"""Decisions that are looked at."""


async def precedents(desk: TurnTools, described: str) -> str:
    """The answer. Raises `NotOffered`: the tool for it is not at hand; `ServiceError`: it failed."""
    found = await desk.ask(PRECEDENT_SEARCH_TOOL, PrecedentSearch(query=described, limit=_DECISIONS))
    if not found.results:
        return "The graph holds no decision like that one."
    good = [one for one in found.results if (roi(one) or 0) > 0]
    bad = [one for one in found.results if (value := roi(one)) is not None and value <= 0]
    open_ones = [one for one in found.results if roi(one) is None]
    many = len(found.results)
    head = (
        f"Of {many} past decisions like that one, {len(good)} paid off."
        if many > 1
        else (
            "There is one past decision like that one, and it paid off."
            if good
            else "There is one past decision like that one."
        )
    )
    return paragraphs(
        head,
        f"Paid off:\n{listed(map(_describe_precedent, good))}" if good else "",
        f"Did not pay off:\n{listed(map(_describe_precedent, bad))}" if bad else "",
        f"No return is recorded:\n{listed(map(_describe_precedent, open_ones))}" if open_ones else "",
    )


def roi(one: Supported) -> float | None:
    """The total return of a decision; `None` where none is recorded."""
    value = (one.node.model_extra or {}).get("roi")
    total = value.get("total") if isinstance(value, dict) else value
    return float(total) if isinstance(total, int | float) and not isinstance(total, bool) else None


def _describe_precedent(one: Supported) -> str:
    value, decided = roi(one), (one.node.model_extra or {}).get("decidedAt")
    said = [f"return {value:g}"] if value is not None else []
    said += [f"decided {str(decided)[:10]}"] if decided else []
    came = [cite(mention) for mention in one.linked]
    details = f" ({', '.join(said)})" if said else ""
    return f"{cite(one.node)}{details}" + (f"; it led to {joined(came)}" if came else "")


_REASONS = 4
"""Chains that are told."""


async def purpose(desk: TurnTools, node: SeenNode) -> str:
    """The answer. Raises `NotOffered`: the tools for it are not at hand; `ServiceError`: they failed."""
    ladder = await _ladder(desk, node) if node.type == "goal" else ""
    why = await desk.ask(WHY_TOOL, AskWhy(from_id=node.id, limit=_REASONS))
    reasons = listed(dict.fromkeys(chain(reason.path) for reason in why.reasons if len(reason.path) > 1))
    if not ladder and not reasons:
        return f"The graph holds no reason for {cite(node)}: no relationship leads from it to a goal, a vision or a value."
    return paragraphs(
        ladder or f"{cite(node)} is a {node.type}.",
        f"Why, step by step:\n{reasons}" if reasons else "No chain from it comes to a value.",
    )


async def _ladder(desk: TurnTools, node: SeenNode) -> str:
    found: LadderClimbed = await desk.ask(CLIMB_LADDER_TOOL, ClimbLadder(id=node.id))
    above = [cite(rung) for rung in found.ladder if rung.id != node.id]
    return f"{cite(node)} serves {joined(above[:1])}{_further(above[1:])}." if above else ""


def _further(above: list[str]) -> str:
    return f", and above that {joined(above)}" if above else ""


_HOURS = re.compile(r"\b(\d{1,3}(?:\.\d)?)\s*(?:more |further |extra )?(?:h|hours?)\b", re.I)
_BACK = 365
"""Days before the window in which tasks are looked for that are open still."""
_SAID = {"green": "Yes, there is room", "yellow": "There is little room", "red": "No, there is no room"}


async def assess_capacity(
    desk: TurnTools, text: str, today: date, days: tuple[date, date] | None = None, wanted: float | None = None
) -> str:
    """Whether there is room.

    Args:
        text: the question.
        today: the day in the calendar's zone.
        days: the days that it is about, the second outside; those that its words name where absent.
        wanted: hours that are asked for, if any.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed.
    """
    start, end = days or window(text, today)
    asked = AssessWorkload(start_date=start.isoformat(), end_date=end.isoformat(), include_task_details=True)
    found = await desk.ask(ASSESS_WORKLOAD_TOOL, asked)
    tasks = found.tasks.items or ()
    late = await _late(desk, found.start_date)
    return paragraphs(
        _verdict(found.capacity, _wanted(text) if wanted is None else wanted, f"from {found.start_date} to {found.end_date}"),
        f"Due in that time:\n{listed(map(_describe_task, tasks))}" if tasks else "No open task is due in that time.",
        late,
        _calendar(found),
        listed(found.recommendations),
    )


def window(text: str, today: date) -> tuple[date, date]:
    """The days that a question is about, the second of them outside; the seven from today on where it names none."""
    if re.search(r"\bnext week\b", text, re.I):
        monday = today + timedelta(days=7 - today.weekday())
        return monday, monday + timedelta(days=7)
    days = 30 if re.search(r"\b(?:this|the|next) month\b", text, re.I) else 7
    return today, today + timedelta(days=days)


def _wanted(text: str) -> float | None:
    said = _HOURS.search(text)
    return float(said[1]) if said else None


def _verdict(capacity: Capacity, wanted: float | None, when: str) -> str:
    free = capacity.available_hours - capacity.scheduled_hours
    if capacity.utilization_percent is None:
        return f"There are no working hours {when}, and {hours(capacity.scheduled_hours)} of work."
    figures = (
        f"{hours(capacity.scheduled_hours)} of {hours(capacity.available_hours)} are taken {when}"
        f" ({capacity.utilization_percent:.0f} %, {capacity.zone})"
    )
    if wanted is not None:
        return (
            f"{'Yes' if wanted <= free else 'No'}: {figures}; {hours(max(0.0, free))} are free, and {wanted:g} are asked for."
        )
    return f"{_SAID[capacity.zone]}: {figures}, so {hours(max(0.0, free))} are free."


async def _late(desk: TurnTools, start: date) -> str:
    if not desk.has(DUE_WORK_TOOL):
        return ""
    before = DueWork(
        start_date=(start - timedelta(days=_BACK)).isoformat(), end_date=(start - timedelta(days=1)).isoformat(), limit=5
    )
    found: DueFound = await desk.ask(DUE_WORK_TOOL, before)
    left = "overdue and open still, which the figures above do not hold"
    return f"{found.total} {left}:\n{listed(map(cite, found.items))}" if found.items else ""


def _describe_task(task: TaskShown) -> str:
    said = [hours(task.effort_hours)] if task.effort_hours is not None else ["no estimate"]
    said += [f"due {task.due_date[:10]}"] if task.due_date else []
    return f"{cite(task)} ({', '.join(said)}, {task.status.replace('_', ' ')})"


def _calendar(found: WorkloadAssessed) -> str:
    if "calendar" in found.degraded:
        return "The calendar could not be read, so its events are not in the figures."
    if not found.calendar.total:
        return ""
    return f"The calendar has {found.calendar.total} events in that time, {hours(found.calendar.total_hours)} together."


async def strategies(desk: TurnTools, described: str) -> str:
    """The answer.

    Raises:
        NotOffered: the tool for it is not at hand.
        ServiceError: it failed, other than by finding no goal.
    """
    try:
        found = await desk.ask(GOAL_SEARCH_TOOL, GoalSearch(query=described))
    except NotFound as error:
        return f"{error.detail[:1].upper()}{error.detail[1:]}. Ask with the words of its title."
    if not found.found.results:
        return f"For the goal {cite(found.goal)} the graph holds no strategy."
    begins = Step(node_id=found.goal.id, type=found.goal.type, title=found.goal.title)
    return paragraphs(
        f"For the goal {cite(found.goal)}:", listed(_describe_strategy(hit, begins) for hit in found.found.results)
    )


def _describe_strategy(hit: HybridHit, begins: Step) -> str:
    steps = [step for step in hit.path or () if step.node_id != begins.node_id]
    way = f": {chain([begins, *steps])}" if steps else ", which is like it in meaning and not joined to it"
    return f"{cite(hit.node)}{way}"


_ALIKE = 10
"""Rows of an answer about the shape of the graph."""


async def ask_tool(desk: TurnTools, topic: str, id: str | None, type: str, ids: Sequence[str], record: Record) -> str:
    """What one tool says of a topic; empty where the topic needs a node that is not named.

    Args:
        topic: a value of `talk_of_tools` in the content files.
        id: the node that is named first, if any.
        type: its type.
        ids: every node that is named.
        record: what the turn read.

    Raises:
        NotOffered: the tool is not at hand.
        ServiceError: it failed.
    """
    match topic:
        case "topics":
            found = await desk.ask(TOPICS_TOOL, ListTopics())
            rows = [
                f"{', '.join(one.keywords)} ({one.size} nodes): {joined([cite(node) for node in one.nodes[:3]])}"
                for one in found.topics
            ]
            return paragraphs(f"{len(rows)} topics:", listed(rows)) if rows else "There are no topics on record yet."
        case "drift" if id is None:
            drifted = (await desk.ask(DRIFT_TOOL, ReportDrift())).findings
            kinds = types_in_words(record, drifted)
            if not drifted:
                return "No: no node has drifted; the meaning of none moved by more than the threshold."
            return paragraphs(
                f"{len(drifted)} nodes drifted{kinds}:",
                listed(f"{cite(one.node)} ({one.node.type}): by {one.drift:.2f}, last on {one.at.date()}" for one in drifted),
            )
        case "drift" | "evolution" if id is not None:
            told = await desk.ask(EVOLUTION_TOOL, AskEvolution(id=id))
            drift = "Its meaning drifted." if told.drifted else "Its meaning did not drift."
            return paragraphs(
                f"{cite(_of(record, id))} has {len(told.versions)} version{'s' if len(told.versions) != 1 else ''}. {drift}",
                told.narrative,
            )
        case "duplicates":
            pairs = (await desk.ask(DUPLICATES_TOOL, FindDuplicates())).pairs
            if not pairs:
                return "There are no nodes on record that say nearly the same."
            return paragraphs(
                f"{len(pairs)} pairs say nearly the same:",
                listed(f"{cite(one.one)} and {cite(one.other)} (cosine {one.score:.2f})" for one in pairs),
            )
        case "central":
            tool = PAGERANK_TOOL if desk.has(PAGERANK_TOOL) else DISCUSS_PAGERANK_TOOL
            ranked = (await desk.ask(tool, RankNodes(limit=_ALIKE))).rows
            return paragraphs(
                "Most rests on these, the first most of all:",
                listed(f"{cite(one)} ({one.type}, {one.score:.3f})" for one in ranked),
            )
        case "communities":
            groups = COMMUNITIES_TOOL if desk.has(COMMUNITIES_TOOL) else DISCUSS_COMMUNITIES_TOOL
            clusters = (await desk.ask(groups, FindCommunities(limit=_ALIKE))).rows
            return paragraphs(
                f"{len(clusters)} clusters belong together:",
                listed(f"{one.size} nodes: {joined([cite(node) for node in one.nodes[:5]])}" for one in clusters),
            )
        case "bridges":
            between = [one for one in (await desk.ask(BETWEENNESS_TOOL, FindBridges(limit=_ALIKE))).rows if one.score > 0]
            return paragraphs(
                "These join parts of the graph, the first most of all:", listed(f"{cite(one)} ({one.type})" for one in between)
            )
        case "analogies" if id is not None and type == "goal":
            alike = (await desk.ask(ANALOGIES_TOOL, FindAnalogies(id=id))).analogies
            if not alike:
                return f"There is no past success on record that is like {cite(_of(record, id))}."
            return paragraphs(
                f"Past successes like {cite(_of(record, id))}:",
                listed(
                    f"{cite(one.node)}{': ' + joined([cite(m) for m in one.strategies]) if one.strategies else ''}"
                    for one in alike
                ),
            )
        case "patterns":
            repeated = (await desk.ask(PATTERNS_TOOL, DetectPatterns())).patterns
            if not repeated:
                return "There is nothing on record that repeats."
            return paragraphs(
                f"{len(repeated)} patterns repeat:",
                listed(f"{one.title} ({one.confidence:.2f}): {joined([cite(m) for m in one.nodes[:4]])}" for one in repeated),
            )
        case "path" if len(ids) >= 2:
            return await _path(desk, ids[0], ids[1], record)
        case "usage":
            used = await desk.ask(CONTEXT_USAGE_TOOL, AskUsage())
            return paragraphs(
                f"Of a window of {used.window:,} tokens:",
                listed(f"{row.component}: {row.used:,} of {row.budget:,}" for row in used.rows),
            )
        case "inventory":
            there = await desk.ask(INVENTORY_TOOL, Nothing())
            rows = [f"{one.type}: {one.count}" for one in there.types if one.count]
            return paragraphs(
                f"{there.total_nodes} nodes and {there.total_relationships} relationships:",
                "\n".join(f"- {row}" for row in rows),
            )
        case "calendar" if desk.has(GET_CALENDAR_TOOL):
            kept = await desk.ask(GET_CALENDAR_TOOL, Nothing())
            days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
            worked = joined([f"{day} {hours(value)}" for day, value in zip(days, kept.hours, strict=True) if value])
            return f"Your calendar: source {kept.source}, time zone {kept.time_zone}; working hours: {worked}."
    return ""


def types_in_words(record: Record, found: Sequence[Drifted]) -> str:
    """The types of drifted nodes, as a sentence goes on with them."""
    types = dict.fromkeys(one.node.type for one in found)
    return f" ({', '.join(types)})" if types else ""


def _of(record: Record, id: str) -> Titled:
    return record.things[id]


async def _path(desk: TurnTools, one: str, other: str, record: Record) -> str:
    if desk.has(SHORTEST_PATH_TOOL):
        steps = (
            await desk.ask(
                SHORTEST_PATH_TOOL,
                FindShortestPath(
                    from_id=one,
                    to_id=other,
                    relationship_types=tuple({link.type for link in record.links} or CONSTITUTIONAL)[:20],
                ),
            )
        ).path
    elif desk.has(BRIDGE_TOOL):
        steps = next(iter((await desk.ask(BRIDGE_TOOL, BridgeConcepts(from_id=one, to_id=other))).paths), ())
    else:
        steps = ()
    if not steps:
        return f"There is no chain on record that joins {cite(_of(record, one))} and {cite(_of(record, other))}."
    return f"They are joined: {chain(steps)}"
