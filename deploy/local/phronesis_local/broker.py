"""The supervisor's own use of the broker: it keeps the streams declared, lets outside systems in, and asks the services
for their health."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the bus takes a second to import: the servers start meanwhile
    from phronesis_bus import Bus, BusSettings

ASKER = "gateway"
"""The service that may ask all others; the supervisor asks in its name."""
DECLARER = "declare"
OPERATOR = "operator"
"""Who makes and restores backups."""


class Broker:
    """A broker that answers, with its streams declared. `connected()` makes one."""

    def __init__(self, asker: Bus) -> None:
        self._asker = asker

    @classmethod
    @asynccontextmanager
    async def connected(cls, asker: Mapping[str, str], declarer: Mapping[str, str]) -> AsyncIterator[Broker]:
        """The broker for the length of a block; streams and consumers stay declared, and outside systems are let in.

        Args:
            asker: the variables (`BUS_...`) with which the gateway connects.
            declarer: the variables with which the declaring program connects.
        """
        from phronesis_bus import connect
        from phronesis_bus.admission import admit
        from phronesis_bus.declare import declare, keep

        async with AsyncExitStack() as stack:
            declares = await stack.enter_async_context(connect(DECLARER, bus_settings(declarer)))
            await declare(declares)
            if declares.settings.signing_key_file is not None:
                await admit(declares)
            keeper = asyncio.create_task(keep(declares))
            stack.callback(keeper.cancel)
            yield cls(await stack.enter_async_context(connect(ASKER, bus_settings(asker))))

    @property
    def there(self) -> bool:
        """Whether the broker can be reached at this moment."""
        return self._asker.connected

    async def version(self, service: str, pid: int) -> str | None:
        """The version that this process of `service` says it has, whatever it lacks; `None` while it does not answer."""
        from phronesis_bus import ask_each, process_name
        from phronesis_contracts import Nothing, Principal
        from phronesis_contracts.principal import SYSTEM_TENANT
        from phronesis_contracts.service import HEALTH

        who, process = Principal(tenant=SYSTEM_TENANT, user="supervisor"), process_name(pid)
        found = (await ask_each(self._asker, who, HEALTH[service], Nothing(), only=process)).get(process)
        return found.version if found else None


def bus_settings(variables: Mapping[str, str]) -> BusSettings:
    """The settings that a service with these variables has; what they leave out comes from this process's own."""
    from phronesis_bus import BusSettings

    given: dict[str, Any] = {"url": variables["BUS_URL"]}
    for name in ("password_file", "signing_key_file", "trust_dir"):
        if value := variables.get(f"BUS_{name.upper()}"):
            given[name] = Path(value)
    return BusSettings(**given)
