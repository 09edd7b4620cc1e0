"""Responses: what is asked, the response as an object, and the events that lead to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Discriminator, Field, StrictBool, Tag

from phronesis_contracts import BadRequest, NotFound
from phronesis_contracts.orchestrator import MAX_CLIENT_TOOLS, TOOL_NAME, ClientRequest, Turn, TurnStatus

from ..turns.events import CHUNK
from .errors import Extra, extra_of, fault_of, turn_error, usage_of
from .questions import PERSON, ChatMessage, Content, Function, FunctionCalled, JsonObject, Question, SchemaForm, ToolCall

_ID: Any = Field(min_length=1, max_length=64, json_schema_extra={"format": "response"})


class InputItem(ChatMessage):
    """A message of a response's input."""

    type: Literal["message"] = "message"
    """Always `message`."""


class CalledItem(BaseModel):
    """A call of a client's tool, as a response gave it."""

    type: Literal["function_call"]
    """Always `function_call`."""
    call_id: str = Field(min_length=1, max_length=100)
    """The call's id."""
    name: str = Field(pattern=TOOL_NAME)
    """The function's name."""
    arguments: str = Field(max_length=100_000)
    """The arguments: a text that holds a JSON object."""

    def message(self) -> ChatMessage:
        call = ToolCall(id=self.call_id, function=FunctionCalled(name=self.name, arguments=self.arguments))
        return ChatMessage(role="assistant", tool_calls=(call,))


class ResultItem(BaseModel):
    """What a call of a client's tool gave."""

    type: Literal["function_call_output"]
    """Always `function_call_output`."""
    call_id: str = Field(min_length=1, max_length=100)
    """The call that it is the result of."""
    output: Content
    """The result: a text, or parts of which the texts count."""

    def message(self) -> ChatMessage:
        return ChatMessage(role="tool", tool_call_id=self.call_id, content=self.output)


def _item_kind(item: Any) -> str:
    kind = item.get("type") if isinstance(item, dict) else getattr(item, "type", None)
    return str(kind or "message")


AnyItem = Annotated[
    Annotated[InputItem, Tag("message")]
    | Annotated[CalledItem, Tag("function_call")]
    | Annotated[ResultItem, Tag("function_call_output")],
    Discriminator(_item_kind),
]


class PlainText(BaseModel):
    """Plain text."""

    type: Literal["text"]
    """Always `text`."""


class SchemaFormat(SchemaForm):
    """A JSON object of a schema."""

    type: Literal["json_schema"]
    """Always `json_schema`."""


class TextConfig(BaseModel):
    """The form of the text."""

    format: Annotated[PlainText | JsonObject | SchemaFormat, Field(discriminator="type")] | None = None
    """The form; plain text where it is left out. The others take a language model."""


class ResponseTool(Function):
    """A tool of the client."""

    type: Literal["function"]
    """Always `function`."""


class ResponseChosenTool(BaseModel):
    """The tool that has to be called."""

    type: Literal["function"]
    """Always `function`."""
    name: str = Field(pattern=TOOL_NAME)
    """The function's name."""


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
        | Annotated[tuple[AnyItem, ...], Field(min_length=1, max_length=2_000, json_schema_extra={"contains": PERSON})]
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
    """How to answer, below the agent's own instructions; up to 32,000 characters."""
    tools: Annotated[tuple[ResponseTool, ...], Field(max_length=MAX_CLIENT_TOOLS)] | None = None
    """Tools that the client runs itself. They take a language model that can call tools."""
    tool_choice: Literal["none", "auto", "required"] | ResponseChosenTool | None = None
    """Whether a tool may or has to be called, or which one has to be; `auto` where tools are given."""
    parallel_tool_calls: StrictBool | None = None
    """Whether one answer may make several calls; yes where it is left out."""
    text: TextConfig | None = None
    """The form of the text."""
    user: str | None = None
    """Whom a key with the scope `act_for_users` acts for; ignored with any other."""
    metadata: dict[str, Annotated[str, Field(max_length=512)]] | None = None
    """Values of the client's own, 512 characters each."""

    def messages(self) -> tuple[ChatMessage, ...]:
        """The input as a chat; calls that stand together are one message."""
        if isinstance(self.input, str):
            return (ChatMessage(role="user", content=self.input),)
        found: list[ChatMessage] = []
        for item in self.input:
            one = item if isinstance(item, InputItem) else item.message()
            if one.tool_calls and found and found[-1].tool_calls:
                found[-1] = found[-1].model_copy(update={"tool_calls": found[-1].tool_calls + one.tool_calls})
            else:
                found.append(one)
        return tuple(found)

    def client(self, found: Question) -> ClientRequest | None:
        choice = self.tool_choice
        tool = choice.name if isinstance(choice, ResponseChosenTool) else None
        format = self.text.format if self.text else None
        form = None if format is None or isinstance(format, PlainText) else format.form()
        return found.client(
            self.tools or (), None if isinstance(choice, ResponseChosenTool) else choice, tool, self.parallel_tool_calls, form
        )


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


