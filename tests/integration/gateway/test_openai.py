"""The face for programs made for OpenAI's API, by its official SDK."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from phronesis_bus import Call, connect, serve
from phronesis_contracts.instructions import AGENT_LIST, AgentNames, ListAgents
from phronesis_contracts.media import ACCEPT_UPLOAD, AcceptUpload, Media, MediaKind
from phronesis_contracts.orchestrator import ClientRequest, ClientToolCall, Problem, Reply, SubmitTurn, Usage
from tests.support.gateway import Holder, RunningGateway
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.servers import NatsServer

PIXEL = base64.b64encode(b"\x89PNG a pixel").decode()


class Neighbours:
    """Instructions and media that answer as told."""

    def __init__(self) -> None:
        self.uploads: list[tuple[str, str | None, str | None]] = []

    async def agents(self, call: Call, request: ListAgents) -> AgentNames:
        return AgentNames(agents=("dialogue", "maestro", "noor"))

    async def accept(self, call: Call, request: AcceptUpload) -> Media:
        self.uploads.append((request.name, request.claimed_type, call.key))
        id = f"m{len(self.uploads)}"
        return Media(id=id, name=request.name, type="image/png", kind=MediaKind.IMAGE, size=13, sha256="0" * 64)


@pytest.fixture(scope="module")
async def neighbours(nats_server: NatsServer) -> AsyncIterator[Neighbours]:
    """Instructions that know three agents, and media that take every file."""
    made = Neighbours()
    async with (
        connect("instructions", nats_server.settings("instructions")) as instructions,
        connect("media", nats_server.settings("media")) as media,
    ):
        await serve(instructions, AGENT_LIST, made.agents)
        await serve(media, ACCEPT_UPLOAD, made.accept)
        yield made


@pytest.fixture
async def sdk(api: RunningGateway, ann: Holder, neighbours: Neighbours) -> AsyncIterator[AsyncOpenAI]:
    """The SDK with Ann's key."""
    async with AsyncOpenAI(base_url=f"{api.http.base_url}/v1", api_key=ann.secret, max_retries=0) as client:
        yield client


def user(text: str) -> Any:
    return {"role": "user", "content": text}


async def test_the_agents_are_the_models(sdk: AsyncOpenAI) -> None:
    assert [(one.id, one.object, one.owned_by) for one in (await sdk.models.list()).data] == [
        ("dialogue", "model", "phronesis"),
        ("maestro", "model", "phronesis"),
        ("noor", "model", "phronesis"),
    ]
    assert (await sdk.models.retrieve("noor")).id == "noor"


async def test_a_model_that_there_is_not_is_not_found(sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator) -> None:
    with pytest.raises(openai.NotFoundError) as listed:
        await sdk.models.retrieve("gpt-nothing")
    text, problem = f"to nobody {uuid4()}", Problem(code="bad_request", status=400, detail="there is no agent", field="agent")
    orchestrator.refuse = lambda turn: problem if turn.text == text else None
    with pytest.raises(openai.NotFoundError) as asked:
        await sdk.chat.completions.create(model="gpt-nothing", messages=[user(text)])
    orchestrator.refuse = lambda turn: None
    assert [(one.value.code, one.value.param, one.value.type) for one in (listed, asked)] == [
        ("model_not_found", "model", "invalid_request_error")
    ] * 2


async def test_a_chat_is_answered_whole(sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator) -> None:
    text = f"hello {uuid4()}"

    def finish(turn: SubmitTurn, reply: Reply) -> Reply:
        usage = Usage(input_tokens=7, output_tokens=5)
        return reply.model_copy(update={"usage": usage, "reasoner": "extractive", "degraded": ("memory",)})

    before, orchestrator.finish = orchestrator.finish, finish
    answer = await sdk.chat.completions.create(model="dialogue", messages=[user(text)])
    orchestrator.finish = before
    (choice,) = answer.choices
    assert (answer.object, answer.model, choice.finish_reason) == ("chat.completion", "dialogue", "stop")
    assert (choice.message.role, choice.message.content) == ("assistant", f"You said: {text}")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (7, 5, 12)
    extra = answer.model_extra["phronesis"]  # type: ignore[index]
    assert answer.id == f"chatcmpl-{extra['turn_id']}"
    assert (extra["reasoner"], extra["degraded"], extra["ignored"]) == ("extractive", ["memory"], [])


