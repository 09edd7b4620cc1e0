"""What repeats among goals, decisions and strategies, and past successes that are like a goal."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import numpy as np

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.constitution.insight import Analogy
from phronesis_contracts.constitution.registry import Lifecycle, lifecycle_of
from phronesis_contracts.constitution.values import ConstitutionNode, Mention
from phronesis_contracts.constitution.writes import GuardrailHit

from .clusters import UNASSIGNED, Labels, NodeMatrix, find_keywords, gather_vectors, group_alike, load_libraries
from .ports import NodeFilter, NodeVectors, Structure
from .semantic import Floor, SemanticFinder, goals_of_strategies, total_return, without_provenance


class GoalOutcome(StrEnum):
    ACHIEVED = "achieved"
    FAILED = "failed"
    OPEN = "open"


_DENIED = r"(?:not|never|without being|hardly|barely|only partly|partly)"
_REACHED = (
    r"(?:achieved?|reached|met|succeeded|success(?:ful|fully)?|exceeded|fulfilled|accomplished|completed?|delivered|done|won)"
)
_REACH = rf"(?:{_REACHED}|achieve|reach|meet|succeed|fulfil|deliver|win)"
_FAILED = re.compile(
    rf"(?:\b{_DENIED}|n't)\s+(?:\w+\s+){{0,2}}{_REACH}\b"
    r"|\b(?:fail(?:ed|ure|s)?|missed|abandoned|cancell?ed|dropped|given up|gave up|gone wrong|lost|fell short)\b"
    r"|\bunsuccessful",
    re.IGNORECASE,
)
_ACHIEVED = re.compile(rf"\b{_REACHED}\b", re.IGNORECASE)


def outcome_of_goal(goal: ConstitutionNode) -> GoalOutcome:
    """How a goal ended: by its `outcome`, or `outcome` in its metadata or properties; archived without one it has failed.

    A goal that is archived before it was reached was given up; one that is active and says nothing is open.
    """
    said = _outcome_text(goal)
    if said:
        if _FAILED.search(said):
            return GoalOutcome.FAILED
        if _ACHIEVED.search(said):
            return GoalOutcome.ACHIEVED
    return GoalOutcome.OPEN if lifecycle_of(goal.status or "") is Lifecycle.ACTIVE else GoalOutcome.FAILED


def _outcome_text(goal: ConstitutionNode) -> str:
    for bag in (goal.model_extra, goal.metadata, goal.properties):
        said = (bag or {}).get("outcome")
        if isinstance(said, str) and said.strip():
            return said
    return ""


Kind: TypeAlias = Literal["recurring_failure", "high_roi_decision", "strategy_archetype"]
KINDS: tuple[Kind, ...] = ("recurring_failure", "high_roi_decision", "strategy_archetype")
TYPE_OF_KIND: Mapping[Kind, str] = {
    "recurring_failure": "goal",
    "high_roi_decision": "decision",
    "strategy_archetype": "strategy",
}
"""What each kind is found among."""
ALIKE_FLOOR = 0.4
"""Cosine that the members of a pattern have on average; the floor from which texts speak of the same."""
_NODES = 3_000
_QUARTER = 75
"""Percentile of the returns above which one is high, where the caller names no figure."""
_TITLES: Mapping[Kind, str] = {
    "recurring_failure": "Goals that were not reached",
    "high_roi_decision": "Decisions that paid off",
    "strategy_archetype": "Strategies whose goals were reached",
}


@dataclass(frozen=True)
class Pattern:
    """What repeats, with the nodes that show it."""

    kind: Kind
    title: str
    text: str
    confidence: float
    """Laplace's rule over the nodes of its kind that are alike: (those that show it + 1) / (all + 2)."""
    nodes: tuple[ConstitutionNode, ...]
    against: int

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(sorted(node.id for node in self.nodes))

    @property
    def digest(self) -> str:
        """The same for the same kind and nodes."""
        return hashlib.sha256("\n".join((self.kind, *self.ids)).encode()).hexdigest()[:24]


