"""Accepted uploads and their texts: out of the Object Store, and into it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from phronesis_bus import MEDIA, Blobs
from phronesis_contracts import NotFound

from .errors import Damaged
from .frames import Frame
from .tenancy import Tenancy
from .writing import MemberWriter

OBJECTS = f"objects/{MEDIA}"
_NAME = re.compile(r"[^/\x00-\x1f]{1,200}/[A-Za-z0-9._-]{1,200}")


async def dump(bucket: Blobs, writer: MemberWriter, tenant: str | None = None) -> None:
    """All objects, or those of a tenant, as records. One that is deleted meanwhile is left out."""
    for name in await bucket.names():
        if tenant is None or name.startswith(f"{tenant}/"):
            try:
                data = await bucket.get(name)
            except NotFound:
                continue
            writer.add({"name": name}, data)


async def load(bucket: Blobs, frames: Iterator[Frame], tenancy: Tenancy | None = None) -> int:
    """Objects into the store; how many there were.

    Args:
        bucket: where to.
        frames: the records.
        tenancy: whose they are and become, where they are one tenant's.
    """
    count = 0
    for frame in frames:
        name, data = frame.header.get("name"), frame.body
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Damaged("the archive holds an object without a name")
        if tenancy is not None:
            name, data = tenancy.key(name), _renamed(name, data, tenancy)
        await bucket.put(name, data)
        count += 1
    return count


def _renamed(name: str, data: bytes, tenancy: Tenancy) -> bytes:
    """The record of a medium says whose it is; contents and texts do not."""
    if not name.endswith(".json"):
        return data
    try:
        record = json.loads(data)
        return json.dumps(record | {"tenant": tenancy.of(record["tenant"])}, ensure_ascii=False).encode()
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Damaged("the archive holds a record of a medium that cannot be read") from error


async def empty(bucket: Blobs) -> None:
    """Remove every object."""
    for name in await bucket.names():
        await bucket.delete(name)
