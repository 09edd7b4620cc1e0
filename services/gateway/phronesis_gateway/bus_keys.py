"""Keys of the bus: signed for outside systems, and taken back from them."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from phronesis_bus import Bus, Credentials, News, credentials, revoke
from phronesis_contracts import Forbidden, Principal, ServiceError
from phronesis_contracts.gateway import KeyRevoked

from .audit import refused
from .domain import Key, digest, may_make_for_bus
from .messages import BusKeyGiven
from .ports import KeyStore

log = logging.getLogger(__name__)

_AGAIN = 5.0


class BusKeys:
    """What administrators do with keys of the bus, and what becomes of those that they revoke.

    Args:
        bus: the connected bus.
        store: where keys are kept.
    """

    def __init__(self, bus: Bus, store: KeyStore) -> None:
        self._bus = bus
        self._store = store

    async def make(self, who: Principal, given: BusKeyGiven) -> tuple[Key, Credentials]:
        """Make a key; what an outside system comes in with is signed here and kept nowhere.

        Raises:
            Forbidden: `who` may not; that is audited.
        """
        try:
            may_make_for_bus(who, given.tenant)
        except Forbidden as error:
            await refused(self._bus, who, "keys.create", given.model_dump(mode="json"), error)
            raise
        now = datetime.now(UTC)
        stated = given.model_dump(exclude={"days"})
        ends = now + timedelta(days=given.days)
        key = Key(id=str(uuid4()), scopes=(), prefix="", created_at=now, bus=True, expires_at=ends, **stated)
        made = credentials(self._bus, key.principal, given.days * 86_400.0)
        # The hash of what it comes in with opens nothing here: that has not the form of a secret.
        await self._store.add(key, digest(made.password), who)
        return key, made

    async def on_key_revoked(self, news: News, event: KeyRevoked) -> None:
        """A key was revoked: one of the bus is believed by nobody from here on."""
        key = await self._store.by_id(event.key)
        if key is not None and key.bus:
            await revoke(self._bus, key.id)

    def start(self) -> None:
        """Say which keys are revoked, now and whenever the broker is found again: it may have lost what it kept."""
        lost = asyncio.Event()
        self._bus.on_reconnect(lost.set)
        task = asyncio.create_task(self._remind(lost), name="revoked-keys")

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._bus.on_stop(stop)

    async def _remind(self, lost: asyncio.Event) -> None:
        while True:
            lost.clear()
            try:
                for key in await self._store.revoked_of_bus():
                    await revoke(self._bus, key)
                await lost.wait()
            except ServiceError as error:
                log.warning("which keys are revoked could not be said again: %s", error.code)
            except Exception:
                # A schema that is not migrated yet is no reason to give up for good.
                log.exception("which keys are revoked could not be said again")
            await asyncio.sleep(_AGAIN)
