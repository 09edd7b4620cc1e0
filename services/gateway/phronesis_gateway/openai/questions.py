"""What a client of this interface asks.

The content of its messages, the one that is the question, and handing it in as a turn of a conversation.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, Tag

from phronesis_bus import Bus, ask
from phronesis_contracts import BadRequest, NotFound, Principal, TooLarge
from phronesis_contracts.orchestrator import (
    CONVERSATION_FIND,
    MAX_ATTACHMENTS,
    MAX_CLIENT_STEPS,
    MAX_CLIENT_TEXT,
    MAX_CLIENT_TOOLS,
    MAX_TEXT,
    TOOL_NAME,
    AnswerForm,
    ClientRequest,
    ClientStep,
    ClientTool,
    ClientToolCall,
    FindConversation,
    Reply,
)

from ..http.requests import MediaGiven, MessageGiven
from ..http.uploads import Upload, UploadReceiver, clean_file_name
from ..turns.submission import SubmittedTurn, TurnRefused, TurnService

_DATA = re.compile(r"data:([a-z0-9.+-]+/[a-z0-9.+-]+)?(?:;[a-z0-9.+-]+=[a-zA-Z0-9.+-]+)*;base64,", re.I)
_ID: Any = Field(min_length=1, max_length=64, json_schema_extra={"format": "medium"})
_ADDRESS: Any = Field(min_length=1, json_schema_extra={"format": "public-address"})


class Part(BaseModel):
    """Base of the parts. What a part says besides, such as a picture's `detail`, changes nothing here."""

    model_config = ConfigDict(frozen=True)


class TextPart(Part):
    """Text."""

    type: Literal["text", "input_text", "output_text"]
    """`text` in a chat; `input_text` or `output_text` in a response's input."""
    text: str = Field(json_schema_extra={"format": "not-blank"})
    """The text."""


class ImageUrl(Part):
    """Where a picture is: a public address, or a `data:` address that holds it."""

    url: Annotated[str, _ADDRESS]
    """A public address of up to 2,048 characters, or `data:image/png;base64,` and the picture."""


class ImagePart(Part):
    """A picture of a chat's message."""

    type: Literal["image_url"]
    """Always `image_url`."""
    image_url: ImageUrl
    """The picture."""


def _exactly_one_of(*names: str) -> dict[str, Any]:
    nothing = {"type": "null"}
    given = {"type": "string"}
    return {"oneOf": [{"required": [one], "properties": {n: given if n == one else nothing for n in names}} for one in names]}


class InputImage(Part):
    """A picture of a response's input: by an address, or by the id of an upload."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of("image_url", "file_id"))

    type: Literal["input_image"]
    """Always `input_image`."""
    image_url: Annotated[str, _ADDRESS] | None = None
    """A public address, or a `data:` address that holds the picture."""
    file_id: Annotated[str, _ID] | None = None
    """Id of an upload, as `/api/v1/media` gave it."""


class Sound(Part):
    """A recording."""

    data: str = Field(min_length=1, json_schema_extra={"format": "inline-file"})
    """The recording, in base64."""
    format: Literal["wav", "mp3"]
    """The recording's format."""


class AudioPart(Part):
    """Speech."""

    type: Literal["input_audio"]
    """Always `input_audio`."""
    input_audio: Sound
    """The recording."""


class File(Part):
    """A file: by the id of an upload, or inside."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of("file_id", "file_data"))

    file_id: Annotated[str, _ID] | None = None
    """Id of an upload, as `/api/v1/media` gave it."""
    file_data: str | None = Field(default=None, min_length=1, json_schema_extra={"format": "inline-file"})
    """The file, in base64, alone or as a `data:` address."""
    filename: str | None = None
    """The file's name, for one that is held inside."""


class FilePart(Part):
    """A file of a chat's message."""

    type: Literal["file"]
    """Always `file`."""
    file: File
    """The file."""


class InputFile(File):
    """A file of a response's input."""

    model_config = ConfigDict(json_schema_extra=_exactly_one_of("file_id", "file_data", "file_url"))

    type: Literal["input_file"]
    """Always `input_file`."""
    file_url: Annotated[str, _ADDRESS] | None = None
    """A public address to fetch the file from."""


