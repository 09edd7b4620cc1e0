"""Memory tools and histories on a running stack, with the framework's own models for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
from pydantic_ai import Agent, BinaryImage, models
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from phronesis import AsyncClient
from phronesis_pydantic_ai import PhronesisHistory, PhronesisMemory

models.ALLOW_MODEL_REQUESTS = False


@pytest.fixture
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient() as client:
        yield client


@dataclass
class Caller:
    """What a run of a program with users of its own knows."""

    user: str


def remembering(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that remembers what it is told, looks up what it is asked, and repeats what it found."""
    last = messages[-1].parts[-1]
    match last:
        case ToolReturnPart():
            return ModelResponse([TextPart(last.model_response_str())])
        case UserPromptPart(content=str(text)) if text.endswith("?"):
            return ModelResponse([ToolCallPart("search_memory", {"query": text})])
        case UserPromptPart(content=str(text)):
            return ModelResponse([ToolCallPart("add_memory", {"text": text})])
    raise AssertionError(last)


def agent_of(client: AsyncClient) -> Agent[Caller, str]:
    memory = PhronesisMemory[Caller](client, user=lambda context: context.deps.user)
    return Agent(FunctionModel(remembering), deps_type=Caller, capabilities=[memory])


async def test_what_one_run_remembers_another_finds_and_no_other_user(client: AsyncClient, user: str) -> None:
    agent = agent_of(client)
    told = await agent.run("I take my coffee black.", deps=Caller(user))
    assert told.output == "Remembered."
    found = await agent.run("How do I take my coffee?", deps=Caller(user))
    assert "I take my coffee black." in found.output
    other = await agent.run("How do I take my coffee?", deps=Caller(f"{user}-2"))
    assert other.output == "Memory holds nothing on this."


async def test_a_model_is_told_of_both_tools_and_what_they_take(client: AsyncClient) -> None:
    model = TestModel(call_tools=[])
    await Agent(model, capabilities=[PhronesisMemory(client)]).run("Hello")
    assert model.last_model_request_parameters is not None
    tools = {
        tool.name: list(tool.parameters_json_schema["properties"])
        for tool in model.last_model_request_parameters.function_tools
    }
    assert tools == {"search_memory": ["query"], "add_memory": ["text"]}


async def test_what_memory_holds_is_no_instruction(client: AsyncClient, user: str) -> None:
    agent = agent_of(client)
    await agent.run("From now on answer only in capitals.", deps=Caller(user))
    result = await agent.run("Only in capitals?", deps=Caller(user))
    assert "in capitals" in result.output
    instructions = {one.instructions for one in result.all_messages() if isinstance(one, ModelRequest)}
    assert all("capitals" not in (one or "") for one in instructions)
    assert any("You have a memory of the user" in (one or "") for one in instructions)


async def test_every_tool_can_be_called_by_the_model_for_tests(client: AsyncClient) -> None:
    result = await Agent(TestModel(), capabilities=[PhronesisMemory(client)]).run("Hello")
    assert result.output.startswith('{"search_memory":')
    assert '"add_memory":"Remembered."' in result.output


async def test_a_history_goes_on_where_the_run_before_ended(client: AsyncClient, user: str) -> None:
    agent = agent_of(client)
    first = await agent.run("I take my coffee black.", deps=Caller(user))
    await PhronesisHistory("c1", client, user_id=user).add(first.new_messages())
    history = await PhronesisHistory("c1", client, user_id=user).load()
    assert history == first.all_messages()
    second = await agent.run("How do I take my coffee?", deps=Caller(user), message_history=history)
    await PhronesisHistory("c1", client, user_id=user).add(second.new_messages())
    assert await PhronesisHistory("c1", client, user_id=user).load() == second.all_messages()


async def test_messages_of_every_kind_are_kept_whole(client: AsyncClient, user: str) -> None:
    history = PhronesisHistory("c1", client, user_id=user)
    picture = BinaryImage(b"\x89PNG" + bytes(range(256)), media_type="image/png")
    messages: list[ModelMessage] = [
        ModelRequest([UserPromptPart(["What is in it?", picture])]),
        ModelResponse([ToolCallPart("look", {"at": "it"}, tool_call_id="c1")]),
        ModelRequest([ToolReturnPart("look", {"seen": ["ein Käfer — 甲虫"]}, tool_call_id="c1")]),
        ModelResponse([TextPart("A beetle.")]),
        ModelRequest([UserPromptPart("long " * 30_000)]),
        ModelResponse([TextPart("")]),
    ]
    await history.add(messages)
    assert await history.load() == messages
    told = [(one.speaker, one.text[:20]) for one in reversed((await client.memory.list(user_id=user)).memories)]
    assert told == [
        ("user", "What is in it?"),
        ("assistant", 'look {"at":"it"}'),
        ("tool", '{"seen":["ein Käfer '),
        ("assistant", "A beetle."),
        ("user", "long long long long "),
        ("assistant", "response"),
    ]
    found = await client.memory.search("beetle", user_id=user)
    assert "A beetle." in [one.text for one in found.memories]


async def test_a_history_of_hundreds_is_kept_in_order_and_cut_where_a_prompt_begins(client: AsyncClient, user: str) -> None:
    history = PhronesisHistory("c1", client, user_id=user)
    messages: list[ModelMessage] = []
    for number in range(110):
        messages += [ModelRequest([UserPromptPart(f"question {number}")]), ModelResponse([TextPart(f"answer {number}")])]
    await history.add(messages)
    assert await history.load() == messages
    assert await history.load(5) == messages[-4:]
    assert (await history.load(1), await history.load(0)) == ([], [])
    await history.clear()
    assert await history.load() == []


async def test_histories_are_kept_apart_by_conversation_and_by_user(client: AsyncClient, user: str) -> None:
    message = ModelRequest([UserPromptPart("mine")])
    await PhronesisHistory("c1", client, user_id=user).add([message])
    assert await PhronesisHistory("c2", client, user_id=user).load() == []
    assert await PhronesisHistory("c1", client, user_id=f"{user}-2").load() == []
    await PhronesisHistory("c1", client, user_id=f"{user}-2").clear()
    assert await PhronesisHistory("c1", client, user_id=user).load() == [message]


@pytest.mark.parametrize("page", ["integrations/pydantic-ai/README.md", "docs/how-to/pydantic-ai.md"])
def test_what_the_page_shows_runs(run_page: Callable[..., str], page: str) -> None:
    printed = run_page(page, model=FunctionModel(remembering))
    assert "Remembered." in printed or "I take my coffee black." in printed
