"""What joins made-up nodes: rules by type, mostly inside a theme, and never against the registry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from phronesis_contracts.constitution.writes import Relate

from .plan import PlannedNode, group_by_type

_SAME_THEME = 0.88
"""Share of relationships that stay inside a theme."""


@dataclass(frozen=True)
class Rule:
    """What a node of some type is joined to."""

    type: str
    name: str
    others: tuple[str, ...]
    chance: float = 1.0
    reverse: bool = False
    """Whether the relationship leads from the other to it."""
    earlier: bool = False
    """Whether the other is of its own type and stands before it, so that no circle comes about."""


_RULES = (
    Rule("principle", "ENFORCED_BY", ("value",), reverse=True),
    Rule("guardrail", "ENFORCED_BY", ("principle",), 0.9, reverse=True),
    Rule("policy", "ENFORCED_BY", ("principle", "value"), 0.7, reverse=True),
    Rule("vision", "SUPPORTED_BY", ("value",)),
    Rule("vision", "ALIGNS_WITH", ("principle",), 0.5),
    Rule("business", "SUPPORTED_BY", ("vision",)),
    Rule("goal", "SUPPORTED_BY", ("goal",), 0.6, earlier=True),
    Rule("goal", "SUPPORTED_BY", ("vision",), 0.5),
    Rule("goal", "SERVES", ("value", "principle"), 0.6),
    Rule("goal", "CONTRADICTS", ("goal",), 0.06, earlier=True),
    Rule("season", "SERVES", ("goal",)),
    Rule("strategy", "SERVES", ("goal",)),
    Rule("strategy", "ALIGNS_WITH", ("principle",), 0.4),
    Rule("objective", "SERVES", ("strategy", "goal")),
    Rule("keyResult", "PART_OF", ("objective",)),
    Rule("initiative", "SUPPORTED_BY", ("strategy",), reverse=True),
    Rule("milestone", "PART_OF", ("initiative", "project")),
    Rule("risk", "THREATENS", ("project", "strategy", "goal")),
    Rule("project", "SERVES", ("strategy", "objective")),
    Rule("project", "PART_OF", ("initiative",), 0.5),
    Rule("area", "ALIGNS_WITH", ("value", "principle")),
    Rule("system", "SERVES", ("area", "project")),
    Rule("process", "PART_OF", ("system",), 0.7),
    Rule("process", "SERVES", ("project", "principle"), 0.6),
    Rule("decision", "SERVES", ("project", "strategy", "goal")),
    Rule("decision", "LEADS_TO", ("task",), 0.7),
    Rule("decision", "LEADS_TO", ("metric",), 0.25),
    Rule("decision", "SUPPORTED_BY", ("insight", "evidence"), 0.4),
    Rule("task", "PART_OF", ("project",), 0.9),
    Rule("task", "SERVES", ("project", "goal"), 0.2),
    Rule("action", "PART_OF", ("task",)),
    Rule("timeBlock", "PART_OF", ("task",)),
    Rule("workSession", "PART_OF", ("task",)),
    Rule("metric", "MEASURES", ("goal", "keyResult", "project")),
    Rule("observation", "MEASURES", ("metric",)),
    Rule("insight", "SUPPORTED_BY", ("evidence",), 0.9),
    Rule("insight", "LEADS_TO", ("decision",), 0.2),
    Rule("pattern", "SUPPORTED_BY", ("evidence",)),
    Rule("evidence", "DRAWN_FROM", ("source", "event", "signal"), 0.9),
    Rule("note", "DRAWN_FROM", ("source", "event"), 0.6),
)


def make_relationships(spots: Sequence[PlannedNode], seed: int) -> Iterator[Relate]:
    """The relationships of a plan, none of them twice."""
    for source, name, target in triples(spots, seed):
        yield Relate(from_id=spots[source].id, type=name, to_id=spots[target].id)


def triples(spots: Sequence[PlannedNode], seed: int) -> Iterator[tuple[int, str, int]]:
    """The same by the places of both ends in the plan."""
    random, kinds = Random(f"joining {seed}"), group_by_type(spots)
    by_type = {type: [rule for rule in _RULES if rule.type == type] for type in kinds}
    everywhere = {type: [at for found in themes.values() for at in found] for type, themes in kinds.items()}
    for spot in spots:
        seen: set[tuple[str, int]] = set()
        for rule in by_type[spot.type]:
            other = _other(spot, rule, kinds, everywhere, random)
            if other is not None and (rule.name, other) not in seen:
                seen.add((rule.name, other))
                yield (other, rule.name, spot.at) if rule.reverse else (spot.at, rule.name, other)


def _other(
    spot: PlannedNode, rule: Rule, kinds: dict[str, dict[int, list[int]]], everywhere: dict[str, list[int]], random: Random
) -> int | None:
    if random.random() >= rule.chance:
        return None
    there = [type for type in rule.others if type in kinds]
    if not there:
        return None
    type = random.choice(there)
    near = kinds[type].get(spot.theme) if random.random() < _SAME_THEME else None
    found = random.choice(near or everywhere[type])
    if rule.earlier:
        before = [at for at in (near or everywhere[type]) if at < spot.at]
        return random.choice(before) if before else None
    return found
