"""Responses: what is asked, the response as an object, and the events that lead to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, StrictBool

from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.orchestrator import Turn, TurnStatus

from ..turns.events import CHUNK
from .errors import Extra, extra_of, fault_of, turn_error, usage_of
from .questions import PERSON, ChatMessage

_ID: Any = Field(min_length=1, max_length=64, json_schema_extra={"format": "response"})


class InputItem(ChatMessage):
    """A message of a response's input."""

    type: Literal["message"] = "message"
    """Always `message`."""


class TextConfig(BaseModel):
    """The form of the text."""

    class Format(BaseModel):
        """Plain text: the only form that an agent answers in."""

        type: Literal["text"]
        """Always `text`."""

    format: Format | None = None
    """The form; it is plain text."""


class ConversationRef(BaseModel):
    """A conversation by its id."""

    id: str = Field(min_length=1, max_length=64, json_schema_extra={"format": "conversation"})
    """The conversation's id."""


class ResponseAsked(BaseModel):
    """A response to make. Options that would change what it is are refused; those of sampling change nothing."""

    model: str = Field(min_length=1, max_length=64, json_schema_extra={"format": "agent"})
    """The agent to ask, by name."""
    input: (
        Annotated[str, Field(min_length=1, json_schema_extra={"format": "not-blank"})]
        | Annotated[tuple[InputItem, ...], Field(min_length=1, max_length=2_000, json_schema_extra={"contains": PERSON})]
    )
    """The message: a text, or messages of which the last one of the user is answered."""
    stream: StrictBool | None = None
    """Whether the response comes as server-sent events."""
    background: StrictBool | None = None
    """Whether to answer at once, and let the response be looked up by its id."""
    previous_response_id: Annotated[str, _ID] | None = None
    """A response whose conversation is to go on."""
    conversation: ConversationRef | None = None
    """The conversation to go on with."""
    instructions: str | None = None
    """Taken, and without effect: an agent has instructions of its own."""
    tools: Annotated[tuple[Any, ...], Field(max_length=0)] | None = None
    """Tools of the client; an agent calls its own alone, so the list has to be empty."""
    text: TextConfig | None = None
    """The form of the text."""
    user: str | None = None
    """Whom a key with the scope `act_for_users` acts for; ignored with any other."""
    metadata: dict[str, Annotated[str, Field(max_length=512)]] | None = None
    """Values of the client's own, 512 characters each."""

    def messages(self) -> tuple[ChatMessage, ...]:
        return (ChatMessage(role="user", content=self.input),) if isinstance(self.input, str) else self.input


class OutputText(BaseModel):
    """The reply's text."""

    type: Literal["output_text"] = "output_text"
    """Always `output_text`."""
    text: str
    """The reply's text, in Markdown."""
    annotations: tuple[()] = ()
    """Always empty; sources stand in `phronesis`."""
    logprobs: tuple[()] = ()
    """Always empty."""


class OutputMessage(BaseModel):
    """The reply."""

    id: str
    """The message's id."""
    type: Literal["message"] = "message"
    """Always `message`."""
    role: Literal["assistant"] = "assistant"
    """Always `assistant`."""
    status: Literal["in_progress", "completed"] = "completed"
    """`in_progress` in the events of a stream, and `completed` otherwise."""
    content: tuple[OutputText, ...]
    """The one part with the reply's text."""


class CachedTokens(BaseModel):
    """The part of the input that was read from a cache."""

    cached_tokens: int = 0
    """Tokens of the input that came from a cache."""


class ReasoningTokens(BaseModel):
    """The part of the output that was thought and not said."""

    reasoning_tokens: int = 0
    """Tokens of the output that were reasoning."""


class ResponseUsage(BaseModel):
    """What a turn used, with all its model calls."""

    input_tokens: int
    """Tokens that the models read."""
    input_tokens_details: CachedTokens = CachedTokens()
    """How many of those came from a cache."""
    output_tokens: int
    """Tokens that the models wrote."""
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    """How many of those were reasoning."""
    total_tokens: int
    """Both together."""


class ResponseError(BaseModel):
    """Why there is no reply."""

    code: str
    """Which problem it is. Stable: programs may depend on it."""
    message: str
    """What happened, for people; the wording may change."""


Status = Literal["queued", "in_progress", "completed", "failed", "cancelled"]
_STATUS: dict[TurnStatus, Status] = {
    TurnStatus.QUEUED: "queued",
    TurnStatus.RUNNING: "in_progress",
    TurnStatus.WAITING: "in_progress",
    TurnStatus.COMPLETED: "completed",
    TurnStatus.CANCELLED: "cancelled",
    TurnStatus.FAILED: "failed",
    TurnStatus.PARKED: "failed",
}


