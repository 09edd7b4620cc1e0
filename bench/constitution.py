"""The section of the constitutional graph: the seed's tables beside what each pair of stores measures."""

from __future__ import annotations

from tests.support import packages
from tests.support.people import Town, town

from . import constitution_algorithms as algorithms
from . import constitution_quality as quality
from . import constitution_times as times
from . import constitution_tokens as tokens
from .constitution_graph import Graph, filled
from .constitution_seed import LARGEST, SIZES
from .progress import say
from .stacks import running

_CALLS, _QUICK_CALLS = 100, 6
_QUICK = (45, 200)
_OPERATIONS_AT = 500
_JUDGED_AT = 5_000


async def section(quick: bool) -> list[str]:
    """Its lines, for each pair of stores after the other."""
    lines = [
        "Generated graphs of a known seed, each in a tenant of its own, queried over HTTP one call at a time by an admin. Each",
        "search is new. `kept` says whether a figure meets the requirements' number, or our own target if they have none.",
        "",
        *tokens.growth(list(_QUICK if quick else (*SIZES, LARGEST))),
    ]
    for name, environment in _pairs().items():
        lines += ["", f"### {name}", ""]
        if environment is None:
            lines.append("Not measured: its servers cannot be had here.")
            continue
        say(f"constitution: {name}")
        async with running(environment) as stack, town(stack.url, stack.key) as people:
            lines += await _measured(stack.url, people, quick)
    return lines


def _pairs() -> dict[str, dict[str, str] | None]:
    production: dict[str, str] | None
    try:
        home, weaviate = packages.neo4j_home(), packages.weaviate()
        production = {"PHRONESIS_STORES": "production", "PHRONESIS_NEO4J_HOME": str(home), "PHRONESIS_WEAVIATE": str(weaviate)}
    except packages.CannotInstall:
        production = None
    return {"ArcadeDB and pgvector": {"PHRONESIS_STORES": "embedded"}, "Neo4j and Weaviate": production}


async def _measured(url: str, people: Town, quick: bool) -> list[str]:
    timed: list[times.Times] = []
    counted: list[tokens.Tokens] = []
    computed: list[str] = []
    loaded = ["| nodes | loaded, s | embedded | embedded, s |", "|---|---|---|---|"]
    judged: list[str] = []
    for size in _QUICK if quick else (*SIZES, LARGEST):
        graph = await filled(url, people, size)
        try:
            loaded.append(f"| {size:,} | {graph.load_s:.1f} | {graph.embedded:,} | {graph.embed_s:.1f} |")
            timed.append(await times.measured(graph, _QUICK_CALLS if quick else _CALLS))
            counted.append(await tokens.counted(graph))
            computed += await algorithms.rows(graph)
            judged += await _judged(graph, quick)
        finally:
            await graph.close()
    first = next((each for each in timed if each.size == _OPERATIONS_AT), timed[-1])
    return [
        *(*times.operations(first), ""),
        *(*times.by_size(timed), ""),
        *(*times.aims(timed), ""),
        *(*tokens.by_size(counted), ""),
        *(*tokens.budget(counted), ""),
        *(*tokens.searches(counted), ""),
        *(*algorithms.HEAD, *computed, ""),
        *(*judged, ""),
        *loaded,
    ]


async def _judged(graph: Graph, quick: bool) -> list[str]:
    """The quality at the sizes whose questions all have enough that answers them."""
    if quick:
        return [*quality.table(await quality.judged(graph, 4, 3)), ""] if graph.size == _QUICK[-1] else []
    return [*quality.table(await quality.judged(graph, 100)), ""] if graph.size in (_JUDGED_AT, LARGEST) else []
