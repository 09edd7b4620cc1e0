"""The recipes for n8n and Make on a whole stack: each request is sent as the workflow or the page has it."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from typing import Any
from uuid import uuid4

import pytest

from scripts.tree import DOCS, ROOT
from tests.support.people import Person, Town

pytestmark = [pytest.mark.verify, pytest.mark.any_store]
WORKFLOW = ROOT / "integrations" / "n8n" / "remember-and-recall.json"
PAGE = DOCS / "how-to" / "n8n-and-make.md"
_EVALUATE = """
const { text, execution, outputs } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const $ = (name) => ({ item: { json: outputs[name] } });
const value = (code) => new Function("$", "$execution", `return (${code})`)($, execution);
process.stdout.write(text.replace(/{{(.*?)}}/gs, (_, code) => value(code)));
"""
"""An expression of n8n is text with JavaScript in double braces."""


class Run:
    """One execution of the workflow: its nodes in order, each with the output of those before it."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._id = uuid4().hex
        self._outputs: dict[str, Any] = {}

    async def of(self, body: dict[str, str]) -> Any:
        """What the webhook is answered."""
        workflow = json.loads(WORKFLOW.read_text())
        nodes = {node["name"]: node for node in workflow["nodes"]}
        [name] = nodes.keys() - {link["node"] for ways in workflow["connections"].values() for link in ways["main"][0]}
        output: Any = {"body": body}
        while True:
            node = nodes[name]
            match node["type"].removeprefix("n8n-nodes-base."):
                case "webhook":
                    pass
                case "set":
                    assert node["parameters"]["includeOtherFields"]
                    stated = {one["name"]: one["value"] for one in node["parameters"]["assignments"]["assignments"]}
                    assert stated == {"phronesis_url": "https://phronesis.example"}
                    output = output | {"phronesis_url": str(self._person.http.base_url).rstrip("/")}
                case "httpRequest":
                    output = await self._send(node["parameters"])
                case "respondToWebhook":
                    assert node["parameters"]["respondWith"] == "json"
                    return json.loads(await self._value(node["parameters"]["responseBody"]))
                case other:
                    raise AssertionError(other)
            self._outputs[name] = output
            name = workflow["connections"][name]["main"][0][0]["node"]

    async def _send(self, node: dict[str, Any]) -> Any:
        how = (node["authentication"], node["genericAuthType"], node["sendHeaders"], node["sendBody"], node["specifyBody"])
        assert how == ("genericCredentialType", "httpBearerAuth", True, True, "json")
        headers = {one["name"]: await self._value(one["value"]) for one in node["headerParameters"]["parameters"]}
        body = json.loads(await self._value(node["jsonBody"]))
        answer = await self._person.http.request(node["method"], await self._value(node["url"]), json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def _value(self, text: str) -> str:
        if not text.startswith("="):
            return text
        given = {"text": text[1:], "execution": {"id": self._id}, "outputs": self._outputs}
        process = await asyncio.create_subprocess_exec(
            *("node", "-e", _EVALUATE), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate(json.dumps(given).encode())
        assert process.returncode == 0, text
        return out.decode()


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node, whose language n8n's expressions are in")
async def test_the_workflow_for_n8n_recalls_what_its_user_said_before(everybody: Town) -> None:
    backend = await everybody.someone(scopes=("act_for_users",))
    said = 'I take my coffee "black",\nas ever.'
    ada = {"user": "ada@example.com", "conversation": "support-417"}
    run = Run(backend)
    assert await run.of(ada | {"text": said}) == {"known": ""}
    await run.of(ada | {"text": said})  # the same execution again, as a retry
    later = await Run(backend).of(ada | {"text": "How do I take my coffee?"})
    assert re.fullmatch(r'\[1\] [\d-]{10} user: I take my coffee "black", as ever\.', later["known"])
    other = await Run(backend).of({"user": "bo@example.com", "conversation": "c", "text": "How do I take my coffee?"})
    assert other == {"known": ""}


async def test_the_requests_for_make_recall_what_a_user_said_before(everybody: Town) -> None:
    backend = await everybody.someone(scopes=("act_for_users",))
    make = PAGE.read_text("utf-8").split("## Make\n", 1)[1]
    requests = re.findall(r"(\| field .*?)\n\n```json\n(.*?)```", make, re.DOTALL)
    assert len(requests) == 2

    async def send(number: int, **given: str) -> Any:
        table, body = requests[number]
        known = {f"1.{name}": value for name, value in given.items()} | {"var.scenario.executionId": uuid4().hex}
        table, body = (re.sub(r"{{(.+?)}}", lambda match: known[match[1]], text) for text in (table, body))
        fields = dict(re.findall(r"^\| (?:Header `)?([\w-]+)`? \| `(.+?)` \|$", table, re.MULTILINE))
        url, method = fields.pop("URL"), fields.pop("Method")
        assert url.startswith("https://phronesis.example/")
        path = url.removeprefix("https://phronesis.example")
        answer = await backend.http.request(method, path, content=body, headers=fields | {"Content-Type": "application/json"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    ada = {"user": "ada@example.com", "conversation": "support-417"}
    assert (await send(0, **ada, text="How do I take my coffee?"))["text"] == ""
    [added] = (await send(1, **ada, text="I take my coffee black."))["memories"]
    assert added["status"] == "created"
    assert "user: I take my coffee black." in (await send(0, **ada, text="How do I take my coffee?"))["text"]
    assert (await send(0, user="bo@example.com", conversation="c", text="How do I take my coffee?"))["text"] == ""
