"""Files of other programs' memories, as those programs write them, and files that nobody should write."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis import entries
from phronesis.entries import Fault
from phronesis.importing import to_line
from phronesis.sources import SOURCES, Found, read
from phronesis_contracts import BadRequest
from phronesis_contracts.memories import Memory, NewMemory
from phronesis_contracts.memory import ItemKind

MEM0 = {
    "results": [
        {
            "id": "bf4d4092-cf91-4181-bfeb-b6fa2ed3061b",
            "memory": "Likes to play cricket on weekends",
            "hash": "285d07801ae42054732314853e9eadd7",
            "metadata": {"category": "hobbies", "tags": ["sport", "outdoors"]},
            "score": None,
            "created_at": "2024-07-20T01:30:36.275141-07:00",
            "updated_at": None,
            "user_id": "alice",
            "categories": ["hobbies"],
        },
        {
            "id": "2",
            "memory": "Which gate is it?",
            "role": "user",
            "actor_id": "Alice",
            "user_id": "alice",
            "agent_id": "helper",
            "created_at": "2024-07-21T10:00:00Z",
        },
    ],
    "relations": [{"source": "alice", "relationship": "lives_in", "target": "new_york"}],
    "count": 2,
    "next": None,
}
ZEP = {
    "messages": [
        {
            "uuid": "m1",
            "created_at": "2025-02-06T10:00:00.123456789Z",
            "updated_at": "0001-01-01T00:00:00Z",
            "role": "user",
            "name": "Ada",
            "content": "Which gate is it?",
            "metadata": {"channel": "chat"},
            "processed": True,
        },
        {"uuid": "m2", "role": "assistant", "content": "Number seven.", "created_at": "2025-02-06T10:00:05Z"},
    ],
    "row_count": 2,
    "total_count": 2,
    "thread_id": "thread-1",
    "user_id": "ada",
}
EDGE = {
    "uuid": "e1",
    "name": "WORKS_AT",
    "fact": "Ada works at the harbour",
    "source_node_uuid": "n1",
    "target_node_uuid": "n2",
    "valid_at": "2024-01-01T00:00:00Z",
    "invalid_at": "2025-01-01T00:00:00Z",
    "expired_at": None,
    "created_at": "2025-02-06T10:00:00Z",
    "episodes": ["m1", "m2"],
    "fact_embedding": [0.1] * 64,
}
LANGMEM = [
    {
        "namespace": ["memories", "ada"],
        "key": "k1",
        "value": {"kind": "Memory", "content": {"content": "Prefers tea"}},
        "created_at": "2025-02-07T01:12:14.383762+00:00",
        "updated_at": "2025-02-07T01:12:14.383762+00:00",
        "score": 0.5,
    },
    {"namespace": ["memories", "ada"], "key": "k2", "value": {"content": "Hates rain"}},
    {"namespace": ["memories", "ada"], "key": "k3", "value": {"name": "Ada", "likes": ["tea", "maps"]}},
]


def write(folder: Path, value: Any, name: str = "file.json") -> Path:
    file = folder / name
    file.write_bytes(value if isinstance(value, bytes) else json.dumps(value, indent=2).encode())
    return file


def found(file: Path, source: str) -> list[Found]:
    done = list(read(file, SOURCES[source]))
    assert [one for one in done if isinstance(one, Fault)] == []
    return [one for one in done if isinstance(one, Found)]


def faults(file: Path, source: str) -> list[Fault]:
    return [one for one in read(file, SOURCES[source]) if isinstance(one, Fault)]


def fields_of(one: Found) -> set[str]:
    """All fields that are accounted for."""
    return {*one.mapped, *one.kept, *one.empty, *one.paging, *one.dropped}


def test_a_memory_of_mem0_has_its_text_its_time_and_all_other_fields_in_metadata(tmp_path: Path) -> None:
    first, said, relation = found(write(tmp_path, MEM0), "mem0")
    assert first.memory == NewMemory(
        text="Likes to play cricket on weekends",
        occurred_at=datetime(2024, 7, 20, 8, 30, 36, 275141, UTC),
        external_id="mem0:bf4d4092-cf91-4181-bfeb-b6fa2ed3061b",
        metadata={
            "category": "hobbies",
            "tags": '["sport", "outdoors"]',
            "mem0_hash": "285d07801ae42054732314853e9eadd7",
            "mem0_user_id": "alice",
            "mem0_categories": '["hobbies"]',
            "imported_from": "mem0",
        },
    )
    assert (first.empty, first.paging, first.users) == (
        ["score", "updated_at", "beside: next"],
        ["beside: count"],
        ("alice",),
    )
    assert (said.memory.speaker, said.memory.metadata["mem0_role"]) == ("Alice", "user")
    assert relation.memory.text == "alice lives in new york"
    assert relation.memory.metadata["mem0_relationship"] == "lives_in"


def test_a_memory_of_mem0_that_a_model_wrote_has_no_speaker(tmp_path: Path) -> None:
    file = write(tmp_path, [{"id": "1", "memory": "User likes tea", "attributed_to": "user", "actor_id": "Ada"}])
    [one] = found(file, "mem0")
    assert (one.memory.speaker, one.memory.metadata["mem0_actor_id"]) == (None, "Ada")


def test_a_message_of_zep_knows_its_speaker_its_thread_and_its_user(tmp_path: Path) -> None:
    first, second = found(write(tmp_path, ZEP), "zep")
    assert (first.memory.speaker, first.conversation_id, first.users) == ("Ada", "thread-1", ("ada",))
    assert first.memory.occurred_at == datetime(2025, 2, 6, 10, 0, 0, 123456, UTC)
    assert first.memory.external_id == "zep:m1"
    assert first.memory.metadata == {
        "channel": "chat",
        "zep_role": "user",
        "zep_updated_at": "0001-01-01T00:00:00Z",
        "zep_processed": True,
        "zep_group_thread_id": "thread-1",
        "zep_group_user_id": "ada",
        "imported_from": "zep",
    }
    assert first.paging == ["beside: row_count", "beside: total_count"]
    assert (second.memory.speaker, second.memory.metadata) == ("assistant", {"imported_from": "zep"})


def test_in_version_2_of_zep_the_role_is_the_name_and_role_type_the_role(tmp_path: Path) -> None:
    session = {"session_id": "s1", "messages": [{"role": "Ada", "role_type": "user", "content": "Hello"}]}
    [one] = found(write(tmp_path, {"sessions": [session]}), "zep")
    assert (one.memory.speaker, one.conversation_id, one.memory.metadata["zep_role_type"]) == ("Ada", "s1", "user")


def test_a_fact_of_zep_keeps_the_time_in_which_it_held_and_its_vector_is_named_as_dropped(tmp_path: Path) -> None:
    [one] = found(write(tmp_path, {"edges": [EDGE]}), "zep")
    assert (one.memory.text, one.memory.speaker) == ("Ada works at the harbour", None)
    assert one.memory.occurred_at == datetime(2024, 1, 1, tzinfo=UTC)
    assert one.memory.metadata["zep_invalid_at"] == "2025-01-01T00:00:00Z"
    assert list(one.dropped) == ["fact_embedding"]
    assert fields_of(one) == set(EDGE)


def test_users_and_nodes_of_zep_become_notes(tmp_path: Path) -> None:
    people = {"users": [{"user_id": "ada", "first_name": "Ada", "last_name": "L", "email": "ada@example.com"}]}
    nodes = {"nodes": [{"uuid": "n1", "name": "Harbour", "summary": "A port.", "labels": ["Place"]}]}
    [user, node] = found(write(tmp_path, people | nodes), "zep")
    assert (user.memory.text, user.memory.external_id) == ("Ada L ada@example.com", "zep:ada")
    assert node.memory.text == "Harbour: A port."


def test_messages_without_ids_are_told_apart_by_their_place_in_the_thread(tmp_path: Path) -> None:
    thread = {"thread_id": "t", "messages": [{"role": "user", "content": "yes"}, {"role": "user", "content": "yes"}]}
    one, other = found(write(tmp_path, [thread]), "zep")
    assert one.memory.external_id != other.memory.external_id


def test_an_item_of_langmem_has_the_text_of_its_value_whatever_the_shape(tmp_path: Path) -> None:
    first, second, profile = found(write(tmp_path, LANGMEM), "langmem")
    assert (first.memory.text, first.memory.external_id) == ("Prefers tea", "langmem:memories/ada/k1")
    assert first.memory.metadata == {
        "langmem_namespace": '["memories", "ada"]',
        "langmem_updated_at": "2025-02-07T01:12:14.383762+00:00",
        "langmem_score": 0.5,
        "langmem_kind": "Memory",
        "imported_from": "langmem",
    }
    assert (second.memory.text, first.users) == ("Hates rain", ("memories/ada", "memories", "ada"))
    assert profile.memory.text == 'name: Ada\nlikes: ["tea", "maps"]'


@pytest.mark.parametrize(
    "form",
    [
        lambda items: json.dumps(items).encode(),
        lambda items: json.dumps(items, indent=4).encode(),
        lambda items: b"\xef\xbb\xbf" + json.dumps(items).encode(),
        lambda items: json.dumps({"results": items, "relations": []}).encode(),
        lambda items: json.dumps({"results": items}, indent=1).encode(),
        lambda items: b"\n\n".join(json.dumps(one).encode() for one in items),
        lambda items: b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(one).encode() for one in items),
        lambda items: b"[\n" + b",\n".join(json.dumps(one).encode() for one in items) + b"\n]",
        lambda items: b'{"results": [\n' + b",\n".join(json.dumps(one).encode() for one in items) + b"\n]}",
    ],
)
def test_lists_objects_with_lists_and_lines_hold_the_same_memories(tmp_path: Path, form: Any) -> None:
    [relation] = MEM0["relations"]
    expected = [one.memory.external_id for one in found(write(tmp_path, [*MEM0["results"], relation]), "mem0")]
    file = tmp_path / "form.json"
    file.write_bytes(form([*MEM0["results"], relation]))
    assert [one.memory.external_id for one in found(file, "mem0")] == expected


def test_a_single_memory_is_a_file_too(tmp_path: Path) -> None:
    [one] = found(write(tmp_path, MEM0["results"][0]), "mem0")
    assert one.memory.metadata["mem0_categories"] == '["hobbies"]'


def test_a_fault_names_the_line_and_the_field(tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_bytes(
        b'{"id": "1", "memory": "fine"}\n'
        b'{"id": "2", "memory": \n'
        b'{"id": "3"}\n'
        b'{"id": "4", "memory": 5}\n'
        b'{"id": "5", "memory": "a\\u0000b"}\n'
        b'{"id": "6", "memory": "\xff"}\n'
        b"[1, 2]\n"
        b'{"id": "8", "memory": "\\ud800"}\n'
        b'{"id": "9", "memory": "  "}\n' + json.dumps({"id": "10", "memory": "x" * 20_001}).encode()
    )
    assert [(one.line, one.field) for one in faults(file, "mem0")] == [
        (2, None),
        (3, None),
        (4, "memory"),
        (5, "memory"),
        (6, None),
        (7, None),
        (8, "memory"),
        (9, "memory"),
        (10, "memory"),
    ]


def test_the_line_of_an_entry_of_a_document_is_where_it_begins(tmp_path: Path) -> None:
    file = write(tmp_path, {"results": [{"memory": "fine"}, {"memory": ""}, {"memory": None}]})
    text = file.read_text().splitlines()
    assert [(one.field, text[one.line - 1].strip()) for one in faults(file, "mem0")] == [
        ("results[1].memory", "{"),
        ("results[2].memory", "{"),
    ]


def test_a_time_that_cannot_be_is_noted_and_kept_and_the_memory_taken(tmp_path: Path) -> None:
    later = (datetime.now(UTC) + timedelta(days=400)).isoformat()
    times = [later, "yesterday", "9999-12-31T23:59:59-12:00", "1066-10-14", True, {"a": 1}, "0001-01-01T00:00:00Z", 1e300]
    done = found(write(tmp_path, [{"id": str(n), "memory": "x", "created_at": at} for n, at in enumerate(times)]), "mem0")
    assert [one.memory.occurred_at for one in done] == [None] * len(times)
    assert [[note.field for note in one.noted] for one in done] == [["created_at"]] * 6 + [[]] + [["created_at"]]
    assert done[1].memory.metadata["mem0_created_at"] == "yesterday"


def test_times_in_seconds_and_milliseconds_and_without_a_zone_are_understood(tmp_path: Path) -> None:
    times = [1720000000, 1720000000000, "2024-07-03T09:46:40", "2024-07-03T11:46:40+02:00"]
    done = found(write(tmp_path, [{"id": str(n), "memory": "x", "created_at": at} for n, at in enumerate(times)]), "mem0")
    assert {one.memory.occurred_at for one in done} == {datetime(2024, 7, 3, 9, 46, 40, tzinfo=UTC)}


@pytest.mark.parametrize(
    "text", ["[1, 2", '{"results": [{"memory": "x"}', '[{"memory": "x"}] more', '[{"memory": "\x00"}]', "[NaN]"]
)
def test_a_document_that_breaks_off_is_refused_as_a_whole(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadRequest) as error:
        list(read(write(tmp_path, text.encode()), SOURCES["mem0"]))
    assert (error.value.field, "line 1" in error.value.detail) == ("FILE", True)


def test_a_number_that_nothing_holds_is_refused_in_a_document_and_skipped_in_a_line(tmp_path: Path) -> None:
    for number in ("9" * 5_000, "1e99999999999999999999"):
        text = f'{{"memory": "x", "score": {number}}}'
        with pytest.raises(BadRequest) as error:
            list(read(write(tmp_path, f"[{text}]".encode()), SOURCES["mem0"]))
        assert "a number that is too long" in error.value.detail
    assert len(faults(write(tmp_path, f'{{"memory": "x", "score": {"9" * 5_000}}}'.encode(), "file.jsonl"), "mem0")) == 1


def test_a_file_in_utf_16_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest):
        list(read(write(tmp_path, json.dumps(MEM0).encode("utf-16")), SOURCES["mem0"]))


def test_an_entry_that_is_too_deep_is_no_memory(tmp_path: Path) -> None:
    deep = '{"memory": "x", "metadata": {"a": ' + "[" * 50_000 + "]" * 50_000 + "}}"
    assert [one.line for one in faults(write(tmp_path, deep.encode(), "deep.jsonl"), "mem0")] == [1]
    with pytest.raises(BadRequest):
        list(read(write(tmp_path, f"[\n{deep}]".encode()), SOURCES["mem0"]))


def test_a_line_that_is_too_long_is_skipped_and_the_next_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "LONGEST_LINE", 100)
    file = write(tmp_path, b'{"text": "one"}\n{"text": "' + b"x" * 350 + b'"}\n{"text": "three"}\n', "file.jsonl")
    done = list(read(file, SOURCES["jsonl"]))
    assert [one.memory.text if isinstance(one, Found) else one.line for one in done] == ["one", 2, "three"]


def test_names_that_meet_in_metadata_are_told_apart(tmp_path: Path) -> None:
    [one] = found(write(tmp_path, [{"id": "1", "memory": "x", "hash": "h", "metadata": {"mem0_hash": "mine"}}]), "mem0")
    assert (one.memory.metadata["mem0_hash"], one.memory.metadata["mem0_hash_2"]) == ("mine", "h")


SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)


def within(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return SCALAR | st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)


JSON = within(within(within(SCALAR)))
NAMES = ["id", "memory", "text", "user_id", "metadata", "created_at", "content", "role", "name", "uuid", "fact", "messages"]
NAMES += [
    "namespace",
    "key",
    "value",
    "results",
    "source",
    "relationship",
    "target",
    "summary",
    "email",
    "thread_id",
    "speaker",
]
ENTRY = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=8)


@given(
    st.sampled_from(sorted(SOURCES)),
    st.binary(max_size=300)
    | st.one_of(st.lists(ENTRY, max_size=4), ENTRY, JSON).map(lambda value: json.dumps(value).encode())
    | st.lists(ENTRY, max_size=4).map(lambda items: "\n".join(map(json.dumps, items)).encode()),
    st.integers(0, 400),
    st.binary(max_size=4),
)
def test_no_file_breaks_the_reader(source: str, data: bytes, at: int, noise: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), data[:at] + noise + data[at:])
        with contextlib.suppress(BadRequest):
            for one in read(file, SOURCES[source]):
                if isinstance(one, Found):
                    NewMemory.model_validate_json(one.memory.model_dump_json())


@given(st.sampled_from(["mem0", "zep", "langmem", "jsonl"]), ENTRY)
def test_every_field_of_an_entry_is_accounted_for(source: str, entry: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), json.dumps(entry).encode(), "file.jsonl")
        for one in read(file, SOURCES[source]):
            if isinstance(one, Found) and SOURCES[source].holds(entry):
                assert set(entry) == {re.split(r"[.:]", path)[0] for path in fields_of(one)}


STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
PLAIN = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | STORABLE
)
NAMED = STORABLE.filter(lambda text: bool(text.strip()))
TIMES = st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29), timezones=st.just(UTC))


@given(
    st.builds(
        Memory,
        id=st.uuids().map(str),
        external_id=st.none() | NAMED,
        kind=st.sampled_from([ItemKind.NOTE, ItemKind.MESSAGE, ItemKind.FACT]),
        text=NAMED,
        speaker=st.none() | NAMED,
        conversation_id=st.none() | NAMED,
        position=st.none() | st.integers(0, 10_000),
        occurred_at=TIMES,
        created_at=TIMES,
        updated_at=TIMES,
        metadata=st.dictionaries(STORABLE, PLAIN, max_size=4),
        expires_at=st.none() | TIMES,
    )
)
def test_what_is_exported_is_read_back_with_every_field(memory: Memory) -> None:
    with tempfile.TemporaryDirectory() as folder:
        [one] = found(write(Path(folder), to_line(memory), "export.jsonl"), "jsonl")
    assert one.memory.model_dump(exclude={"metadata"}) == {
        "text": memory.text,
        "speaker": memory.speaker,
        "occurred_at": memory.occurred_at,
        "external_id": memory.external_id or memory.id,
        "expires_at": memory.expires_at,
    }
    assert (one.conversation_id, one.id) == (memory.conversation_id, memory.id)
    kept = dict(one.memory.metadata)
    assert {name: kept.pop(name) for name in memory.metadata} == memory.metadata
    times = {datetime.fromisoformat(str(kept[one.kept[name]])) for name in ("created_at", "updated_at")}
    assert times == {memory.created_at, memory.updated_at}
    assert (kept[one.kept["kind"]], kept[one.kept["id"]]) == (memory.kind, memory.id)
