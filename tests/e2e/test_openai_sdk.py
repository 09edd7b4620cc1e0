"""The official SDK of OpenAI on a whole stack, with the rules in place of a language model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.support.people import Person

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
