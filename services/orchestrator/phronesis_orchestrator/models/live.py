"""Text that is shown while a model writes it: the field of its answer that holds the reply, as it comes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol

from .limits import Purpose
from .parsing import make_storable

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
