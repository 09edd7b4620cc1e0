"""What comes of one try of a chat call: a completion, whole or put together from pieces that may be shown as they come, or a
failure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from ..ledger.usage import CallUsage
from .limits import Purpose
from .parsing import make_storable
from .reasoner import MAX_CALLS, ToolCall

_MISCONFIGURED = {
    400: "the language model refused the request",
    401: "the language model refused the key",
    402: "the language model's account has no credit",
    403: "the language model refused the key's permissions",
    404: "the language model's provider does not know the model or the address",
    413: "the request is too large for the language model",
    422: "the language model refused the request",
}
_BUSY = frozenset({429, 498})
_REFUSALS = frozenset({400, 415, 422, 500, 501})
_TOO_LONG = ("context_length_exceeded", "request_too_large")
_ONE_CALL = CallUsage(model_calls=1)


class TryFailed(Exception):
    """One try gave no usable answer.

    Args:
        again: whether another try may succeed.
        after: seconds that the provider asked to wait.
        busy: whether the provider is merely asked too often.
        misconfigured: whether only an operator can mend it.
        status: the HTTP status, where there was one.
        too_long: whether the prompt is longer than what the model holds.
        spent: what the try used: no call where the provider never saw it, and the tokens that the provider told.
    """

    def __init__(
        self,
        detail: str,
        *,
        again: bool,
        after: float | None = None,
        busy: bool = False,
        misconfigured: bool = False,
        status: int | None = None,
        too_long: bool = False,
        spent: CallUsage = _ONE_CALL,
    ) -> None:
        super().__init__(detail)
        self.detail, self.again, self.after, self.busy, self.misconfigured = detail, again, after, busy, misconfigured
        self.status, self.too_long, self.spent = status, too_long, spent
        self.told = ""
        """What the provider said of it, for finding out what it takes; it goes into no log."""

    @property
    def refuses_form(self) -> bool:
        """Whether the endpoint may not know an option of the request; some answer 500 to one."""
        return self.status in _REFUSALS and not self.too_long


def failure_from_status(status: int, headers: Mapping[str, str], code: str | None, spent: CallUsage = _ONE_CALL) -> TryFailed:
    """The failure that an HTTP status states."""
    if status in _BUSY:
        again = code != "insufficient_quota"
        after = retry_after(headers)
        detail = "the language model is over its rate"
        return TryFailed(detail, again=again, after=after, busy=True, status=status, spent=spent)
    if code in _TOO_LONG:
        detail = "the prompt is too long for the language model"
        return TryFailed(detail, again=False, status=status, too_long=True, spent=spent)
    if found := _MISCONFIGURED.get(status):
        return TryFailed(found, again=False, misconfigured=True, status=status, spent=spent)
    again = status >= 500 or status in (408, 409, 425)
    after = retry_after(headers)
    detail = f"the language model answered with status {status}"
    return TryFailed(detail, again=again, after=after, status=status, spent=spent)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a `Retry-After` asks for, given as a number or as a date; `None` without one that can be read."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - (now or datetime.now(UTC))).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


_MOST_TOKENS = 100_000_000
"""More than any call uses: a greater figure is not believed."""
_LONGEST_NAME = 64
"""Characters of a tool's name."""
_LONGEST_ARGUMENTS = 50_000
"""Characters of a call's arguments; longer ones are cut, and so are no JSON any more."""


@dataclass(frozen=True)
class Completion:
    """What was answered."""

    text: str
    spent: CallUsage
    model: str | None = None
    finish: str | None = None
    calls: tuple[ToolCall, ...] = ()
    """The first tool calls that it asks for."""
    streamed: bool = True
    """Whether it came in pieces, where pieces were asked for."""


class _Function(BaseModel):
    name: str = ""
    arguments: str | dict[str, Any] | None = None


class _Call(BaseModel):
    function: _Function = _Function()


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message = _Message()
    finish_reason: str | None = None


class _Body(BaseModel):
    choices: list[_Choice]
    model: str | None = None


def parse_completion(body: bytes) -> Completion:
    """A completion from the body that carries it. Raises `TryFailed` where it is none."""
    spent = read_usage(body)
    try:
        read = _Body.model_validate_json(body)
    except ValidationError as error:
        raise TryFailed("the language model's answer is no completion", again=True, spent=spent) from error
    choice = read.choices[0] if read.choices else _Choice()
    calls = tuple(_call(call.function) for call in (choice.message.tool_calls or [])[:MAX_CALLS])
    return Completion(choice.message.content or "", spent, read.model, choice.finish_reason, calls)


