"""What a chat of a foreign client asks, whatever its body holds."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_contracts import BadRequest, NotFound, ServiceError, TooLarge
from phronesis_contracts.orchestrator import MAX_TEXT
from phronesis_gateway.http.requests import MediaGiven
from phronesis_gateway.http.uploads import Upload
from phronesis_gateway.openai.completions import ChatAsked
from phronesis_gateway.openai.questions import ChatMessage, UserMessage, exchange_digest, find_question
from phronesis_gateway.openai.responses import ResponseAsked, response_id, turn_id_of


def chat(*messages: tuple[str, Any]) -> list[ChatMessage]:
    return [ChatMessage.model_validate({"role": role, "content": content}) for role, content in messages]


def test_the_last_message_of_the_person_is_asked_and_the_agents_last_words_stand_before_it() -> None:
    found = find_question(chat(("user", "one"), ("assistant", "first"), ("user", "two"), ("assistant", "second")), "messages")
    assert (found.said, found.before) == (UserMessage("two", ()), (("one", "first"),))


def test_empty_words_of_the_agent_are_none() -> None:
    found = find_question(chat(("user", "one"), ("assistant", "first"), ("assistant", " "), ("user", "two")), "messages")
    assert found.before == (("one", "first"),)


def test_words_that_got_no_answer_are_no_exchange() -> None:
    said = chat(("user", "failed"), ("user", "one"), ("assistant", "first"), ("assistant", "more"), ("user", "two"))
    assert find_question(said, "messages").before == (("one", "first"),)


def test_parts_are_read_in_their_order() -> None:
    inside = base64.b64encode(b"sound").decode()
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "high"}},
        {"type": "input_audio", "input_audio": {"data": inside, "format": "mp3"}},
        {"type": "file", "file": {"file_id": "m-1"}},
        {"type": "input_file", "file_data": f"data:text/plain;base64,{inside}", "filename": "../a.txt"},
        {"type": "input_text", "text": "and listen"},
    ]
    assert find_question(chat(("user", parts)), "messages").said == UserMessage(
        "look\nand listen",
        (
            MediaGiven(url="https://example.org/a.png"),
            Upload(b"sound", "audio.mp3", None),
            MediaGiven(media_id="m-1"),
            Upload(b"sound", "a.txt", "text/plain"),
        ),
    )


@pytest.mark.parametrize(
    ("content", "error", "field"),
    [
        ("x" * (MAX_TEXT + 1), TooLarge, "messages.0"),
        (" ", BadRequest, "messages.0"),
        ([{"type": "file", "file": {"file_id": "m"}}] * 17, BadRequest, "messages.0"),
        ([{"type": "file", "file": {}}], BadRequest, "messages.0.content.0.file"),
        ([{"type": "file", "file": {"file_id": "m", "file_data": "YQ=="}}], BadRequest, "messages.0.content.0.file"),
        (
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}],
            BadRequest,
            "messages.0.content.0.image_url.url",
        ),
    ],
)
def test_what_cannot_be_asked_names_the_field(content: Any, error: type[ServiceError], field: str) -> None:
    with pytest.raises(error) as refused:
        find_question(chat(("user", content)), "messages")
    assert refused.value.field == field


def test_an_exchange_is_found_again_without_the_space_around_it() -> None:
    assert exchange_digest(" a", "b\n") == exchange_digest("a", "b") != exchange_digest("ab", "")


def test_a_response_is_a_turn_by_another_name() -> None:
    turn = "7d1f9a4e-8d1c-4a57-9a53-1f0f5f0d6f10"
    assert turn_id_of(response_id(turn)) == turn
    with pytest.raises(NotFound):
        turn_id_of("resp_x")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KINDS = st.sampled_from(["text", "image_url", "input_image", "input_audio", "file", "input_file", "output_text", "reasoning"])
_PART = st.fixed_dictionaries(
    {"type": _KINDS | _JSON},
    optional={
        "text": st.text(max_size=10) | _JSON,
        "image_url": st.fixed_dictionaries({"url": st.text(max_size=30) | st.just("data:image/png;base64,YQ==")}) | _JSON,
        "input_audio": st.fixed_dictionaries({"data": st.text(max_size=10), "format": st.sampled_from(["wav", "mp3"])}) | _JSON,
        "file": st.dictionaries(st.sampled_from(["file_id", "file_data", "filename"]), st.text(max_size=10) | _JSON) | _JSON,
        "file_id": st.text(max_size=70) | _JSON,
        "file_data": st.text(max_size=10) | _JSON,
    },
)
_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]) | _JSON, "content": st.text() | st.lists(_PART) | _JSON}
)
_BODY = st.fixed_dictionaries(
    {"model": st.just("dialogue") | _JSON},
    optional={
        name: st.lists(_MESSAGE, max_size=4) | st.text(max_size=10) | _JSON
        for name in ("messages", "input", "tools", "metadata", "stream", "text", "conversation", "previous_response_id", "n")
    },
)


@given(_BODY)
def test_whatever_a_body_holds_it_is_a_question_or_a_fault_that_is_told(body: dict[str, Any]) -> None:
    for model, field in ((ChatAsked, "messages"), (ResponseAsked, "input")):
        try:
            asked: Any = model.model_validate(body)
        except ValidationError:
            continue
        messages = asked.messages if isinstance(asked, ChatAsked) else asked.messages()
        try:
            found = find_question(messages, field)
        except BadRequest as error:
            named = error.field
        else:
            named = field if found.said.text.strip() or found.said.media else None
        assert (named or "").startswith(field)
