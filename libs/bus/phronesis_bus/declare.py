"""The one program that declares streams and consumers: at deploy and, staying up, after every reconnect and every while.

python -m phronesis_bus.declare            declare, keep them declared, and let outside systems in
python -m phronesis_bus.declare --once     declare, and exit
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
import sys
from typing import Any

from nats.errors import Error as NatsError

from phronesis_contracts import Unavailable

from .admission import admit
from .client import UntrustedBroker
from .connection import LOST, Bus, connect
from .service import configure_logging, expose_metrics
from .settings import BusSettings
from .topology import consumers, streams

log = logging.getLogger(__name__)

USER = "declare"
REFUSED = 1
INTERRUPTED = 143
"""Exit code of `--once` that was told to end before it had declared."""
_EVERY = 5.0
_SOON = 0.5
_ANSWER = 3.0
_NOT_FOUND = 404
_ANY_SIZE = -1


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
    found = {config["name"]: await _find_config(bus, f"STREAM.INFO.{config['name']}") for config in wanted}
    for config in wanted:
        now = found[config["name"]]
        if now is not None:  # first, since a new stream may take over what an old one gives up
            await _update(bus, now, config | {"max_msg_size": now.get("max_msg_size", _ANY_SIZE)})
    for config in wanted:
        if found[config["name"]] is None:
            found[config["name"]] = closed = config | {"max_msg_size": 1}
            await _api(bus, f"STREAM.CREATE.{config['name']}", closed)
    for stream, config in consumers(bus.settings.ack_wait):
        durable = config["durable_name"]
        now = await _find_config(bus, f"CONSUMER.INFO.{stream}.{durable}")
        if now is None or not _matches(now, config):
            await _api(bus, f"CONSUMER.DURABLE.CREATE.{stream}.{durable}", {"stream_name": stream, "config": config})
    for config in wanted:
        await _update(bus, found[config["name"]] or {}, config | {"max_msg_size": _ANY_SIZE})


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


async def count_parked(bus: Bus) -> int:
    """How many messages are parked. Raises `Unavailable`: the broker does not say."""
    try:
        reply = json.loads((await bus.request("$JS.API.STREAM.INFO.PARKED", b"", timeout=3)).data)
        return int(reply["state"]["messages"])
    except (NatsError, TimeoutError, OSError, KeyError) as error:
        raise Unavailable("the broker does not say what is parked") from error


async def _find_config(bus: Bus, what: str) -> dict[str, Any] | None:
    reply = json.loads((await bus.request(f"$JS.API.{what}", b"", timeout=_ANSWER)).data)
    if error := reply.get("error"):
        if error.get("code") == _NOT_FOUND:
            return None
        raise DeclarationError(f"{what}: {error.get('description', 'refused')}")
    config: dict[str, Any] = reply["config"]
    return config


def _matches(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(found.get(key) == value or (not value and not found.get(key)) for key, value in wanted.items())


async def _update(bus: Bus, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    # In a cluster each update is a decision of its own that all servers keep, so none is asked for without need.
    if not _matches(found, wanted):
        await _api(bus, f"STREAM.UPDATE.{wanted['name']}", wanted)


async def _api(bus: Bus, what: str, body: dict[str, Any]) -> None:
    reply = json.loads((await bus.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=_ANSWER)).data)
    if error := reply.get("error"):
        raise DeclarationError(f"{what}: {error.get('description', 'refused')}")


async def _main(once: bool) -> int:
    configure_logging(USER)
    work = asyncio.create_task(_once() if once else _stay())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        return INTERRUPTED if once else 0  # whoever waits for the one run may not go on without it
    except (DeclarationError, UntrustedBroker, NatsError, TimeoutError, OSError) as error:
        log.error("could not declare: %s", error or type(error).__name__)
        return REFUSED


async def _once() -> int:
    async with connect(USER, BusSettings()) as bus:
        await declare(bus)
    return 0


async def _stay() -> int:
    async with connect(USER, BusSettings()) as bus, expose_metrics(bus):
        if bus.settings.signing_key_file is not None:
            await admit(bus)
        await keep(bus)
        return LOST if bus.lost.is_set() else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true", help="declare and exit")
    sys.exit(asyncio.run(_main(parser.parse_args().once)))
