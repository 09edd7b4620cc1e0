"""Accepted uploads and their texts: out of the Object Store, and into it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from phronesis.bus import MEDIA, Blobs
from phronesis.contracts import NotFound

from .errors import Damaged
from .frames import Frame
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


async def load(bucket: Blobs, frames: Iterator[Frame], rename: dict[str, str]) -> int:
    """Objects into the store; how many there were.

    Args:
        bucket: where to.
        frames: the records.
        rename: the new name of each tenant whose name changes.
    """
    count = 0
    for frame in frames:
        name = frame.header.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Damaged("the archive holds an object without a name")
        tenant, _, rest = name.partition("/")
        data = frame.body
        if tenant in rename:
            tenant, data = rename[tenant], _renamed(rest, data, rename)
        await bucket.put(f"{tenant}/{rest}", data)
        count += 1
    return count


def _renamed(name: str, data: bytes, rename: dict[str, str]) -> bytes:
    """The record of a medium says whose it is; contents and texts do not."""
    if not name.endswith(".json"):
        return data
    record = json.loads(data)
    return json.dumps(record | {"tenant": rename.get(record["tenant"], record["tenant"])}).encode()


async def empty(bucket: Blobs) -> None:
    """Remove every object."""
    for name in await bucket.names():
        await bucket.delete(name)