class Response(BaseModel):
    """A turn as a response."""

    id: str
    """Its id, made of the turn's; good for `/v1/responses/{id}` and `previous_response_id`."""
    object: Literal["response"] = "response"
    """Always `response`."""
    created_at: int
    """When the turn began, in seconds since the epoch."""
    status: Status
    """Where it is; the last three are ends."""
    background: bool = False
    """Whether it was answered at once, to be looked up later."""
    error: ResponseError | None = None
    """Why there is no reply; null where there is one or may be yet."""
    incomplete_details: None = None
    """Always null: replies are whole."""
    instructions: None = None
    """Always null."""
    model: str
    """The agent that answers."""
    output: tuple[OutputMessage, ...] = ()
    """The reply, once there is one."""
    parallel_tool_calls: Literal[False] = False
    """Always false."""
    tool_choice: Literal["none"] = "none"
    """Always `none`."""
    tools: tuple[()] = ()
    """Always empty."""
    conversation: ConversationRef
    """The conversation that it belongs to."""
    previous_response_id: str | None = None
    """The response that the request named; null where it named none."""
    usage: ResponseUsage | None = None
    """What the turn used; null until it ends."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """The values that came with the request."""
    phronesis: Extra
    """What OpenAI's form has no place for."""


def response_id(turn_id: str) -> str:
    return f"resp_{turn_id.replace('-', '')}"


def turn_id_of(id: str) -> str:
    """The turn that a response is. Raises `NotFound`: this is the id of no response."""
    try:
        return str(UUID(id.removeprefix("resp_")))
    except ValueError as error:
        raise NotFound("there is no such response", field="previous_response_id") from error


def build_response(turn: Turn, body: ResponseAsked | None = None, ignored: tuple[str, ...] = ()) -> Response:
    """A turn as a response, as it is now.

    Args:
        asked: what it was asked by, where that is at hand.
        ignored: parts of it that changed nothing.
    """
    error = turn_error(turn) if turn.status.ended and turn.status is not TurnStatus.CANCELLED else None
    fault = fault_of(error.body()) if error else None
    return Response(
        id=response_id(turn.turn_id),
        created_at=int(turn.created_at.timestamp()),
        status=_STATUS[turn.status],
        background=bool(body and body.background),
        error=ResponseError(code=fault.code, message=fault.message) if fault else None,
        model=turn.agent,
        output=(_message(turn, turn.reply.user_response),) if turn.reply else (),
        conversation=ConversationRef(id=turn.conversation_id),
        previous_response_id=body.previous_response_id if body else None,
        usage=_usage(turn) if turn.reply else None,
        metadata=(body.metadata if body else None) or {},
        phronesis=extra_of(turn, ignored),
    )


def _message(turn: Turn, text: str) -> OutputMessage:
    return OutputMessage(id=f"msg_{turn.turn_id.replace('-', '')}", content=(OutputText(text=text),))


def _usage(turn: Turn) -> ResponseUsage:
    spent = usage_of(turn.reply)
    total = spent.input_tokens + spent.output_tokens
    return ResponseUsage(input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, total_tokens=total)


class Lines:
    """The events of one response, numbered."""

    def __init__(self) -> None:
        self._number = 0

    def line(self, kind: str, **said: Any) -> bytes:
        data = json.dumps({"type": kind, "sequence_number": self._number, **said})
        self._number += 1
        return f"event: {kind}\ndata: {data}\n\n".encode()

    def opening(self, begun: Response) -> Iterator[bytes]:
        """The response is made, and under way; what it says by now comes behind."""
        body = begun.model_dump(mode="json") | {"status": "queued", "output": [], "usage": None, "error": None}
        yield self.line("response.created", response=body)
        yield self.line("response.in_progress", response=body | {"status": "in_progress"})

    def ending(self, ended: Response) -> Iterator[bytes]:
        """The reply, in pieces and whole, and the end."""
        body = ended.model_dump(mode="json")
        for item in body["output"]:
            yield from self._item(item)
        kind = {"completed": "completed", "cancelled": "incomplete"}.get(ended.status, "failed")
        yield self.line(f"response.{kind}", response=body)

    def _item(self, item: dict[str, Any]) -> Iterator[bytes]:
        part = item["content"][0]
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        empty = item | {"status": "in_progress", "content": []}
        yield self.line("response.output_item.added", output_index=0, item=empty)
        yield self.line("response.content_part.added", **place, part=part | {"text": ""})
        for at in range(0, len(part["text"]), CHUNK):
            yield self.line("response.output_text.delta", **place, delta=part["text"][at : at + CHUNK], logprobs=[])
        yield self.line("response.output_text.done", **place, text=part["text"], logprobs=[])
        yield self.line("response.content_part.done", **place, part=part)
        yield self.line("response.output_item.done", output_index=0, item=item)


def check_one_conversation(body: ResponseAsked) -> None:
    """Let a conversation be named in one way. Raises `BadRequest`: it is named in two."""
    if body.previous_response_id is not None and body.conversation is not None:
        raise BadRequest("name the conversation in one way", field="conversation")