class OutputCall(BaseModel):
    """A call of one of the client's tools, for the client to make."""

    id: str
    """The item's id."""
    type: Literal["function_call"] = "function_call"
    """Always `function_call`."""
    call_id: str
    """The call's id, for the item that brings the result."""
    name: str
    """The function's name."""
    arguments: str
    """The arguments: a text that holds a JSON object."""
    status: Literal["in_progress", "completed"] = "completed"
    """`in_progress` in the events of a stream, and `completed` otherwise."""


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
    output: tuple[OutputMessage | OutputCall, ...] = ()
    """The reply, or the client's tools to call first, once there is one."""
    parallel_tool_calls: bool = True
    """As the request said."""
    tool_choice: Literal["none", "auto", "required"] | ResponseChosenTool = "auto"
    """As the request said."""
    tools: tuple[ResponseTool, ...] = ()
    """The tools that came with the request; empty where it is looked up by its id."""
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
        body: what it was asked by, where that is at hand.
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
        output=_output(turn),
        parallel_tool_calls=body is None or body.parallel_tool_calls is not False,
        tool_choice=(body and body.tool_choice) or "auto",
        tools=(body and body.tools) or (),
        conversation=ConversationRef(id=turn.conversation_id),
        previous_response_id=body.previous_response_id if body else None,
        usage=_usage(turn) if turn.reply else None,
        metadata=(body.metadata if body else None) or {},
        phronesis=extra_of(turn, ignored),
    )


def _output(turn: Turn) -> tuple[OutputMessage | OutputCall, ...]:
    reply, id = turn.reply, turn.turn_id.replace("-", "")
    if reply is None:
        return ()
    calls = tuple(
        OutputCall(id=f"fc_{id}_{at}", call_id=call.id, name=call.name, arguments=call.arguments)
        for at, call in enumerate(reply.tool_calls, 1)
    )
    return calls if calls and not reply.user_response else (_message(turn, reply.user_response), *calls)


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
        for place, item in enumerate(body["output"]):
            yield from (self._call if item["type"] == "function_call" else self._item)(item, place)
        kind = {"completed": "completed", "cancelled": "incomplete"}.get(ended.status, "failed")
        yield self.line(f"response.{kind}", response=body)

    def _call(self, item: dict[str, Any], index: int) -> Iterator[bytes]:
        place, arguments = {"item_id": item["id"], "output_index": index}, item["arguments"]
        empty = item | {"status": "in_progress", "arguments": ""}
        yield self.line("response.output_item.added", output_index=index, item=empty)
        for at in range(0, len(arguments), CHUNK):
            yield self.line("response.function_call_arguments.delta", **place, delta=arguments[at : at + CHUNK])
        yield self.line("response.function_call_arguments.done", **place, name=item["name"], arguments=arguments)
        yield self.line("response.output_item.done", output_index=index, item=item)

    def _item(self, item: dict[str, Any], index: int) -> Iterator[bytes]:
        part = item["content"][0]
        place = {"item_id": item["id"], "output_index": index, "content_index": 0}
        empty = item | {"status": "in_progress", "content": []}
        yield self.line("response.output_item.added", output_index=index, item=empty)
        yield self.line("response.content_part.added", **place, part=part | {"text": ""})
        for at in range(0, len(part["text"]), CHUNK):
            yield self.line("response.output_text.delta", **place, delta=part["text"][at : at + CHUNK], logprobs=[])
        yield self.line("response.output_text.done", **place, text=part["text"], logprobs=[])
        yield self.line("response.content_part.done", **place, part=part)
        yield self.line("response.output_item.done", output_index=index, item=item)


def check_one_conversation(body: ResponseAsked) -> None:
    """Let a conversation be named in one way. Raises `BadRequest`: it is named in two."""
    if body.previous_response_id is not None and body.conversation is not None:
        raise BadRequest("name the conversation in one way", field="conversation")
