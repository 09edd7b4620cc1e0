"""Thousands of memories of a source, imported twice into a running stack, with every field accounted for."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from phronesis import Client
from phronesis.importing import Import, ImportReport, list_all
from tests.support.people import Person

pytestmark = [pytest.mark.verify, pytest.mark.any_store, pytest.mark.timeout(1_200)]

COUNT = 3_000
"""More than an import keeps open at once, with more outside a conversation than one call takes."""
THREADS, EACH = 120, 18
"""Conversations of a source that has them, and messages of each."""
START = datetime(2025, 1, 1, tzinfo=UTC)
WORDS = "harbour lantern bicycle market violin orchard winter letter engine kitchen river garden window station camera".split()


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=8))


def at(number: int) -> str:
    return (START + timedelta(minutes=number)).isoformat()


def mem0(chance: random.Random) -> dict[str, Any]:
    """An answer of `get_all` with graph memory on."""
    results = [
        {
            "id": f"00000000-0000-4000-8000-{number:012}",
            "memory": f"{number} {text(chance)}",
            "hash": f"{chance.getrandbits(128):032x}",
            "metadata": {"topic": chance.choice(WORDS), "tags": [chance.choice(WORDS)], "weight": chance.random()},
            "created_at": at(number),
            "updated_at": at(number + 5) if number % 3 else None,
            "user_id": "ada",
            "agent_id": "helper" if number % 2 else None,
            "run_id": f"run-{number // 100}",
            "categories": [chance.choice(WORDS)],
            "score": chance.random(),
        }
        for number in range(COUNT - 500)
    ]
    relations = [{"source": f"{n}", "relationship": "knows", "target": chance.choice(WORDS)} for n in range(500)]
    return {"results": results, "relations": relations}


def zep(chance: random.Random) -> dict[str, Any]:
    """Threads with their messages, facts and users."""
    threads = [
        {
            "thread_id": f"thread-{thread}",
            "user_id": "ada",
            "created_at": at(thread),
            "messages": [
                {
                    "uuid": f"message-{thread}-{number}",
                    "role": ("user", "assistant")[number % 2],
                    "name": ("Ada", None)[number % 2],
                    "content": f"{thread} {number} {text(chance)}",
                    "created_at": at(thread * EACH + number),
                    "metadata": {"channel": chance.choice(WORDS)},
                    "processed": True,
                }
                for number in range(EACH)
            ],
        }
        for thread in range(THREADS)
    ]
    edges = [
        {
            "uuid": f"edge-{number}",
            "name": "LIKES",
            "fact": f"Ada likes {number} {text(chance)}",
            "source_node_uuid": "n1",
            "target_node_uuid": "n2",
            "valid_at": at(number),
            "invalid_at": at(number + 9) if number % 4 == 0 else None,
            "created_at": at(number),
            "expired_at": None,
            "episodes": [f"message-{number % THREADS}-0"],
        }
        for number in range(COUNT - THREADS * EACH - 1)
    ]
    users = [{"user_id": "ada", "first_name": "Ada", "email": "ada@example.com", "created_at": at(0)}]
    return {"threads": threads, "edges": edges, "users": users}


def fields(value: Any, path: str = "") -> Iterator[str]:
    """Each field of each entry, as the report names it."""
    for name, one in value.items():
        if name == "messages":
            continue
        if name == "metadata":
            yield from (f"metadata.{inner}" for inner in one)
        else:
            yield f"{path}{name}"


def expected(export: dict[str, Any]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for name, items in export.items():
        for item in items:
            counted.update(fields(item, "threads: " if name == "threads" else ""))
            for message in item.get("messages", ()):
                counted.update(fields(message))
    return counted


def accounted(report: ImportReport) -> Counter[str]:
    counted = Counter(report.empty) + Counter(report.paging)
    for where in (report.mapped, report.kept):
        for name, targets in where.items():
            counted[name] += sum(targets.values())
    return counted


@pytest.mark.parametrize(("source", "make"), [("mem0", mem0), ("zep", zep)])
async def test_thousands_of_memories_are_imported_twice_without_a_duplicate_and_every_field_is_accounted_for(
    source: str, make: Any, somebody: Person, tmp_path: Path
) -> None:
    export = make(random.Random(7))
    file = tmp_path / f"{source}.json"
    file.write_text(json.dumps(export, indent=1))
    url, key = str(somebody.http.base_url), somebody.key

    def bring_in() -> tuple[ImportReport, float]:
        with Client(url, key) as client:
            begun = monotonic()
            return Import(client, file, source).run(), monotonic() - begun

    def ids() -> list[tuple[str, str | None, str]]:
        with Client(url, key) as client:
            return sorted((one.id, one.external_id, str(one.updated_at)) for one in list_all(client, page=200))

    report, seconds = await asyncio.to_thread(bring_in)
    print(f"{source}: {COUNT / seconds:.0f} memories a second")
    assert (report.read, report.added, report.skipped, report.problems, report.noted) == (COUNT, COUNT, 0, (), ())
    assert report.dropped == {}
    assert accounted(report) == expected(export)
    first = await asyncio.to_thread(ids)
    assert (len(first), len({external for _, external, _ in first})) == (COUNT, COUNT)
    again, seconds = await asyncio.to_thread(bring_in)
    print(f"{source}: {COUNT / seconds:.0f} memories a second that were there already")
    assert (again.added, again.updated, again.there) == (0, 0, COUNT)
    assert await asyncio.to_thread(ids) == first
