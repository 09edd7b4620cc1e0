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


class TextConfig(BaseModel):
    """The form of the text."""

    class Format(BaseModel):
        """Plain text: the only form that an agent answers in."""

        type: Literal["text"]

    format: Format | None = None


class ConversationRef(BaseModel):
    """A conversation by its id."""

    id: str = Field(min_length=1, max_length=64, json_schema_extra={"format": "conversation"})


class ResponseAsked(BaseModel):
    """A response to make. Options that would change what it is are refused; those of sampling change nothing."""

    model: str = Field(min_length=1, max_length=64, json_schema_extra={"format": "agent"})
    """An agent."""
    input: (
        Annotated[str, Field(min_length=1, json_schema_extra={"format": "not-blank"})]
        | Annotated[tuple[InputItem, ...], Field(min_length=1, max_length=2_000, json_schema_extra={"contains": PERSON})]
    )
    stream: StrictBool | None = None
    background: StrictBool | None = None
    """Answer at once, and let the response be looked up by its id."""
    previous_response_id: Annotated[str, _ID] | None = None
    """Go on in the conversation of this response."""
    conversation: ConversationRef | None = None
    """Go on in this conversation."""
    instructions: str | None = None
    tools: Annotated[tuple[Any, ...], Field(max_length=0)] | None = None
    text: TextConfig | None = None
    user: str | None = None
    """Whom a key with the scope `act_for_users` acts for; ignored with any other."""
    metadata: dict[str, Annotated[str, Field(max_length=512)]] | None = None

    def messages(self) -> tuple[ChatMessage, ...]:
        return (ChatMessage(role="user", content=self.input),) if isinstance(self.input, str) else self.input


class OutputText(BaseModel):
    """The reply's text."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: tuple[()] = ()
    logprobs: tuple[()] = ()


class OutputMessage(BaseModel):
    """The reply."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed"] = "completed"
    content: tuple[OutputText, ...]


class CachedTokens(BaseModel):
    """The part of the input that was read from a cache."""

    cached_tokens: int = 0


class ReasoningTokens(BaseModel):
    """The part of the output that was thought and not said."""

    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    """What a turn used, with all its model calls."""

    input_tokens: int
    input_tokens_details: CachedTokens = CachedTokens()
    output_tokens: int
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    total_tokens: int


class ResponseError(BaseModel):
    """Why there is no reply."""

    code: str
    message: str


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
    object: Literal["response"] = "response"
    created_at: int
    status: Status
    background: bool = False
    error: ResponseError | None = None
    incomplete_details: None = None
    instructions: None = None
    model: str
    output: tuple[OutputMessage, ...] = ()
    parallel_tool_calls: Literal[False] = False
    tool_choice: Literal["none"] = "none"
    tools: tuple[()] = ()
    conversation: ConversationRef
    previous_response_id: str | None = None
    usage: ResponseUsage | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    phronesis: Extra


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
