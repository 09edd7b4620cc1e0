"""Every tool by all three faces, compared: the SDK over HTTP, the official MCP client, and bare nats-py on the bus."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import BaseModel, ValidationError

from phronesis_contracts import Effect
from phronesis_contracts.catalog import TOOLS
from tests.support import constitution_calls, counsel
from tests.support.bus import eventually
from tests.support.faces import REFUSED, Caller, callers
from tests.support.people import Person, Town
from tests.support.personas import Persona
from tests.support.sample_portfolio import PROGRAMME, few_projects
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.verify, pytest.mark.timeout(240)]

SAMPLES = Path(__file__).resolve().parents[2] / "examples"
ROLE = Persona.ADMIN
NOBODYS = "7d1f9a4e-8d1c-4a57-9a53-1f0f5f0d6f10"


async def _ended_turn(person: Person) -> dict[str, Any]:
    turn = await person.accepted("Where is the lighthouse?")
    await person.ended(turn["turn_id"])
    return {"turn_id": turn["turn_id"]}


async def _remembered(person: Person) -> dict[str, Any]:
    await person.remember("Lighthouse", "The lighthouse stands on the northern cape.")
    return {"query": "Lighthouse", "limit": 5}


async def _added(person: Person) -> dict[str, Any]:
    """A memory that there is."""
    said = {"text": "The lock was mended.", "external_id": "lock", "occurred_at": "2026-03-04T12:00:00Z"}
    done = await person.tool("memory.add", {"memories": [said]})
    assert done.status_code == 200, done.text
    return {"id": "lock"}


async def _corrected_memory(person: Person) -> dict[str, Any]:
    return {**await _added(person), "text": "The lock is new."}


async def _to_list(person: Person) -> dict[str, Any]:
    await _added(person)
    return {"limit": 5}


async def _to_delete_memory(person: Person) -> dict[str, Any]:
    return {"ids": [(await _added(person))["id"]]}


async def _kept(person: Person) -> dict[str, Any]:
    stored = await person.tool("remember", {"items": [{"external_id": "old", "text": "The ferry leaves at nine."}]})
    assert stored.status_code == 200
    return {"ids": ["old", NOBODYS]}


async def _forgotten(person: Person) -> dict[str, Any]:
    gone = await person.tool("memory.forget", await _kept(person))
    assert gone.status_code == 200, gone.text
    given = {"forgetting_id": gone.json()["forgetting_id"]}

    async def complete() -> bool:
        return (await person.tool("memory.forgetting", given)).json()["state"] == "complete"

    await eventually(complete)
    return given


async def _kept_in_scope(person: Person) -> dict[str, Any]:
    memory = {"scope": "csuite", "key": "cape", "content": "The lighthouse is for sale."}
    assert (await person.tool("keep_memory", memory)).status_code == 200
    return {"scope": "csuite", "key": "cape"}


async def _to_recall(person: Person) -> dict[str, Any]:
    await _kept_in_scope(person)
    return {"scope": "csuite", "query_summary": "lighthouse"}


async def _known(person: Person) -> dict[str, Any]:
    assert (await person.http.put("/api/v1/profile", json={"profile": {"name": "Ann"}})).status_code == 200
    return {}


async def _corrected(person: Person) -> dict[str, Any]:
    await _known(person)
    return {"patch": {"name": None, "town": "Leeds", "languages": ["en", "fr"]}}


def _medium(name: str, type: str) -> Callable[[Person], Awaitable[dict[str, Any]]]:
    async def uploaded(person: Person) -> dict[str, Any]:
        return {"media_id": await person.uploaded(name, (SAMPLES / name).read_bytes(), type)}

    return uploaded


async def _node(person: Person, label: str = "Product") -> str:
    made = await person.tool("create_node", {"label": label, "properties": {"name": "Milk"}})
    assert made.json()["success"], made.text
    return str(made.json()["node_id"])


async def _ends(person: Person) -> dict[str, Any]:
    return {"from_node_id": await _node(person), "to_node_id": await _node(person, "Standard"), "type": "DEFINES"}


async def _created(person: Person) -> dict[str, Any]:
    return {"node_id": await _node(person)}


async def _to_delete(person: Person) -> dict[str, Any]:
    return {"node_id": await _node(person), "force_delete": True}


async def _to_query(person: Person) -> dict[str, Any]:
    await _node(person)
    return {"cypher_query": "MATCH (p:Product) RETURN p.name AS ProductName", "read_only": True}


async def _to_search(person: Person) -> dict[str, Any]:
    await _node(person)
    return {"label": "Product", "properties": {"name": "Milk"}}


def _of_twin(given: dict[str, Any]) -> Callable[[Person], Awaitable[dict[str, Any]]]:
    async def loaded(person: Person) -> dict[str, Any]:
        assert (await person.tool("graph_upsert", few_projects().model_dump(mode="json"))).status_code == 200
        return given

    return loaded


def _after(*calls: tuple[str, dict[str, Any]], given: dict[str, Any]) -> Callable[[Person], Awaitable[dict[str, Any]]]:
    async def called(person: Person) -> dict[str, Any]:
        for tool, body in calls:
            assert (await person.tool(tool, body)).status_code == 200
        return given

    return called


def _plain(given: dict[str, Any]) -> Callable[[Person], Awaitable[dict[str, Any]]]:
    async def stated(person: Person) -> dict[str, Any]:
        return given

    return stated


_TEXTS = {"texts": [{"tag": "chart_type_Column", "content": "Columns compare categories."}], "note": "shorter"}
_AGENT = {"name": "desk", "instructions": "Be brief.", "sources": ["memory"]}
_EXPERIMENT = {
    "name": "tone",
    "arms": [
        {"name": "usual", "weight": 1},
        {"name": "short", "weight": 1, "texts": {"step5_return": "Answer in one sentence."}},
    ],
}
_OWN: dict[str, Callable[[Person], Awaitable[dict[str, Any]]]] = {
    "turn.get": _ended_turn,
    "turn.trace": _ended_turn,
    "turn.replay": _ended_turn,
    "remember": _plain(
        {"items": [{"external_id": "a", "title": "Harbour", "text": "The harbour freezes in March."}, {"text": "b"}]}
    ),
    "recall": _remembered,
    "forget": _kept,
    "facts.import": _plain({"lines": '{"text": "I live in Leeds."}\n'}),
    "memory.forget": _kept,
    "memory.forget.preview": _kept,
    "memory.forgetting": _forgotten,
    "memory.add": _plain({"conversation_id": "c1", "memories": [{"speaker": "Ada", "text": "The lock was mended."}]}),
    "memory.search": _plain({"query": "Which lock was mended?"}),
    "memory.context": _plain({"query": "Which lock was mended?"}),
    "memory.get": _added,
    "memory.history": _added,
    "memory.update": _corrected_memory,
    "memory.list": _to_list,
    "memory.delete": _to_delete_memory,
    "keep_memory": _plain({"scope": "secrets", "key": "mill", "content": "The mill was sold."}),
    "recall_memory": _to_recall,
    "forget_memory": _kept_in_scope,
    "memory_query": _plain({"operation": "context", "query": "the harbour"}),
    "profile.get": _known,
    "profile.update": _corrected,
    "profile.delete": _known,
    "graph_upsert": _plain(few_projects().model_dump(mode="json")),
    "read_neo4j_cypher": _of_twin(
        {"cypher_query": "MATCH (p:EntityProject) RETURN p.id, p.name ORDER BY p.id, p.year LIMIT 3"}
    ),
    "survey_twin": _of_twin({"type": "EntityProject", "level": "L3", "measure": "list", "show": ["rating"]}),
    "find_entities": _of_twin({"text": PROGRAMME}),
    "run_chain": _of_twin({"chain": "Risk_Build_Mode", "year": 2023, "level": "L1"}),
    "diagnose_gaps": _of_twin(
        {"questions": [{"id": "q", "node": {"type": "EntityProject", "id": "nobody", "year": 2023}, "level": "L3"}]}
    ),
    "twin_links": _of_twin({"keys": [few_projects().nodes[0].key]}),
    "twin_vocabulary": _of_twin({"limit": 50}),
    "ontology.publish": _plain({"text": "name: yard\nnodes:\n  Tug:\n", "dry_run": True}),
    "ontology.get": _plain({"version": 0}),
    "ontology.rollback": _plain({"version": 0, "dry_run": True}),
    "retrieve_instructions": _plain({"mode": "A"}),
    "list_instructions": _plain({"tier": 1}),
    "show_instruction": _plain({"tag": "tier1_bootstrap"}),
    "publish_instructions": _plain(_TEXTS),
    "diff_instructions": _after(("publish_instructions", _TEXTS), given={"before": 0}),
    "rollback_instructions": _after(("publish_instructions", _TEXTS), given={"to": 0}),
    "list_releases": _after(("publish_instructions", _TEXTS), given={}),
    "agents.publish": _plain({**_AGENT, "dry_run": True}),
    "agents.list": _plain({}),
    "agents.get": _after(("agents.publish", _AGENT), given={"name": "desk"}),
    "agents.versions": _after(("agents.publish", _AGENT), given={"name": "desk"}),
    "agents.diff": _after(("agents.publish", _AGENT), given={"name": "desk", "before": 1}),
    "agents.rollback": _after(("agents.publish", _AGENT), given={"name": "desk", "version": 1, "dry_run": True}),
    "agents.delete": _after(("agents.publish", _AGENT), given={"name": "desk"}),
    "start_experiment": _plain(_EXPERIMENT),
    "stop_experiment": _after(("start_experiment", _EXPERIMENT), given={"name": "tone"}),
    "list_experiments": _after(("start_experiment", _EXPERIMENT), given={}),
    "report_experiment": _after(("start_experiment", _EXPERIMENT), given={"name": "tone"}),
    "record_outcome": _after(("start_experiment", _EXPERIMENT), given={"user": "ann", "metric": "useful", "value": 1.0}),
    "create_node": _plain({"label": "Product", "properties": {"name": "Milk"}}),
    "create_relationship": _ends,
    "query_graph": _to_query,
    "search_nodes": _to_search,
    "get_node_details": _created,
    "delete_node": _to_delete,
    "document.extract_text": _medium("portfolio_note.pdf", "application/pdf"),
    "vision.caption": _medium("portfolio_picture.png", "image/png"),
    "audio.transcribe": _medium("portfolio_voice.ogg", "audio/ogg"),
}
GOOD = {name: _OWN.get(name) or constitution_calls.call(name) for name in TOOLS}
"""For each tool, what makes ready for a caller what its call is about, and gives its input."""
NOT_HERE = {
    "http_fetch": "bad_request",
    "mcp_servers.add": "bad_request",
    "mcp_servers.accept": "outside.unknown_server",
    "mcp_servers.inspect": "outside.unknown_server",
    "mcp_servers.judge": "outside.unknown_server",
    "mcp_servers.switch": "outside.unknown_server",
}
"""Tools that ask what is outside, where no address is one that may be asked: how they refuse."""
VOLATILE = {
    "created_at": "a time",
    "requested_at": "a time",
    "completed_at": "a time",
    "by": "a user",
    "started_at": "a time",
    "stopped_at": "a time",
    "updated_at": "a time",
    "ended_at": "a time",
    "expires_at": "a time",
    "trace_id": "a trace",
    "version": "a version",
    "ms": "milliseconds",
    "createdAt": "a time",
    "updatedAt": "a time",
    "computedAt": "a time",
    "projectedAt": "a time",
    "nextAt": "a time",
    "lastAt": "a time",
    "at": "a time",
    "actor": "a user",
    "provenance": "who, from what and when",
    "milliseconds": "milliseconds",
    "loadTime": "milliseconds",
    "tokenEstimate": "tokens, of ids and times too",
    "totalTokens": "tokens, of ids and times too",
    "foundationTokens": "tokens, of ids and times too",
    "visionTokens": "tokens, of ids and times too",
    "workloadTokens": "tokens, of ids and times too",
    "used": "tokens, of ids and times too",
    "remaining": "tokens, of ids and times too",
    "retrievalId": "a search",
    "sessionId": "a session",
    "startDate": "a day",
    "endDate": "a day",
}
"""Members of a result that differ from call to call, and what stands for them."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def normal(value: Any, ids: dict[str, str], name: str = "") -> Any:
    """`value` with what differs from call to call named alike: ids by the order in which they come, times by their kind."""
    match value:
        case int() | float() | str() | dict() if name in VOLATILE and value != "":
            return VOLATILE[name]
        case dict():
            return {key: normal(member, ids, key) for key, member in value.items()}
        case list() if name == "relationships" and value and "fromId" in value[0]:  # by their ids, which are made up
            return [normal(member, ids) for member in sorted(value, key=lambda one: (one["fromId"], one["type"], one["toId"]))]
        case list():
            return [normal(member, ids, name) for member in value]
        case None:
            return None
        case str():
            return _UUID.sub(lambda found: ids.setdefault(found[0], f"id {len(ids) + 1}"), value)
        case float():
            return round(value, 3)  # a score holds how old a memory is
        case _:
            return value