class Patterns:
    def __init__(self, vectors: NodeVectors, structure: Structure) -> None:
        self._vectors, self._structure = vectors, structure

    async def detect(self, who: Principal, kinds: Sequence[Kind], min_roi: float | None) -> list[Pattern]:
        """The patterns of some kinds, the surest first."""
        found: list[Pattern] = []
        for kind in kinds:
            chosen = NodeFilter(types=frozenset({TYPE_OF_KIND[kind]}), lifecycle=None)
            those = await gather_vectors(self._vectors, who.tenant, chosen, _NODES)
            nodes = await self._structure.nodes(who, those.ids) if those.ids else {}
            shows = await self._shows(who, kind, nodes, min_roi)
            await load_libraries()
            found += await asyncio.to_thread(find_patterns, kind, those, nodes, shows)
        return sorted(found, key=lambda one: (-one.confidence, -len(one.nodes), one.kind, one.ids))

    async def _shows(
        self, who: Principal, kind: Kind, nodes: Mapping[str, ConstitutionNode], min_roi: float | None
    ) -> dict[str, bool]:
        """Which nodes show what is looked for (true), and which the contrary; the others say nothing."""
        if kind == "high_roi_decision":
            return high_returns(nodes, min_roi)
        if kind == "recurring_failure":
            return _judge(
                {id: (outcome_of_goal(node),) for id, node in nodes.items()}, GoalOutcome.FAILED, GoalOutcome.ACHIEVED
            )
        served = await goals_of_strategies(self._structure, who, tuple(nodes))
        goals = (
            await self._structure.nodes(who, sorted({goal.id for some in served.values() for goal in some})) if served else {}
        )
        ends = {id: tuple(outcome_of_goal(goals[goal.id]) for goal in some if goal.id in goals) for id, some in served.items()}
        return _judge(ends, GoalOutcome.ACHIEVED, GoalOutcome.FAILED)


def high_returns(nodes: Mapping[str, ConstitutionNode], min_roi: float | None) -> dict[str, bool]:
    """By decision whose return is known, whether it is high: `min_roi` or more, or in the upper quarter and above 0."""
    returns = {id: roi for id, node in nodes.items() if (roi := total_return(node)) is not None}
    if not returns:
        return {}
    least = min_roi if min_roi is not None else float(np.percentile(list(returns.values()), _QUARTER))
    return {id: roi >= least and (min_roi is not None or roi > 0) for id, roi in returns.items()}


def find_patterns(
    kind: Kind, those: NodeMatrix, nodes: Mapping[str, ConstitutionNode], shows: Mapping[str, bool]
) -> list[Pattern]:
    """The groups of like nodes that show the same."""
    rows = [row for row, id in enumerate(those.ids) if shows.get(id) and id in nodes]
    others = [row for row, id in enumerate(those.ids) if shows.get(id) is False]
    labels = group_alike(those.points[rows], ALIKE_FLOOR)
    groups = {
        str(name): [row for row, label in zip(rows, labels, strict=True) if label == name] for name in _group_labels(labels)
    }
    texts = {name: [_text_for_keywords(nodes[those.ids[row]]) for row in group] for name, group in groups.items()}
    # What the others of the type say is the background that the group's own words stand out from.
    background = [_text_for_keywords(nodes[those.ids[row]]) for row in others if those.ids[row] in nodes]
    words = find_keywords(texts | ({"": background} if background else {}), 5)
    return [
        _make_pattern(kind, [nodes[those.ids[row]] for row in group], words[name], _count_against(those, group, others))
        for name, group in groups.items()
    ]


def _make_pattern(kind: Kind, nodes: Sequence[ConstitutionNode], words: Sequence[str], against: int) -> Pattern:
    ordered = tuple(sorted(nodes, key=lambda node: node.id))
    confidence = round((len(nodes) + 1) / (len(nodes) + against + 2), 4)
    about = f": {', '.join(words)}" if words else ""
    counted = f"{len(nodes)} that are alike show it, {against} like them show the contrary."
    named = "; ".join(node.title for node in ordered)
    return Pattern(kind, f"{_TITLES[kind]}{about}"[:500], f"{_TITLES[kind]}. {counted} {named}.", confidence, ordered, against)


def _count_against(those: NodeMatrix, group: Sequence[int], others: Sequence[int]) -> int:
    if not others:
        return 0
    return int(np.count_nonzero((those.points[others] @ those.points[group].T).mean(axis=1) >= ALIKE_FLOOR))


def _judge(ends: Mapping[str, Sequence[GoalOutcome]], wanted: GoalOutcome, contrary: GoalOutcome) -> dict[str, bool]:
    found = {id: True for id, some in ends.items() if wanted in some}
    return found | {id: False for id, some in ends.items() if id not in found and contrary in some}


def _group_labels(labels: Labels) -> list[int]:
    return sorted({int(label) for label in labels if label != UNASSIGNED})


def _text_for_keywords(node: ConstitutionNode) -> str:
    return " ".join(filter(None, (node.title, node.summary, node.description)))


log = logging.getLogger(__name__)

_SAME = 0.5
"""Share of nodes that two patterns of a kind have in common (of all that either has) where they are one."""
_KNOWN = 2_000
_CITED = 25
"""Nodes of one pattern that its evidence is joined to."""
CITES = "CITES"
"""From a piece of evidence to a node that it tells of; no end of it is declared."""


