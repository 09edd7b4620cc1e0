"""Memories from other programs into memory, and out of it as JSON Lines."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import Field

from phronesis_contracts import BadRequest, Message, NotFound, TimedOut
from phronesis_contracts.memories import Memory

from .calls.memory import batches
from .entries import Fault
from .sources import SOURCES, Found, Source, read
from .sync import Client

BATCH = 200
"""Memories of one call."""
_BATCH_TEXT = 100_000
"""Characters of texts of one call."""
_OPEN = 2_000
"""Memories that wait for others of their conversation."""
MOST_TOLD = 1_000
"""Faults that a report tells one by one."""
_MOST_USERS = 100
_PAGE = 50
"""Memories of a page of an export: few enough that no text is cut to fit in the answer, or hardly any."""
_PERHAPS_CUT = 2_000
_REFUSED = re.compile(r"memories\.(\d+)(?:\.(\w+))?")


class Problem(Message):
    """What of a file was not taken, or not as it stands."""

    line: int
    """The line of the file, from 1."""
    field: str | None = None
    """The field at fault, by its path."""
    reason: str
    """What is wrong with it."""


class ImportReport(Message):
    """What became of a file."""

    source: str
    """`mem0`, `zep`, `langmem` or `jsonl`."""
    dry_run: bool
    """Whether it was only read; `added` and `updated` are then what a run would write, as far as ids tell."""
    read: int
    """Entries of the file."""
    added: int = 0
    """Memories that are new."""
    updated: int = 0
    """Memories that were there and said something else."""
    there: int = 0
    """Memories that were there as they are."""
    others: int = 0
    """Entries of users that were not asked for."""
    skipped: int = 0
    """Entries without a memory."""
    problems: tuple[Problem, ...] = ()
    """Why entries were skipped: up to 1,000."""
    noted: tuple[Problem, ...] = ()
    """Fields of memories that were taken which did not fit: up to 1,000. They are kept in metadata."""
    mapped: dict[str, dict[str, int]] = Field(default_factory=dict)
    """How often a field of the source became which field of a memory."""
    kept: dict[str, dict[str, int]] = Field(default_factory=dict)
    """How often a field of the source is kept under which name in metadata."""
    empty: dict[str, int] = Field(default_factory=dict)
    """How often a field of the source had no value."""
    paging: dict[str, int] = Field(default_factory=dict)
    """Fields that count or page entries and belong to none."""
    dropped: dict[str, str] = Field(default_factory=dict)
    """Fields of the source that are nowhere, and why."""


@dataclass
class Import:
    """One import of a file; `report` tells how far it is, after an error too.

    Args:
        client: where to, for the user whom the client acts for.
        file: what to read.
        source: the program that wrote it: `mem0`, `zep`, `langmem` or `jsonl`.
        users: names that the source has for the user; all entries where it holds one user alone.
        dry_run: write nothing.
        progress: called with the number of entries that are done, and of all.

    Raises:
        BadRequest: there is no such source, the file is broken, or it holds memories of several users and none is chosen.
    """

    client: Client
    file: Path
    source: str
    users: Sequence[str] = ()
    dry_run: bool = False
    progress: Callable[[int, int], object] = lambda done, total: None
    _counts: Counter[str] = field(default_factory=Counter)
    _problems: list[Problem] = field(default_factory=list)
    _noted: list[Problem] = field(default_factory=list)
    _mapped: dict[str, Counter[str]] = field(default_factory=dict)
    _kept: dict[str, Counter[str]] = field(default_factory=dict)
    _empty: Counter[str] = field(default_factory=Counter)
    _paging: Counter[str] = field(default_factory=Counter)
    _dropped: dict[str, str] = field(default_factory=dict)
    _seen: dict[int, int] = field(default_factory=dict)
    """The lines of the ids so far, by their hash: a file may hold more ids than fit in memory."""

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise BadRequest(f"the sources are {', '.join(SOURCES)}", field="source")

    @property
    def report(self) -> ImportReport:
        return ImportReport(
            source=self.source,
            dry_run=self.dry_run,
            read=self._counts["read"],
            added=self._counts["created"],
            updated=self._counts["updated"],
            there=self._counts["unchanged"],
            others=self._counts["others"],
            skipped=self._counts["skipped"],
            problems=tuple(self._problems),
            noted=tuple(self._noted),
            mapped={name: dict(counts) for name, counts in sorted(self._mapped.items())},
            kept={name: dict(counts) for name, counts in sorted(self._kept.items())},
            empty=dict(sorted(self._empty.items())),
            paging=dict(sorted(self._paging.items())),
            dropped=dict(sorted(self._dropped.items())),
        )

    def run(self) -> ImportReport:
        """Read the file once to see that it is whole and whose it is, then store what it holds.

        A second run adds nothing and changes nothing, and one that broke off is finished by another.

        Raises:
            BadRequest: as above; nothing is stored then.
            ServiceError: memory refused, or failed; what was stored until then stays.
        """
        source = SOURCES[self.source]
        total, own = self._survey(source)
        known = self._known(ids=own) if own or self.dry_run else set()
        waiting: dict[str | None, list[Found]] = {}
        number = 0
        for one in read(self.file, source):
            self._counts["read"] += 1
            if (found := self._take(one, known)) is not None:
                waiting.setdefault(found.conversation_id, []).append(found)
                number += 1
                batch = waiting[found.conversation_id]
                if len(batch) >= BATCH or sum(len(each.memory.text) for each in batch) > _BATCH_TEXT:
                    number -= self._post(waiting.pop(found.conversation_id), known)
                elif number >= _OPEN:
                    number -= sum(self._post(each, known) for each in waiting.values())
                    waiting = {}
            self.progress(self._counts["read"] - number, total)
        for batch in waiting.values():
            number -= self._post(batch, known)
            self.progress(self._counts["read"] - number, total)
        return self.report

    def _survey(self, source: Source) -> tuple[int, bool]:
        """How many entries the file has, and whether some have ids of memory itself. Raises `BadRequest`."""
        total, own = 0, False
        whose: set[str] = set()
        for one in read(self.file, source):
            total += 1
            if isinstance(one, Found):
                own = own or one.id is not None
                if one.users and len(whose) < _MOST_USERS:
                    whose.add(one.users[0])
        if len(whose) > 1 and not self.users:
            names = ", ".join(sorted(whose)[:10]) + (", …" if len(whose) > 10 else "")
            raise BadRequest(f"the file holds memories of several users; choose: {names}", field="--user")
        return total, own

    def _known(self, ids: bool) -> set[str]:
        """Ids, and external ids for a dry run, of what the user has already."""
        known: set[str] = set()
        for one in list_all(self.client, page=200):
            if ids:
                known.add(one.id)
            if self.dry_run and one.external_id is not None:
                known.add(one.external_id)
        return known

    def _take(self, one: Found | Fault, known: set[str]) -> Found | None:
        """The memory, unless it is none, another user's, there already, or twice in the file."""
        if isinstance(one, Fault):
            self._skip(one)
            return None
        if self.users and not set(self.users) & set(one.users):
            self._counts["others"] += 1
            return None
        self._account(one)
        if one.id is not None and one.id in known:
            self._counts["unchanged"] += 1
            return None
        digest = int.from_bytes(hashlib.sha256(str(one.memory.external_id).encode()).digest()[:8])
        if (line := self._seen.get(digest)) is not None:
            self._skip(Fault(one.line, None, f"has the id of the entry in line {line}"))
            return None
        self._seen[digest] = one.line
        return one

    def _post(self, batch: list[Found], known: set[str]) -> int:
        """Store memories of one conversation; what is refused by itself is skipped. Returns how many were done."""
        done = len(batch)
        if self.dry_run:
            there = sum(one.memory.external_id in known for one in batch)
            self._counts["unchanged"] += there
            self._counts["created"] += done - there
            return done
        while batch:
            fitting = len(next(batches(one.memory for one in batch)))
            part, batch = batch[:fitting], batch[fitting:]
            try:
                added = self.client.memory.add([one.memory for one in part], conversation_id=part[0].conversation_id)
            except TimedOut:
                if len(part) == 1:
                    raise
                half = len(part) // 2
                self._post(part[:half], known)
                self._post(part[half:], known)
            except BadRequest as error:
                refused = _REFUSED.match(error.field or "")
                if refused is None or int(refused[1]) >= len(part):
                    raise
                wrong = part.pop(int(refused[1]))
                self._skip(Fault(wrong.line, refused[2], error.detail))
                batch = part + batch
            except NotFound as error:
                if error.field != "conversation_id":
                    raise
                for one in part:
                    self._skip(Fault(one.line, "conversation_id", error.detail))
            else:
                self._counts.update(one.status for one in added.memories)
        return done

    def _skip(self, fault: Fault) -> None:
        self._counts["skipped"] += 1
        _tell(self._problems, fault)

    def _account(self, one: Found) -> None:
        for fault in one.noted:
            _tell(self._noted, fault)
        for where, fields in ((self._mapped, one.mapped), (self._kept, one.kept)):
            for name, target in fields.items():
                where.setdefault(name, Counter())[target] += 1
        self._empty.update(one.empty)
        self._paging.update(one.paging)
        self._dropped |= one.dropped