Everyone = Callable[..., AbstractAsyncContextManager[dict[str, Caller]]]


@pytest.fixture
def everyone(stack: RunningStack, everybody: Town) -> Everyone:
    """Makes a caller for each face, by default with a role that may use every tool."""
    url = stack.data.url.read_text().strip()

    def made(role: Persona = ROLE, people: Sequence[Person] | None = None) -> AbstractAsyncContextManager[dict[str, Caller]]:
        return callers(everybody, url, role, people)

    return made


_OF_CALLS = "retrieval.report.v1"
"""What tells of the calls before it, and how long they took."""


@pytest.fixture(scope="module")
async def readers(everybody: Town) -> list[Person]:
    """A person for each face, whose graph only tools that read are called on."""
    return [await everybody.someone(role=ROLE) for _ in range(3)]


def test_each_tool_of_the_catalog_is_called_here() -> None:
    assert set(_OWN) | set(constitution_calls.CALLS) <= set(TOOLS)
    assert all(ROLE.may(tool) for tool in TOOLS.values())


def members(tool: str) -> tuple[set[str], set[str]]:
    """The members that an answer of a tool has always, and all that it may have."""
    fields = TOOLS[tool].rpc.output.model_fields.items()
    named = {field.serialization_alias or field.alias or name: field for name, field in fields}
    return {name for name, field in named.items() if field.exclude_if is None}, set(named)


