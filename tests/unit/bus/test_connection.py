"""What a connection promises beyond its library."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from phronesis_bus import Bus, BusSettings


class _Waiting(Client):
    """A client that waits for its answer as the library does."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()

    async def request(self, *args: object, **kwargs: object) -> Msg:
        return await asyncio.wait_for(self.answer, 5)


async def test_a_task_cancelled_in_the_moment_its_answer_comes_is_cancelled() -> None:
    client = _Waiting()
    asking = asyncio.create_task(Bus("gateway", BusSettings(), client).request("anything", b"", timeout=5))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    client.answer.set_result(Msg(client))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
