"""What the entries of other programs' memories mean, field by field."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from phronesis_contracts.memories import NewMemory

from .entries import DEEPEST, Entry, Fault, Group, read_entries

LARGEST = 200_000
"""Bytes of one memory with its metadata; the bus takes a batch of some."""
ORIGIN = "imported_from"
"""The name in metadata that tells which program a memory came from."""
_LONGEST_ID = 200
_MILLISECONDS = 100_000_000_000
"""A number of this size is a time in milliseconds."""
_EARLIEST = 1900
_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)
"""What Go writes for no time at all."""
_VECTOR = 32
"""Numbers from which on a list is a vector of a model; memory makes its own."""
_PAGING = {
    *("count", "total", "total_count", "row_count", "response_count", "total_memories"),
    *("next", "previous", "cursor", "next_cursor", "has_more", "page", "page_size", "limit", "offset"),
}
_AMONG = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass
class Found:
    """A memory of a file, and what became of each field of its entry."""

    line: int
    memory: NewMemory
    conversation_id: str | None
    users: tuple[str, ...]
    """Names of the user whom the source holds it for; several where it has no one field for that."""
    id: str | None
    """The id that memory itself gave it, where the file is an export of ours."""
    mapped: dict[str, str]
    kept: dict[str, str]
    empty: list[str]
    """Fields without a value."""
    paging: list[str]
    """Fields around the entries that count or page them."""
    dropped: dict[str, str]
    noted: list[Fault]


class Source(Protocol):
    """A program whose memories are read."""

    name: str
    prefix: str
    """What the names of fields that are kept in metadata begin with."""
    without_time_limits: bool

    def holds(self, fields: Mapping[str, Any]) -> bool:
        """Whether an object is an entry, and not something around entries."""

    def understand(self, reading: Reading) -> Understood:
        """Take out of an entry what has a place of its own; the rest is kept in metadata. Raises `Unfit`."""


class Unfit(ValueError):
    """An entry holds no memory."""

    def __init__(self, field: str | None, reason: str) -> None:
        super().__init__(reason)
        self.field, self.reason = field, reason


@dataclass
class Understood:
    """What the fields of an entry mean."""

    text: str
    id: str | None = None
    speaker: str | None = None
    at: datetime | None = None
    conversation: str | None = None
    users: tuple[str, ...] = ()
    external_id: str | None = None
    """The id as it is; made of the source and `id` where there is none."""
    expires_at: datetime | None = None


@dataclass
class Reading:
    """An entry while it is understood: what is taken has found its place."""

    entry: Entry
    source: Source
    left: dict[str, Any]
    mapped: dict[str, str] = field(default_factory=dict)
    noted: list[Fault] = field(default_factory=list)

    def text(self, target: str, *names: str) -> str | None:
        """The first of these fields that holds a text, or a number that serves as one."""
        for name in names:
            value = self.left.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                value = str(value)
            if isinstance(value, str) and value.strip():
                del self.left[name]
                self.mapped[name] = target
                return value
        return None

    def needed(self, *names: str) -> str:
        """The text of the memory. Raises `Unfit`: there is none."""
        for name in names:
            value = self.left.get(name)
            if isinstance(value, str) and value.strip():
                return self.text("text", name) or ""
        given = next((name for name in names if name in self.left), names[0])
        raise Unfit(given, "missing" if given not in self.left else _unlike_text(self.left[given]))

    def time(self, *names: str, to: str = "occurred_at") -> datetime | None:
        """The first of these fields that is there, as a time; one that cannot be is noted and stays as it is.

        Args:
            to: the field of a memory that it becomes.
        """
        for name in names:
            value = self.left.get(name)
            if value is None or value == "":
                continue
            try:
                at = parse_time(value)
            except ValueError:
                self._note(name, f"{_short(value)} is no time")
                return None
            if at == _NO_TIME:
                self.left[name] = None
                continue
            if not self.source.without_time_limits:
                if at.year < _EARLIEST:
                    self._note(name, f"{_short(value)} is too long ago")
                    return None
                if at > datetime.now(UTC) + timedelta(days=1):
                    self._note(name, f"{_short(value)} lies in the future")
                    return None
            del self.left[name]
            self.mapped[name] = to
            return at
        return None

    def _note(self, name: str, reason: str) -> None:
        self.noted.append(Fault(self.entry.line, name, f"{reason}; kept in metadata"))


def read(file: Path, source: Source) -> Iterator[Found | Fault]:
    """The memories of a file, and what of it holds none, in their order. Raises `BadRequest`, as `read_entries` does."""
    for one in read_entries(file, source.holds):
        yield understand(one, source) if isinstance(one, Entry) else one


def understand(entry: Entry, source: Source) -> Found | Fault:
    """The memory of an entry with all of its fields, or why there is none."""
    try:
        return _understand(entry, source)
    except Unfit as error:
        return Fault(entry.line, _inside(entry.path, error.field), error.reason)
    except RecursionError:
        return Fault(entry.line, entry.path or None, f"nested more than {DEEPEST} levels deep")


def _understand(entry: Entry, source: Source) -> Found:
    reading = Reading(entry, source, dict(entry.fields))
    meant = source.understand(reading)
    metadata: dict[str, Any] = {}
    kept: dict[str, str] = {}
    empty: list[str] = []
    dropped: dict[str, str] = {}
    paging: list[str] = []
    groups, group_prefix = entry.group.untold(), f"{source.prefix}_group_"
    for path, name, value in _rest(reading, source, groups):
        if value in ([], {}) or (value in (None, "") and not path.startswith("metadata.")):
            empty.append(path)
        elif name.startswith(group_prefix) and name.removeprefix(group_prefix) in _PAGING:
            paging.append(path)
        elif _is_vector(value):
            dropped[path] = "a vector of another model; memory makes its own"
        else:
            free = _free(name, metadata)
            metadata[free] = _plain(value)
            kept[path] = free
    metadata.setdefault(ORIGIN, source.name)
    id = meant.external_id or f"{source.name}:{meant.id or _hash(entry)}"
    id = id if len(id) <= _LONGEST_ID else f"{source.name}:{hashlib.sha256(id.encode(errors='surrogatepass')).hexdigest()}"
    given: dict[str, Any] = {"text": meant.text, "speaker": meant.speaker, "external_id": id, "metadata": metadata}
    given |= {"occurred_at": meant.at, "expires_at": meant.expires_at}
    names = {target: name for name, target in reading.mapped.items()}
    for name, value in {**given, "conversation_id": meant.conversation}.items():
        if not _is_storable(value):
            raise Unfit(names.get(name, name), "holds a NUL character or half of a character")
    try:
        memory = NewMemory.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = str(first["loc"][0])
        raise Unfit(names.get(name, name), first["msg"]) from None
    if meant.conversation is not None and len(meant.conversation) > _LONGEST_ID:
        raise Unfit(names.get("conversation_id"), f"longer than {_LONGEST_ID} characters")
    if len(memory.model_dump_json()) > LARGEST:
        raise Unfit(None, f"larger than {LARGEST:,} bytes")
    for group in groups:
        group.told = True
    own = reading.entry.fields.get("id") if source.name == "jsonl" else None
    return Found(
        line=entry.line,
        memory=memory,
        conversation_id=meant.conversation,
        users=meant.users,
        id=own if isinstance(own, str) else None,
        mapped=reading.mapped,
        kept=kept,
        empty=empty,
        paging=paging,
        dropped=dropped,
        noted=reading.noted,
    )


def _rest(reading: Reading, source: Source, groups: list[Group]) -> Iterator[tuple[str, str, Any]]:
    """What has no place of its own: its path in the file, its name in metadata, and its value; the user's own names first."""
    own = reading.left.pop("metadata", None)
    if isinstance(own, dict) and own:
        yield from ((f"metadata.{name}", name, value) for name, value in own.items())
    elif "metadata" in reading.entry.fields:
        yield "metadata", f"{source.prefix}_metadata", own
    for name, value in reading.left.items():
        yield name, f"{source.prefix}_{_snake(name.removeprefix('value.').removeprefix('content.'))}", value
    for group in groups:
        for name, value in group.fields.items():
            yield f"{group.name or 'beside'}: {name}", f"{source.prefix}_group_{_snake(name)}", value


