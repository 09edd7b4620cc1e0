"""The tools of an analyst need no server: they run in a bare process, on owners that answer from a table."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scripts.tree import ROOT

_PROGRAM = """
import asyncio, sys
from phronesis_contracts import Principal
from phronesis_orchestrator.agents.findings import Findings
from phronesis_orchestrator.agents.tools import Gate
from phronesis_orchestrator.agents.findings import build_executor
from phronesis_orchestrator.models.reasoner import Move, ToolCall
from phronesis_orchestrator.turns.execution import TurnRun
from phronesis_orchestrator.settings import OrchestratorSettings
from phronesis_orchestrator.turns.execution import Steps
from phronesis_orchestrator.agents.tools import build_toolbox
from phronesis_bus.tracing import Tracing
from tests.support.analysts import OWNERS, profile
from tests.unit.orchestrator.fakes import FakeJournal, FakeNeighbours, claim

async def show(of, line): ...
claimed, tracing = claim("x", agent="noor"), Tracing("orchestrator")
neighbours = FakeNeighbours(owners=OWNERS)
running = TurnRun(claimed, Steps(FakeJournal(), claimed, tracing), tracing, neighbours, OrchestratorSettings(), show, [])
box = build_toolbox(profile("noor"), claimed.who)
executor = build_executor(running, box, Gate(box, claimed.who), Findings())
calls = ('recall_memory', '{"scope": "personal", "query_summary": "x"}'), ('retrieve_instructions', '{"mode": "A"}')
asyncio.run(executor.run_round(1, Move(calls=tuple(ToolCall(name=n, arguments=a) for n, a in calls))))
read = ToolCall(name='read_neo4j_cypher', arguments='{"cypher_query": "RETURN 1"}')
(rows,) = asyncio.run(executor.run_round(2, Move(calls=(read,))))
print(len(neighbours.questions), rows.kind, *sorted({"fastapi", "starlette"} & set(sys.modules)))
"""


@pytest.mark.req("N-002", "NC-068")
def test_the_three_tools_run_without_a_web_framework() -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "3 rows\n"), ran.stderr