class Proposals:
    """Puts patterns into the mind layer. `vectors`: the index, which knows the patterns that there are."""

    def __init__(self, vectors: NodeVectors, structure: Structure) -> None:
        self._vectors, self._structure = vectors, structure

    async def known(self, who: Principal, patterns: Sequence[Pattern]) -> dict[str, str]:
        """By digest the ids of patterns that were proposed before: also those that somebody archived, or that grew since."""
        chosen = NodeFilter(types=frozenset({"pattern"}), lifecycle=None)
        ids = (await gather_vectors(self._vectors, who.tenant, chosen, _KNOWN)).ids if patterns else ()
        nodes = await self._structure.nodes(who, ids) if ids else {}
        drafts = [(node.id, node.metadata) for node in nodes.values() if node.metadata and "patternKind" in node.metadata]
        return {one.digest: id for one in patterns for id, metadata in drafts if _is_same_pattern(one, metadata)}

    async def propose(self, who: Principal, pattern: Pattern) -> str | None:
        """Make the draft with its evidence; the id of the one that there is where it was made before.

        A step that was done before is done again without effect, so that a run that broke off is finished by the next.
        `None` where the draft was made before and somebody deleted it, or a guardrail is against it.
        """
        try:
            evidence = await self._structure.create(who, "evidence", _evidence_draft(pattern))
            draft = await self._structure.create(who, "pattern", _pattern_draft(pattern))
            await self._structure.relate(who, draft.id, "SUPPORTED_BY", evidence.id)
        except (NotFound, GuardrailHit) as error:
            log.warning("a pattern of %s is not proposed: %s", pattern.kind, error.code)
            return None
        for node in pattern.nodes[:_CITED]:
            try:
                await self._structure.relate(who, evidence.id, CITES, node.id)
            except NotFound:
                log.info("node %s went before its pattern was proposed", node.id)
        return draft.id


def _is_same_pattern(pattern: Pattern, metadata: Mapping[str, Any]) -> bool:
    cited = metadata.get("cites")
    if metadata["patternKind"] != pattern.kind or not isinstance(cited, list):
        return False
    both = set(cited) & set(pattern.ids)
    return len(both) >= _SAME * len(set(cited) | set(pattern.ids))


def _pattern_draft(pattern: Pattern) -> dict[str, Any]:
    return {
        "requestId": f"pattern-{pattern.digest}",
        "title": pattern.title,
        "summary": pattern.text[:2_000],
        "pattern": pattern.kind.replace("_", " "),
        "confidence": pattern.confidence,
        "metadata": {"draft": True, "patternKind": pattern.kind, "cites": list(pattern.ids)},
    }


def _evidence_draft(pattern: Pattern) -> dict[str, Any]:
    lines = [f"{node.title} ({node.type} {node.id}{_outcome_note(node)})" for node in pattern.nodes]
    return {
        "requestId": f"evidence-{pattern.digest}",
        "title": f"What was counted: {pattern.title}"[:500],
        "content": "\n".join(lines)[:15_000],
        "metadata": {"draft": True, "against": pattern.against},
    }


def _outcome_note(node: ConstitutionNode) -> str:
    extra = node.model_extra or {}
    roi, outcome = extra.get("roi"), extra.get("outcome")
    total = roi.get("total") if isinstance(roi, Mapping) else None
    return f", return {total:g}" if isinstance(total, int | float) else f", outcome: {outcome}" if outcome else ""


_STRATEGIES = 2_000
GOALS = frozenset({"goal"})


class Analogies:
    def __init__(self, meaning: SemanticFinder) -> None:
        self._meaning = meaning

    async def find(self, who: Principal, id: str, limit: int) -> list[Analogy]:
        """The achieved goals that are most like a goal, each with its strategies. Raises `NotFound`."""
        vectors = await gather_vectors(
            self._meaning.vectors, who.tenant, NodeFilter(types=GOALS, lifecycle=None, ids=frozenset({id}))
        )
        if not vectors.ids:
            raise NotFound("there is no goal with this id, or it is not embedded yet", field="id")
        chosen = NodeFilter(types=GOALS, lifecycle=None)
        reached = await self._meaning.near(
            who,
            vectors.points[0],
            chosen,
            Floor(0.0),
            limit,
            lambda node: node.id != id and outcome_of_goal(node) is GoalOutcome.ACHIEVED,
        )
        done = await self._strategies(who) if reached else {}
        return [
            Analogy(node=without_provenance(one.node), score=one.score, strategies=tuple(done.get(one.node.id, ())))
            for one in reached
        ]

    async def _strategies(self, who: Principal) -> dict[str, list[Mention]]:
        chosen = NodeFilter(types=frozenset({"strategy"}), lifecycle=None)
        ids = (await gather_vectors(self._meaning.vectors, who.tenant, chosen, _STRATEGIES)).ids
        served = await goals_of_strategies(self._meaning.structure, who, ids)
        nodes = await self._meaning.structure.nodes(who, sorted(served)) if served else {}
        found: dict[str, list[Mention]] = {}
        for id, goals in sorted(served.items()):
            for goal in goals if id in nodes else ():
                mention = Mention(
                    id=id, type="strategy", title=nodes[id].title, status=nodes[id].status, relationship=goal.relationship
                )
                found.setdefault(goal.id, []).append(mention)
        return found