def parse_time(value: object) -> datetime:
    """A time as ISO 8601 or in seconds or milliseconds since 1970; one without a zone is UTC. Raises `ValueError`."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value.strip())
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS else value, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError("out of range") from error
    raise ValueError("no time")


def _inside(path: str, name: str | None) -> str | None:
    return ".".join(part for part in (path, name) if part) or None


def _unlike_text(value: object) -> str:
    if isinstance(value, str) or value is None:
        return "empty"
    kinds = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number"}
    return f"not a text but {kinds.get(type(value), 'something else')}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _snake(name: str) -> str:
    return _AMONG.sub("_", name).lower()


def _free(name: str, taken: Mapping[str, Any]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _is_vector(value: object) -> bool:
    return isinstance(value, list) and len(value) >= _VECTOR and all(isinstance(one, float) for one in value)


def _plain(value: Any) -> str | int | float | bool | None:
    """A value as metadata takes it: what is more than a plain one is told as JSON."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -(2**63) <= value < 2**63 else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case _:
            return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _is_storable(value: Any) -> bool:
    match value:
        case str():
            return "\x00" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
        case dict():
            return all(_is_storable(name) and _is_storable(one) for name, one in value.items())
        case _:
            return True


def _hash(entry: Entry) -> str:
    """What tells an entry without an id from others: what it says, and where in its conversation it does."""
    where = entry.group.find("thread_id", "session_id", "uuid", "id")
    said = json.dumps([entry.fields, where, entry.number if where else None], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


class Mem0:
    """Memories of mem0, as `get_all`, `search` and its exports write them.

    An entry has `id`, `memory`, `hash`, `user_id`, `agent_id`, `app_id`, `run_id`, `metadata`, `created_at` and `updated_at`
    (docs.mem0.ai/api-reference/memory/get-memory), on the platform `categories` and `score` too; the open-source version adds
    `actor_id`, `role`, `attributed_to` and `expiration_date` (`mem0/memory/main.py`). Answers hold them in `results`, and
    `relations` of `source`, `relationship` and `target` beside them where graph memory is on.
    """

    name = prefix = "mem0"
    without_time_limits = False

    def holds(self, fields: Mapping[str, Any]) -> bool:
        wrapped = isinstance(fields.get("memory"), dict | list)
        return ("memory" in fields and not wrapped) or "text" in fields or _is_relation(fields)

    def understand(self, reading: Reading) -> Understood:
        user = reading.entry.fields.get("user_id") or reading.entry.group.find("user_id")
        users = (str(user),) if user else ()
        if _is_relation(reading.left) and "memory" not in reading.left:
            parts = [reading.left["source"], reading.left["relationship"], reading.left.get("target")]
            parts[2] = parts[2] if parts[2] is not None else reading.left.get("destination")
            text = " ".join(str(part).replace("_", " ") for part in parts if part is not None)
            return Understood(text, reading.text("external_id", "id"), at=reading.time("created_at"), users=users)
        text = reading.needed("memory", "text")
        # Only memories that were stored as they were said have a role.
        speaker = reading.text("speaker", "actor_id", "role") if reading.left.get("role") else None
        at = reading.time("created_at", "createdAt", "updated_at", "updatedAt")
        return Understood(text, reading.text("external_id", "id"), speaker, at, users=users)


def _is_relation(fields: Mapping[str, Any]) -> bool:
    return "source" in fields and "relationship" in fields and ("target" in fields or "destination" in fields)


class Zep:
    """Threads, messages, facts, nodes and users of Zep, as its API answers them.

    A message has `uuid`, `content`, `role`, `name`, `created_at`, `metadata` and `processed`
    (help.getzep.com/sdk-reference/thread/get-messages-of-a-thread); in version 2 `role` was the name and `role_type` the role
    (help.getzep.com/v2/sdk-reference/memory/get-session-messages). A fact is an edge of the graph with `uuid`, `name`, `fact`,
    `valid_at`, `invalid_at`, `expired_at`, `created_at`, `episodes` and both nodes' ids
    (help.getzep.com/sdk-reference/graph/edge/get-edge), a node has `name`, `summary`, `labels` and `attributes`.
    """

    name = prefix = "zep"
    without_time_limits = False

    def holds(self, fields: Mapping[str, Any]) -> bool:
        if "content" in fields or "fact" in fields or ("summary" in fields and "name" in fields):
            return True
        person = "email" in fields or "first_name" in fields or "firstName" in fields
        return person and not any(fields.get(name) for name in ("messages", "threads", "sessions", "facts", "edges"))

    def understand(self, reading: Reading) -> Understood:
        group, left = reading.entry.group, reading.left
        users = _first(left.get("user_id"), left.get("userId"), group.find("user_id", "userId"), left.get("group_id"))
        uuid = reading.text("external_id", "uuid", "uuid_", "id")
        if "fact" in left:
            at = reading.time("valid_at", "validAt", "created_at", "createdAt")
            return Understood(reading.needed("fact"), uuid, at=at, users=users)
        if "content" in left:
            speaker = self._speaker(reading)
            names = ("thread_id", "session_id", "threadId", "sessionId", "thread_uuid")
            at = reading.time("reference_time", "created_at", "createdAt")
            thread = reading.text("conversation_id", *names) or group.find(*names)
            if thread is None and group.name == "messages":
                thread = group.find("uuid", "id")
            return Understood(reading.needed("content"), uuid, speaker, at, thread, users)
        at = reading.time("created_at", "createdAt")
        if "summary" in left:
            name = left.get("name")
            text = reading.needed("summary")
            named = isinstance(name, str) and name.strip() and name not in text
            return Understood(f"{name}: {text}" if named else text, uuid, at=at, users=users)
        names = ("first_name", "firstName", "last_name", "lastName", "email")
        parts = [part for name in names if (part := reading.text("text", name))]
        if not parts:
            raise Unfit("email", "a user without a name and an address")
        return Understood(" ".join(parts), uuid or reading.text("external_id", "user_id"), at=at, users=users)

    def _speaker(self, reading: Reading) -> str | None:
        """Who said it: the name where there is one, which was `role` in version 2."""
        if reading.left.get("role_type") or reading.left.get("roleType"):
            return reading.text("speaker", "name", "role", "role_type", "roleType")
        return reading.text("speaker", "name", "role")


class LangMem:
    """Items of a LangGraph store, in which LangMem keeps memories.

    An item has `namespace`, `key`, `value`, `created_at` and `updated_at`, found ones `score`, in JavaScript `createdAt` and
    `updatedAt` (`Item.dict` of `langgraph.store.base`; reference.langchain.com/python/langgraph.store/base/Item). LangMem's
    value is `{"content": text}` or `{"kind": "Memory", "content": {"content": text}}`; other values, such as profiles, are told
    name by name.
    """

    name = prefix = "langmem"
    without_time_limits = False

    def holds(self, fields: Mapping[str, Any]) -> bool:
        return "value" in fields and ("key" in fields or "namespace" in fields)

    def understand(self, reading: Reading) -> Understood:
        left = reading.left
        spaces = left.get("namespace")
        parts = [str(one) for one in spaces] if isinstance(spaces, list) else [spaces] if isinstance(spaces, str) else []
        value = left.pop("value")
        if isinstance(value, str):
            value = {"content": value}
        if not isinstance(value, dict) or not value:
            raise Unfit("value", _unlike_text(value) if value not in ({}, []) else "empty")
        value = dict(value)
        inner = value.get("content")
        if isinstance(inner, dict) and isinstance(inner.get("content"), str):
            value |= {f"content.{name}": one for name, one in inner.items() if name != "content"}
            value["content"], name = inner["content"], "value.content.content"
        else:
            name = "value.content"
        text = value.get("content")
        if isinstance(text, str) and text.strip():
            del value["content"]
            reading.mapped[name] = "text"
            left.update({f"value.{name}": one for name, one in value.items()})
        else:
            told = inner if isinstance(inner, dict) and inner else value
            left.update({f"value.{name}": one for name, one in value.items() if told is inner and name != "content"})
            text = "\n".join(f"{name}: {one if isinstance(one, str) else _plain_json(one)}" for name, one in told.items())
            reading.mapped["value" if told is value else "value.content"] = "text"
        at = reading.time("created_at", "createdAt", "updated_at", "updatedAt")
        key = reading.text("external_id", "key")
        where = "/".join(parts)
        return Understood(text, f"{where}/{key}" if key else None, at=at, users=tuple(dict.fromkeys((where, *parts))))


def _plain_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


class JsonLines:
    """Memories as `phronesis memory export` writes them: the fields of `Memory`, one memory a line.

    Only `text` is needed. `id`, `kind`, `created_at` and `updated_at` are given anew where it is imported; those of the file
    are kept in metadata.
    """

    name = "jsonl"
    prefix = "imported"
    without_time_limits = True

    def holds(self, fields: Mapping[str, Any]) -> bool:
        return "text" in fields

    def understand(self, reading: Reading) -> Understood:
        left = reading.left
        id = left.get("id") if isinstance(left.get("id"), str) and left["id"] else None
        if "position" in left:
            del left["position"]
            reading.mapped["position"] = "the order of the messages"
        return Understood(
            reading.needed("text"),
            id,
            reading.text("speaker", "speaker"),
            reading.time("occurred_at"),
            reading.text("conversation_id", "conversation_id"),
            users=_first(left.get("user_id")),
            external_id=reading.text("external_id", "external_id") or id,
            expires_at=reading.time("expires_at", to="expires_at"),
        )


def _first(*values: Any) -> tuple[str, ...]:
    return next(((str(value),) for value in values if isinstance(value, str | int) and value), ())


SOURCES: dict[str, Source] = {one.name: one for one in (Mem0(), Zep(), LangMem(), JsonLines())}
"""The programs whose memories are read, by name."""
