"""The sample constitution of a small institute in a tenant of a running stack, by the tools that make it."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from typing import Any

import httpx
import yaml

from tests.support.people import Person

_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}(?=$|T)")
_AT_ONCE = 4


async def load(person: Person) -> None:
    """Write the nodes and relationships, with days counted from today, and have all of them embedded."""
    sample = files("phronesis_samples.institute") / "institute.yaml"
    told = yaml.safe_load(sample.read_text("utf-8"))
    moved = datetime.now(UTC).date() - date.fromisoformat(str(told["asOf"]))
    waiting = asyncio.Semaphore(_AT_ONCE)

    async def made(tool: str, given: dict[str, Any]) -> None:
        async with waiting:
            _good(await person.tool(tool, given))

    nodes = [{name: _moved(value, moved) for name, value in node.items()} for node in told["nodes"]]
    await asyncio.gather(*(made(f"{node.pop('type')}.create.v1", node) for node in nodes))
    links = [dict(zip(("fromId", "type", "toId"), line.split(), strict=True)) for line in told["relationships"]]
    await asyncio.gather(*(made("relationship.create.v1", link) for link in links))
    for at in range(0, len(nodes), 20):
        await made("embeddings.regenerate.v1", {"ids": [node["id"] for node in nodes[at : at + 20]]})


def _moved(value: Any, by: timedelta) -> Any:
    """A value with its day moved."""
    if isinstance(value, date):
        return (value + by).isoformat()
    if isinstance(value, str) and (day := _DAY.match(value)):
        return (date.fromisoformat(day[0]) + by).isoformat() + value[day.end() :]
    return value


def _good(answer: httpx.Response) -> None:
    assert answer.status_code == 200, answer.text[:500]
