"""How long PageRank, communities and betweenness take, and how that grows."""

from __future__ import annotations

from time import perf_counter

from .constitution_graph import Graph
from .constitution_seed import ALGORITHMS_S, verdict

_TOOLS = {
    "PageRank": "graph.pagerank.v1",
    "communities": "graph.communities.v1",
    "betweenness": "graph.betweenness.v1",
}


async def rows(graph: Graph) -> list[str]:
    """A row for each algorithm on one graph: computed anew, and then once more from the cache."""
    lines = []
    for name, tool in _TOOLS.items():
        began = perf_counter()
        anew = await graph.call(tool, {"refresh": True})
        whole = perf_counter() - began
        began = perf_counter()
        await graph.call(tool, {})
        kept = perf_counter() - began
        stats = anew["stats"]
        shown = verdict(whole < ALGORITHMS_S) if graph.size == 1_000 else ""
        lines.append(
            f"| {graph.size:,} | {name} | {stats['engine']} | {stats['nodeCount']:,} | {stats['relationshipCount']:,} "
            f"| {stats['milliseconds'] / 1000:.3f} | {whole:.3f} | {kept * 1000:.1f} | {shown} |"
        )
    return lines


HEAD = [
    f"| nodes | algorithm | engine | projected | edges | computing, s | the whole call, s (under {ALGORITHMS_S:.0f} at 1,000) "
    "| again, from the cache, ms | kept |",
    "|---|---|---|---|---|---|---|---|---|",
]
