"""The one program that declares streams and consumers: at deploy and, staying up, after every reconnect and every while.

python -m phronesis.bus.declare            declare, and keep them declared
python -m phronesis.bus.declare --once     declare, and exit
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
from typing import Any

from nats.errors import Error as NatsError

from .connection import Bus, connect
from .settings import BusSettings
from .topology import consumers, streams

log = logging.getLogger(__name__)

USER = "declare"
_EVERY = 5.0


class DeclarationError(Exception):
    """The broker refused a stream or a consumer."""


async def declare(bus: Bus) -> None:
    """Declare every stream and consumer. What exists as it should stays untouched, what differs is updated.

    Raises:
        DeclarationError: the broker refused one.
    """
    for config in streams():
        name = config["name"]
        if await _exists(bus, name):
            await _api(bus, f"STREAM.UPDATE.{name}", config)
        else:
            await _api(bus, f"STREAM.CREATE.{name}", config)
    for stream, config in consumers(bus.settings.ack_wait):
        durable = config["durable_name"]
        await _api(bus, f"CONSUMER.DURABLE.CREATE.{stream}.{durable}", {"stream_name": stream, "config": config})


async def keep(bus: Bus) -> None:
    """Declare now and every few seconds from now on, whatever becomes of the broker."""
    while not bus.stopping.is_set():
        try:
            if bus.connected:
                await declare(bus)
        except (DeclarationError, NatsError, TimeoutError, OSError) as error:
            log.warning("could not declare: %s", error or type(error).__name__)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(bus.stopping.wait(), _EVERY)


async def _exists(bus: Bus, name: str) -> bool:
    reply = json.loads((await bus.nats.request(f"$JS.API.STREAM.INFO.{name}", b"", timeout=5)).data)
    return "error" not in reply


async def _api(bus: Bus, what: str, body: dict[str, Any]) -> None:
    reply = json.loads((await bus.nats.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=10)).data)
    if error := reply.get("error"):
        raise DeclarationError(f"{what}: {error.get('description', 'refused')}")


async def _main(once: bool) -> None:
    settings = BusSettings()
    async with connect(USER, settings) as bus:
        if once:
            await declare(bus)
            return
        loop = asyncio.get_running_loop()
        keeper = asyncio.create_task(keep(bus))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, keeper.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await keeper


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="declare and exit")
    logging.basicConfig(level=logging.INFO)
    asyncio.run(_main(parser.parse_args().once))
