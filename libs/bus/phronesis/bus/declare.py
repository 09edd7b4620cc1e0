"""The one program that declares streams and consumers: at deploy and, staying up, after every reconnect and every while.

python -m phronesis.bus.declare            declare, keep them declared, and let outside systems in
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

from phronesis.contracts import Unavailable

from .admission import admit
from .connection import LOST, Bus, connect
from .service import readable
from .settings import BusSettings
from .topology import consumers, streams

log = logging.getLogger(__name__)

USER = "declare"
_EVERY = 5.0
_SOON = 0.5
_ANSWER = 3.0


class DeclarationError(Exception):
    """The broker refused a stream or a consumer."""


async def declare(bus: Bus) -> None:
    """Declare every stream and consumer. What exists as it should stays untouched, what differs is updated.

    A new stream is closed until its consumers stand: with interest retention the broker acknowledges and forgets a
    message that no consumer waits for yet.

    Raises:
        DeclarationError: the broker refused one.
    """
    wanted = streams(bus.settings.replicas)
    sizes = {config["name"]: await _message_size(bus, config["name"]) for config in wanted}
    for config in wanted:
        size = sizes[config["name"]]
        if size is not None:  # first, since a new stream may take over what an old one gives up
            await _api(bus, f"STREAM.UPDATE.{config['name']}", config | {"max_msg_size": size})
    for config in wanted:
        if sizes[config["name"]] is None:
            await _api(bus, f"STREAM.CREATE.{config['name']}", config | {"max_msg_size": 1})
    for stream, config in consumers(bus.settings.ack_wait):
        durable = config["durable_name"]
        await _api(bus, f"CONSUMER.DURABLE.CREATE.{stream}.{durable}", {"stream_name": stream, "config": config})
    for config in wanted:
        await _api(bus, f"STREAM.UPDATE.{config['name']}", config)


async def keep(bus: Bus) -> None:
    """Declare now, after every reconnect and every few seconds, until the bus stops or the connection ends for good."""
    found_again = asyncio.Event()
    bus.on_reconnect(found_again.set)
    while not (bus.stopping.is_set() or bus.lost.is_set()):
        found_again.clear()
        wait = _EVERY
        try:
            if bus.connected:
                await declare(bus)
                bus.up.set()
        except (DeclarationError, NatsError, TimeoutError, OSError) as error:
            log.warning("could not declare: %s", error or type(error).__name__)
            wait = _SOON
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await found_again.wait()


async def parked(bus: Bus) -> int:
    """How many messages are parked.

    Raises:
        Unavailable: the broker does not say.
    """
    try:
        reply = json.loads((await bus.request("$JS.API.STREAM.INFO.PARKED", b"", timeout=3)).data)
        return int(reply["state"]["messages"])
    except (NatsError, TimeoutError, OSError, KeyError) as error:
        raise Unavailable("the broker does not say what is parked") from error


async def _message_size(bus: Bus, name: str) -> int | None:
    """The greatest message that a stream takes now; `None` where there is no such stream."""
    reply = json.loads((await bus.request(f"$JS.API.STREAM.INFO.{name}", b"", timeout=_ANSWER)).data)
    return None if "error" in reply else int(reply["config"].get("max_msg_size", -1))


async def _api(bus: Bus, what: str, body: dict[str, Any]) -> None:
    reply = json.loads((await bus.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=_ANSWER)).data)
    if error := reply.get("error"):
        raise DeclarationError(f"{what}: {error.get('description', 'refused')}")


async def _main(once: bool) -> None:
    settings = BusSettings()
    async with connect(USER, settings) as bus, readable(bus):
        if once:
            await declare(bus)
            return
        if settings.signing_key_file is not None:
            await admit(bus)
        loop = asyncio.get_running_loop()
        keeper = asyncio.create_task(keep(bus))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, keeper.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await keeper
        if bus.lost.is_set():
            raise SystemExit(LOST)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="declare and exit")
    logging.basicConfig(level=logging.INFO)
    asyncio.run(_main(parser.parse_args().once))
