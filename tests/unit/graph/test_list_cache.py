"""Which writes make a kept list another one, and which do not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from phronesis_bus import Metrics
from phronesis_contracts import Principal
from phronesis_contracts.constitution.lists import ListFoundation, ListVision
from phronesis_contracts.constitution.registry import TYPES, Layer, Lifecycle
from phronesis_contracts.constitution.values import ConstitutionLink
from phronesis_contracts.constitution.writes import ConstitutionChanged, LinkNews, NodeNews, Operation
from phronesis_graph.constitution.layers import CACHE_SECONDS, AnswerCache, WholeLayers
from phronesis_graph.constitution.lists import ListMeasures, WholeLayerHandlers
from phronesis_graph.constitution.ports import LayerRow
from tests.support.bus import somebody
from tests.support.listed import call, link, node
from tests.unit.graph.fakes_lists import Graph

NODES = (
    node("honesty"),
    node("openness", status="archived"),
    node("unrelated"),
    node("goal", "goal"),
    node("task", "task"),
    node("strategy", "strategy"),
)
LINKS = (link("goal", "SUPPORTED_BY", "honesty"), link("goal", "SERVES", "openness"))


def changed(id: str, type: str, operation: Operation = Operation.UPDATE) -> ConstitutionChanged:
    """News of one node."""
    return ConstitutionChanged(nodes=(NodeNews(id=id, type=type, layer=TYPES[type].layer, operation=operation, version=2),))


def joined(type: str, *layers: Layer) -> ConstitutionChanged:
    """News of one relationship between nodes of these layers."""
    one = LinkNews(id="r", type=type, from_id="x", to_id="y", operation=Operation.CREATE, layers=layers)
    return ConstitutionChanged(relationships=(one,))


F, V, S, T = Layer.FOUNDATION, Layer.VISION, Layer.STRATEGY, Layer.TACTICS


@pytest.mark.req("O-116", "O-322", "O-323", "C-83")
@pytest.mark.parametrize(
    ("event", "dropped"),
    [
        (changed("new", "value", Operation.CREATE), {"foundation", "foundation alone"}),
        (changed("unrelated", "value"), {"foundation", "foundation alone"}),
        (changed("unrelated", "value", Operation.DELETE), {"foundation", "foundation alone"}),
        (changed("honesty", "value"), {"foundation", "foundation alone", "vision"}),
        (changed("openness", "value"), {"foundation", "foundation alone", "vision"}),
        (changed("goal", "goal"), {"vision", "vision alone"}),
        (changed("new", "season", Operation.CREATE), {"vision", "vision alone"}),
        (changed("task", "task"), set()),
        (changed("strategy", "strategy"), set()),
        (joined("ENFORCED_BY", F), {"foundation"}),
        (joined("MENTIONS", F), {"foundation"}),
        (joined("SUPPORTED_BY", V, F), {"vision"}),
        (joined("ALIGNS_WITH", V), {"vision"}),
        (joined("MENTIONS", V, F), set()),
        (joined("SERVES", S, F), set()),
        (joined("SERVES", T, S), set()),
    ],
)
async def test_a_write_drops_exactly_the_lists_that_it_makes_others(event: ConstitutionChanged, dropped: set[str]) -> None:
    graph, who, other = Graph(NODES, LINKS), somebody(), somebody()
    kept = AnswerCache()
    lists = WholeLayerHandlers(WholeLayers(graph), kept, ListMeasures(Metrics()))
    for one in (who, other):
        assert await asked(lists, graph, one) == {"foundation", "foundation alone", "vision", "vision alone"}
    assert await asked(lists, graph, who) == set()
    kept.changed(who.tenant, event)
    assert await asked(lists, graph, who) == dropped
    assert await asked(lists, graph, other) == set()


async def asked(lists: WholeLayerHandlers, graph: Graph, who: Principal) -> set[str]:
    """Which of the lists are read from the store."""
    found = set()
    for name, question in (
        ("foundation", ListFoundation()),
        ("foundation alone", ListFoundation(include_relationships=False)),
        ("vision", ListVision()),
        ("vision alone", ListVision(include_hierarchy=False)),
    ):
        before = graph.asked
        await (lists.vision(call(who), question) if isinstance(question, ListVision) else lists.foundation(call(who), question))
        if graph.asked > before:
            found.add(name)
    return found


@pytest.mark.req("O-025")
async def test_a_thousand_measurements_evict_no_list() -> None:
    graph, who, kept = Graph(NODES, LINKS), somebody(), AnswerCache()
    lists = WholeLayerHandlers(WholeLayers(graph), kept, ListMeasures(Metrics()))
    await asked(lists, graph, who)
    for i in range(1_000):
        kept.changed(who.tenant, changed(f"o{i}", "observation", Operation.CREATE))
        kept.changed(who.tenant, joined("MEASURES", Layer.TRACK))
    assert await asked(lists, graph, who) == set()


class Clock:
    """Seconds as a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.req("O-323", "C-83")
