"""Chat completions: what is asked, the whole answer, and the answer in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictInt
from pydantic_core import to_json

from phronesis_contracts import ServiceError
from phronesis_contracts.orchestrator import MAX_CLIENT_TOOLS, TOOL_NAME, AnswerForm, ClientRequest, Reply, Turn

from ..turns.events import CHUNK, LiveReader
from .errors import Envelope, Extra, extra_of, fault_of, usage_of
from .questions import PERSON, ChatMessage, Function, FunctionCalled, JsonObject, Question, SchemaForm, ToolCall

DONE = b"data: [DONE]\n\n"


def _refuse_option(value: bool) -> bool:
    if value:
        raise ValueError("an agent has none to give")
    return value


class StreamOptions(BaseModel):
    """How to stream."""

    include_usage: StrictBool | None = None
    """Whether a last piece says how many tokens were used."""


class TextFormat(BaseModel):
    """Plain text."""

    type: Literal["text"]
    """Always `text`."""


class JsonSchema(BaseModel):
    """A JSON object of a schema."""

    type: Literal["json_schema"]
    """Always `json_schema`."""
    json_schema: SchemaForm
    """The schema."""

    def form(self) -> AnswerForm:
        return self.json_schema.form()


class ChatTool(BaseModel):
    """A tool of the client."""

    type: Literal["function"]
    """Always `function`."""
    function: Function
    """The function."""


class FunctionName(BaseModel):
    """A function by its name."""

    name: str = Field(pattern=TOOL_NAME)
    """The function's name."""


class ChosenTool(BaseModel):
    """The tool that has to be called."""

    type: Literal["function"]
    """Always `function`."""
    function: FunctionName
    """The function."""


class ChatAsked(BaseModel):
    """A chat to answer. Options that would change what an answer is are refused; those of sampling change nothing."""

    model: str = Field(min_length=1, max_length=64, json_schema_extra={"format": "agent"})
    """The agent to ask, by name."""
    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=1, max_length=2_000, json_schema_extra={"contains": PERSON})]
    """The chat so far, up to 2,000 messages; the last one of the user is answered."""
    stream: StrictBool | None = None
    """Whether the answer comes in pieces as server-sent events."""
    stream_options: StreamOptions | None = None
    """How to stream."""
    n: Annotated[StrictInt, Field(ge=1, le=1)] | None = None
    """How many answers; there is one."""
    logprobs: Annotated[StrictBool, AfterValidator(_refuse_option), Field(json_schema_extra={"const": False})] | None = None
    """Probabilities of the tokens; an agent has none."""
    tools: Annotated[tuple[ChatTool, ...], Field(max_length=MAX_CLIENT_TOOLS)] | None = None
    """Tools that the client runs itself. They take a language model that can call tools."""
    tool_choice: Literal["none", "auto", "required"] | ChosenTool | None = None
    """Whether a tool may or has to be called, or which one has to be; `auto` where tools are given."""
    parallel_tool_calls: StrictBool | None = None
    """Whether one answer may make several calls; yes where it is left out."""
    functions: Annotated[tuple[Any, ...], Field(max_length=0)] | None = None
    """The older form of `tools`; has to be empty."""
    response_format: Annotated[TextFormat | JsonObject | JsonSchema, Field(discriminator="type")] | None = None
    """The form of the answer; text where it is left out. The others take a language model."""
    modalities: tuple[Literal["text"], ...] | None = None
    """What the answer is made of; it is text."""
    user: str | None = None
    """Whom a key with the scope `act_for_users` acts for; ignored with any other."""
    metadata: dict[str, Annotated[str, Field(max_length=512)]] | None = None
    """`conversation_id` names the conversation to go on with, where it is not to be found by what was said last."""

    def client(self, found: Question) -> ClientRequest | None:
        choice = self.tool_choice
        tool = choice.function.name if isinstance(choice, ChosenTool) else None
        form = (
            None
            if self.response_format is None or isinstance(self.response_format, TextFormat)
            else self.response_format.form()
        )
        return found.client(
            (one.function for one in self.tools or ()),
            None if isinstance(choice, ChosenTool) else choice,
            tool,
            self.parallel_tool_calls,
            form,
        )


class Tokens(BaseModel):
    """What a turn used, with all its model calls."""

    prompt_tokens: int
    """Tokens that the models read."""
    completion_tokens: int
    """Tokens that the models wrote."""
    total_tokens: int
    """Both together."""