def _case(tool: str) -> Any:
    """A tool as a case. The stores have suites of their own: on each but the embedded ones every eighth tool is a sample."""
    stored = sorted(name for name in _EACH_KIND if TOOLS[name].rpc.service in ("graph", "memory"))
    return pytest.param(tool, marks=pytest.mark.stores) if tool in stored[::8] else tool


_EACH_KIND = frozenset(TOOLS) - constitution_calls.OF_TYPES | {"task.create.v1", "task.update.v1"}
"""Every tool, but of those that there are for each node type only a task's: the others differ from them in names of fields."""


@pytest.mark.parametrize("tool", [_case(name) for name in sorted(GOOD)])
async def test_a_tool_answers_the_same_by_all_faces(everyone: Everyone, readers: list[Person], tool: str) -> None:
    said, reads = {}, tool in constitution_calls.CALLS and TOOLS[tool].effect is Effect.READ and tool != _OF_CALLS
    async with everyone(people=readers if reads else None) as found:
        for name, caller in found.items():
            given = await GOOD[tool](caller.person)
            said[name] = normal(await caller.face.call(tool, given, uuid4().hex), {})
    assert said["mcp"] == said["rest"]
    assert said["bus"] == said["rest"]
    assert said["rest"].get(REFUSED, {}).get("code") == NOT_HERE.get(tool), said["rest"]
    if tool in NOT_HERE:
        return
    always, known = members(tool)
    assert always <= set(said["rest"]) <= known


