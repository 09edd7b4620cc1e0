"""What `make kind` asks of a cluster, asked of the stack of the stories while its orchestrator is killed."""

from __future__ import annotations

import asyncio

import pytest

from phronesis import Client
from scripts import turns
from tests.e2e.commands import restarted
from tests.support.bus import eventually
from tests.support.people import Town
from tests.support.stack import RunningStack

pytestmark = pytest.mark.verify
USERS = 4


async def test_every_turn_around_a_killed_orchestrator_is_answered(stack: RunningStack, everybody: Town) -> None:
    with Client(data=stack.data.root) as client:
        await asyncio.to_thread(turns.note, client)
        with turns.asking(client, USERS) as asked:
            await eventually(lambda: len(asked.turns) >= USERS)
            await restarted(stack, everybody, "orchestrator")
            answered = len(asked.turns)
    assert len(asked.turns) >= answered + USERS
