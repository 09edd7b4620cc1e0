"""The regression of a deployment, step by step; it ends with 1 and names the step where one does not keep to its threshold.

python -m tests.regression                  all seven steps, on graphs of 45, 500, 1,000 and 5,000 nodes
python -m tests.regression --only 5 6       some of them
python -m tests.regression --quick          small graphs and few calls, to see that it runs

1 unit tests (all pass)       2 integration tests (over 95% pass)     3 latency, by the list     4 tokens, by the list
5 vectors of 10 nodes drawn   6 the start of every agent's session    7 precision on labelled questions

`PHRONESIS_STORES=production` runs it on Neo4j and Weaviate.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from bench.constitution_graph import Graph, filled
from bench.constitution_seed import SIZES
from bench.stacks import running
from tests.support import production
from tests.support.people import Town, town

from . import suites
from .graphs import Steps
from .steps import Found, Step, walk

_CALLS, _QUESTIONS = 100, 100
_QUICK_SIZES, _QUICK_CALLS, _QUICK_QUESTIONS = (45, 500), 6, 10
NAMES = ("unit tests", "integration tests", "latency", "tokens", "vectors", "sessions", "relevance")


def main() -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", type=int, choices=range(1, len(NAMES) + 1), metavar="STEP")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    return asyncio.run(run(chosen.only or list(range(1, len(NAMES) + 1)), chosen.quick))


async def run(numbers: list[int], quick: bool) -> int:
    """Run some of the steps. Returns the exit status."""
    production.prepare()
    async with AsyncExitStack() as used:
        stack = Stack(used, quick)
        runs: tuple[Callable[[], Awaitable[Found]], ...] = (
            suites.unit,
            suites.integration,
            lambda: stack.step(Steps.latency),
            lambda: stack.step(Steps.tokens),
            lambda: stack.step(Steps.vectors),
            lambda: stack.step(Steps.sessions),
            lambda: stack.step(Steps.relevance),
        )
        steps = [Step(number, NAMES[number - 1], runs[number - 1]) for number in sorted(set(numbers))]
        return await walk(steps, lambda line: print(line, flush=True))


class Stack:
    """A stack with graphs in it, started for the first step that needs it.

    Args:
        used: what is closed at the end.
        quick: small graphs.
    """

    def __init__(self, used: AsyncExitStack, quick: bool) -> None:
        self._used = used
        self._quick = quick
        self._steps: Steps | None = None

    async def step(self, which: Callable[[Steps], Awaitable[Found]]) -> Found:
        """Run a step on the graphs."""
        if self._steps is None:
            self._steps = await self._filled()
        return await which(self._steps)

    async def _filled(self) -> Steps:
        stack = await self._used.enter_async_context(running())
        people = await self._used.enter_async_context(town(stack.url, stack.key))
        graphs = [await self._graph(stack.url, people, size) for size in (_QUICK_SIZES if self._quick else SIZES)]
        calls, questions = (_QUICK_CALLS, _QUICK_QUESTIONS) if self._quick else (_CALLS, _QUESTIONS)
        return Steps(graphs, people, calls, questions)

    async def _graph(self, url: str, people: Town, size: int) -> Graph:
        graph = await filled(url, people, size)
        self._used.push_async_callback(graph.close)
        return graph


if __name__ == "__main__":
    sys.exit(main())