async def test_a_list_is_kept_for_ten_minutes_at_most() -> None:
    clock, graph, who = Clock(), Graph(NODES, LINKS), somebody()
    lists = WholeLayerHandlers(WholeLayers(graph), AnswerCache(clock=clock), ListMeasures(Metrics()))
    assert len(await asked(lists, graph, who)) == 4
    clock.now = CACHE_SECONDS - 1
    assert await asked(lists, graph, who) == set()
    clock.now = CACHE_SECONDS
    assert len(await asked(lists, graph, who)) == 4


async def test_what_was_unused_for_longest_goes_when_there_are_too_many() -> None:
    graph, who = Graph(NODES, LINKS), somebody()
    kept = AnswerCache(size=2)
    lists = WholeLayerHandlers(WholeLayers(graph), kept, ListMeasures(Metrics()))
    for status in ("active", "archived", "active", "deprecated"):
        await lists.foundation(call(who), ListFoundation(status=status))
    before = graph.asked
    await lists.foundation(call(who), ListFoundation(status="active"))
    assert graph.asked == before
    await lists.foundation(call(who), ListFoundation(status="archived"))
    assert graph.asked > before


async def test_after_a_gap_in_the_news_nothing_that_was_kept_is_told() -> None:
    graph, who, kept = Graph(NODES, LINKS), somebody(), AnswerCache()
    lists = WholeLayerHandlers(WholeLayers(graph), kept, ListMeasures(Metrics()))
    await asked(lists, graph, who)
    kept.clear()
    assert len(await asked(lists, graph, who)) == 4


class Slow(Graph):
    """A graph that answers when it is let."""

    def __init__(self) -> None:
        super().__init__(NODES, LINKS)
        self.reads, self.go = asyncio.Event(), asyncio.Event()

    async def foundation(
        self, tenant: str, status: Lifecycle, columns: Sequence[str], links: bool, limit: int
    ) -> tuple[list[LayerRow], list[ConstitutionLink]]:
        found = await super().foundation(tenant, status, columns, links, limit)
        self.reads.set()
        await self.go.wait()
        return found


@pytest.mark.parametrize("gap", [False, True])
async def test_a_list_that_was_read_before_a_write_and_told_after_its_news_is_not_kept(gap: bool) -> None:
    graph, who, kept = Slow(), somebody(), AnswerCache()
    lists = WholeLayerHandlers(WholeLayers(graph), kept, ListMeasures(Metrics()))
    task = asyncio.create_task(lists.foundation(call(who), ListFoundation()))
    await graph.reads.wait()
    if gap:
        kept.clear()
    else:
        kept.changed(who.tenant, changed("honesty", "value"))
    graph.go.set()
    await task
    before = graph.asked
    await lists.foundation(call(who), ListFoundation())
    assert graph.asked > before


async def test_a_list_that_failed_is_asked_for_again() -> None:
    kept, who = AnswerCache(), somebody()

    async def fails() -> tuple[ListFoundation, object]:
        raise RuntimeError("down")

    with pytest.raises(RuntimeError):
        await kept.of(who.tenant, ListFoundation(), fails)  # type: ignore[arg-type]
    assert kept._making == []
