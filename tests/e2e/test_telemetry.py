"""What a stack tells of a turn: one trace through every part, figures in every process, and nothing of what was said."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from phronesis_local.parts import SERVICES
from tests.support.bus import eventually
from tests.support.collector import Collector, Exported, collecting
from tests.support.groq_server import groq_server
from tests.support.people import Person, Town, town
from tests.support.production import GRAPH, SERVERS
from tests.support.stack import RunningStack, running

pytestmark = [pytest.mark.verify, pytest.mark.timeout(180)]

PEAT = "Quagmirish"
"""A word that stands in the question, in memory, in the prompt and in the reply; no other place may hold it."""
_BOTH = {
    ("", "gateway POST /api/v1/conversations/messages"),
    ("gateway POST /api/v1/conversations/messages", "gateway tell orchestrator.v1.turn"),
    ("gateway tell orchestrator.v1.turn", "orchestrator take orchestrator.v1.turn"),
    ("orchestrator take orchestrator.v1.turn", "orchestrator invoke_agent dialogue"),
    ("orchestrator invoke_agent dialogue", "orchestrator phase I media"),
    ("orchestrator phase I media", "orchestrator ask memory.v1.profile.get"),
    ("orchestrator phase I media", "orchestrator cognition history"),
    ("orchestrator invoke_agent dialogue", "orchestrator tone"),
    ("orchestrator ask memory.v1.profile.get", "memory serve memory.v1.profile.get"),
    ("memory serve memory.v1.profile.get", "memory search_memory profiles"),
    ("orchestrator invoke_agent dialogue", "orchestrator phase II route"),
    ("orchestrator phase II route", "orchestrator step route"),
    ("orchestrator step route", "orchestrator chat openai/gpt-oss-20b"),
    ("orchestrator invoke_agent dialogue", "orchestrator phase IV answer"),
    ("orchestrator phase IV answer", "orchestrator step compose"),
    ("orchestrator invoke_agent dialogue", "memory follow orchestrator.v1.turn.ended"),
    ("memory follow orchestrator.v1.turn.ended", "memory create_memory knowledge"),
    ("memory create_memory knowledge", "memory embeddings all-MiniLM-L6-v2-onnx-int8"),
}
DIRECT = _BOTH | {("orchestrator step compose", "orchestrator chat openai/gpt-oss-20b")}
ASKED = _BOTH | {
    ("orchestrator step compose", "orchestrator chat openai/gpt-oss-120b"),
    ("orchestrator invoke_agent dialogue", "orchestrator cognition reasoning"),
    ("orchestrator invoke_agent dialogue", "orchestrator phase III retrieve"),
    ("orchestrator phase III retrieve", "orchestrator retrieval knowledge"),
    ("orchestrator retrieval knowledge", "orchestrator ask memory.v1.retrieve"),
    ("orchestrator ask memory.v1.retrieve", "memory serve memory.v1.retrieve"),
    ("memory serve memory.v1.retrieve", "memory search_memory knowledge"),
    ("memory search_memory knowledge", "memory embeddings all-MiniLM-L6-v2-onnx-int8"),
    ("memory search_memory knowledge", "memory ask graph.v1.expand"),
    ("memory ask graph.v1.expand", "graph serve graph.v1.expand"),
}


@dataclass
class Watched:
    """A stack whose spans are collected, and somebody who uses it."""

    stack: RunningStack
    collector: Collector
    people: Town
    person: Person

    async def spans(self, turn: str, wanted: set[tuple[str, str]]) -> list[Exported]:
        """The spans of a turn, once those that are wanted have come."""
        trace = (await self.person.turn(turn))["trace_id"]
        await eventually(lambda: wanted <= _tree(self.collector.of(trace)))
        return self.collector.of(trace)

    async def figures(self, service: str) -> dict[str, float]:
        """The metrics of a service, as its own port shows them."""
        log = await asyncio.to_thread((self.stack.data.logs / f"{service}.log").read_text)
        address = re.findall(r"metrics at ([\d.]+:\d+)/metrics", log)[-1]
        async with httpx.AsyncClient(trust_env=False) as http:
            text = (await http.get(f"http://{address}/metrics")).text
        return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*) (\S+)$", text, re.MULTILINE)}


def _tree(spans: list[Exported]) -> set[tuple[str, str]]:
    """Each span under its parent, both with their service; statements to databases left out."""
    names = {span.span_id: f"{span.service} {span.name}" for span in spans}
    return {(names.get(span.parent_id, ""), names[span.span_id]) for span in spans if "db.system.name" not in span.attributes}


@pytest.fixture(scope="module")
async def watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watched]:
    folder: Path = tmp_path_factory.mktemp("telemetry") / "data"
    async with AsyncExitStack() as opened:
        collector = await opened.enter_async_context(collecting())
        model = await opened.enter_async_context(groq_server())
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "BUS_METRICS_LISTEN": "127.0.0.1:0",
            "MEMORY_STAGE_SECONDS": "5",  # a fresh store's first answers are slow, and the figures of these turns are compared
            "GROQ_API_KEY": "gsk-scripted",
            "ORCHESTRATOR_MODEL_URL": model.groq_url,
        }
        stack = await opened.enter_async_context(running(folder, (*SERVERS, *SERVICES), environment))
        people = await opened.enter_async_context(town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()))
        await people.ready()
        person = await people.someone()
        await person.remember("Moor Railway", f"The Moor Railway carries {PEAT} peat.")
        await person.reply("Hi!")  # from here on the agent's instructions are at hand
        yield Watched(stack, collector, people, person)


@pytest.fixture(scope="module")
async def direct(watched: Watched) -> tuple[dict[str, Any], list[Exported]]:
    """A turn that the router answers itself, with its spans."""
    reply = await watched.person.reply("Hello!")
    return reply, await watched.spans(reply["turn_id"], DIRECT)


@pytest.fixture(scope="module")
async def asked(watched: Watched) -> tuple[dict[str, Any], list[Exported]]:
    """A turn that asks memory, with its spans."""
    reply = await watched.person.reply(f"Which {PEAT} goods does the Moor Railway carry?")
    return reply, await watched.spans(reply["turn_id"], ASKED)


def _one(spans: list[Exported], name: str) -> dict[str, Any]:
    return dict(next(span.attributes for span in spans if span.name == name))


def _phases(spans: list[Exported]) -> list[str]:
    """The phases in order of start; each of them ends before the next begins."""
    phases = [span for span in spans if span.name.startswith("phase ")]
    assert all(before.end_ns <= after.start_ns for before, after in itertools.pairwise(phases))
    return [span.name for span in phases]


@pytest.mark.req("D-009")
async def test_a_direct_turn_is_one_trace_with_three_phases(direct: tuple[dict[str, Any], list[Exported]]) -> None:
    _, spans = direct
    assert _tree(spans) == DIRECT
    assert _phases(spans) == ["phase I media", "phase II route", "phase IV answer"]


@pytest.mark.req("D-009")
async def test_a_turn_that_asks_memory_is_one_trace_with_four_phases(asked: tuple[dict[str, Any], list[Exported]]) -> None:
    _, spans = asked
    assert _tree(spans) == ASKED
    assert _phases(spans) == ["phase I media", "phase II route", "phase III retrieve", "phase IV answer"]


async def test_every_store_of_a_turn_is_in_its_trace(asked: tuple[dict[str, Any], list[Exported]]) -> None:
    statements = [span for span in asked[1] if "db.system.name" in span.attributes]
    assert {(span.service, span.attributes["db.system.name"]) for span in statements} == {
        ("orchestrator", "postgresql"),
        ("memory", "postgresql"),
        ("graph", GRAPH),
    }
    assert {frozenset(span.attributes) for span in statements} == {frozenset({"db.system.name", "db.operation.name"})}
    assert all(span.name == span.attributes["db.operation.name"] for span in statements)


async def test_agent_model_memory_and_messages_have_the_names_of_the_conventions(
    asked: tuple[dict[str, Any], list[Exported]],
) -> None:
    reply, spans = asked
    chat = _one(spans, "chat openai/gpt-oss-120b")
    tokens = chat.pop("gen_ai.usage.input_tokens"), chat.pop("gen_ai.usage.output_tokens")
    agent = _one(spans, "invoke_agent dialogue")
    version, release = agent.pop("gen_ai.agent.version"), agent.pop("phronesis.instructions.release")
    assert (min(tokens) > 0, version.count("."), release.count(".")) == (True, 2, 2)
    assert chat == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "groq",
        "gen_ai.request.model": "openai/gpt-oss-120b",
        "gen_ai.request.max_tokens": 4_000,
        "gen_ai.output.type": "json",
        "gen_ai.prompt.name": "final",
        "gen_ai.conversation.id": reply["conversation_id"],
        "gen_ai.response.model": "openai/gpt-oss-120b",
        "gen_ai.response.finish_reasons": ["stop"],
    }
    assert agent == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "groq",
        "gen_ai.agent.name": "dialogue",
        "gen_ai.conversation.id": reply["conversation_id"],
        "phronesis.turn.id": reply["turn_id"],
        "phronesis.turn.attempt": 1,
    }
    assert _one(spans, "search_memory knowledge") == {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.provider.name": "phronesis",
        "gen_ai.memory.store.id": "knowledge",
        "gen_ai.memory.record.count": 1,
    }
    assert _one(spans, "serve memory.v1.profile.get") == {
        "rpc.system.name": "nats",
        "rpc.method": "memory.v1.profile.get",
        "messaging.system": "nats",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "profile.get",
        "gen_ai.tool.type": "function",
    }
    assert _one(spans, "tell orchestrator.v1.turn") == {
        "messaging.system": "nats",
        "messaging.destination.name": "job.*.orchestrator.v1.turn",
        "messaging.operation.name": "tell",
        "messaging.operation.type": "send",
    }


async def test_the_cost_of_a_turn_is_that_of_its_tokens(asked: tuple[dict[str, Any], list[Exported]]) -> None:
    reply, spans = asked
    light, large = (_one(spans, f"chat openai/gpt-oss-{size}") for size in ("20b", "120b"))

    def paid(call: dict[str, Any], read: float, written: float) -> float:
        return call["gen_ai.usage.input_tokens"] * read + call["gen_ai.usage.output_tokens"] * written

    usage = reply["usage"]
    assert usage["model_calls"] == 2
    assert usage["cost_usd"] == pytest.approx((paid(light, 0.075, 0.30) + paid(large, 0.15, 0.60)) / 1e6, abs=1e-9)


@pytest.mark.req("D-148")
async def test_each_process_shows_its_figures_on_its_own_port(
    watched: Watched, direct: tuple[dict[str, Any], list[Exported]], asked: tuple[dict[str, Any], list[Exported]]
) -> None:
    found = {name: await watched.figures(name) for name in SERVICES}
    assert {name: figures["phronesis_bus_connected"] for name, figures in found.items()} == dict.fromkeys(SERVICES, 1.0)
    turns = found["orchestrator"]
    ended = turns['phronesis_turns_total{agent="dialogue",degraded="no",outcome="completed"}']
    assert ended >= 3
    assert turns['phronesis_turn_seconds_count{agent="dialogue",outcome="completed"}'] == ended
    assert {turns[f'phronesis_turns_open{{status="{status}"}}'] for status in ("queued", "running", "waiting")} == {0.0}
    assert turns['phronesis_stage_seconds_count{outcome="ok",stage="media"}'] == ended
    assert turns['phronesis_stage_seconds_count{outcome="ok",stage="retrieve"}'] == 1
    assert turns['phronesis_step_seconds_count{outcome="ok",step="compose"}'] == ended
    assert turns['phronesis_model_cost_usd_total{model="openai/gpt-oss-120b",purpose="final"}'] > 0
    assert turns['phronesis_model_breaker_open{model="openai/gpt-oss-120b"}'] == 0
    assert turns['db_client_connection_max{pool="orchestrator"}'] == 10
    assert {
        step: found["memory"][f'phronesis_retrieval_step_seconds_count{{step="{step}"}}']
        for step in ("vector", "graph", "content")
    } == {"vector": 1, "graph": 1, "content": 1}
    assert found["graph"]["phronesis_outbox_unsent"] == 0
    assert found["gateway"]["gateway_open_streams"] == 0


async def test_no_figure_names_a_user_and_two_alone_a_tenant(
    watched: Watched, asked: tuple[dict[str, Any], list[Exported]]
) -> None:
    shown = [name for service in SERVICES for name in await watched.figures(service)]
    person, (reply, _) = watched.person, asked
    private = (person.user, reply["turn_id"], reply["conversation_id"])
    assert [name for name in shown if any(each in name for each in private)] == []
    of_tenants = ("phronesis_rpc_waiting_seconds", "phronesis_rpc_refused")
    assert [name for name in shown if person.tenant in name and not name.startswith(of_tenants)] == []


@pytest.mark.req("D-154")
async def test_neither_spans_nor_logs_hold_what_was_said(
    watched: Watched, asked: tuple[dict[str, Any], list[Exported]]
) -> None:
    assert PEAT in asked[0]["user_response"] + str(asked[0]["sources"])
    texts = {path.name: path.read_bytes() for path in watched.stack.data.logs.iterdir()} | {"spans": watched.collector.raw}
    secrets = [watched.person.key.encode(), b"gsk-scripted", PEAT.encode()]
    assert len(watched.collector.raw) > 10_000
    assert [name for name, text in texts.items() if any(secret in text for secret in secrets)] == []