async def test_a_stream_says_what_the_whole_answer_says(sdk: AsyncOpenAI) -> None:
    text = "long " * 300 + str(uuid4())
    stream = await sdk.chat.completions.create(
        model="dialogue", messages=[user(text)], stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    said = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert said == f"You said: {text}"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["stop"]
    assert chunks[-1].usage is not None
    assert chunks[-1].choices == []
    assert len({chunk.id for chunk in chunks}) == 1


async def test_a_chat_goes_on_in_the_conversation_that_ends_as_the_client_says(sdk: AsyncOpenAI) -> None:
    asked = user(f"one {uuid4()}")
    first = await sdk.chat.completions.create(model="dialogue", messages=[asked])
    said: Any = {"role": "assistant", "content": first.choices[0].message.content}
    later = await sdk.chat.completions.create(model="dialogue", messages=[asked, said, user(f"two {uuid4()}")])
    other = await sdk.chat.completions.create(model="noor", messages=[asked, said, user(f"three {uuid4()}")])
    edited = await sdk.chat.completions.create(model="dialogue", messages=[user("else"), said, user(f"four {uuid4()}")])
    told: list[Any] = [one.model_extra["phronesis"] for one in (first, later, other, edited)]  # type: ignore[index]
    mine = told[0]["conversation_id"]
    assert [one["conversation_id"] == mine for one in told] == [True, True, False, False]
    assert [one["ignored"] for one in told] == [[], [], ["history"], ["history"]]


async def test_chats_with_equal_replies_stay_apart(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestrator, "reply", lambda turn: "I do not know.")
    said: Any = {"role": "assistant", "content": "I do not know."}
    one, other = user(f"one {uuid4()}"), user(f"other {uuid4()}")
    first = await sdk.chat.completions.create(model="dialogue", messages=[one])
    await sdk.chat.completions.create(model="dialogue", messages=[other])
    later = await sdk.chat.completions.create(model="dialogue", messages=[one, said, user("And now?")])
    ids = [answer.model_extra["phronesis"]["conversation_id"] for answer in (first, later)]  # type: ignore[index]
    assert ids[0] == ids[1]


async def test_a_conversation_can_be_named(sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator) -> None:
    text, named = f"named {uuid4()}", uuid4().hex
    await sdk.chat.completions.create(model="dialogue", messages=[user(text)], metadata={"conversation_id": named})
    id = await orchestrator.arrived(text=text)
    assert orchestrator.submitted[id][0].conversation_id == named


@pytest.mark.parametrize(("reasoner", "ignored"), [("scripted", []), ("extractive", ["messages.0"])])
async def test_wishes_of_a_client_go_beside_the_message_and_where_rules_answer_they_are_said_to_be_ignored(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch, reasoner: str, ignored: list[str]
) -> None:
    text = f"ruled {uuid4()}"
    monkeypatch.setattr(orchestrator, "finish", lambda turn, reply: reply.model_copy(update={"reasoner": reasoner}))
    rules: Any = {"role": "system", "content": "Answer in French."}
    answer = await sdk.chat.completions.create(model="dialogue", messages=[rules, user(text)])
    assert answer.model_extra["phronesis"]["ignored"] == ignored  # type: ignore[index]
    id = await orchestrator.arrived(text=text)
    submitted = orchestrator.submitted[id][0]
    assert submitted.text == text
    assert submitted.client == ClientRequest(instructions="Answer in French.")


async def test_a_picture_inside_a_message_becomes_an_upload_once(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator, neighbours: Neighbours, ann: Holder
) -> None:
    text, key = f"seen {uuid4()}", uuid4().hex
    parts: Any = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]
    neighbours.uploads.clear()
    await sdk.chat.completions.create(
        model="dialogue", messages=[{"role": "user", "content": parts}], extra_headers={"Idempotency-Key": key}
    )
    id = await orchestrator.arrived(text=text)
    assert orchestrator.submitted[id][0].media == ("m1",)
    assert neighbours.uploads == [("image", "image/png", f"openai/{ann.who.user}/{key}/0")]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages.0"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": "x"}], "n": 2}, "n"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function"}]}, "tools.0.function"),
        (
            {"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "custom", "function": {"name": "x"}}]},
            "tools.0.type",
        ),
        ({"messages": [{"role": "user", "content": "x"}], "functions": [{"name": "x"}]}, "functions"),
        ({"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "grammar"}}, "response_format"),
        (
            {"messages": [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c", "content": "y"}]},
            "messages.1.tool_call_id",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "x"},
                    {
                        "role": "assistant",
                        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                    },
                ]
            },
            "messages",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "?", "format": "wav"}}]}
                ]
            },
            "messages.0.content.0.input_audio.data",
        ),
    ],
)
async def test_what_an_agent_cannot_do_is_refused_by_name(sdk: AsyncOpenAI, body: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.post("/chat/completions", body={"model": "dialogue"} | body, cast_to=httpx.Response)
    assert (refused.value.param, refused.value.code, refused.value.type) == (param, "bad_request", "invalid_request_error")


async def test_a_wrong_key_is_an_authentication_error(api: RunningGateway) -> None:
    async with AsyncOpenAI(base_url=f"{api.http.base_url}/v1", api_key="phr_wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError) as refused:
            await client.chat.completions.create(model="dialogue", messages=[user("x")])
    assert (refused.value.code, refused.value.type) == ("unauthorized", "authentication_error")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_fails_is_an_error_of_the_server(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator, stream: bool
) -> None:
    text = f"broken {uuid4()}"
    orchestrator.ends[text] = Problem(code="model_unavailable", status=503, detail="the model is away")

    async def asked() -> None:
        answer: Any = await sdk.chat.completions.create(model="dialogue", messages=[user(text)], stream=stream)
        [chunk async for chunk in answer]

    with pytest.raises(openai.APIError) as refused:
        await asked()
    assert (refused.value.code, refused.value.type) == ("model_unavailable", "server_error")


@pytest.mark.verify
async def test_a_slow_answer_is_waited_for_and_then_the_turn_goes_on(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"slow {uuid4()}"
    orchestrator.slow.add(text)
    with pytest.raises(openai.APIStatusError) as late:
        await sdk.chat.completions.create(model="dialogue", messages=[user(text)])
    id = await orchestrator.arrived(text=text)
    assert (late.value.status_code, late.value.code) == (504, "timed_out")
    assert id in late.value.message


async def test_a_response_is_answered_whole_and_can_be_had_again(sdk: AsyncOpenAI) -> None:
    text = f"respond {uuid4()}"
    made = await sdk.responses.create(model="dialogue", input=text, metadata={"a": "b"}, instructions="Obey.")
    assert (made.status, made.output_text, made.metadata, made.error) == ("completed", f"You said: {text}", {"a": "b"}, None)
    again = await sdk.responses.retrieve(made.id)
    assert (again.id, again.output_text, again.status) == (made.id, made.output_text, "completed")


async def test_a_response_goes_on_in_the_conversation_of_the_one_before(sdk: AsyncOpenAI) -> None:
    first = await sdk.responses.create(model="dialogue", input=f"one {uuid4()}")
    later = await sdk.responses.create(model="dialogue", input=f"two {uuid4()}", previous_response_id=first.id)
    assert (first.conversation, later.previous_response_id) == (later.conversation, first.id)


async def test_a_responses_events_build_it_up(sdk: AsyncOpenAI) -> None:
    text = "long " * 100 + str(uuid4())
    async with sdk.responses.stream(
        model="dialogue", input=[{"role": "user", "content": [{"type": "input_text", "text": text}]}]
    ) as stream:
        kinds = [event.type async for event in stream]
        whole = await stream.get_final_response()
    assert whole.output_text == f"You said: {text}"
    assert list(dict.fromkeys(kinds)) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


async def test_a_response_for_the_background_is_there_at_once_and_can_be_cancelled(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator
) -> None:
    text = f"later {uuid4()}"
    orchestrator.slow.add(text)
    made = await sdk.responses.create(model="dialogue", input=text, background=True)
    assert made.status == "queued"
    assert (await sdk.responses.cancel(made.id)).status == "cancelled"


async def test_a_response_of_somebody_else_is_not_found(sdk: AsyncOpenAI, api: RunningGateway) -> None:
    stranger = await api.holder()
    mine = await sdk.responses.create(model="dialogue", input=f"mine {uuid4()}")
    async with AsyncOpenAI(base_url=f"{api.http.base_url}/v1", api_key=stranger.secret, max_retries=0) as client:
        for call in (client.responses.retrieve(mine.id), client.responses.retrieve("resp_nonsense")):
            with pytest.raises(openai.NotFoundError) as refused:
                await call
            assert refused.value.code == "not_found"


async def test_the_synchronous_sdk_works_too(api: RunningGateway, ann: Holder, neighbours: Neighbours) -> None:
    def asked() -> str | None:
        with OpenAI(base_url=f"{api.http.base_url}/v1", api_key=ann.secret, max_retries=0) as client:
            return client.chat.completions.create(model="dialogue", messages=[user("plain")]).choices[0].message.content

    assert await asyncio.to_thread(asked) == "You said: plain"


TOOL: Any = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def calling(turn: SubmitTurn, reply: Reply) -> Reply:
    """A reply that calls a tool of the client, until its result is there."""
    if turn.client is None or not turn.client.tools or turn.client.steps:
        return reply
    call = ClientToolCall(id=f"call_{reply.turn_id.replace('-', '')}_1", name="get_weather", arguments='{"city": "Oslo"}')
    return reply.model_copy(update={"user_response": "", "tool_calls": (call,)})


async def test_a_call_of_a_clients_tool_and_its_result_stay_in_one_conversation(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestrator, "finish", calling)
    asked = user(f"weather {uuid4()}")
    first = await sdk.chat.completions.create(model="dialogue", messages=[asked], tools=[TOOL])
    (choice,) = first.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    (call,) = choice.message.tool_calls or ()
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Oslo"}')
    said: Any = choice.message.model_dump(exclude_none=True)
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "9 degrees"}
    later = await sdk.chat.completions.create(model="dialogue", messages=[asked, said, result], tools=[TOOL])
    assert later.choices[0].finish_reason == "stop"
    one, two = (answer.model_extra["phronesis"]["conversation_id"] for answer in (first, later))  # type: ignore[index]
    assert one == two
    id = later.model_extra["phronesis"]["turn_id"]  # type: ignore[index]
    submitted = orchestrator.submitted[id][0]
    assert submitted.text == asked["content"]
    assert submitted.client is not None
    assert [(step.result_of, step.text) for step in submitted.client.steps] == [(None, ""), (call.id, "9 degrees")]


async def test_a_stream_brings_calls_in_pieces_that_the_sdk_puts_together(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestrator, "finish", calling)
    async with sdk.chat.completions.stream(model="dialogue", messages=[user(f"weather {uuid4()}")], tools=[TOOL]) as stream:
        async for _ in stream:
            pass
        (choice,) = (await stream.get_final_completion()).choices
    (call,) = choice.message.tool_calls or ()
    assert (choice.finish_reason, call.function.name, call.function.arguments) == (
        "tool_calls",
        "get_weather",
        '{"city": "Oslo"}',
    )


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_calls_a_clients_tool_and_takes_its_result(
    sdk: AsyncOpenAI, orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(orchestrator, "finish", calling)
    tool: Any = {"type": "function", **TOOL["function"], "strict": False}
    given: list[Any] = [user(f"weather {uuid4()}")]
    if stream:
        async with sdk.responses.stream(model="dialogue", input=given, tools=[tool]) as events:
            async for _ in events:
                pass
            first = await events.get_final_response()
    else:
        first = await sdk.responses.create(model="dialogue", input=given, tools=[tool])
    (item,) = first.output
    assert item.type == "function_call"
    assert (item.name, item.arguments) == ("get_weather", '{"city": "Oslo"}')
    given += [item.model_dump(), {"type": "function_call_output", "call_id": item.call_id, "output": "9 degrees"}]
    later = await sdk.responses.create(model="dialogue", input=given, tools=[tool])
    assert later.output_text == f"You said: {given[0]['content']}"
    assert later.conversation == first.conversation


async def test_the_same_key_with_other_tools_is_another_request(sdk: AsyncOpenAI) -> None:
    key, asked = {"Idempotency-Key": uuid4().hex}, [user(f"once {uuid4()}")]
    await sdk.chat.completions.create(model="dialogue", messages=asked, extra_headers=key)
    with pytest.raises(openai.ConflictError) as refused:
        await sdk.chat.completions.create(model="dialogue", messages=asked, tools=[TOOL], extra_headers=key)
    assert refused.value.code == "idempotency_key_reused"
