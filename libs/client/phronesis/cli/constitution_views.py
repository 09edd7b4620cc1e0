"""How the command shows nodes, searches, ladders, sessions and counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phronesis_contracts.constitution.lists import ConstitutionNodeFound, Inventory
from phronesis_contracts.constitution.paths import LadderClimbed, Step
from phronesis_contracts.constitution.search import HybridFound, SemanticFound
from phronesis_contracts.constitution.session import SessionStarted
from phronesis_contracts.constitution.values import ConstitutionNode

from . import output

_FIRST = ("id", "type", "layer", "title", "status", "summary", "description")


def node(found: ConstitutionNodeFound) -> None:
    """A node, field by field, and what joins it."""
    fields = found.node.model_dump(mode="json", by_alias=True)
    order = [*(name for name in _FIRST if name in fields), *(name for name in fields if name not in _FIRST)]
    output.table(("FIELD", "VALUE"), ((name, _written(fields[name])) for name in order))
    if found.relationships:
        output.out()
        rows = [(link.from_id, link.type, link.to_id) for link in found.relationships]
        output.table(("FROM", "RELATIONSHIP", "TO"), rows)


def hits(found: SemanticFound) -> None:
    """What was found by meaning."""
    rows = ((f"{hit.score:.3f}", *_named(hit.node)) for hit in found.results)
    output.table(("COSINE", "TYPE", "ID", "TITLE"), rows)
    _told(found.stats.total_results, found.stats.token_estimate, found.warnings)
    if not found.results:
        output.note("nothing reaches the least cosine; ask for less with --min")


def hybrid_hits(found: HybridFound) -> None:
    """What was found by meaning and structure, with the way there."""
    rows = (
        (
            f"{hit.final_score:.3f}",
            f"{hit.structural_score:.2f}",
            f"{hit.semantic_score:.3f}",
            *_named(hit.node),
            _way(hit.path or ()),
        )
        for hit in found.results
    )
    output.table(("SCORE", "STRUCTURE", "COSINE", "TYPE", "ID", "TITLE", "PATH"), rows)
    _told(found.stats.total_results, found.stats.token_estimate, tuple(f"without {part}" for part in found.degraded))


def rungs(found: LadderClimbed) -> None:
    """A ladder, the goal first."""
    for step, rung in enumerate(found.ladder):
        output.out(f"{'  ' * step}{rung.title} ({rung.type} {rung.id})")
    output.note(f"depth {found.depth}")


def started(found: SessionStarted) -> None:
    """What a session begins with."""
    rows = [_named(each) for each in (*found.foundation, *found.vision)]
    output.table(("TYPE", "ID", "TITLE"), rows)
    if found.workload is not None:
        capacity = found.workload.capacity
        output.out(f"\nWorkload: {capacity.zone}, {capacity.scheduled_hours:g} of {capacity.available_hours:g} hours")
        for each in found.workload.recommendations:
            output.out(f"  {each}")
    stats = found.stats
    output.note(
        f"{stats.total_nodes} nodes, {stats.total_tokens} tokens (foundation {stats.foundation_tokens}, vision "
        f"{stats.vision_tokens}, workload {stats.workload_tokens}), {stats.load_time:.0f} ms"
    )
    for said in (*found.warnings, *(f"left out: {part}" for part in found.left_out)):
        output.note(said)


def counts(found: Inventory) -> None:
    """The types and relationships of a graph."""
    output.table(
        ("LAYER", "TYPE", "COUNT", "EMBEDDED"),
        ((each.layer.value, each.type, str(each.count), each.tier or "never") for each in found.types),
    )
    output.out()
    joined = ((each.type, str(each.count), "" if each.declared else "undeclared") for each in found.relationship_types)
    output.table(("RELATIONSHIP", "COUNT", ""), joined)
    output.out()
    indexes = ((each.name, each.type, each.state, f"{each.population_percent:g} %") for each in found.indexes)
    output.table(("INDEX", "TYPE", "STATE", "FILLED"), indexes)
    output.note(f"{found.total_nodes} nodes, {found.total_relationships} relationships")


def _named(each: ConstitutionNode) -> tuple[str, str, str]:
    return each.type, each.id, each.title


def _way(path: Iterable[Step]) -> str:
    return " ".join(
        step.node_id
        if step.relationship is None
        else f"-{step.relationship}-> {step.node_id}"
        if step.direction == "out"
        else f"<-{step.relationship}- {step.node_id}"
        for step in path
    )


def _told(results: int, tokens: int, warnings: Iterable[str]) -> None:
    output.note(f"{results} results, {tokens} tokens")
    for each in warnings:
        output.note(each)


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "; ".join(_written(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_written(each)}" for name, each in value.items())
    return str(value)
