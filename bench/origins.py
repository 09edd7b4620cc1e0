"""What it costs a turn to keep where its texts come from, and to hold calls to that."""

from __future__ import annotations

import json
import random
import statistics
from time import perf_counter

from phronesis_contracts import Label, OriginKind
from phronesis_contracts.approvals import ActionPolicy
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.agents.binding import Origins
from phronesis_orchestrator.approvals.egress import call_host, may_leave
from phronesis_orchestrator.conversations.history import PastMessage
from phronesis_orchestrator.models.reasoner import TurnContext, Wish

_WORDS = "order flour from the mill before the shop opens and paint its front when rain stops this week".split()
_AIM = 2.0
"""Milliseconds of a turn, at the median."""


def _text(draw: random.Random, size: int) -> str:
    return " ".join(f"{draw.choice(_WORDS)}{draw.randrange(20)}" for _ in range(size))


def _node(draw: random.Random, id: str) -> dict[str, str]:
    return {"id": id, "title": _text(draw, 5), "description": _text(draw, 20)}


def _turn(draw: random.Random, effects: int) -> float:
    """Milliseconds that a turn with ten messages before it and five reads spends on all this. `effects`: calls with one."""
    update = TOOLS["task.update.v1"]
    history = tuple(PastMessage("user" if at % 2 else "assistant", _text(draw, 40)) for at in range(10))
    said = "Please mark ordering the flour from the mill as done, and paint the shop front on Friday."
    context = TurnContext(None, {"name": "Ann"}, history, Directive.SUPPORTIVE_COMPANION, said, said)
    nodes = [
        [{"id": f"task-{n}-{at}", "title": _text(draw, 5), "description": _text(draw, 20)} for n in range(10)]
        for at in range(5)
    ]
    call = {"id": "task-1-1", "status": "done", "description": "paint the shop front"}
    began = perf_counter()
    origins = Origins()
    origins.begin(context, [Label(kind=OriginKind.TOOL)])
    for result in nodes:
        origins.read([Label(kind=OriginKind.TOOL, id="node.search.v1")], result)
    origins.wishes[update.name] = (Wish(tool=update.name, arguments={"status": "done"}),)
    for _ in range(effects):
        origins.draws(update, call)
        origins.gives_away(call)
        may_leave(call, origins.said, ActionPolicy())
        call_host(json.loads(json.dumps(call)))
    return (perf_counter() - began) * 1000


async def section(quick: bool) -> list[str]:
    """The lines of the report."""
    draw, rows = random.Random(20), list[str]()
    for effects in (0, 1, 2):
        times = sorted(_turn(draw, effects) for _ in range(50 if quick else 1_000))
        rows.append(f"| {effects} | {statistics.median(times):.2f} | {times[int(len(times) * 0.95)]:.2f} |")
    return [
        "A turn with ten messages before it reads five answers of ten nodes each, and makes some calls with an effect. The",
        "planner's call of the model is not in it.",
        "",
        f"| Calls with an effect | Median, ms (at most {_AIM:.0f}) | 95th percentile, ms |",
        "|---:|---:|---:|",
        *rows,
    ]
