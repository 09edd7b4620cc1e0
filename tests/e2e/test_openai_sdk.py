"""The official SDK of OpenAI on a whole stack, with the rules in place of a language model."""

from __future__ import annotations

import base64
import struct
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.support.documents import pdf
from tests.support.people import Person, Town

pytestmark = pytest.mark.any_store


@pytest.fixture
async def sdk(somebody: Person) -> AsyncIterator[AsyncOpenAI]:
    """The SDK with somebody's key."""
    async with AsyncOpenAI(base_url=f"{somebody.http.base_url}/v1", api_key=somebody.key, max_retries=0) as client:
        yield client


def user(text: str) -> Any:
    return {"role": "user", "content": text}


async def test_every_agent_is_a_model_and_answers(sdk: AsyncOpenAI) -> None:
    models = [model.id for model in (await sdk.models.list()).data]
    assert {"dialogue", "noor", "discuss"} <= set(models)
    for model in ("dialogue", "noor", "discuss"):
        answer = await sdk.chat.completions.create(model=model, messages=[user("Hello!")])
        assert answer.choices[0].message.content
        assert answer.model_extra["phronesis"]["reasoner"] == "extractive"  # type: ignore[index]


async def test_a_chat_goes_on_in_one_conversation(sdk: AsyncOpenAI, somebody: Person) -> None:
    first = await sdk.chat.completions.create(model="dialogue", messages=[user("The lighthouse stands on the cape.")])
    said: Any = {"role": "assistant", "content": first.choices[0].message.content}
    messages = [user("The lighthouse stands on the cape."), said, user("Where does it stand?")]
    later = await sdk.chat.completions.create(model="dialogue", messages=messages)
    one, two = (answer.model_extra["phronesis"]["conversation_id"] for answer in (first, later))  # type: ignore[index]
    assert one == two
    page = (await somebody.http.get("/api/v1/conversations")).json()["conversations"]
    assert [(each["conversation_id"], each["turns"]) for each in page] == [(one, 2)]


async def test_a_stream_and_a_whole_answer_say_the_same(sdk: AsyncOpenAI) -> None:
    whole = await sdk.chat.completions.create(model="noor", messages=[user("Hello!")])
    stream = await sdk.chat.completions.create(model="noor", messages=[user("Hello!")], stream=True)
    said = "".join([choice.delta.content or "" async for chunk in stream for choice in chunk.choices])
    assert said == whole.choices[0].message.content


async def test_a_response_is_had_again_by_its_id(sdk: AsyncOpenAI) -> None:
    made = await sdk.responses.create(model="dialogue", input="Hello!")
    again = await sdk.responses.retrieve(made.id)
    assert (made.status, again.output_text) == ("completed", made.output_text)


async def test_an_agent_that_there_is_not_is_no_model(sdk: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        await sdk.chat.completions.create(model="gpt-nothing", messages=[user("Hello!")])
    assert refused.value.code == "model_not_found"


TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"tools": [TOOL]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
            "response_format",
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_without_a_model_a_clients_tools_and_forms_are_refused_in_words(
    sdk: AsyncOpenAI, asked: dict[str, Any], param: str, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.chat.completions.create(model="dialogue", messages=[user("Hello!")], stream=stream, **asked)
    assert (refused.value.code, refused.value.param, refused.value.type) == ("model_required", param, "invalid_request_error")
    assert "no language model is set up here" in refused.value.message


async def test_tools_that_may_not_be_called_need_no_model(sdk: AsyncOpenAI) -> None:
    answer = await sdk.chat.completions.create(model="dialogue", messages=[user("Hello!")], tools=[TOOL], tool_choice="none")
    assert answer.choices[0].message.content


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "array"}, "no object"),
        ({"type": "object", "properties": {"a": {"$ref": "https://elsewhere.example/a"}}}, "refers to elsewhere"),
    ],
)
async def test_a_schema_that_cannot_be_held_to_is_refused_in_words(sdk: AsyncOpenAI, schema: dict[str, Any], word: str) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.chat.completions.create(model="dialogue", messages=[user("Hello!")], response_format=form)
    assert refused.value.param == "response_format.json_schema.schema"
    assert word in refused.value.message


async def test_wishes_of_the_system_are_said_to_be_ignored_where_rules_answer(sdk: AsyncOpenAI) -> None:
    rules: Any = {"role": "system", "content": "Answer in French."}
    answer = await sdk.chat.completions.create(model="dialogue", messages=[rules, user("Hello!")])
    assert answer.model_extra["phronesis"]["ignored"] == ["messages.0"]  # type: ignore[index]
    made = await sdk.responses.create(model="dialogue", input="Hello!", instructions="Answer in French.")
    assert made.model_extra["phronesis"]["ignored"] == ["instructions"]  # type: ignore[index]


