"""Memories of other programs and of exports, by the command, on a whole stack."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phronesis import AsyncClient
from phronesis_contracts.memories import Memory
from scripts.tree import ROOT
from tests.support.people import Person, Town

pytestmark = pytest.mark.any_store

FILES: dict[str, Any] = {
    "mem0.json": {
        "results": [{"id": "1", "memory": "Likes tea", "user_id": "ada", "created_at": "2024-07-20T01:30:36-07:00"}],
        "relations": [{"source": "ada", "relationship": "likes", "target": "tea"}],
    },
    "zep.json": {
        "threads": [
            {
                "thread_id": "t1",
                "user_id": user,
                "messages": [
                    {"uuid": f"{user}1", "role": "user", "name": user, "content": "Which gate is it?"},
                    {"uuid": f"{user}2", "role": "assistant", "content": "Number seven."},
                ],
            }
            for user in ("ada", "bo")
        ]
    },
    "store.jsonl": {"namespace": ["memories", "ada"], "key": "k", "value": {"content": "Hates rain"}},
    "memories.jsonl": {"text": "The boat is called Tern", "external_id": "boat", "occurred_at": "2025-01-01T00:00:00Z"},
}


async def run(person: Person, folder: Path, line: str, code: int = 0) -> str:
    """The standard output of a command, as it is typed into a shell."""
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder)}
    env |= {"PHRONESIS_URL": str(person.http.base_url), "PHRONESIS_KEY": person.key}
    done = await asyncio.to_thread(
        subprocess.run, ["bash", "-o", "pipefail", "-c", line], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return done.stdout


async def memories_of(person: Person, user: str | None = None) -> list[Memory]:
    async with AsyncClient(str(person.http.base_url), person.key) as client:
        return list((await client.memory.list(limit=200, user_id=user)).memories)


def write(folder: Path) -> None:
    for name, value in FILES.items():
        (folder / name).write_text(json.dumps(value))


@pytest.mark.verify
async def test_the_commands_of_the_page_run_and_again_change_nothing(somebody: Person, tmp_path: Path) -> None:
    write(tmp_path)
    page = (ROOT / "docs" / "how-to" / "import.md").read_text("utf-8")
    imports, exports = (block.strip().splitlines() for block in re.findall(r"^```\n(phronesis .*?)```", page, re.DOTALL | re.M))
    reports = [json.loads(await run(somebody, tmp_path, f"{line} --json")) for line in imports]
    assert [(one["added"], one["others"], one["dropped"]) for one in reports] == [
        (2, 0, {}),
        (2, 0, {}),
        (2, 2, {}),
        (1, 0, {}),
        (1, 0, {}),
    ]
    kept = await memories_of(somebody)
    assert len(kept) == 6
    again = [json.loads(await run(somebody, tmp_path, f"{line} --json")) for line in imports]
    assert [(one["added"], one["updated"]) for one in again] == [(0, 0)] * 5
    (tmp_path / "memories.jsonl").unlink()
    for line in exports:
        await run(somebody, tmp_path, line)
    assert len((tmp_path / "memories.jsonl").read_text().splitlines()) == 6
    assert await memories_of(somebody) == kept


async def test_an_export_fills_the_memory_of_another_user_and_restores_ones_own(everybody: Town, tmp_path: Path) -> None:
    backend = await everybody.someone(scopes=("act_for_users",))
    async with AsyncClient(str(backend.http.base_url), backend.key) as client:
        said = [{"speaker": name, "text": f"line {name}", "metadata": {"n": None, "s": ""}} for name in ("Ada", "Bo", "Cy")]
        added = await client.memory.add(said, conversation_id="c1", user_id="ada")
        await client.memory.add("é" * 19_999 + "…", user_id="ada")
        before = await memories_of(backend, "ada")
        await run(backend, tmp_path, "phronesis memory export all.jsonl --as ada")
        report = json.loads(await run(backend, tmp_path, "phronesis import jsonl all.jsonl --as bo --json"))
        assert (report["added"], report["skipped"], report["dropped"]) == (4, 0, {})
        assert json.loads(await run(backend, tmp_path, "phronesis import jsonl all.jsonl --as bo --json"))["there"] == 4
        other = {one.external_id: one for one in await memories_of(backend, "bo")}
        whole = await client.memory.get(next(one.id for one in before if one.kind == "note"), user_id="ada")
        copy = await client.memory.get(other[whole.id].id, user_id="bo")
        assert (copy.text, len(copy.text)) == (whole.text, 20_000)
        for one in before:
            again = other[one.id]
            assert (again.speaker, again.conversation_id, again.occurred_at) == (
                one.speaker,
                one.conversation_id,
                one.occurred_at,
            )
            assert one.metadata.items() <= again.metadata.items()
        order = sorted((one for one in other.values() if one.position is not None), key=lambda one: one.position or 0)
        assert [one.speaker for one in order] == ["Ada", "Bo", "Cy"]
        await client.memory.delete(added.memories[0].id, user_id="ada")
        report = json.loads(await run(backend, tmp_path, "phronesis import jsonl all.jsonl --as ada --json"))
        assert (report["added"], report["updated"], report["there"]) == (1, 0, 3)


async def test_what_a_source_said_is_told_with_its_speaker_and_where_it_came_from(somebody: Person, tmp_path: Path) -> None:
    write(tmp_path)
    await run(somebody, tmp_path, "phronesis import zep zep.json --user bo")
    await run(somebody, tmp_path, "phronesis import mem0 mem0.json")
    told = {one.text: (one.kind, one.speaker, one.metadata["imported_from"]) for one in await memories_of(somebody)}
    assert told == {
        "Which gate is it?": ("message", "bo", "zep"),
        "Number seven.": ("message", "assistant", "zep"),
        "Likes tea": ("note", None, "mem0"),
        "ada likes tea": ("note", None, "mem0"),
    }
    facts = await somebody.http.post("/api/v1/tools/facts.list", json={})
    assert (facts.status_code, facts.json()["facts"]) == (200, [])


async def test_a_refusal_names_what_to_do_and_stores_nothing(somebody: Person, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "broken.json").write_text('[{"memory": "x"},\n{"memory": ')
    for line in ("phronesis import zep zep.json", "phronesis import mem0 broken.json"):
        assert await run(somebody, tmp_path, line, code=3) == ""
    assert await memories_of(somebody) == []
