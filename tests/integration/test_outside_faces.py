"""Outside MCP servers by HTTP and by command on a whole stack, with a real server that changes what it says of itself."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from phronesis_local.layout import inherited_environment
from phronesis_local.parts import SERVICES
from tests.support.mcp_outsiders import INJECTION, RunningOutsider, outsider
from tests.support.operations import WITHOUT_A_MODEL
from tests.support.people import Person, Town, town
from tests.support.production import SERVERS
from tests.support.stack import RunningStack, running

pytestmark = [pytest.mark.verify, pytest.mark.any_store, pytest.mark.timeout(300)]

SERVERS_PATH = "/api/v1/mcp-servers"
LOW = 1


@dataclass
class Here:
    """A stack that an operator lets reach one server beside it."""

    stack: RunningStack
    people: Town
    server: RunningOutsider

    async def phronesis(self, *arguments: str, key: str | None = None) -> tuple[int, str, str]:
        """Run `phronesis mcp`: exit code, stdout, stderr. The key is the owner's where none is stated."""
        where = ["--url", self.stack.data.url.read_text().strip(), "--key", key or self.people.owner.key]
        line = [sys.executable, "-m", "phronesis", "mcp", *where, *arguments]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*line, stdout=pipe, stderr=pipe, env=inherited_environment())
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def states(self, admin: Person, name: str) -> dict[str, dict[str, Any]]:
        """What the server says of its tools, by their names."""
        answer = await admin.http.get(f"{SERVERS_PATH}/{name}/tools")
        assert answer.status_code == 200, answer.text
        return {tool["name"]: tool for tool in answer.json()["tools"]}


@pytest.fixture(scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Here]:
    folder = tmp_path_factory.mktemp("outside") / "data"
    async with outsider() as server:
        environment = WITHOUT_A_MODEL | {"MEDIA_TRUSTED_HOSTS": json.dumps([server.place])}
        async with running(folder, (*SERVERS, *SERVICES), environment) as stack:
            async with town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()) as people:
                await people.ready()
                yield Here(stack, people, server)


@pytest.fixture
def changing(here: Here) -> Iterator[None]:
    """The server says of itself what it said before, once a test is over."""
    before = dict(here.server.says.tools)
    yield
    here.server.says.tools = before


def key() -> dict[str, str]:
    """A key of a write."""
    return {"Idempotency-Key": uuid4().hex}


async def test_a_member_may_neither_register_nor_see_a_server_by_http(here: Here) -> None:
    member = await here.people.someone()
    given = {"name": "out", "url": here.server.url}
    added = await member.http.post(SERVERS_PATH, json=given, headers=key())
    listed = await member.http.get(SERVERS_PATH)
    assert [(one.status_code, one.json()["code"]) for one in (added, listed)] == [(403, "forbidden")] * 2


@pytest.mark.usefixtures("changing")
async def test_what_a_server_says_anew_of_a_tool_counts_once_an_administrator_accepts_it_by_http(here: Here) -> None:
    admin = await here.people.someone(role="admin")
    added = await admin.http.post(SERVERS_PATH, json={"name": "out", "url": here.server.url}, headers=key())
    assert (added.status_code, added.headers["Location"], added.json()["tools"]) == (201, f"{SERVERS_PATH}/out", [])
    seen = await here.states(admin, "out")
    assert seen["add"]["state"] == "new"
    tools = [{"name": "add", "risk": LOW}]

    async def accept(pin: str) -> Any:
        return await admin.http.put(f"{SERVERS_PATH}/out/tools", json={"tools": tools, "pins": {"add": pin}}, headers=key())

    accepted = await accept(seen["add"]["pin"])
    assert (accepted.status_code, [tool["name"] for tool in accepted.json()["tools"]]) == (200, ["add"])

    here.server.says.tools = {**here.server.says.tools, "add": {**here.server.says.tools["add"], "description": INJECTION}}
    changed = (await here.states(admin, "out"))["add"]
    assert (changed["state"], f"+{INJECTION}" in changed["diff"]) == ("changed", True)
    refused = await accept(seen["add"]["pin"])
    assert (refused.status_code, refused.json()["code"]) == (409, "tool_changed")
    (listed,) = (await admin.http.get(SERVERS_PATH)).json()["servers"]
    assert [tool["description"] for tool in listed["tools"]] == ["Add two numbers."]
    assert (await accept(changed["pin"])).status_code == 200
    assert (await here.states(admin, "out"))["add"]["state"] == "accepted"

    for existed in (True, False):
        gone = await admin.http.delete(f"{SERVERS_PATH}/out", headers=key())
        assert (gone.status_code, gone.json()["existed"]) == (200, existed)


@pytest.mark.usefixtures("changing")
async def test_a_server_is_registered_looked_at_accepted_and_removed_by_command(here: Here) -> None:
    code, out, err = await here.phronesis("add", "planet", "--url", here.server.url, "--json")
    assert (code, json.loads(out)["name"]) == (0, "planet"), err
    code, out, err = await here.phronesis("inspect", "planet")
    assert (code, "new       add  Add two numbers." in out) == (0, True), err
    code, out, err = await here.phronesis("accept", "planet", "add", "--risk", "low", "--yes", "--json")
    assert (code, [tool["name"] for tool in json.loads(out)["tools"]]) == (0, ["add"]), err
    here.server.says.tools = {
        **here.server.says.tools,
        "add": {**here.server.says.tools["add"], "description": "Add, and tell."},
    }
    code, out, err = await here.phronesis("inspect", "planet")
    assert (code, "changed   add" in out, "+Add, and tell." in out) == (0, True, True), err
    code, out, err = await here.phronesis("servers", "--json")
    (server,) = json.loads(out)["servers"]
    assert (code, server["tools"][0]["description"]) == (0, "Add two numbers."), err
    code, out, err = await here.phronesis("accept", "planet", "add", "--risk", "low", "--yes", "--json")
    assert (code, json.loads(out)["tools"][0]["description"]) == (0, "Add, and tell."), err
    code, _, err = await here.phronesis("remove", "planet", "--yes")
    assert (code, "planet is removed" in err) == (0, True)
    code, out, err = await here.phronesis("servers", "--json")
    assert (code, json.loads(out)["servers"]) == (0, []), err


async def test_a_member_is_refused_by_command(here: Here) -> None:
    member = await here.people.someone()
    for arguments in (("add", "out", "--url", here.server.url), ("servers",), ("remove", "out", "--yes")):
        code, _, err = await here.phronesis(*arguments, key=member.key)
        assert (code != 0, "forbidden" in err) == (True, True), err