def wrong(tool: str) -> list[dict[str, Any]]:
    """Inputs that break the tool's schema: a member missing, of another type, or over its limit."""
    model = TOOLS[tool].rpc.input
    odd = [{"a": {}}, 5.5, "x" * 300, [None], [], True, None, -1, 10**18, "", [{}], [[]]]
    # Each member gets a third of them, each time another one: twelve of each would say no more in three times the time.
    found = [{}, *({name: value} for at, name in enumerate(model.model_fields) for value in odd[at % 3 :: 3])]
    return [given for given in found if _breaks(model, given)]


def _breaks(model: type[BaseModel], given: dict[str, Any]) -> bool:
    try:
        model.model_validate(given)
    except ValidationError:
        return True
    return False


@pytest.mark.parametrize("owner", sorted({TOOLS[name].rpc.subject.partition(".")[0] for name in _EACH_KIND}))
async def test_bad_input_is_the_same_problem_by_all_faces(everyone: Everyone, owner: str) -> None:
    tools = sorted(name for name in _EACH_KIND if TOOLS[name].rpc.subject.startswith(f"{owner}."))
    async with everyone() as found:
        for tool, given in ((name, given) for name in tools for given in wrong(name)):
            said = dict(zip(found, await asyncio.gather(*(one.face.call(tool, given) for one in found.values())), strict=True))
            assert said == dict.fromkeys(said, said["rest"]), (tool, given)
            assert said["rest"][REFUSED]["code"] == "bad_request", (tool, given)


