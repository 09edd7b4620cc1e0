"""The first key of a stack: read from a file, and entered once the store is there."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from phronesis_contracts import Role, Unavailable

from .domain import OPERATOR, SHOWN, Key, digest, is_secret
from .ports import KeyStore

log = logging.getLogger(__name__)

_AGAIN = 0.5
_LONGEST = 10.0


def first_key(path: Path) -> tuple[Key, bytes]:
    """The key whose secret stands in the file `path`, and the hash of that secret.

    Raises:
        ValueError: the file holds no secret of a key.
        OSError: it cannot be read.
    """
    secret = path.read_text().strip()
    if not is_secret(secret):
        raise ValueError("the file with the first key holds no key")
    key = Key(
        id=str(uuid4()),
        tenant="local",
        user="owner",
        role=Role.ADMIN,
        department=None,
        ministry=None,
        scopes=(OPERATOR,),
        prefix=secret[:SHOWN],
        created_at=datetime.now(UTC),
    )
    return key, digest(secret)


async def enter(store: KeyStore, key: Key, hash: bytes) -> None:
    """Store the first key unless it is there, trying again until the store is."""
    pause = _AGAIN
    while True:
        try:
            if await store.add_absent(key, hash):
                log.info("the first key was entered")
            return
        except Unavailable:
            log.warning("the first key waits for the store")
        except Exception:
            # A schema that is not migrated yet is no reason to give up for good.
            log.exception("the first key could not be entered")
        await asyncio.sleep(pause)
        pause = min(_LONGEST, pause * 2)
