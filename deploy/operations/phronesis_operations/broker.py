"""What the broker holds: uploads and their texts in the Object Store, and recorded events; out of it, and into it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from phronesis_bus import MEDIA, Blobs, Bus
from phronesis_bus.envelope import MESSAGE_ID
from phronesis_bus.recording import Recorded, publish_again
from phronesis_contracts import NotFound
from phronesis_graph.bolt.driver import Bolt, Row, Transaction
from phronesis_graph.bolt.schema import NEWS

from .archive import MemberWriter, Spool
from .format import Frame, pack
from .reporting import Damaged
from .tenancy import Tenancy

OBJECTS = f"objects/{MEDIA}"
_NAME = re.compile(r"[^/\x00-\x1f]{1,200}/[A-Za-z0-9._-]{1,200}")


async def dump_objects(bucket: Blobs, writer: MemberWriter, tenant: str | None = None) -> None:
    """All objects, or those of a tenant, as records. One that is deleted meanwhile is left out."""
    for name in await bucket.names():
        if tenant is None or name.startswith(f"{tenant}/"):
            try:
                data = await bucket.get(name)
            except NotFound:
                continue
            writer.add({"name": name}, data)


async def load_objects(bucket: Blobs, frames: Iterator[Frame], tenancy: Tenancy | None = None) -> int:
    """Objects into the store; how many there were."""
    count = 0
    for frame in frames:
        name, data = frame.header.get("name"), frame.body
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Damaged("the archive holds an object without a name")
        if tenancy is not None:
            name, data = tenancy.key(name), _rename_tenant(name, data, tenancy)
        await bucket.put(name, data)
        count += 1
    return count


def _rename_tenant(name: str, data: bytes, tenancy: Tenancy) -> bytes:
    """The record of a medium says whose it is; contents and texts do not."""
    if not name.endswith(".json"):
        return data
    try:
        record = json.loads(data)
        return json.dumps(record | {"tenant": tenancy.of(record["tenant"])}, ensure_ascii=False).encode()
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Damaged("the archive holds a record of a medium that cannot be read") from error


async def remove_objects(bucket: Blobs) -> None:
    for name in await bucket.names():
        await bucket.delete(name)


EVENTS = "events"
_SUBJECT = re.compile(r"evt\.([^.\s*>]+)\.([a-z]+)\.[a-z0-9._-]+")
_GRAPH = "graph"
_UNSENT = (
    f"MATCH (news:{NEWS}) WHERE news.key > '' AND news.whose = $tenant "
    "RETURN news.key AS key, news.subject AS subject, news.body AS body, news.headers AS headers ORDER BY news.key"
)


@dataclass
class EventFilter:
    """Takes events while the recorder runs, once each, as long as they are needed."""

    spool: Spool
    tenant: str | None = None
    point: int | None = None
    """The newest event at the point; `None` before it."""
    end: int | None = None
    """The newest event when the graph had been read; `None` before that."""
    _seen: set[int] = field(default_factory=set)

    def keep(self, event: Recorded) -> None:
        """Take an event, unless it came before or is not needed."""
        found = _SUBJECT.fullmatch(event.subject)
        if found is None or event.sequence in self._seen:
            return
        self._seen.add(event.sequence)
        limit = self.end if found[2] == _GRAPH else self.point
        if (limit is None or event.sequence <= limit) and self.tenant in (None, found[1]):
            header = {"sequence": event.sequence, "subject": event.subject, "headers": event.headers}
            self.spool.append(pack(header, event.body))


async def unsent_news(bolt: Bolt, tenant: str, spool: Spool) -> None:
    """The graph's unsent news of one tenant, as the relay would publish it. (A backup holds the outbox itself.)"""

    async def read(transaction: Transaction) -> list[Row]:
        return await transaction.rows(_UNSENT, tenant=tenant)

    for row in await bolt.read(read):
        headers = {**json.loads(row["headers"]), MESSAGE_ID: f"{tenant}.{_GRAPH}.{row['key']}"}
        spool.append(pack({"sequence": 0, "subject": row["subject"], "headers": headers}, row["body"].encode()))


async def publish_all(bus: Bus, frames: Iterator[Frame], tenancy: Tenancy | None = None, mark: str = "") -> int:
    """Publish recorded events again; how many there were.

    Args:
        mark: what is put before the events' ids, so that none is taken for one of this installation's own.
    """
    count = 0
    for frame in frames:
        event = _to_recorded(frame, tenancy)
        if tenancy is not None and MESSAGE_ID in event.headers:
            event.headers[MESSAGE_ID] = mark + tenancy.news(event.headers[MESSAGE_ID])
        await publish_again(bus, event)
        count += 1
    return count


def _to_recorded(frame: Frame, tenancy: Tenancy | None) -> Recorded:
    subject, headers = frame.header.get("subject"), frame.header.get("headers")
    found = _SUBJECT.fullmatch(subject) if isinstance(subject, str) else None
    plain = isinstance(headers, dict) and all(_is_printable(part) for pair in headers.items() for part in pair)
    if found is None or not isinstance(subject, str) or not isinstance(headers, dict) or not plain:
        raise Damaged("the archive holds something that is no event")
    tenant = tenancy.of(found[1]) if tenancy else found[1]
    kind, _, rest = subject.split(".", 2)
    return Recorded(0, f"{kind}.{tenant}.{rest}", dict(headers), frame.body)


def _is_printable(text: object) -> bool:
    return isinstance(text, str) and text.isprintable()
