"""Files of memories that other programs wrote, read entry by entry, whatever their size."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from pathlib import Path
from typing import Any, BinaryIO

import ijson

from phronesis_contracts import BadRequest

LONGEST_LINE = 16_000_000
"""Bytes of a line of JSON Lines."""
MOST_VALUES = 1_000_000
"""Values of one entry of a JSON document."""
DEEPEST = 100
"""Levels of one entry."""
_BOM = b"\xef\xbb\xbf"
_PIECE = 64 * 1024
_NOT_ENTERED = ("metadata", "attributes")
"""What is a value of an entry or a group, whatever it holds."""

_BROKEN = (ijson.JSONError, DecimalException, ValueError, SystemError)
"""What `ijson` raises; the last for an integer of more digits than Python reads."""

Holds = Callable[[Mapping[str, Any]], bool]
"""Whether an object is an entry, and not something around entries."""


@dataclass(frozen=True)
class Fault:
    """What could not be read, and where."""

    line: int
    field: str | None
    reason: str


@dataclass
class Group:
    """What stands around entries, such as a thread around its messages."""

    fields: dict[str, Any]
    around: Group | None = None
    name: str = ""
    """The list in which it, or its entries, stand."""
    told: bool = False
    """Whether an entry has its fields already."""

    def find(self, *names: str) -> str | None:
        """The text of the first of these fields that this group, or one around it, has."""
        found = next((self.fields[name] for name in names if isinstance(self.fields.get(name), str)), None)
        return found or (self.around.find(*names) if self.around else None)

    def untold(self) -> list[Group]:
        """The groups whose fields no entry has yet, from the inside."""
        outer = self.around.untold() if self.around else []
        return outer if self.told else [self, *outer]


@dataclass(frozen=True)
class Entry:
    """One object of a file that holds, or should hold, a memory."""

    line: int
    path: str
    fields: dict[str, Any]
    group: Group
    number: int
    """Its place in its list."""


class _Lines:
    """A document as `ijson` reads it, a line at a time, so that it is known where an entry begins."""

    def __init__(self, file: BinaryIO, start: int) -> None:
        self._file, self._start = file, start
        self.restart()

    def restart(self) -> None:
        self._file.seek(self._start)
        self.line = 1
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """The next piece, up to the end of a line; `ijson` asks for none to see whether it gets bytes."""
        if size == 0:
            return b""
        self.line += self._ended
        piece = self._file.readline(_PIECE)
        self._ended = piece.endswith(b"\n")
        return piece


def read_entries(file: Path, holds: Holds) -> Iterator[Entry | Fault]:
    """The objects of a file that hold memories, and what of it cannot be read, in their order.

    JSON Lines, a JSON list, and a JSON object with lists are told apart by what stands in the file. Lines are read one by one,
    and lists entry by entry; such a document is read twice, since what stands around its lists may come behind them.

    Raises:
        BadRequest: the file cannot be read, or is a JSON document that breaks off or is none.
    """
    try:
        with file.open("rb") as opened:
            start = opened.read(4)
            if start.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise BadRequest(f"{file.name} is no UTF-8 text", field="FILE")
            skip = len(_BOM) if start.startswith(_BOM) else 0
            opened.seek(skip)
            if _is_lines(file, opened):
                opened.seek(skip)
                yield from _read_lines(opened, holds)
                return
            lines = _Lines(opened, skip)
            try:
                yield from _read_document(lines, holds)
            except _BROKEN as error:
                why = _first_line(error)
                raise BadRequest(f"{file.name} is no whole JSON document: line {lines.line}: {why}", field="FILE") from error
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}", field="FILE") from error


def _first_line(error: Exception) -> str:
    said = error.args[0] if error.args and isinstance(error, ijson.JSONError) else "a number that is too long"
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return text.strip().split("\n")[0].rstrip(".") or "broken"


def _is_lines(file: Path, opened: BinaryIO) -> bool:
    """Whether a file is JSON Lines: by its name, or by its first lines."""
    first, second = _full_line(opened), _full_line(opened)
    if first.startswith(b"["):
        return False
    if file.suffix.lower() in (".jsonl", ".ndjson") or not first.startswith(b"{"):
        return True
    return _loads(first) is not None or (first.endswith(b"}") and _loads(second) is not None)


def _full_line(opened: BinaryIO) -> bytes:
    while line := opened.readline(LONGEST_LINE):
        if line.strip():
            return line.strip()
    return b""


def _loads(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read_lines(opened: BinaryIO, holds: Holds) -> Iterator[Entry | Fault]:
    number, longer = 0, False
    while line := opened.readline(LONGEST_LINE):
        more, longer = longer, not line.endswith(b"\n")
        if more:
            continue
        number += 1
        if longer and len(line) >= LONGEST_LINE:
            yield Fault(number, None, f"longer than {LONGEST_LINE:,} bytes")
            continue
        longer = False
        if not line.strip():
            continue
        try:
            value = json.loads(line, parse_constant=str)
        except (ValueError, RecursionError) as error:
            yield Fault(number, None, f"no JSON: {_why(error)}")
            continue
        yield from _walk(value, holds, number, "", Group({}), number)


def _why(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"{error.msg} at character {error.pos + 1}"
        case UnicodeDecodeError():
            return "no UTF-8 text"
        case _:
            return "nested too deep" if isinstance(error, RecursionError) else "a number that is too long"


def _read_document(lines: _Lines, holds: Holds) -> Iterator[Entry | Fault]:
    beside: dict[str, Any] = {}
    lists: set[str] = set()
    for name, number, _, value in _elements(lines):
        if number is None:
            beside[name] = value
        else:
            lists.add(name)
    lines.restart()
    if lists != {""} and (holds(beside) or not lists):
        for name, number, _, value in _elements(lines):
            if number is not None:
                beside.setdefault(name, []).append(value)
        yield from _walk(beside, holds, 1, "", Group({}), 0)
        return
    entered = {name: value for name, value in beside.items() if _leads(name, value, holds)}
    around = Group(_flat({name: value for name, value in beside.items() if name not in entered}))
    groups = {name: Group({}, around, name) for name in (*lists, *entered)}
    for name, value in entered.items():
        yield from _walk(value, holds, 1, name, groups[name], 0)
    for name, number, line, value in _elements(lines):
        if number is not None:
            yield from _walk(value, holds, line, f"{name}[{number}]", groups[name], number)


def _flat(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields, and those of objects among them, such as the `thread` that stands beside its `messages`."""
    flat = {name: value for name, value in fields.items() if not isinstance(value, dict) or name in _NOT_ENTERED}
    for name, value in fields.items():
        if name not in flat:
            for inner, one in value.items():
                flat[inner if inner not in flat else f"{name}.{inner}"] = one
    return flat


