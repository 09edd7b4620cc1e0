"""Memory as other programs use it, on a whole stack: by the SDK, by REST and by tools, of two users of one tenant."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import subprocess

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from typer.testing import CliRunner

from phronesis import AsyncClient
from phronesis.cli.app import app
from phronesis_contracts import BadRequest, NotFound
from scripts.tree import ROOT
from tests.support.mcp import text_of
from tests.support.people import Person, Town

pytestmark = pytest.mark.any_store

SAID = [
    {"speaker": "Ada", "text": "Which gate does the ferry to Skarholm leave from?"},
    {"speaker": "Bo", "text": "Number seven, and it is never on time."},
    {"speaker": "Ada", "text": "My sister paints lighthouses."},
]


async def test_what_the_sdk_adds_rest_finds_reads_corrects_and_deletes(somebody: Person) -> None:
    async with AsyncClient(str(somebody.http.base_url), somebody.key) as client:
        added = await client.memory.add(SAID, conversation_id="c1")
        assert [one.status for one in added.memories] == ["created"] * 3
        assert [one.status for one in (await client.memory.add("hello")).memories] == ["created"]
    body = {"query": "the gate of the ferry to Skarholm", "limit": 2}
    found = (await somebody.http.post("/api/v1/memory/search", json=body)).json()["memories"]
    assert [(one["speaker"], one["conversation_id"]) for one in found] == [("Ada", "c1"), ("Bo", "c1")]
    path = f"/api/v1/memory/{found[1]['id']}"
    changed = (await somebody.http.patch(path, json={"text": "Number nine."})).json()
    history = (await somebody.http.get(f"{path}/history")).json()
    assert (changed["text"], [one["text"] for one in history["versions"]]) == ("Number nine.", [SAID[1]["text"]])
    assert (await somebody.http.delete(path)).json() == {"ids": [found[1]["id"]]}
    gone = await somebody.http.get(path)
    assert (gone.status_code, gone.json()["field"]) == (404, "id")


async def test_pages_filters_and_blocks_are_the_same_by_every_face(somebody: Person) -> None:
    async with AsyncClient(str(somebody.http.base_url), somebody.key) as client:
        await client.memory.add(SAID, conversation_id="c1")
        page = await client.memory.list(limit=2)
        rest = (await somebody.http.get("/api/v1/memory", params={"limit": 2, "kind": "message"})).json()
        assert [one.id for one in page.memories] == [one["id"] for one in rest["memories"]]
        assert len((await client.memory.list(limit=2, cursor=page.next)).memories) == 1
        assert (await client.memory.search("lighthouses", conversation_id="other")).memories == ()
        block = await client.memory.context("lighthouses", budget_tokens=200)
        tool = await client.tools.call("memory.context", {"query": "lighthouses", "budget_tokens": 200})
        assert "Ada: My sister paints lighthouses." in block.text
        assert tool["text"] == block.text
        with pytest.raises(BadRequest) as error:
            await client.memory.search("x", since="yesterday")
        assert error.value.field == "since"


async def test_an_agent_that_has_nothing_but_memory_is_told_of_eight_tools_and_can_call_no_other(somebody: Person) -> None:
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {somebody.key}"})
    address = f"{str(somebody.http.base_url).rstrip('/')}/mcp/memory"
    async with http, Client(streamable_http_client(address, http_client=http)) as client:
        assert len((await client.list_tools()).tools) == 8
        await client.call_tool("memory_add", {"memories": [{"text": "the piano was tuned on Friday"}]})
        found = await client.call_tool("memory_search", {"query": "when was the piano tuned"})
        assert [one["text"] for one in text_of(found)["memories"]] == ["the piano was tuned on Friday"]
        with pytest.raises(MCPError):
            await client.call_tool("remember", {"items": [{"text": "x"}]})
    other = await somebody.http.post("/mcp/everything", json={})
    assert (other.status_code, other.json()["code"]) == (404, "not_found")


async def test_the_command_adds_finds_corrects_and_deletes(somebody: Person) -> None:
    where = ["--url", str(somebody.http.base_url), "--key", somebody.key]

    async def run(*words: str) -> str:
        done = await asyncio.to_thread(CliRunner().invoke, app, ["memory", *words, *where])
        assert done.exit_code == 0, done.output
        return done.stdout

    id = (await run("add", "the boat is called Tern", "--speaker", "Ada", "--conversation", "c1")).split()[0]
    assert f"{id}  2" in await run("search", "what is the boat called")
    assert "(message, c1) Ada: the boat is called Tern" in await run("list", "--kind", "message")
    assert "Ada: the boat is called Gull" in await run("update", id, "--text", "the boat is called Gull")
    assert "the boat is called Tern" in await run("history", id)
    assert "Ada: the boat is called Gull" in await run("context", "boat")
    assert json.loads(await run("get", id, "--json"))["text"] == "the boat is called Gull"
    assert (await run("delete", id, "--yes")).strip() == id
    assert await run("search", "what is the boat called") == ""


async def test_what_the_page_for_programs_shows_runs(everybody: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = await everybody.someone(scopes=("act_for_users",))
    monkeypatch.setenv("PHRONESIS_URL", str(backend.http.base_url))
    monkeypatch.setenv("PHRONESIS_KEY", backend.key)
    page = (ROOT / "docs" / "how-to" / "memory.md").read_text("utf-8")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            await asyncio.to_thread(exec, block, {})
    assert "Bo Then the tickets go on sale in April." in printed.getvalue()
    assert printed.getvalue().endswith("I take my coffee black.\n")
    curl = page.split("```\ncurl", 1)[1].split("```", 1)[0].replace("\\\n", " ")
    for line in f"curl{curl}".strip().splitlines():
        done = await asyncio.to_thread(subprocess.run, ["bash", "-c", line], capture_output=True, text=True, check=True)
        assert "memories" in json.loads(done.stdout)


async def test_nobody_reads_the_memories_of_another(somebody: Person, everybody: Town) -> None:
    somebody_else = await everybody.someone(tenant=somebody.tenant)
    async with (
        AsyncClient(str(somebody.http.base_url), somebody.key) as one,
        AsyncClient(str(somebody_else.http.base_url), somebody_else.key) as other,
    ):
        [mine] = (await one.memory.add("the vault opens at nine")).memories
        assert (await other.memory.search("when does the vault open")).memories == ()
        assert (await other.memory.delete(mine.id)).ids == ()
        with pytest.raises(NotFound):
            await other.memory.get(mine.id)
        assert [found.id for found in (await one.memory.search("when does the vault open")).memories] == [mine.id]
