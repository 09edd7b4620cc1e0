"""Recorded events as records of an archive, and which of them it needs.

An event of a service that keeps its outbox in Postgres, and that the broker took after the point, is not needed: its row
was unsent at the point and is in the archive, or was written after it. The graph is read after the point, so its events
are needed until then: its outbox at that moment is in the archive as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from phronesis_bus import Bus
from phronesis_bus.envelope import MESSAGE_ID
from phronesis_bus.recording import Recorded, publish_again
from phronesis_graph.adapters.bolt import Bolt, Row, Transaction
from phronesis_graph.adapters.labels import NEWS

from .errors import Damaged
from .frames import Frame, packed
from .spool import Spool
from .tenancy import Tenancy

EVENTS = "events"
_SUBJECT = re.compile(r"evt\.([^.\s*>]+)\.([a-z]+)\.[a-z0-9._-]+")
_GRAPH = "graph"
_UNSENT = (
    f"MATCH (news:{NEWS}) WHERE news.key > '' AND news.whose = $tenant "
    "RETURN news.key AS key, news.subject AS subject, news.body AS body, news.headers AS headers ORDER BY news.key"
)


@dataclass
class Wanted:
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
            self.spool.append(packed(header, event.body))


async def unsent_news(bolt: Bolt, tenant: str, spool: Spool) -> None:
    """The graph's unsent news of one tenant, as the relay would publish it. (A backup holds the outbox itself.)"""

    async def read(transaction: Transaction) -> list[Row]:
        return await transaction.rows(_UNSENT, tenant=tenant)

    for row in await bolt.read(read):
        headers = {**json.loads(row["headers"]), MESSAGE_ID: f"{tenant}.{_GRAPH}.{row['key']}"}
        spool.append(packed({"sequence": 0, "subject": row["subject"], "headers": headers}, row["body"].encode()))


async def publish_all(bus: Bus, frames: Iterator[Frame], tenancy: Tenancy | None = None, mark: str = "") -> int:
    """Publish recorded events again; how many there were.

    Args:
        bus: the operator's connection.
        frames: the records.
        tenancy: whose they are and become, where they are one tenant's.
        mark: what is put before the events' ids, so that none is taken for one of this installation's own.
    """
    count = 0
    for frame in frames:
        event = _event(frame, tenancy)
        if tenancy is not None and MESSAGE_ID in event.headers:
            event.headers[MESSAGE_ID] = mark + tenancy.news(event.headers[MESSAGE_ID])
        await publish_again(bus, event)
        count += 1
    return count


def _event(frame: Frame, tenancy: Tenancy | None) -> Recorded:
    subject, headers = frame.header.get("subject"), frame.header.get("headers")
    found = _SUBJECT.fullmatch(subject) if isinstance(subject, str) else None
    plain = isinstance(headers, dict) and all(_printable(part) for pair in headers.items() for part in pair)
    if found is None or not isinstance(subject, str) or not isinstance(headers, dict) or not plain:
        raise Damaged("the archive holds something that is no event")
    tenant = tenancy.of(found[1]) if tenancy else found[1]
    kind, _, rest = subject.split(".", 2)
    return Recorded(0, f"{kind}.{tenant}.{rest}", dict(headers), frame.body)


def _printable(text: object) -> bool:
    return isinstance(text, str) and text.isprintable()