def _kind(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else getattr(part, "type", None)
    return "text" if kind in ("input_text", "output_text") else str(kind)


AnyPart = Annotated[
    Annotated[TextPart, Tag("text")]
    | Annotated[ImagePart, Tag("image_url")]
    | Annotated[InputImage, Tag("input_image")]
    | Annotated[AudioPart, Tag("input_audio")]
    | Annotated[FilePart, Tag("file")]
    | Annotated[InputFile, Tag("input_file")],
    Discriminator(_kind),
]
Content = Annotated[str, Field(json_schema_extra={"format": "not-blank"})] | Annotated[tuple[AnyPart, ...], Field(min_length=1)]


@dataclass(frozen=True)
class UserMessage:
    """What a person says in a message."""

    text: str
    media: tuple[MediaGiven | Upload, ...]
    """Uploads and addresses, and files that the message itself holds."""


def text_of(content: Content | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def read_message(content: Content | None, field: str) -> UserMessage:
    """A person's message. Raises `BadRequest`: a medium is named in no way, or in two, or what it holds is no base64."""
    if content is None or isinstance(content, str):
        return UserMessage(content or "", ())
    return UserMessage(text_of(content), tuple(_media(content, field)))


def _media(parts: Iterable[AnyPart], field: str) -> Iterable[MediaGiven | Upload]:
    for place, part in enumerate(parts):
        where = f"{field}.{place}"
        match part:
            case ImagePart():
                yield _read_medium(None, part.image_url.url, None, f"{where}.image_url.url", "image")
            case InputImage():
                yield _read_medium(part.file_id, part.image_url, None, where, "image")
            case AudioPart():
                sound = part.input_audio
                yield Upload(_decode_base64(sound.data, f"{where}.input_audio.data"), f"audio.{sound.format}", None)
            case FilePart():
                yield _read_medium(part.file.file_id, None, part.file.file_data, f"{where}.file", part.file.filename or "file")
            case InputFile():
                yield _read_medium(part.file_id, part.file_url, part.file_data, where, part.filename or "file")


def _read_medium(id: str | None, url: str | None, data: str | None, where: str, name: str) -> MediaGiven | Upload:
    if sum(given is not None for given in (id, url, data)) != 1:
        raise BadRequest("name a medium in one way: by its id, by its address, or by what it holds", field=where)
    if id is not None:
        return MediaGiven(media_id=id)
    if url is not None and not url[:5].lower() == "data:":
        if len(url) > 2_048:
            raise BadRequest("an address has 2048 characters at most", field=where)
        return MediaGiven(url=url)
    inside = url or data or ""
    head = _DATA.match(inside)
    return Upload(
        _decode_base64(inside[head.end() :] if head else inside, where), clean_file_name(name), head[1] if head else None
    )


def _decode_base64(text: str, where: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest("this is no base64", field=where) from error
    if not data:
        raise BadRequest("the file is empty", field=where)
    return data


Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
PERSON = {
    "type": "object",
    "required": ["role", "content"],
    "properties": {"role": {"const": "user"}, "content": {"type": "string", "format": "not-blank"}},
}
"""One such message has to be there, for the description."""
_COMPARED = 3
"""Exchanges by which a conversation is known again: clients leave out the oldest ones of a long chat."""
_SPACE = " \n\t\r\f\v"
_RULES = frozenset({"system", "developer"})
RULES = "extractive"
"""Who answered where no language model did."""
_CALL_ID = re.compile(r"call_([0-9a-f]{32})_\d{1,3}")


class ModelNotFound(NotFound):
    """There is no agent of this name."""

    code = "model_not_found"


class FunctionCalled(BaseModel):
    """Which function to call, and with what."""

    name: str = Field(pattern=TOOL_NAME)
    """The function's name."""
    arguments: str = Field(max_length=100_000)
    """The arguments: a text that holds a JSON object."""


class ToolCall(BaseModel):
    """A call of one of the client's tools."""

    id: str = Field(min_length=1, max_length=100)
    """Its id, for the message that brings the result."""
    type: Literal["function"] = "function"
    """Always `function`."""
    function: FunctionCalled
    """What to call."""


class Function(BaseModel):
    """A function that the client runs itself."""

    name: str = Field(pattern=TOOL_NAME)
    """Its name: letters, digits, `_` and `-`, 64 at most."""
    description: str | None = Field(default=None, max_length=10_000)
    """What it does, for the model."""
    parameters: dict[str, Any] | None = None
    """JSON Schema of its arguments; without it there are none."""
    strict: StrictBool | None = None
    """Whether arguments have to fit the schema."""

    def tool(self) -> ClientTool:
        return ClientTool(
            name=self.name,
            description=self.description or "",
            parameters=self.parameters or {"type": "object", "properties": {}},
            strict=bool(self.strict),
        )


class JsonObject(BaseModel):
    """Any JSON object."""

    type: Literal["json_object"]
    """Always `json_object`."""

    def form(self) -> AnswerForm:
        return AnswerForm()


class SchemaForm(BaseModel):
    """A JSON object of a schema."""

    model_config = ConfigDict(validate_by_name=True)

    name: str = Field(pattern=TOOL_NAME)
    """A name for it: letters, digits, `_` and `-`, 64 at most."""
    description: str | None = Field(default=None, max_length=10_000)
    """What it is for."""
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    """The JSON Schema, of an object, without `patternProperties` and without references to elsewhere or to itself."""
    strict: StrictBool | None = None
    """Whether the model's provider is held to it, where it can be; the answer is held to it here in any case."""

    def form(self) -> AnswerForm:
        return AnswerForm(name=self.name, schema=self.schema_, strict=bool(self.strict))


class ChatMessage(BaseModel):
    """One message of a chat, as its client keeps it."""

    role: Role
    """Who says it. `system` and `developer` say how to answer, below the agent's own instructions; `assistant` helps to find
    the conversation; `tool` brings what a call gave. None of them is taken for the user."""
    content: Content | None = None
    """What is said: a text, or parts."""
    tool_calls: Annotated[tuple[ToolCall, ...], Field(max_length=MAX_CLIENT_TOOLS)] | None = None
    """Of an assistant's message: the calls of the client's tools that it asked for."""
    tool_call_id: str | None = Field(default=None, min_length=1, max_length=100)
    """Of a tool's message: the call that it answers."""


@dataclass(frozen=True)
class Question:
    """What is asked: the last message of the person, and what stands before it."""

    said: UserMessage
    before: tuple[tuple[str, str], ...]
    """What was said and answered before it, by the client's record."""
    wishes: str = ""
    """What the client's `system` and `developer` messages say."""
    wished: tuple[str, ...] = ()
    """The places of those messages."""
    steps: tuple[ClientStep, ...] = ()
    """Calls that were made for it, and their results."""

    @property
    def turn_of_calls(self) -> str | None:
        """The turn that asked for the last calls, where it is one of ours."""
        ids = (call.id for step in reversed(self.steps) for call in step.calls)
        found = _CALL_ID.fullmatch(next(ids, ""))
        return str(UUID(found[1])) if found else None

    def wishing(self, field: str, wishes: str) -> Question:
        """The same with a wish ahead of the others."""
        both = (wishes, self.wishes) if self.wishes else (wishes,)
        return replace(self, wishes=join_wishes(both, field), wished=(field, *self.wished))

    def unheard(self, reply: Reply | None) -> tuple[str, ...]:
        """The places of wishes that changed nothing: rules have no ear for them."""
        return self.wished if reply is not None and reply.reasoner == RULES else ()

    def client(
        self,
        tools: Iterable[Function] = (),
        choice: str | None = None,
        tool: str | None = None,
        parallel: bool | None = None,
        form: AnswerForm | None = None,
    ) -> ClientRequest | None:
        """What the client adds to the question; `None` where it adds nothing.

        Args:
            choice: `auto`, `none` or `required`.
            tool: the one that has to be called.
        """
        offered = tuple(one.tool() for one in tools)
        if not (offered or self.steps or self.wishes or form or tool or choice == "required"):
            return None
        return ClientRequest(
            instructions=self.wishes,
            tools=offered,
            tool_choice="call" if tool else choice or "auto",
            tool=tool,
            parallel=parallel is not False,
            steps=self.steps,
            form=form,
        )


def find_question(messages: Sequence[ChatMessage], field: str) -> Question:
    """The question of a chat: its last message by a person.

    Raises:
        BadRequest: there is none, or it is empty, or too long, or one of its media cannot be read.
    """
    persons = [at for at, one in enumerate(messages) if one.role == "user" and one.content is not None]
    place = persons[-1] if persons else None
    if place is None:
        raise BadRequest("there is no message by a user", field=field)
    found = read_message(messages[place].content, f"{field}.{place}.content")
    where = f"{field}.{place}"
    if not found.text.strip() and not found.media:
        raise BadRequest("a message needs text or media", field=where)
    if len(found.text) > MAX_TEXT:
        raise TooLarge(f"a message has {MAX_TEXT} characters at most", field=where)
    if len(found.media) > MAX_ATTACHMENTS:
        raise BadRequest(f"a message has {MAX_ATTACHMENTS} media at most", field=where)
    wished = {f"{field}.{at}": text for at, one in enumerate(messages) if one.role in _RULES and (text := text_of(one.content))}
    steps = _read_steps(messages, place + 1, field)
    return Question(found, _exchanges(messages[:place]), join_wishes(wished.values(), field), tuple(wished), steps)


def join_wishes(wishes: Iterable[str], field: str) -> str:
    """A client's wishes as one text. Raises `TooLarge`."""
    text = "\n\n".join(wishes)
    if len(text) > MAX_CLIENT_TEXT:
        raise TooLarge(f"what the system and the developer say has {MAX_CLIENT_TEXT} characters at most", field=field)
    return text


def _read_steps(messages: Sequence[ChatMessage], begin: int, field: str) -> tuple[ClientStep, ...]:
    """The calls and results behind the question. Raises `BadRequest`: a result is missing, or is one of no call."""
    steps: list[ClientStep] = []
    open_calls: set[str] = set()
    for at, one in enumerate(messages[begin:], begin):
        where = f"{field}.{at}"
        if one.role == "assistant" and one.tool_calls:
            if open_calls:
                raise BadRequest("a call before this message has no result", field=where)
            calls = tuple(
                ClientToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
                for call in one.tool_calls
            )
            open_calls = {call.id for call in calls}
            steps.append(ClientStep(text=text_of(one.content)[:MAX_TEXT], calls=calls))
        elif one.role == "tool":
            if one.tool_call_id not in open_calls:
                raise BadRequest("this is the result of no call before it", field=f"{where}.tool_call_id")
            open_calls.discard(one.tool_call_id)
            result = text_of(one.content)
            if len(result) > MAX_TEXT:
                raise TooLarge(f"a result has {MAX_TEXT} characters at most", field=where)
            steps.append(ClientStep(text=result, result_of=one.tool_call_id))
    if open_calls:
        raise BadRequest("a call has no result: send a message of the role tool for each", field=field)
    if len(steps) > MAX_CLIENT_STEPS:
        raise TooLarge(f"a message has {MAX_CLIENT_STEPS} calls and results at most", field=field)
    return tuple(steps)


def _exchanges(messages: Sequence[ChatMessage]) -> tuple[tuple[str, str], ...]:
    """What was said and answered. Words of a person that got no answer are none; they failed, and are asked anew."""
    found, asked = [], None
    for one in messages:
        text = text_of(one.content)
        if one.role == "user":
            asked = text
        elif one.role == "assistant" and asked is not None and text.strip():
            found.append((asked, text))
            asked = None
    return tuple(found)


def exchange_digest(said: str, answered: str) -> str:
    """What an exchange is found again by: SHA-256 of both texts, without the space around them."""
    return hashlib.sha256(f"{said.strip(_SPACE)}\x1f{answered.strip(_SPACE)}".encode()).hexdigest()


class QuestionSubmission:
    def __init__(self, bus: Bus, turns: TurnService, uploads: UploadReceiver) -> None:
        self._bus = bus
        self._turns = turns
        self._uploads = uploads

    async def conversation(self, who: Principal, agent: str, before: Sequence[tuple[str, str]]) -> str | None:
        """The caller's conversation with an agent that ends with these exchanges; `None` where none does."""
        if not before:
            return None
        last = tuple(exchange_digest(*one) for one in before[-_COMPARED:])
        wanted = FindConversation(agent=agent, exchanges=last, whole=len(before) <= _COMPARED)
        return (await ask(self._bus, who, CONVERSATION_FIND, wanted)).conversation_id

    @asynccontextmanager
    async def asked(
        self,
        who: Principal,
        agent: str,
        message: UserMessage,
        conversation: str | None,
        key: str | None,
        client: ClientRequest | None = None,
    ) -> AsyncIterator[SubmittedTurn]:
        """The accepted turn of a question, for the length of a block.

        Raises:
            ModelNotFound: there is no such agent.
            ServiceError: it was not accepted; as `Turns.submitted`.
        """
        key = key or uuid4().hex
        media = [await self._medium(who, one, f"{key}/{place}") for place, one in enumerate(message.media)]
        given: dict[str, Any] = {"agent": agent, "current_message_text": message.text, "current_message_media": tuple(media)}
        if conversation is not None:
            given["conversation_id"] = conversation
        try:
            async with self._turns.submitted(who, MessageGiven(**given), key, client) as turn:
                yield turn
        except TurnRefused as refused:
            if refused.problem.field == "agent":
                raise ModelNotFound(refused.problem.detail, field="agent") from refused
            raise

    async def _medium(self, who: Principal, one: MediaGiven | Upload, key: str) -> MediaGiven:
        if isinstance(one, MediaGiven):
            return one
        # The same file under the same key is the same medium: a repeat of a question is the same question.
        return MediaGiven(media_id=(await self._uploads.accept(who, one, f"openai/{who.user}/{key}")).id)
