"""Imports and exports of memories, on a memory that keeps them in a dictionary."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from phronesis import Client
from phronesis.importing import Import, ImportReport, export
from phronesis_contracts import BadRequest, NotFound, ServiceError, TimedOut, Unavailable
from phronesis_contracts.memories import AddedMemories, AddedMemory, Memory, MemoryPage, NewMemory
from phronesis_contracts.memory import ItemKind

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class FakeMemory:
    """Memory as an importer sees it."""

    kept: dict[str, tuple[NewMemory, str | None]] = field(default_factory=dict)
    calls: list[int] = field(default_factory=list)
    fails: list[ServiceError] = field(default_factory=list)
    """What the next calls end with."""
    refuses: str = "no text is refused"

    def add(self, given: Sequence[NewMemory], *, conversation_id: str | None = None) -> AddedMemories:
        self.calls.append(len(given))
        if self.fails:
            raise self.fails.pop(0)
        for number, one in enumerate(given):
            if one.text == self.refuses:
                raise BadRequest("refused", field=f"memories.{number}.text")
        added = []
        for one in given:
            id = str(one.external_id)
            was = self.kept.get(id)
            status = "created" if was is None else "unchanged" if was == (one, conversation_id) else "updated"
            self.kept[id] = (one, conversation_id)
            added.append(AddedMemory.model_validate({"id": id, "external_id": id, "status": status}))
        return AddedMemories(memories=tuple(added))

    def list(self, *, limit: int, cursor: str | None, kinds: Iterable[str], conversation_id: str | None) -> MemoryPage:
        start = int(cursor or 0)
        all = [self._memory(id) for id in reversed(self.kept)]
        more = start + limit < len(all)
        return MemoryPage(memories=tuple(all[start : start + limit]), next=str(start + limit) if more else None)

    def get(self, id: str) -> Memory:
        return self._memory(id, whole=True)

    def _memory(self, id: str, whole: bool = False) -> Memory:
        one, conversation = self.kept[id]
        text = one.text if whole or len(one.text) < 3_000 else f"{one.text[:2_999]}…"
        at = one.occurred_at or NOW
        place = list(self.kept).index(id) if conversation else None
        kind = ItemKind.MESSAGE if conversation or one.speaker else ItemKind.NOTE
        fields: Mapping[str, Any] = one.model_dump(exclude={"text", "occurred_at"}) | {"conversation_id": conversation}
        return Memory.model_validate(
            {**fields, "id": id, "kind": kind, "text": text, "position": place}
            | {"occurred_at": at, "created_at": NOW, "updated_at": NOW}
        )


def client(memory: FakeMemory) -> Client:
    return cast(Client, SimpleNamespace(memory=memory))


def lines(folder: Path, *items: Mapping[str, Any]) -> Path:
    file = folder / "file.jsonl"
    file.write_text("\n".join(map(json.dumps, items)))
    return file


def counts(report: ImportReport) -> tuple[int, int, int, int]:
    return report.added, report.updated, report.there, report.skipped


def test_a_second_import_adds_nothing_and_changes_nothing(tmp_path: Path) -> None:
    memory = FakeMemory()
    file = lines(tmp_path, *({"id": str(n), "memory": f"text {n}"} for n in range(450)), {"memory": "without an id"})
    assert counts(Import(client(memory), file, "mem0").run()) == (451, 0, 0, 0)
    before = dict(memory.kept)
    assert counts(Import(client(memory), file, "mem0").run()) == (0, 0, 451, 0)
    assert memory.kept == before


def test_an_import_that_broke_off_is_finished_by_another(tmp_path: Path) -> None:
    memory = FakeMemory()
    file = lines(tmp_path, *({"id": str(n), "memory": f"text {n}"} for n in range(450)))
    memory.fails = []
    broken = Import(client(memory), file, "mem0")
    broken.progress = lambda done, total: memory.fails.append(Unavailable("gone")) if done == 200 else None
    with pytest.raises(Unavailable):
        broken.run()
    assert counts(broken.report)[0] == len(memory.kept) == 200
    memory.fails = []
    assert counts(Import(client(memory), file, "mem0").run()) == (250, 0, 200, 0)


def test_a_changed_memory_of_the_source_replaces_the_one_that_was_imported(tmp_path: Path) -> None:
    memory = FakeMemory()
    Import(client(memory), lines(tmp_path, {"id": "1", "memory": "old"}), "mem0").run()
    assert counts(Import(client(memory), lines(tmp_path, {"id": "1", "memory": "new"}), "mem0").run()) == (0, 1, 0, 0)


def test_what_memory_refuses_is_skipped_by_itself_and_named(tmp_path: Path) -> None:
    memory = FakeMemory(refuses="text 3")
    file = lines(tmp_path, *({"id": str(n), "memory": f"text {n}"} for n in range(6)))
    done = Import(client(memory), file, "mem0").run()
    assert (counts(done), [(one.line, one.field) for one in done.problems]) == ((5, 0, 0, 1), [(4, "text")])


def test_a_batch_that_takes_too_long_is_sent_in_halves(tmp_path: Path) -> None:
    memory = FakeMemory(fails=[TimedOut("slow")])
    file = lines(tmp_path, *({"id": str(n), "memory": f"text {n}"} for n in range(100)))
    assert counts(Import(client(memory), file, "mem0").run()) == (100, 0, 0, 0)
    assert memory.calls == [100, 50, 50]


def test_messages_of_a_deleted_conversation_are_skipped(tmp_path: Path) -> None:
    memory = FakeMemory(fails=[NotFound("this conversation was deleted", field="conversation_id")])
    messages = [{"uuid": n, "role": "user", "content": n, "thread_id": n} for n in ("a", "b")]
    assert counts(Import(client(memory), lines(tmp_path, *messages), "zep").run()) == (1, 0, 0, 1)


def test_an_id_that_stands_twice_is_taken_once(tmp_path: Path) -> None:
    memory = FakeMemory()
    file = lines(tmp_path, {"id": "1", "memory": "first"}, {"id": "1", "memory": "second"})
    for added in (1, 0):
        done = Import(client(memory), file, "mem0").run()
        assert (done.added, done.updated, done.problems[0].reason) == (added, 0, "has the id of the entry in line 1")


def test_memories_of_several_users_are_imported_only_of_those_that_are_chosen(tmp_path: Path) -> None:
    memory = FakeMemory()
    file = lines(tmp_path, *({"id": user, "memory": user, "user_id": user} for user in ("ada", "bo", "cy")))
    with pytest.raises(BadRequest) as error:
        Import(client(memory), file, "mem0").run()
    assert (error.value.field, memory.calls) == ("--user", [])
    done = Import(client(memory), file, "mem0", ["ada", "cy"]).run()
    assert (done.added, done.others, sorted(memory.kept)) == (2, 1, ["mem0:ada", "mem0:cy"])


def test_a_user_of_langmem_is_a_part_of_the_namespace(tmp_path: Path) -> None:
    memory = FakeMemory()
    items = [{"namespace": ["memories", user], "key": "k", "value": {"content": user}} for user in ("ada", "bo")]
    with pytest.raises(BadRequest):
        Import(client(memory), lines(tmp_path, *items), "langmem").run()
    assert Import(client(memory), lines(tmp_path, *items), "langmem", ["bo"]).run().added == 1


def test_a_broken_document_stores_nothing(tmp_path: Path) -> None:
    memory = FakeMemory()
    file = tmp_path / "file.json"
    file.write_text(json.dumps([{"id": str(n), "memory": "x"} for n in range(1_000)])[:-5])
    with pytest.raises(BadRequest):
        Import(client(memory), file, "mem0").run()
    assert memory.calls == []


def test_a_dry_run_tells_what_a_run_would_do_and_does_nothing(tmp_path: Path) -> None:
    memory = FakeMemory()
    file = lines(tmp_path, {"id": "1", "memory": "one"}, {"id": "2", "memory": "two"}, {"id": "3"})
    Import(client(memory), lines(tmp_path, {"id": "1", "memory": "one"}), "mem0").run()
    file = lines(tmp_path, {"id": "1", "memory": "one"}, {"id": "2", "memory": "two"}, {"id": "3"})
    done = Import(client(memory), file, "mem0", dry_run=True).run()
    assert (counts(done), done.dry_run, memory.calls) == ((1, 0, 1, 1), True, [1])


def test_messages_keep_their_order_and_go_conversation_by_conversation(tmp_path: Path) -> None:
    memory = FakeMemory()
    messages = [{"uuid": f"{n}", "role": "user", "content": f"{n}", "thread_id": f"t{n % 2}"} for n in range(10)]
    Import(client(memory), lines(tmp_path, *messages), "zep").run()
    assert memory.calls == [5, 5]
    assert [one.text for one, thread in memory.kept.values() if thread == "t1"] == ["1", "3", "5", "7", "9"]


def test_no_call_is_larger_than_the_bus_takes(tmp_path: Path) -> None:
    memory = FakeMemory()
    large = ({"id": str(n), "memory": f"{n}", "metadata": {"scan": "å" * 60_000}} for n in range(10))
    Import(client(memory), lines(tmp_path, *large), "mem0").run()
    assert (max(memory.calls), sum(memory.calls)) == (3, 10)


def test_what_is_exported_is_imported_into_another_memory_with_every_field(tmp_path: Path) -> None:
    memory, other = FakeMemory(), FakeMemory()
    messages = [{"uuid": f"{n}", "role": "user", "content": f"{n}" * 3_500, "thread_id": "t"} for n in range(3)]
    Import(client(memory), lines(tmp_path, *messages), "zep").run()
    memory.add([NewMemory(text="a note", external_id="note", metadata={"a": None, "b": 1.5, "c": ""})])
    file = tmp_path / "export.jsonl"
    with file.open("wb") as to:
        assert export(client(memory), to) == 4
    assert counts(Import(client(other), file, "jsonl").run()) == (4, 0, 0, 0)
    assert counts(Import(client(other), file, "jsonl").run()) == (0, 0, 4, 0)
    for id, (one, thread) in memory.kept.items():
        [again, where] = other.kept[id]
        assert (again.text, again.speaker, where) == (one.text, one.speaker, thread)
        assert one.metadata.items() <= again.metadata.items()
    assert [id for id, (_, thread) in other.kept.items() if thread] == ["zep:0", "zep:1", "zep:2"]


def test_an_export_that_is_imported_where_it_came_from_restores_what_is_missing_alone(tmp_path: Path) -> None:
    memory = FakeMemory()
    memory.add([NewMemory(text=id, external_id=id) for id in ("a", "b", "c")])
    to = io.BytesIO()
    export(client(memory), to)
    file = tmp_path / "export.jsonl"
    file.write_bytes(to.getvalue())
    del memory.kept["b"]
    assert counts(Import(client(memory), file, "jsonl").run()) == (1, 0, 2, 0)
    assert memory.kept["a"][0].metadata == {}
