"""Chat completions: what is asked, the whole answer, and the answer in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictInt
from pydantic_core import to_json

from phronesis_contracts import ServiceError
from phronesis_contracts.orchestrator import Turn

from ..turns.events import CHUNK
from ..turns.live import LiveReader
from .errors import Envelope, Extra, extra_of, fault_of, usage_of
from .questions import PERSON, ChatMessage

DONE = b"data: [DONE]\n\n"


def _refuse_option(value: bool) -> bool:
    if value:
        raise ValueError("an agent has none to give")
    return value


class StreamOptions(BaseModel):
    """How to stream."""

    include_usage: StrictBool | None = None


class TextFormat(BaseModel):
    """Plain text: the only form that an agent answers in."""

    type: Literal["text"]


class ChatAsked(BaseModel):
    """A chat to answer. Options that would change what an answer is are refused; those of sampling change nothing."""

    model: str = Field(min_length=1, max_length=64, json_schema_extra={"format": "agent"})
    """An agent."""
    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=1, max_length=2_000, json_schema_extra={"contains": PERSON})]
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[StrictInt, Field(ge=1, le=1)] | None = None
    logprobs: Annotated[StrictBool, AfterValidator(_refuse_option), Field(json_schema_extra={"const": False})] | None = None
    tools: Annotated[tuple[Any, ...], Field(max_length=0)] | None = None
    functions: Annotated[tuple[Any, ...], Field(max_length=0)] | None = None
    response_format: TextFormat | None = None
    modalities: tuple[Literal["text"], ...] | None = None
    user: str | None = None
    """Whom a key with the scope `act_for_users` acts for; ignored with any other."""
    metadata: dict[str, Annotated[str, Field(max_length=512)]] | None = None
    """`conversation_id` names the conversation to go on with, where it is not to be found by what was said last."""


class Tokens(BaseModel):
    """What a turn used, with all its model calls."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AnswerMessage(BaseModel):
    """The reply."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(BaseModel):
    """The one answer that there is."""

    index: Literal[0] = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class ChatCompletion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[Choice]
    usage: Tokens
    phronesis: Extra


def completion_id(turn_id: str) -> str:
    return f"chatcmpl-{turn_id}"


def build_completion(turn: Turn, ignored: tuple[str, ...]) -> ChatCompletion:
    assert turn.reply is not None
    return ChatCompletion(
        id=completion_id(turn.turn_id),
        created=int(turn.created_at.timestamp()),
        model=turn.agent,
        choices=(Choice(message=AnswerMessage(content=turn.reply.user_response)),),
        usage=_tokens(turn),
        phronesis=extra_of(turn, ignored),
    )


def _tokens(turn: Turn) -> Tokens:
    spent = usage_of(turn.reply)
    total = spent.input_tokens + spent.output_tokens
    return Tokens(prompt_tokens=spent.input_tokens, completion_tokens=spent.output_tokens, total_tokens=total)


class Delta(BaseModel):
    """What a piece adds."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class Piece(BaseModel):
    """The one answer's part of a piece."""

    index: Literal[0] = 0
    delta: Delta
    finish_reason: Literal["stop"] | None = None


class ChatChunk(BaseModel):
    """A piece of an answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: tuple[Piece, ...]
    usage: Tokens | None = None
    phronesis: Extra | None = None

    def line(self) -> bytes:
        """The piece as the stream says it; a choice always says whether it is finished."""
        body = self.model_dump(exclude_none=True)
        for choice in body["choices"]:
            choice.setdefault("finish_reason", None)
        return stream_line(to_json(body))


def stream_line(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def opening_chunk(turn_id: str, model: str, created: int) -> ChatChunk:
    """The first piece: who speaks."""
    piece = Piece(delta=Delta(role="assistant", content=""))
    return ChatChunk(id=completion_id(turn_id), created=created, model=model, choices=(piece,))


def text_line(first: ChatChunk, text: str) -> bytes:
    """A piece of the reply's text."""
    return first.model_copy(update={"choices": (Piece(delta=Delta(content=text)),)}).line()


_INSTEAD = "\n\n---\n\n"
"""What stands between text that is void and the text in its place, for clients that know nothing of `restart`."""


def restart_chunk(first: ChatChunk, conversation_id: str, turn_id: str) -> bytes:
    """The piece that says that all text before it is void."""
    extra = Extra(turn_id=turn_id, conversation_id=conversation_id, restart=True)
    return first.model_copy(update={"choices": (Piece(delta=Delta(content=_INSTEAD)),), "phronesis": extra}).line()


def closing_lines(turn: Turn, first: ChatChunk, ignored: tuple[str, ...], live: LiveReader, *, usage: bool) -> Iterator[bytes]:
    """The pieces behind those that were shown already: the rest of the reply's text, its end, and what was used if asked for.

    Args:
        live: what was shown while the reply was written; where that is no part of it, the whole reply follows a restart.
    """
    assert turn.reply is not None
    text = live.rest(turn.reply.user_response)
    if live.shown and not live.goes_on(turn.reply.user_response):
        yield restart_chunk(first, turn.conversation_id, turn.turn_id)
    for at in range(0, len(text), CHUNK):
        yield text_line(first, text[at : at + CHUNK])
    end = {"choices": (Piece(delta=Delta(), finish_reason="stop"),), "phronesis": extra_of(turn, ignored)}
    yield first.model_copy(update=end).line()
    if usage:
        yield first.model_copy(update={"choices": (), "usage": _tokens(turn)}).line()
    yield DONE


def failure_line(error: ServiceError) -> bytes:
    """The end of a stream whose turn has no reply."""
    return stream_line(Envelope(error=fault_of(error.body())).model_dump_json().encode())
