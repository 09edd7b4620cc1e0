"""Which writes touch which part of a session's context."""

from __future__ import annotations

import pytest

from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.writes import ConstitutionChanged, LinkNews, NodeNews, Operation
from phronesis_orchestrator.sessions.start import touches_foundation, touches_vision, touches_work
from tests.support.cases import for_each

PARENTS = frozenset({"p1"})
CREATE, UPDATE, DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE


def wrote(id: str, type: str, layer: Layer, operation: Operation, *changed: str) -> ConstitutionChanged:
    return ConstitutionChanged(
        nodes=(NodeNews(id=id, type=type, layer=layer, operation=operation, version=2, changed=changed),)
    )


def joined(type: str, source: Layer, target: Layer, operation: Operation = CREATE) -> ConstitutionChanged:
    news = LinkNews(id="r", type=type, from_id="a", to_id="b", operation=operation, layers=(source, target))
    return ConstitutionChanged(relationships=(news,))


def touched(news: ConstitutionChanged) -> str:
    """The parts that news touches, by their first letters."""
    found = {"f": touches_foundation(news), "v": touches_vision(news, PARENTS), "w": touches_work(news)}
    return "".join(name for name, is_touched in found.items() if is_touched)


F, V, S, E = Layer.FOUNDATION, Layer.VISION, Layer.STRATEGY, Layer.EXECUTION


@pytest.mark.req("O-323")
@for_each(
    ("news", "parts"),
    [
        (wrote("x", "value", F, CREATE), "f"),
        (wrote("x", "value", F, UPDATE, "summary"), "f"),
        (wrote("x", "value", F, UPDATE, "status"), "fv"),  # a parent that comes back into force was not among them
        (wrote("p1", "value", F, UPDATE, "title"), "fv"),
        (wrote("p1", "value", F, UPDATE, "summary"), "f"),
        (wrote("p1", "value", F, UPDATE, "status"), "fv"),
        (wrote("p1", "value", F, DELETE), "fv"),
        (wrote("x", "goal", V, CREATE), "v"),
        (wrote("x", "goal", V, UPDATE, "status"), "v"),
        (wrote("x", "goal", V, DELETE), "v"),
        (wrote("x", "strategy", S, CREATE), ""),
        (wrote("x", "strategy", S, UPDATE, "title"), ""),
        (wrote("p1", "strategy", S, UPDATE, "title"), "v"),
        (wrote("x", "decision", E, UPDATE, "status"), ""),
        (wrote("x", "task", E, CREATE), "w"),
        (wrote("x", "task", E, DELETE), "w"),
        (wrote("x", "task", E, UPDATE, "effortHours"), "w"),
        (wrote("x", "task", E, UPDATE, "dueDate", "title"), "w"),
        (wrote("x", "task", E, UPDATE, "status"), "w"),
        (wrote("x", "task", E, UPDATE, "description", "priority"), ""),
        (wrote("x", "task", E, UPDATE), "w"),
        (joined("ENFORCED_BY", F, F), "f"),
        (joined("ENFORCED_BY", F, F, DELETE), "f"),
        (joined("CONTRADICTS", F, V), ""),
        (joined("SUPPORTED_BY", V, F), "v"),
        (joined("SERVES", V, V, DELETE), "v"),
        (joined("ALIGNS_WITH", V, V), "v"),
        (joined("CONTRADICTS", V, V), ""),
        (joined("SERVES", S, V), ""),
        (joined("PART_OF", E, S), ""),
    ],
)
def test_a_write_touches_the_parts_that_show_it_and_no_others(news: ConstitutionChanged, parts: str) -> None:
    assert touched(news) == parts