def read_usage(body: bytes) -> CallUsage:
    """One call, and the tokens that an answer of whatever kind says it used."""
    try:
        found = from_json(body)
    except ValueError:
        found = None
    usage = found.get("usage") if isinstance(found, dict) else None
    told = usage if isinstance(usage, dict) else {}
    read, written = (told.get(f"{part}_tokens_details") for part in ("prompt", "completion"))
    return CallUsage(
        model_calls=1,
        input_tokens=_count(told.get("prompt_tokens")),
        output_tokens=_count(told.get("completion_tokens")),
        cached_tokens=_count(read.get("cached_tokens") if isinstance(read, dict) else None),
        reasoning_tokens=_count(written.get("reasoning_tokens") if isinstance(written, dict) else None),
    )


def _count(told: object) -> int:
    return told if isinstance(told, int) and 0 <= told <= _MOST_TOKENS else 0


def read_error(body: object) -> dict[str, Any]:
    """The provider's error object."""
    error = body.get("error", body) if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def refused_text(error: dict[str, Any]) -> str | None:
    """What the model said where the provider itself refused it as no JSON, or as a call of a tool it was not offered."""
    if error.get("code") not in ("json_validate_failed", "tool_use_failed"):
        return None
    return str(make_storable(str(error.get("failed_generation") or ""))) or "(nothing)"


def _call(function: _Function) -> ToolCall:
    given = function.arguments
    arguments = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    return ToolCall(name=make_storable(function.name)[:_LONGEST_NAME], arguments=make_storable(arguments)[:_LONGEST_ARGUMENTS])


class PiecedCompletion:
    """Puts a stream of server-sent events together."""

    def __init__(self) -> None:
        self._rest = b""
        self._text: list[str] = []
        self._calls: dict[int, _Function] = {}
        self._finish: str | None = None
        self._model: str | None = None
        self._spent: CallUsage | None = None
        self._done = False

    def feed(self, data: bytes) -> str:
        """Take bytes in.

        Returns:
            The text that they add.

        Raises:
            TryFailed: the provider broke off with an error, or a piece is none.
        """
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        return "".join(self._line(line.strip()) for line in lines)

    def ended(self) -> Completion:
        """The whole. Raises `TryFailed`: it was cut off."""
        if self._rest:
            self._line(self._rest.strip())
        if not self._done and self._finish is None:
            raise TryFailed("the connection to the language model broke", again=True, spent=self._spent or _ONE_CALL)
        calls = tuple(_call(self._calls[at]) for at in sorted(self._calls)[:MAX_CALLS])
        return Completion("".join(self._text), self._spent or _ONE_CALL, self._model, self._finish, calls)

    @property
    def counted(self) -> bool:
        """Whether it said what it used."""
        return self._spent is not None

    def _line(self, line: bytes) -> str:
        if not line.startswith(b"data:"):
            return ""
        data = line[5:].strip()
        if data == b"[DONE]":
            self._done = True
            return ""
        try:
            piece = _PieceBody.model_validate_json(data)
        except ValidationError as error:
            raise TryFailed("the language model's answer is no completion", again=True) from error
        if piece.error is not None:
            raise TryFailed("the language model broke its answer off", again=True)
        self._model = piece.model or self._model
        if piece.usage is not None or piece.x_groq is not None:
            used = read_usage(data if piece.usage is not None else json.dumps(piece.x_groq).encode())
            self._spent = used if used != _ONE_CALL else self._spent
        if not piece.choices:
            return ""
        choice = piece.choices[0]
        self._finish = choice.finish_reason or self._finish
        for call in choice.delta.tool_calls or ():
            known = self._calls.setdefault(call.index, _Function())
            said = call.function.arguments
            arguments = said if isinstance(said, str) else "" if said is None else json.dumps(said)
            known.name += call.function.name or ""
            known.arguments = f"{known.arguments or ''}{arguments}"[: _LONGEST_ARGUMENTS + 1]
        text = choice.delta.content or ""
        if text:
            self._text.append(text)
        return text