def _tell(told: list[Problem], fault: Fault) -> None:
    if len(told) < MOST_TOLD:
        told.append(Problem(line=fault.line, field=fault.field, reason=fault.reason))


def list_all(
    client: Client, page: int = _PAGE, kinds: Iterable[str] = (), conversation_id: str | None = None
) -> Iterator[Memory]:
    """All memories of the user, the newest first, page by page."""
    cursor: str | None = None
    while True:
        found = client.memory.list(limit=page, cursor=cursor, kinds=tuple(kinds), conversation_id=conversation_id)
        yield from found.memories
        cursor = found.next
        if cursor is None:
            return


def export(
    client: Client,
    to: BinaryIO,
    kinds: Iterable[str] = (),
    conversation_id: str | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> int:
    """Write all memories as JSON Lines: texts by time, then conversations, each in its order. Returns how many.

    A line has the fields of `Memory` that have a value, and `import jsonl` reads it back. What is deleted meanwhile is left
    out.
    """
    with tempfile.TemporaryFile() as spool:
        order: list[tuple[tuple[Any, ...], int, int]] = []
        for one in list_all(client, kinds=kinds, conversation_id=conversation_id):
            if one.text.endswith("…") and len(one.text.encode()) >= _PERHAPS_CUT:
                try:
                    one = client.memory.get(one.id)
                except NotFound:
                    continue
            line = to_line(one)
            order.append((_place(one), spool.tell(), len(line)))
            spool.write(line)
            progress(len(order))
        order.sort()
        for _, start, length in order:
            spool.seek(start)
            to.write(spool.read(length))
    return len(order)


def to_line(one: Memory) -> bytes:
    """A memory as a line of JSON."""
    return one.model_dump_json(exclude=_absent(one)).encode() + b"\n"


def _absent(one: Memory) -> set[str]:
    return {name for name in type(one).model_fields if getattr(one, name) in (None, {})}


def _place(one: Memory) -> tuple[Any, ...]:
    return one.conversation_id or "", one.position or 0, one.occurred_at, one.id
