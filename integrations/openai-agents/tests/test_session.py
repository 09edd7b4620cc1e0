"""Sessions on a running stack, with the SDK's own runner, its own session to compare with, and a scripted model."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest
from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled
from agents.items import TResponseInputItem
from agents.memory import Session, SessionSettings, SQLiteSession

from phronesis import AsyncClient
from phronesis_openai_agents import PhronesisSession, search_tool

Answer = Callable[[list[dict[str, Any]]], dict[str, Any]]


def say(text: str) -> dict[str, Any]:
    """A message of the model."""
    return {"role": "assistant", "content": text}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call of a tool by the model."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "call-1", "type": "function", "function": function}]}


@dataclass
class ScriptedModel:
    """What the model answers to messages, and what it was asked."""

    answer: Answer = lambda messages: say("Noted.")
    asked: list[list[dict[str, Any]]] = field(default_factory=list)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    """A model that the SDK's own client reaches by HTTP."""
    scripted = ScriptedModel()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
            scripted.asked.append(messages)
            message = scripted.answer(messages)
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            whole = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
            body = json.dumps(whole).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "scripted")
        set_default_openai_api("chat_completions")
        set_tracing_disabled(True)
        yield scripted
        server.shutdown()


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient() as client:
        yield client


def items(*texts: str) -> list[TResponseInputItem]:
    return [cast(TResponseInputItem, {"role": "user", "content": text}) for text in texts]


VARIED = cast(
    list[TResponseInputItem],
    [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "What is in it?"}, {"type": "input_image", "detail": "auto"}],
        },
        {"id": "rs_1", "type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "it"}', "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": "Ein Käfer — 甲虫"},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "A beetle.", "annotations": [], "logprobs": []}],
        },
        {"role": "user", "content": ""},
        {"role": "user", "content": "long " * 10_000},
    ],
)

Step = Callable[[Session], Any]
STEPS: dict[str, Step] = {
    "all": lambda session: session.get_items(),
    "the last two": lambda session: session.get_items(2),
    "more than there are": lambda session: session.get_items(1_000),
    "none": lambda session: session.get_items(0),
    "add nothing": lambda session: session.add_items([]),
    "add one": lambda session: session.add_items(items("one more")),
    "add one again": lambda session: session.add_items(items("one more")),
    "add many": lambda session: session.add_items(items(*(f"line {number}" for number in range(230)))),
    "add varied": lambda session: session.add_items(VARIED),
    "the last hundred and fifty": lambda session: session.get_items(150),
    "pop": lambda session: session.pop_item(),
    "clear": lambda session: session.clear_session(),
}


@pytest.fixture
def session(client: AsyncClient, user: str) -> PhronesisSession:
    return PhronesisSession("s1", client, user_id=user)


@pytest.mark.parametrize(
    "steps",
    [
        ["all", "pop", "clear", "all"],
        ["add one", "add one again", "all", "pop", "all", "pop", "pop", "all"],
        ["add varied", "all", "the last two", "pop", "pop", "the last two", "add one", "all"],
        ["add many", "add varied", "the last hundred and fifty", "more than there are", "none", "all", "pop", "all"],
        ["add many", "clear", "all", "add nothing", "add one", "the last two"],
    ],
    ids=" - ".join,
)
async def test_a_session_does_what_the_one_in_sqlite_does(session: PhronesisSession, steps: list[str]) -> None:
    model = SQLiteSession("s1")
    for name in steps:
        assert await STEPS[name](session) == await STEPS[name](model), name
    model.close()


async def test_a_session_is_one_of_the_sdk(session: PhronesisSession) -> None:
    assert isinstance(session, Session)


async def test_a_session_is_read_again_by_its_id_and_sessions_are_kept_apart(client: AsyncClient, user: str) -> None:
    await PhronesisSession("s1", client, user_id=user).add_items(items("first"))
    await PhronesisSession("s2", client, user_id=user).add_items(items("second"))
    await PhronesisSession("s1", client, user_id=f"{user}-2").add_items(items("another user's"))
    assert await PhronesisSession("s1", client, user_id=user).get_items() == items("first")
    await PhronesisSession("s1", client, user_id=user).clear_session()
    assert await PhronesisSession("s2", client, user_id=user).get_items() == items("second")
    assert await PhronesisSession("s1", client, user_id=f"{user}-2").get_items() == items("another user's")