class _PieceFunction(BaseModel):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _PieceCall(BaseModel):
    index: int = 0
    function: _PieceFunction = _PieceFunction()


class _Delta(BaseModel):
    content: str | None = None
    tool_calls: list[_PieceCall] | None = None


class _PieceChoice(BaseModel):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _PieceBody(BaseModel):
    choices: list[_PieceChoice] = []
    model: str | None = None
    usage: dict[str, Any] | None = None
    x_groq: dict[str, Any] | None = None
    error: Any = None


LIVE_FIELDS: Mapping[Purpose, str] = {"final": "user_response", "tools": "answer", "rewrite": "answer"}
"""The field of an answer that a person reads, by purpose."""


class LiveSink(Protocol):
    """Takes a reply's text as it comes. It is provisional: the reply is what the turn ends with."""

    async def add(self, text: str) -> None:
        """Show more of it."""

    async def flush(self) -> None:
        """Show what was kept back to be shown together."""

    async def restart(self) -> None:
        """Take back what was shown."""


live_sink: ContextVar[LiveSink | None] = ContextVar("live_sink", default=None)
"""Where the text of the call at hand is shown; `None` where it is not."""
_CODE = 6
"""Characters of an escaped code unit, as in a JSON text."""
_FIRST_HALVES = ("d8", "d9", "da", "db")
"""How the first half of a surrogate pair begins."""


class FieldText:
    """Reads one text out of a JSON object that comes in pieces.

    Space around the text is left out, as it is of the reply; what comes before the object, and after the text, is skipped.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._state = "outside"
        self._key = ""
        self._depth = 0
        self._quoted = False
        self._escape = ""
        self._begun = False
        self._space = ""

    def feed(self, piece: str) -> str:
        """Take a piece in, and give what it adds to the text."""
        return "".join(map(self._take, piece)) if self._state != "done" else ""

    def _take(self, letter: str) -> str:
        match self._state:
            case "text":
                return self._in_text(letter)
            case "outside":
                self._state = "object" if letter == "{" else "outside"
            case "object":
                if letter == '"':
                    self._state, self._key = "key", ""
                elif letter == "}":
                    self._state = "done"
            case "key":
                if letter == '"' and not self._escape:
                    self._state = "colon"
                else:
                    self._escape = "\\" if letter == "\\" and not self._escape else ""
                    self._key += letter
            case "colon":
                self._state = "value" if letter == ":" else "colon"
            case "value":
                if not letter.isspace():
                    self._begin_value(letter)
            case "other":
                self._skip(letter)
        return ""

    def _begin_value(self, letter: str) -> None:
        if letter == '"' and self._key == self._field:
            self._state = "text"
            return
        self._state, self._depth, self._quoted = "other", 0, False
        self._skip(letter)

    def _skip(self, letter: str) -> None:
        """Over a value of another key."""
        if self._quoted:
            closed = letter == '"' and not self._escape
            self._escape = "\\" if letter == "\\" and not self._escape else ""
            self._quoted = not closed
        elif letter == '"':
            self._quoted = True
        elif letter in "{[":
            self._depth += 1
        elif letter in "}]" and self._depth:
            self._depth -= 1
        elif letter in ",}" and not self._depth:
            self._state = "object" if letter == "," else "done"

    def _in_text(self, letter: str) -> str:
        if self._escape:
            self._escape += letter
            return self._unescaped()
        if letter == "\\":
            self._escape = letter
            return ""
        if letter == '"':
            self._state = "done"
            return ""
        return self._said(letter)

    def _unescaped(self) -> str:
        known = self._escape
        if known[1] == "u":
            paired = known[2:4].lower() in _FIRST_HALVES
            if paired and len(known) == _CODE + 1 and known[_CODE] != "\\":  # no second half follows
                self._escape = ""
                return self._in_text(known[_CODE])
            if len(known) < (2 * _CODE if paired or len(known) < _CODE - 2 else _CODE):
                return ""
        self._escape = ""
        try:
            return self._said(str(make_storable(json.loads(f'"{known}"', strict=False))))
        except ValueError:
            return ""

    def _said(self, text: str) -> str:
        if text.isspace() or not text:
            self._space += text if self._begun else ""
            return ""
        found = self._space + text if self._begun else text.lstrip()
        self._begun, self._space = True, ""
        return found
