"""Tokens of a session's start by size, the window's budget, what a search costs, and how the graph grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from phronesis_samples.institute.plan import count_layers

from .constitution_graph import Graph
from .constitution_seed import BUDGET, CONVERSATION, GROWTH, SEARCHES, SIZES, TOKENS, verdict

_KEPT_FREE = 45_000
"""Tokens of the window for system prompt and tools."""
_WINDOW = 200_000


@dataclass(frozen=True)
class Tokens:
    """One size."""

    size: int
    session: dict[str, int]
    """By row of the table."""
    search: tuple[int, int] | None
    """Results, and tokens of the largest answer to one."""
    usage: tuple[dict[str, Any], ...]
    """Rows of `context.usage.v1`."""


async def counted(graph: Graph) -> Tokens:
    """Load a session once, and search."""
    stats = (started := await graph.call("session.start.v1", {"sessionId": f"bench-{graph.size}"}))["stats"]
    session = {
        "Foundation": stats["foundationTokens"],
        "Vision": stats["visionTokens"],
        "Workload": stats["workloadTokens"],
        "Total session": stats["totalTokens"],
    }
    usage = await graph.call("context.usage.v1", {"sessionId": started["sessionId"]})
    return Tokens(graph.size, session, await _searched(graph), tuple(usage["rows"]))


async def _searched(graph: Graph) -> tuple[int, int] | None:
    if graph.size not in SEARCHES:
        return None
    results, _ = SEARCHES[graph.size]
    answers = [
        await graph.call("semantic.search.v1", {"query": query.text, "topK": results, "minSimilarity": 0.0})
        for query in graph.made.queries()[:20]
    ]
    return results, max(answer["stats"]["tokenEstimate"] for answer in answers)


def by_size(found: list[Tokens]) -> list[str]:
    """The table of a session's tokens."""
    found = [each for each in found if each.size in SIZES]
    heads = " | ".join(f"{each.size:,}: ceiling, measured" for each in found)
    lines = [f"| session tokens | {heads} |", "|---|" + "---|" * len(found)]
    for name, ceilings in TOKENS.items():
        cells = [_cell(ceilings[SIZES.index(each.size)], each.session[name]) for each in found]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    left = []
    for each in found:
        least, there = CONVERSATION[SIZES.index(each.size)], _WINDOW - _KEPT_FREE - each.session["Total session"]
        left.append(f"{least:,}, {there:,} {verdict(there >= least)}")
    return [*lines, f"| Conversation (corrected, at least) | {' | '.join(left)} |"]


def _cell(ceiling: int, tokens: int) -> str:
    return f"{ceiling:,}, {tokens:,} {verdict(tokens <= ceiling)}"


def budget(found: list[Tokens]) -> list[str]:
    """The window's budget beside what the smallest and the largest session really use."""
    shown = [found[0], found[-1]]
    heads = " | ".join(f"measured, {each.size:,} nodes" for each in shown)
    lines = [f"| component | current | target | {heads} |", "|---|---|---|" + "---|" * len(shown)]
    for name, (now, then) in BUDGET.items():
        cells = " | ".join(_used(name, each) for each in shown)
        lines.append(f"| {name} | {now:,} | {then:,} | {cells} |")
    for each in shown:
        told = ", ".join(f"{row['component']} {row['used']:,} of {row['budget']:,}" for row in each.usage)
        lines.append(f"\n`context.usage.v1` at {each.size:,} nodes: {told}.")
    return lines


def _used(name: str, each: Tokens) -> str:
    session = each.session
    known = {
        "Session context": session["Total session"],
        "of it, foundation": session["Foundation"],
        "of it, vision": session["Vision"],
        "of it, workload": session["Workload"],
        "Conversation": _WINDOW - _KEPT_FREE - session["Total session"],
        "Total": _WINDOW,
    }
    return f"{known[name]:,}" if name in known else "kept free"


def searches(found: list[Tokens]) -> list[str]:
    """What the largest of 20 searches cost."""
    lines = ["| nodes | results | tokens of a search, at most | measured, the largest of 20 | kept |", "|---|---|---|---|---|"]
    for each in found:
        if each.search is not None:
            most = SEARCHES[each.size][1]
            lines.append(
                f"| {each.size:,} | {each.search[0]} | {most:,} | {each.search[1]:,} | {verdict(each.search[1] <= most)} |"
            )
    return lines


def growth(sizes: list[int]) -> list[str]:
    """The seed's table of growth, and the made-up graphs that are measured here."""
    made = [count_layers(size) for size in sizes]
    heads = " | ".join(f"made, {size:,}" for size in sizes)
    lines = [f"| layer | now | 6 months | 1 year | {heads} |", "|---|---|---|---|" + "---|" * len(sizes)]
    for layer, counts in GROWTH.items():
        cells = " | ".join(f"{each[layer]:,}" for each in made)
        lines.append(f"| {layer} | {' | '.join(f'{count:,}' for count in counts)} | {cells} |")
    totals = " | ".join(f"{sum(counts[at] for counts in GROWTH.values()):,}" for at in range(3))
    return [*lines, f"| total | {totals} | {' | '.join(f'{size:,}' for size in sizes)} |"]