class AnswerMessage(BaseModel):
    """The reply."""

    role: Literal["assistant"] = "assistant"
    """Always `assistant`."""
    content: str | None
    """The reply's text, in Markdown, or in the form that was asked for; null where tools are to be called first."""
    tool_calls: tuple[ToolCall, ...] | None = None
    """Tools of the client to call; send the chat again with their results. Null where there are none."""
    refusal: None = None
    """Always null; a refusal is an error."""


class Choice(BaseModel):
    """The one answer that there is."""

    index: Literal[0] = 0
    """Always 0."""
    message: AnswerMessage
    """The reply."""
    logprobs: None = None
    """Always null."""
    finish_reason: Literal["stop", "tool_calls"] = "stop"
    """`tool_calls` where tools are to be called first, else `stop`: replies are whole."""


class ChatCompletion(BaseModel):
    """A whole answer."""

    id: str
    """Its id, made of the turn's."""
    object: Literal["chat.completion"] = "chat.completion"
    """Always `chat.completion`."""
    created: int
    """When the turn began, in seconds since the epoch."""
    model: str
    """The agent that answered."""
    choices: tuple[Choice]
    """The one answer."""
    usage: Tokens
    """What the turn used, with all its model calls."""
    phronesis: Extra
    """What OpenAI's form has no place for."""


def completion_id(turn_id: str) -> str:
    return f"chatcmpl-{turn_id}"


def build_completion(turn: Turn, ignored: tuple[str, ...]) -> ChatCompletion:
    assert turn.reply is not None
    return ChatCompletion(
        id=completion_id(turn.turn_id),
        created=int(turn.created_at.timestamp()),
        model=turn.agent,
        choices=(_choice(turn.reply),),
        usage=_tokens(turn),
        phronesis=extra_of(turn, ignored),
    )


def _choice(reply: Reply) -> Choice:
    if not reply.tool_calls:
        return Choice(message=AnswerMessage(content=reply.user_response))
    message = AnswerMessage(content=reply.user_response or None, tool_calls=tool_calls_of(reply))
    return Choice(message=message, finish_reason="tool_calls")


def tool_calls_of(reply: Reply) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(id=call.id, function=FunctionCalled(name=call.name, arguments=call.arguments)) for call in reply.tool_calls
    )


def _tokens(turn: Turn) -> Tokens:
    spent = usage_of(turn.reply)
    total = spent.input_tokens + spent.output_tokens
    return Tokens(prompt_tokens=spent.input_tokens, completion_tokens=spent.output_tokens, total_tokens=total)


class FunctionDelta(BaseModel):
    """What a piece adds to a function's call."""

    name: str | None = None
    arguments: str


class CallDelta(BaseModel):
    """What a piece adds to a call; the first one of each says which it is."""

    index: int
    id: str | None = None
    type: Literal["function"] | None = None
    function: FunctionDelta


class Delta(BaseModel):
    """What a piece adds."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: tuple[CallDelta, ...] | None = None


class Piece(BaseModel):
    """The one answer's part of a piece."""

    index: Literal[0] = 0
    delta: Delta
    finish_reason: Literal["stop", "tool_calls"] | None = None


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
    for delta in _call_deltas(turn.reply):
        yield first.model_copy(update={"choices": (Piece(delta=Delta(tool_calls=(delta,))),)}).line()
    reason: Literal["stop", "tool_calls"] = "tool_calls" if turn.reply.tool_calls else "stop"
    end = {"choices": (Piece(delta=Delta(), finish_reason=reason),), "phronesis": extra_of(turn, ignored)}
    yield first.model_copy(update=end).line()
    if usage:
        yield first.model_copy(update={"choices": (), "usage": _tokens(turn)}).line()
    yield DONE


def _call_deltas(reply: Reply) -> Iterator[CallDelta]:
    for index, call in enumerate(reply.tool_calls):
        yield CallDelta(index=index, id=call.id, type="function", function=FunctionDelta(name=call.name, arguments=""))
        for at in range(0, len(call.arguments), CHUNK):
            yield CallDelta(index=index, function=FunctionDelta(arguments=call.arguments[at : at + CHUNK]))


def failure_line(error: ServiceError) -> bytes:
    """The end of a stream whose turn has no reply."""
    return stream_line(Envelope(error=fault_of(error.body())).model_dump_json().encode())