async def test_texts_of_like_meaning_have_like_vectors(sdk: AsyncOpenAI) -> None:
    texts = ["The ship sank in the storm.", "A vessel went down in bad weather.", "I bake bread with rye."]
    made = await sdk.embeddings.create(model="default", input=texts)
    one, like, other = (each.embedding for each in made.data)

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert cosine(one, one) == pytest.approx(1, abs=1e-4)
    assert cosine(one, like) > cosine(one, other) + 0.2
    assert [each.index for each in made.data] == [0, 1, 2]
    assert made.usage.prompt_tokens == made.usage.total_tokens > 10
    again = await sdk.embeddings.create(model=made.model, input=texts[0], dimensions=len(one))
    assert again.data[0].embedding == pytest.approx(one, abs=1e-6)


async def test_the_bytes_of_a_vector_are_its_numbers(sdk: AsyncOpenAI) -> None:
    numbers = await sdk.embeddings.create(model="default", input="A ship.", encoding_format="float")
    raw = await sdk.embeddings.create(model="default", input="A ship.", encoding_format="base64")
    data = base64.b64decode(str(raw.data[0].embedding))
    assert list(struct.unpack(f"<{len(data) // 4}f", data)) == numbers.data[0].embedding


@pytest.mark.parametrize(
    ("asked", "status", "param"),
    [
        ({"input": [1, 2, 3]}, 400, "input"),
        ({"input": [[1, 2], [3]]}, 400, "input"),
        ({"input": ""}, 400, "input.0"),
        ({"input": []}, 400, "input"),
        ({"input": ["x"] * 257}, 400, "input"),
        ({"input": "x", "dimensions": 7}, 400, "dimensions"),
        ({"input": "x", "model": "text-embedding-3-small"}, 404, "model"),
    ],
)
async def test_vectors_that_are_not_to_be_had_are_refused_by_name(
    sdk: AsyncOpenAI, asked: dict[str, Any], status: int, param: str
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        await sdk.embeddings.create(**({"model": "default"} | asked))
    assert (refused.value.status_code, refused.value.param) == (status, param)


async def test_a_file_is_uploaded_listed_read_asked_about_and_deleted(sdk: AsyncOpenAI, everybody: Town) -> None:
    data = pdf([["The lantern room of Skarvholm is to be rebuilt in October 2031."]])
    made = await sdk.files.create(file=("lighthouse.pdf", data), purpose="assistants")
    assert (made.bytes, made.filename, made.purpose, made.object) == (len(data), "lighthouse.pdf", "assistants", "file")
    assert [one.id async for one in sdk.files.list()] == [made.id]
    assert await sdk.files.retrieve(made.id) == made
    assert (await sdk.files.content(made.id)).content == data
    parts: Any = [{"type": "text", "text": "When is the lantern room rebuilt?"}, {"type": "file", "file": {"file_id": made.id}}]
    answer = await sdk.chat.completions.create(model="dialogue", messages=[{"role": "user", "content": parts}])
    assert "October 2031" in (answer.choices[0].message.content or "")
    other = await everybody.someone()
    async with AsyncOpenAI(base_url=f"{other.http.base_url}/v1", api_key=other.key, max_retries=0) as stranger:
        assert [one.id async for one in stranger.files.list()] == []
        for asked in (stranger.files.retrieve, stranger.files.content, stranger.files.delete):
            with pytest.raises(openai.NotFoundError):
                await asked(made.id)
    gone = await sdk.files.delete(made.id)
    assert (gone.id, gone.deleted) == (made.id, True)
    assert [one.id async for one in sdk.files.list()] == []
    with pytest.raises(openai.NotFoundError):
        await sdk.files.retrieve(made.id)


async def test_files_are_listed_in_pages_by_purpose_and_age(sdk: AsyncOpenAI) -> None:
    made = [
        await sdk.files.create(file=(f"{at}.txt", f"Text {at}.".encode()), purpose="user_data" if at else "assistants")
        for at in range(4)
    ]
    ids = [one.id for one in made]
    assert [one.id async for one in sdk.files.list(limit=1, order="asc")] == ids
    assert [one.id async for one in sdk.files.list(limit=3)] == ids[::-1]
    assert [one.id async for one in sdk.files.list(purpose="assistants")] == ids[:1]
    page = await sdk.files.list(limit=2, order="asc")
    assert (len(page.data), page.has_more) == (2, True)
    assert all(one.created_at <= two.created_at for one, two in pairwise(page.data))


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"purpose": "fine-tune", "file": ("a.txt", b"x")}, "purpose"),
        ({"purpose": "user_data", "file": ("a.txt", b"")}, "file"),
        (
            {"purpose": "user_data", "file": ("a.txt", b"x"), "expires_after": {"anchor": "created_at", "seconds": 3600}},
            "expires_after[anchor]",
        ),
    ],
)
async def test_a_file_that_is_not_taken_is_refused_by_name(sdk: AsyncOpenAI, given: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.files.create(**given)
    assert refused.value.param == param