async def test_messages_of_other_programs_in_the_conversation_are_no_items(session: PhronesisSession, user: str) -> None:
    async with AsyncClient(user_id=user) as client:
        await client.memory.add({"speaker": "Ada", "text": "by hand"}, conversation_id="s1")
        await session.add_items(items("by the SDK"))
        await session.clear_session()
        assert [one.text for one in (await client.memory.list()).memories] == ["by hand"]


async def test_the_limit_of_the_settings_holds_where_none_is_given(client: AsyncClient, user: str) -> None:
    session = PhronesisSession("s1", client, user_id=user, session_settings=SessionSettings(limit=2))
    await session.add_items(items("a", "b", "c"))
    assert (await session.get_items(), await session.get_items(1)) == (items("b", "c"), items("c"))


async def test_items_of_a_megabyte_and_more_in_all_are_added_and_read_whole(session: PhronesisSession) -> None:
    large = items(*(f"{number} " + "x" * 150_000 for number in range(12)))
    await session.add_items(large)
    assert await session.get_items() == large


async def test_a_run_goes_on_where_the_run_before_ended(model: ScriptedModel, session: PhronesisSession) -> None:
    agent = Agent(name="Assistant")
    await Runner.run(agent, "My boat is called Tern.", session=session)
    model.answer = lambda messages: say("Tern." if "Tern" in json.dumps(messages) else "I do not know.")
    result = await Runner.run(agent, "What is my boat called?", session=session)
    assert result.final_output == "Tern."
    assert [(one["role"], one["content"]) for one in model.asked[1]] == [
        ("user", "My boat is called Tern."),
        ("assistant", "Noted."),
        ("user", "What is my boat called?"),
    ]


async def test_calls_of_tools_are_kept_with_their_results(model: ScriptedModel, session: PhronesisSession) -> None:
    @function_tool
    def depth(place: str) -> str:
        """How deep the water is."""
        return f"{place}: 12 m"

    model.answer = lambda messages: say("12 m") if messages[-1]["role"] == "tool" else call("depth", place="the pier")
    await Runner.run(Agent(name="Assistant", tools=[depth]), "How deep is it at the pier?", session=session)
    model.answer = lambda messages: say("Still 12 m.")
    await Runner.run(Agent(name="Assistant", tools=[depth]), "And now?", session=session)
    assert [one["role"] for one in model.asked[-1]] == ["user", "assistant", "tool", "assistant", "user"]
    assert model.asked[-1][2]["content"] == "the pier: 12 m"


async def test_an_agent_finds_what_was_said_in_another_session_of_its_user(
    model: ScriptedModel, client: AsyncClient, user: str
) -> None:
    await PhronesisSession("s1", client, user_id=user).add_items(items("My boat is called Tern."))
    model.answer = lambda messages: (
        say(messages[-1]["content"]) if messages[-1]["role"] == "tool" else call("search_memory", query="boat")
    )
    for who, found in ((user, True), (f"{user}-2", False)):
        agent = Agent(name="Assistant", tools=[search_tool(client, user_id=who)])
        result = await Runner.run(agent, "What is my boat called?", session=PhronesisSession("s2", client, user_id=who))
        assert ("user: My boat is called Tern." in result.final_output) is found


async def test_an_agent_is_told_that_memory_holds_nothing(model: ScriptedModel, client: AsyncClient, user: str) -> None:
    model.answer = lambda messages: (
        say(messages[-1]["content"]) if messages[-1]["role"] == "tool" else call("search_memory", query="boat")
    )
    agent = Agent(name="Assistant", tools=[search_tool(client, user_id=user)])
    assert (await Runner.run(agent, "What is my boat called?")).final_output == "Memory holds nothing on this."


@pytest.mark.parametrize("page", ["integrations/openai-agents/README.md", "docs/how-to/openai-agents.md"])
def test_what_the_page_shows_runs(model: ScriptedModel, run_page: Callable[..., str], page: str) -> None:
    def answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
        if messages[-1]["role"] == "tool":
            return say(messages[-1]["content"])
        known = "I take my coffee black." in json.dumps(messages[:-1])
        question = messages[-1]["content"].endswith("?")
        return say("You take it black.") if known else call("search_memory", query="coffee") if question else say("Noted.")

    model.answer = answer
    assert "black" in run_page(page)
