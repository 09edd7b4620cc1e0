"""The section of replies: HTTP beside the bare chain, the time to be ready, and the memory of every part."""

from __future__ import annotations

from .processes import megabytes, python
from .progress import say
from .stacks import load_portfolio, made, ready
from .turns import QUICK, SIZES, Compared, compare, ready_seconds


async def section(quick: bool) -> list[str]:
    """Its lines; quick leaves the portfolio out."""
    async with made() as stack:
        await stack.up()
        first = ready_seconds(stack)
        await stack.down()
        await stack.up()
        warm = ready_seconds(stack)
        idle = megabytes(stack)
        await ready(stack)
        if not quick:
            say("replies: loading the portfolio")
            await load_portfolio(stack)
        compared = await compare(stack, QUICK if quick else SIZES)
        busy = megabytes(stack)
    return [*_replies(compared, (QUICK if quick else SIZES).flight), "", *_stack(first, warm, idle, busy)]


def _replies(compared: list[Compared], flight: int) -> list[str]:
    lines = [
        "The chain (`bench/chain.py`) is bare nats-py and asyncpg with the same hops, commits and payloads, on servers of its",
        "own, measured alternating with the product.",
        "",
        "| reply by HTTP | median ms | p95 ms | chain's median ms | ratio of medians (at most 1.6, from memory 2.5) "
        f"| requests/s, {flight} in flight | chain's | share (at least 0.5, from memory 0.35) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in compared:
        ours = sorted(t.p50 for t in c.ours)[len(c.ours) // 2]
        p95 = sorted(t.p95 for t in c.ours)[len(c.ours) // 2]
        chain = sorted(t.p50 for t in c.chain)[len(c.chain) // 2]
        share = c.ours_rate / c.chain_rate
        lines.append(
            f"| {c.name} | {ours:.1f} | {p95:.1f} | {chain:.1f} | {c.ratio:.2f} "
            f"| {c.ours_rate:.0f} | {c.chain_rate:.0f} | {share:.2f} |"
        )
    names = list(compared[0].processor_ms)
    lines += [
        "",
        f"| milliseconds of a processor a request, {flight} in flight | {' | '.join(names)} | together |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for c in compared:
        cells = [f"{c.processor_ms.get(name, 0):.1f}" for name in names]
        lines.append(f"| {c.name} | {' | '.join(cells)} | {sum(c.processor_ms.values()):.1f} |")
    return lines


def _stack(first: float, warm: float, idle: dict[str, float], busy: dict[str, float]) -> list[str]:
    return [
        "| ready after | seconds (aim 8, the first 12) |",
        "|---|---|",
        f"| the first start, with new databases | {first:.1f} |",
        f"| a later start | {warm:.1f} |",
        "",
        "| memory, MB | idle | after the load |",
        "|---|---|---|",
        *(f"| {name} | {idle.get(name, 0):.0f} | {size:.0f} |" for name, size in busy.items()),
        f"| all Python processes (aim 700, after the load 900) | {python(idle):.0f} | {python(busy):.0f} |",
    ]