@pytest.mark.parametrize("tool", ["turn.get", "document.extract_text", "vision.caption", "audio.transcribe"])
async def test_what_is_nobodys_is_not_found_by_any_face(everyone: Everyone, tool: str) -> None:
    name = next(iter(TOOLS[tool].rpc.input.model_fields))
    unknown = {REFUSED: {"code": "not_found", "status": 404, "field": None, "retry_after": None}}
    async with everyone() as found:
        for id in (NOBODYS, "no-id", "../../x", "é"):
            said = {face: await caller.face.call(tool, {name: id}) for face, caller in found.items()}
            assert said == dict.fromkeys(said, unknown), id


async def test_what_is_anothers_is_not_found_by_any_face(everyone: Everyone, everybody: Town) -> None:
    stranger = await everybody.someone()
    media = await _medium("portfolio_note.pdf", "application/pdf")(stranger)
    turn = await _ended_turn(stranger)
    async with everyone() as found:
        for caller in found.values():
            answers = [await caller.face.call("document.extract_text", media), await caller.face.call("turn.get", turn)]
            assert [answer[REFUSED]["code"] for answer in answers] == ["not_found", "not_found"]


async def test_a_key_makes_a_write_once_by_every_face_and_another_body_a_conflict(everyone: Everyone) -> None:
    key, first, second = uuid4().hex, {"items": [{"text": "The mill was sold."}]}, {"items": [{"text": "The mill was kept."}]}
    said = {}
    async with everyone() as found:
        for name, caller in found.items():
            ids: dict[str, str] = {}
            said[name] = [normal(await caller.face.call("remember", given, key), ids) for given in (first, first, second)]
    assert said == dict.fromkeys(said, said["rest"])
    once, again, other = said["rest"]
    assert once == again
    assert other[REFUSED]["code"] == "idempotency_key_reused"


async def test_a_key_of_one_face_does_not_meet_the_same_key_of_another(everyone: Everyone, everybody: Town) -> None:
    """The same user, by all faces, with one key: three writes."""
    key, stored = uuid4().hex, {"items": [{"text": "The well is deep."}]}
    async with everyone(people=[await everybody.someone(role=ROLE)] * 3) as found:
        ids = [(await caller.face.call("remember", stored, key))["items"][0]["id"] for caller in found.values()]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("role", sorted(set(Persona) - {ROLE}))
async def test_a_role_is_refused_the_same_tools_by_all_faces(everyone: Everyone, role: Persona) -> None:
    """On the bus a system may call what its role may; by the other faces an agent may call what its list has besides."""
    listed = counsel.profile(role.value).tools if role.value in counsel.AGENTS else tuple(TOOLS)
    called = {name: tool for name, tool in TOOLS.items() if wrong(name)}
    expected = {name: "bad_request" if role.may(tool) and name in listed else "forbidden" for name, tool in called.items()}
    on_bus = {name: "bad_request" if role.may(tool) else "forbidden" for name, tool in called.items()}
    async with everyone(role) as found:
        said = {
            face: {name: (await caller.face.call(name, wrong(name)[0]))[REFUSED]["code"] for name in expected}
            for face, caller in found.items()
        }
    assert said == {"rest": expected, "mcp": expected, "bus": on_bus}


async def test_what_no_store_keeps_is_refused_on_the_bus_too(everyone: Everyone) -> None:
    """By HTTP and MCP it is refused as JSON already, before anybody looks which tool it is for."""
    async with everyone() as found:
        answers = [
            await found["bus"].face.call("remember", {"items": [{"text": "a\u0000b"}]}),
            await found["bus"].face.call("turn.get", {"turn_id": "\u0000"}),
            await found["rest"].face.call("remember", {"items": [{"text": "a\u0000b"}]}),
        ]
    assert [(answer[REFUSED]["code"], answer[REFUSED]["field"]) for answer in answers] == [("bad_request", None)] * 3
