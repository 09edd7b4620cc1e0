"""The section of the console: how soon its first page shows data, and how a drawing of 5,000 nodes follows the pointer."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.console.holdings import LARGE, large, upsert
from tests.console.pages import panned, signed_in, visit
from tests.support.browser import Page
from tests.support.people import town

from .progress import say
from .stacks import running

_TIMES = 5
_FACTS = """const at = name => performance.getEntriesByName(name)[0]?.startTime;
const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
const bytes = loaded.reduce((sum, each) => sum + each.transferSize, 0);
return at('first-data') && [at('first-contentful-paint'), at('first-data'), loaded.length, bytes]"""


@dataclass(frozen=True)
class Opened:
    """One opening of a page: times in milliseconds since the address was asked for, requests, and bytes that were sent."""

    painted: float
    data: float
    requests: float
    bytes: float


async def section(quick: bool) -> list[str]:
    """Its lines."""
    async with running() as stack:
        opened = lines(await measure(stack.url, stack.key, 1 if quick else _TIMES))
        return [*opened, *await drawing(stack.url, stack.key, 1 if quick else _TIMES)]


async def drawing(url: str, key: str, times: int) -> list[str]:
    """The lines of panning 5,000 nodes."""
    async with town(url, key) as people:
        keeper = await people.someone(role="maestro")
        say("5,000 nodes are drawn and panned")
        for nodes, links in large():
            await upsert(keeper, nodes, links)
        with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as profile:
            async with signed_in(Path(profile), url, keeper.key) as page:
                await visit(page, url, f"/graph?all=1&year={LARGE}")
                await page.until(lambda driver: driver.find_elements("css selector", "canvas[data-settled='true']"))
                frames = median([await panned(page) for _ in range(times)])
    return [
        "",
        "| drawing | nodes | frames a second while it is panned, without a GPU (at least 30) |",
        "| --- | --- | --- |",
        f"| twin | 5,000 | {frames:.0f} |",
    ]


async def measure(url: str, key: str, times: int) -> dict[str, Opened]:
    """The medians of so many openings of the first page by somebody who is signed in."""
    found: dict[str, list[Opened]] = {"empty": [], "full": []}
    with tempfile.TemporaryDirectory(prefix="phronesis-bench-") as profile:
        async with signed_in(Path(profile), url, key) as page:
            for turn in range(times):
                say(f"{turn + 1} of {times} openings")
                await page.devtools("Network.clearBrowserCache")
                for cache in found:
                    found[cache].append(await _open(page, url))
    return {
        cache: Opened(*(median(getattr(each, name) for each in opened) for name in Opened.__annotations__))
        for cache, opened in found.items()
    }


async def _open(page: Page, url: str) -> Opened:
    await page.open("about:blank")
    await page.open(f"{url}/console")
    return Opened(*(await page.until(lambda driver: driver.execute_script(_FACTS))))


def lines(found: dict[str, Opened]) -> list[str]:
    """The section of the report."""
    return [
        "The first page of the console in Chromium, opened by somebody who is signed in: milliseconds until something is",
        "painted and until the page shows its first data, by the page's own marks; medians.",
        "",
        "| cache | painted, ms | first data, ms (at most 1,000) | requests | sent, kB |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {cache} | {each.painted:.0f} | {each.data:.0f} | {each.requests:.0f} | {each.bytes / 1000:.0f} |"
            for cache, each in found.items()
        ),
    ]


if __name__ == "__main__":
    import asyncio

    print("\n".join(lines(asyncio.run(measure(sys.argv[1], sys.argv[2], _TIMES)))))