def _walk(value: Any, holds: Holds, line: int, path: str, group: Group, number: int) -> Iterator[Entry | Fault]:
    """The entries of a value: itself, or those of the lists that it holds."""
    if not isinstance(value, dict):
        yield Fault(line, path or None, "no JSON object")
        return
    if holds(value):
        yield Entry(line, path, value, group, number)
        return
    inner = {name: one for name, one in value.items() if _leads(name, one, holds)}
    if not inner or path.count(".") > DEEPEST:
        names = ", ".join(name[:40] for name in list(value)[:5]) or "nothing"
        yield Fault(line, path or None, f"no memory is in it; it has {names}")
        return
    around = Group(_flat({name: one for name, one in value.items() if name not in inner}), group, group.name)
    for name, one in inner.items():
        below = Group({}, around, name)
        at = f"{path}.{name}" if path else name
        if isinstance(one, dict):
            yield from _walk(one, holds, line, at, below, 0)
            continue
        for place, each in enumerate(one):
            yield from _walk(each, holds, line, f"{at}[{place}]", below, place)


def _leads(name: str, value: Any, holds: Holds, depth: int = 0) -> bool:
    """Whether entries are looked for in a value."""
    if name in _NOT_ENTERED or depth > DEEPEST:
        return False
    if isinstance(value, dict):
        return holds(value) or any(_leads(inner, one, holds, depth + 1) for inner, one in value.items())
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


Element = tuple[str, int | None, int, Any]
"""The list that a value stands in, its place and its line there; a value of no list has a name and no place."""


def _elements(lines: _Lines) -> Iterator[Element]:
    """What a document is made of: the entries of its list, or of the lists of its object, and other values of that."""
    events = iter(ijson.basic_parse(lines, buf_size=_PIECE))
    event, value = next(events)
    if event == "start_array":
        yield from _list("", events, lines)
    elif event == "start_map":
        name = ""
        for event, value in events:
            if event == "map_key":
                name = value
            elif event == "start_array":
                yield from _list(name, events, lines)
            elif event != "end_map":
                yield name, None, lines.line, _build(event, value, events)
    else:
        yield "", 0, lines.line, _build(event, value, events)
    for _ in events:  # what stands behind the document is a fault that is told here
        pass


def _list(name: str, events: Iterator[tuple[str, Any]], lines: _Lines) -> Iterator[Element]:
    number = 0
    for event, value in events:
        if event == "end_array":
            return
        line = lines.line
        yield name, number, line, _build(event, value, events)
        number += 1


def _build(event: str, value: Any, events: Iterator[tuple[str, Any]]) -> Any:
    """The value that begins with an event. Raises `BadRequest`: it is too deep, or too large."""
    if event not in ("start_map", "start_array"):
        return _number(value)
    root: Any = {} if event == "start_map" else []
    stack, names, count = [root], [""], 0
    for event, value in events:
        count += 1
        if event == "map_key":
            names[-1] = value
        elif event in ("end_map", "end_array"):
            stack.pop()
            names.pop()
            if not stack:
                break
        else:
            made: Any = {} if event == "start_map" else [] if event == "start_array" else _number(value)
            if isinstance(stack[-1], dict):
                stack[-1][names[-1]] = made
            else:
                stack[-1].append(made)
            if event in ("start_map", "start_array"):
                stack.append(made)
                names.append("")
        if len(stack) > DEEPEST or count > MOST_VALUES:
            raise BadRequest(f"an entry is deeper than {DEEPEST} levels, or has more than {MOST_VALUES:,} values", field="FILE")
    return root


def _number(value: Any) -> Any:
    """A number of JSON; one that no float can be stays as it is written."""
    if not isinstance(value, Decimal):
        return value
    number = float(value)
    return number if math.isfinite(number) else str(value)
