"""A whole stack without a model, with people in it and browsers in front, for the stories of pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from phronesis_local.parts import SERVICES
from tests.support.operations import WITHOUT_A_MODEL
from tests.support.people import Town, town
from tests.support.production import SERVERS
from tests.support.stack import running


@dataclass(frozen=True)
class House:
    """Where the stack is, and who uses it."""

    url: str
    people: Town


@asynccontextmanager
async def house(folder: Path, **environment: str) -> AsyncIterator[House]:
    """A stack in an empty folder, with more variables, for the length of a block."""
    async with running(folder, (*SERVERS, *SERVICES), WITHOUT_A_MODEL | environment) as stack:
        url = stack.data.url.read_text().strip()
        async with town(url, stack.data.key.read_text().strip()) as people:
            await people.ready()
            yield House(url, people)
