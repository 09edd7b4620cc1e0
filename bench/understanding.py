"""What the rules take to understand a question about the portfolio, to read what answers it, and to say it."""

from __future__ import annotations

import statistics
from collections import defaultdict

from tests.questions.questions import QUESTIONS
from tests.support.people import town

from .progress import say
from .stacks import load_portfolio, running

_QUICK = 5
_PHASES = {"II route": "understood: the words, the plan", "3 recall": "read from the graph", "IV answer": "said"}


async def section(quick: bool) -> list[str]:
    """Its lines."""
    texts = [question.text for question in QUESTIONS if not question.before][: _QUICK if quick else None]
    taken: dict[str, list[int]] = defaultdict(list)
    async with running() as stack:
        await load_portfolio(stack)
        async with town(stack.url, stack.key) as people:
            person = people.owner
            await person.say(texts[0], agent="noor")  # the words of the twin are read once
            for text in texts:
                turn = (await person.say(text, agent="noor")).json()["turn_id"]
                trace = (await person.tool("turn.trace", {"turn_id": turn})).json()
                spent = {stage["name"]: stage["ms"] for stage in trace["stages"]}
                for name in _PHASES:
                    taken[name].append(spent.get(name, 0))
                taken["rules"].append(spent.get("II route", 0) + spent.get("IV answer", 0))
    say(f"{len(texts)} questions answered")
    lines = [
        f"{len(texts)} different questions to `noor`, one after the other, without a model, as the turns' own traces have it.",
        "",
        "| what | p50 ms | p95 ms | aim, ms |",
        "|---|---|---|---|",
    ]
    lines += [_line(told, taken[name], "") for name, told in _PHASES.items()]
    return [*lines, _line("understood and said", taken["rules"], "30")]


def _line(told: str, values: list[int], aim: str) -> str:
    return f"| {told} | {statistics.median(values):.0f} | {statistics.quantiles(values, n=20)[-1]:.0f} | {aim} |"
