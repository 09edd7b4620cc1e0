"""The events of the platform, recorded while a backup is made, and published again when it is restored.

The recorder is a consumer of its own, with no durable name. The stream keeps by interest: what is published while the
recorder is there stays until it has taken it, whoever else has. It takes everything that some follower still lacks, too.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from phronesis_contracts import Busy, Unavailable

from .connection import INBOX, Bus
from .outbox import publish
from .topology import streams

USER = "operator"
"""The NATS user of whoever makes and restores backups, and the recorder's name."""
STREAM = "EVT"
_ANSWER = 5.0
_BATCH = 200
_EXPIRES = 5.0
_FORGOTTEN = 60.0
"""Seconds without a question after which the broker forgets a recorder that was killed."""
_ACK_WAIT = 30.0
_LOOK = 0.2
_AGAIN = 5.0


@dataclass(frozen=True)
class Recorded:
    """One event as it stood in the stream."""

    sequence: int
    subject: str
    headers: dict[str, str]
    body: bytes


class Recording:
    """A recorder that runs. `begun()` makes one. `keep`: takes each event, as it comes; an event may come twice."""

    def __init__(self, bus: Bus, keep: Callable[[Recorded], None]) -> None:
        self._bus = bus
        self._keep = keep
        self._inbox = f"{INBOX}.{bus.name}.{uuid4().hex}"
        self._queue: asyncio.Queue[Msg] = asyncio.Queue()

    @classmethod
    @asynccontextmanager
    async def begun(cls, bus: Bus, keep: Callable[[Recorded], None]) -> AsyncIterator[Recording]:
        """A recorder for the length of a block. All that is published from its begin on will be recorded.

        Raises:
            Busy: another one runs.
            Unavailable: the broker is away, or its streams are not declared.
        """
        recording = cls(bus, keep)
        subscription = await bus.nats.subscribe(recording._inbox, cb=recording._queue.put)
        await recording._declare()
        task = asyncio.create_task(recording._run(), name="recording")
        try:
            yield recording
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await bus.drain(subscription)
            await _api(bus, f"CONSUMER.DELETE.{STREAM}.{USER}")

    async def last(self) -> int:
        return int((await _api(self._bus, f"STREAM.INFO.{STREAM}"))["state"]["last_seq"])

    async def until(self, sequence: int, within: float) -> None:
        """Return when everything up to `sequence` is recorded. Raises `Unavailable`: it is not, within so many seconds."""
        try:
            async with asyncio.timeout(within):
                while True:
                    state = await _api(self._bus, f"CONSUMER.INFO.{STREAM}.{USER}")
                    idle = not state["num_pending"] and not state["num_ack_pending"]
                    if idle or state["ack_floor"]["stream_seq"] >= sequence:
                        return
                    await asyncio.sleep(_LOOK)
        except TimeoutError as error:
            raise Unavailable("the events could not be recorded in time") from error

    async def _declare(self) -> None:
        config = {
            "name": USER,
            "description": uuid4().hex,  # another recorder's differs, so that two never share one consumer
            "ack_policy": "explicit",
            "ack_wait": int(_ACK_WAIT * 1e9),
            "deliver_policy": "all",
            "max_deliver": -1,
            "max_ack_pending": 10 * _BATCH,
            "inactive_threshold": int(_FORGOTTEN * 1e9),
        }
        wanted = {"stream_name": STREAM, "config": config, "action": "create"}
        await _api(self._bus, f"CONSUMER.CREATE.{STREAM}.{USER}", wanted)

    async def _run(self) -> None:
        wanted = json.dumps({"batch": _BATCH, "expires": int(_EXPIRES * 1e9)}).encode()
        while True:
            try:
                await self._bus.nats.publish(f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{USER}", wanted, reply=self._inbox)
                async with asyncio.timeout(_EXPIRES + 2):
                    await self._taken()
            except (NatsError, TimeoutError, OSError):
                await asyncio.sleep(_LOOK)  # it is asked again: what was lost on the way comes once more

    async def _taken(self) -> None:
        for _ in range(_BATCH):
            msg = await self._queue.get()
            if msg.headers and "Status" in msg.headers and not msg.data:
                return
            self._keep(Recorded(msg.metadata.sequence.stream, msg.subject, dict(msg.headers or {}), msg.data))
            await msg.ack()


def duplicate_window() -> float:
    """Seconds for which the stream swallows an event whose id it has seen, also when it was emptied meanwhile."""
    return float(next(config["duplicate_window"] for config in streams() if config["name"] == STREAM)) / 1e9


async def count_waiting_events(bus: Bus) -> int:
    """How many events some follower still lacks."""
    return int((await _api(bus, f"STREAM.INFO.{STREAM}"))["state"]["messages"])


async def forget_events(bus: Bus) -> None:
    """Remove every event that some follower still lacks."""
    await _api(bus, f"STREAM.PURGE.{STREAM}")


async def publish_again(bus: Bus, event: Recorded) -> None:
    """Publish a recorded event, and return when it is stored: it is tried until the stream has forgotten that it saw it.

    Raises:
        Busy: the stream is full.
        Unavailable: the broker is away, or does not take it.
    """
    for _ in range(math.ceil(duplicate_window() / _AGAIN) + 2):
        if await publish(bus, event.subject, event.body, event.headers):
            return
        await asyncio.sleep(_AGAIN)
    raise Unavailable("the broker does not take an event")


async def _api(bus: Bus, what: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    try:
        data = json.dumps(body).encode() if body is not None else b""
        answer: dict[str, Any] = json.loads((await bus.request(f"$JS.API.{what}", data, timeout=_ANSWER)).data)
    except (NatsError, TimeoutError, OSError) as error:
        raise Unavailable("the broker does not answer the operator") from error
    problem = answer.get("error")
    if problem and problem.get("err_code") in (10013, 10148):
        raise Busy("another backup records the events at this moment, or did a minute ago", retry_after=_FORGOTTEN)
    if problem:
        raise Unavailable(f"the broker refused the operator: {problem.get('description', '')}")
    return answer
