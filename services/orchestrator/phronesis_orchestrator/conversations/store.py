"""Conversations in Postgres: listed, read, summarised, and deleted.

A deletion takes a conversation out of sight and its content away in one transaction; it is complete when every service that
holds something of it has reported.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import struct
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID, uuid4

import asyncpg
from pydantic import ValidationError

from phronesis_bus import audit_entry
from phronesis_contracts import BadRequest, Message, NotFound, Principal, labels_from_row
from phronesis_contracts.deletions import MAX_RELEASED, ConversationDeleted, Deletion, DeletionState, Purged
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETED,
    TURN_ENDED,
    Conversation,
    ConversationMessage,
    ConversationPage,
    ConversationRef,
    ConversationSummary,
    Directive,
    FindConversation,
    ListConversations,
    ListUsers,
    SeenUser,
    SeenUsers,
    Turn,
)
from phronesis_contracts.service import AUDITED
from phronesis_postgres import Connection, Database, write_news

from ..turns.store import turn_from_row
from ..turns.turn import parse_uuid
from ..understanding.plan import Focus
from .history import AGED, MAX_CHARS, WINDOW, Past, PastTurn, Summary, split_attached

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)

SHOWN = 3_700.0
"""Seconds for which a line that was shown of a turn may be in its stream: an hour, and what clocks differ by."""
TITLE = 60
"""Characters of a title."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE = struct.Struct(">q16s")
_SEAL = 16
_LATEST = 253_402_300_799_999_999
"""Microseconds until the year 10000."""


@dataclass(frozen=True)
class PagePlace:
    """Where a page ended: the last conversation on it."""

    updated_at: datetime
    id: UUID


def encode_cursor(who: Principal, place: PagePlace) -> str:
    """A place as an opaque text that is good for `who` alone.

    The seal finds out mistakes and mix-ups. It is no secret: whoever makes one up has named a place in a list of his own.
    """
    packed = _PLACE.pack((place.updated_at - _EPOCH) // timedelta(microseconds=1), place.id.bytes)
    return base64.urlsafe_b64encode(packed + _seal(who, packed)).decode().rstrip("=")


def decode_cursor(who: Principal, cursor: str) -> PagePlace:
    """The place in a cursor. Raises `BadRequest`: it is no cursor, or another's."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _no_cursor() from error
    packed, seal = data[: _PLACE.size], data[_PLACE.size :]
    if len(data) != _PLACE.size + _SEAL or seal != _seal(who, packed):
        raise _no_cursor()
    micros, id = _PLACE.unpack(packed)
    if not 0 <= micros <= _LATEST:
        raise _no_cursor()
    place = PagePlace(_EPOCH + timedelta(microseconds=micros), UUID(bytes=id))
    # Unused bits at a text's end would give one place several cursors.
    if encode_cursor(who, place) != cursor:
        raise _no_cursor()
    return place


def make_title(text: str) -> str:
    """The first words of a text, up to `TITLE` characters; what is left out is marked."""
    words = " ".join(text.split())
    if len(words) <= TITLE:
        return words
    whole = words[: TITLE + 1].rpartition(" ")[0]
    return f"{whole or words[:TITLE]}…"


def _seal(who: Principal, packed: bytes) -> bytes:
    # Tenant and user are tokens without NUL, so the parts cannot run into each other.
    owner = f"conversations\x00{who.tenant}\x00{who.user}\x00".encode()
    return hashlib.sha256(owner + packed).digest()[:_SEAL]


def _no_cursor() -> BadRequest:
    return BadRequest("this is no cursor of the caller's; begin with the first page", field="cursor")


_OPENING = 240
"""Characters of a first message that a title is made of."""
_COLUMNS = f"""
SELECT c.id, c.agent, c.directive, c.created_at, c.updated_at, c.next_turn - 1 - c.moved AS turns,
       coalesce(nullif(left(btrim(t.request ->> 'text', E' \\n\\t\\r'), {_OPENING}), ''), nullif(left(m.text, {_OPENING}), ''),
           array_to_string(m.attached, ', '), '')
           AS opening
FROM conversations c
LEFT JOIN turns t ON t.conversation_id = c.id AND t.sequence = 1
LEFT JOIN messages m ON m.conversation_id = c.id AND m.seq = 1
WHERE c.tenant = $1 AND c.user_id = $2 AND c.deleted_at IS NULL"""  # noqa: S608
_ORDER = "ORDER BY c.updated_at DESC, c.id DESC"
_FIRST = f"{_COLUMNS} {_ORDER} LIMIT $3"
_BEHIND = f"{_COLUMNS} AND (c.updated_at, c.id) < ($4, $5) {_ORDER} LIMIT $3"
_USERS = """
WITH talked AS (
    SELECT user_id AS name, count(*) FILTER (WHERE deleted_at IS NULL) AS conversations, max(updated_at) AS last
    FROM conversations WHERE tenant = $1 AND user_id COLLATE "C" > $2 AND position($3 IN user_id) > 0 GROUP BY user_id
), wanted AS (
    (SELECT name FROM talked ORDER BY name COLLATE "C" LIMIT $5) UNION SELECT unnest($4::text[])
)
SELECT name AS user, coalesce(talked.conversations, 0) AS conversations,
    greatest(talked.last, (SELECT max(at) FROM audit WHERE tenant = $1 AND who = name)) AS last_seen
FROM wanted LEFT JOIN talked USING (name) ORDER BY name COLLATE "C"
"""
LOOKED = 200
"""Conversations that one page looks through for words."""
_AROUND = 60
"""Characters of an excerpt ahead of the first word that was asked for."""
_NEWEST = """
SELECT id, updated_at FROM conversations
WHERE tenant = $1 AND user_id = $2 AND deleted_at IS NULL AND ($4::timestamptz IS NULL OR (updated_at, id) < ($4, $5::uuid))
ORDER BY updated_at DESC, id DESC"""
_FOUND = f"""
SELECT listed.*, hit.text AS excerpt
FROM ({_COLUMNS} AND c.id IN (SELECT id FROM ({_NEWEST} LIMIT $7) AS looked)) AS listed
JOIN LATERAL (
    SELECT substr(m.text, greatest(1, position(($6::text[])[1] IN lower(m.text)) - {_AROUND}), 4 * {_AROUND}) AS text
    FROM messages m
    WHERE m.conversation_id = listed.id
        AND NOT EXISTS (SELECT FROM unnest($6::text[]) AS wanted (word) WHERE position(word IN lower(m.text)) = 0)
    ORDER BY m.seq DESC LIMIT 1
) AS hit ON true
ORDER BY listed.updated_at DESC, listed.id DESC LIMIT $3"""  # noqa: S608
_TURNS = """
SELECT * FROM turns WHERE tenant = $1 AND user_id = $2 AND id = ANY($3::uuid[]) AND NOT erased ORDER BY sequence DESC"""
_MESSAGE_BYTES, _ANSWER_BYTES = 200_000, 450_000
"""Of a conversation's page, as JSON: its messages, and those with their turns."""
_MOST_TURNS = 50
"""Turns that are read for one page."""
_SPACE = "E' \\n\\t\\r\\f\\v'"
_ENDING = f"""
SELECT c.id FROM (
    SELECT id, updated_at FROM conversations
    WHERE tenant = $1 AND user_id = $2 AND agent = $3 AND deleted_at IS NULL
    ORDER BY updated_at DESC LIMIT 100
) c CROSS JOIN LATERAL (
    SELECT array_agg(digest ORDER BY sequence) AS digests FROM (
        SELECT t.sequence, encode(sha256(convert_to(
            btrim(t.request ->> 'text', {_SPACE}) || E'\\x1f' || btrim(m.text, {_SPACE}), 'UTF8')), 'hex') AS digest
        FROM turns t JOIN messages m ON m.turn_id = t.id AND m.role = 'assistant'
        WHERE t.conversation_id = c.id AND t.status = 'completed'
        ORDER BY t.sequence DESC LIMIT cardinality($4::text[])
    ) exchanges
) ending
WHERE ending.digests = $4::text[] AND (NOT $5 OR cardinality($4::text[]) = (
    SELECT count(*) FROM turns t WHERE t.conversation_id = c.id AND t.status = 'completed'
        AND EXISTS (SELECT FROM messages m WHERE m.turn_id = t.id)))
ORDER BY c.updated_at DESC LIMIT 1"""  # noqa: S608
"""Of the caller's hundred newest conversations with an agent."""
# One round trip. Each part is a walk of the messages' primary key, and ends at its limit. The labels are those of the turns
# that left messages; the others put nothing into what later turns read. What was said in place of a final
# answer that failed is left out: a model would take it for an answer of its own, and say it again.
_READ = f"""
WITH head AS (
    SELECT id, directive, summary, summary_through, focus FROM conversations WHERE id = $1
), origins AS (
    SELECT jsonb_agg(DISTINCT label) AS labels FROM (
        SELECT DISTINCT labels FROM turns WHERE conversation_id = $1 AND status = 'completed' AND NOT erased
    ) AS stored, jsonb_array_elements(stored.labels) AS label
), newest AS (
    SELECT seq, role, text, attached, turn_id FROM messages WHERE conversation_id = $1 ORDER BY seq DESC LIMIT $2
), aged AS (
    SELECT seq, role, text, attached, turn_id FROM messages
    WHERE conversation_id = $1 AND seq > (SELECT summary_through FROM head) AND seq < (SELECT min(seq) FROM newest)
    ORDER BY seq LIMIT $3
), kept AS (
    SELECT seq, role, text, attached, turn_id FROM messages WHERE conversation_id = $1 AND seq IN (
        SELECT first::bigint + more FROM head, jsonb_array_elements_text(head.summary -> 'kept') AS of (first),
            generate_series(0, 1) AS more
    )
)
SELECT head.directive, head.summary, head.focus, origins.labels, said.part, said.seq, said.role, said.attached,
    left(btrim(ended.request ->> 'text', {_SPACE}), $4) AS typed, ended.request -> 'media' AS media,
    CASE WHEN ended.reply -> 'degraded' ? 'final' AND said.role = 'assistant' THEN '' ELSE left(said.text, $4) END AS text
FROM head CROSS JOIN origins LEFT JOIN (
    SELECT 'window' AS part, * FROM newest UNION ALL
    SELECT 'aged', * FROM aged UNION ALL
    SELECT 'kept', * FROM kept
) AS said ON true LEFT JOIN turns AS ended ON ended.id = said.turn_id
ORDER BY said.seq
"""  # noqa: S608
_MESSAGES = f"""
SELECT messages.*, btrim(turns.request ->> 'text', {_SPACE}) AS typed, turns.request -> 'media' AS media
FROM messages LEFT JOIN turns ON turns.id = messages.turn_id
WHERE messages.conversation_id = $1 AND ($2::bigint IS NULL OR seq < $2) ORDER BY seq DESC LIMIT $3
"""  # noqa: S608
_KEEP = """
UPDATE conversations SET summary = $2, summary_through = $3
WHERE id = $1 AND summary_through < $3 AND deleted_at IS NULL
"""
SERVICE = "orchestrator"
_REPORTERS = 4
"""Services that remove something: this one, memory, graph and media."""

# In the order in which the end of a turn takes the same locks: turns first, then their conversation.
_OPEN = """
SELECT id FROM turns WHERE conversation_id = $1 AND tenant = $2 AND user_id = $3 AND status IN ('queued', 'running', 'waiting')
FOR UPDATE
"""
_HIDE = """
UPDATE conversations SET deleted_at = now(), directive = 'supportive_companion', summary = NULL, focus = NULL
WHERE id = $1 AND tenant = $2 AND user_id = $3 AND deleted_at IS NULL RETURNING id
"""
# Media of this conversation that no other turn of the user refers to.
_RELEASED = """
SELECT DISTINCT media.id FROM turns, jsonb_array_elements_text(turns.request -> 'media') AS media (id)
WHERE turns.conversation_id = $1 AND media.id NOT IN (
    SELECT other.id FROM turns AS others, jsonb_array_elements_text(others.request -> 'media') AS other (id)
    WHERE others.tenant = $2 AND others.user_id = $3 AND others.conversation_id <> $1 AND NOT others.erased
) ORDER BY media.id
"""
# Raising the fence takes a running turn from its worker.
_ERASE = """
UPDATE turns SET erased = true, fence = fence + 1, request = '{}', principal = '{}', key_id = NULL, fingerprint = '',
    labels = '[]', reply = NULL, problem = NULL, correlation_id = NULL, traceparent = NULL, lease_until = NULL, worker = NULL,
    helpful = NULL, remark = NULL, rated_at = NULL,
    approval_id = NULL, ended_at = coalesce(ended_at, now()),
    status = CASE WHEN status IN ('queued', 'running', 'waiting') THEN 'cancelled' ELSE status END
WHERE conversation_id = $1
"""
# That a call was made stays in the audit trail; with what, and because of which texts, goes with its turn.
WITHOUT_ARGUMENTS = (
    "UPDATE audit SET arguments = arguments - '{arguments,because}'::text[] "
    "WHERE arguments ? 'because' AND arguments ->> 'turn_id'"
)
_REMOVE = {
    "messages": "DELETE FROM messages WHERE conversation_id = $1",
    "directives": "DELETE FROM directives WHERE conversation_id = $1",
    "task_states": "DELETE FROM task_states WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "task_waits": "DELETE FROM task_waits WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "task_templates": "DELETE FROM task_templates WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "steps": "DELETE FROM journal WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "approvals": "DELETE FROM approvals WHERE conversation_id = $1",
    "grants": "DELETE FROM approval_grants WHERE conversation_id = $1",
    "traces": "DELETE FROM traces WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)",
    "turns": _ERASE,
    # Behind the turns, whose rows an entry that is just being made waits for.
    "audit_arguments": f"{WITHOUT_ARGUMENTS} IN (SELECT id::text FROM turns WHERE conversation_id = $1)",  # noqa: S608
}
# Inside a JSON text quotes are escaped, so these bytes are found nowhere but in the field itself.
_UNSEND = "DELETE FROM outbox WHERE tenant = $1 AND subject = $2 AND position($3::bytea IN body) > 0"
_REPORT = """
INSERT INTO deletion_reports (deletion_id, service, part, parts, removed)
SELECT id, $3, $4, $5, $6 FROM deletions WHERE id = $1 AND tenant = $2
ON CONFLICT DO NOTHING
"""
_COMPLETE = """
UPDATE deletions SET completed_at = now() WHERE id = $1 AND tenant = $2 AND completed_at IS NULL AND $3 = (
    SELECT count(*) FROM (
        SELECT FROM deletion_reports WHERE deletion_id = $1 GROUP BY service HAVING count(*) >= max(parts)
    ) AS whole
)
"""


class PostgresConversations:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, who: Principal, ref: ConversationRef) -> Conversation:
        id = parse_uuid(ref.conversation_id, "conversation")
        async with self._database.connection(who.tenant) as connection:
            head = await connection.fetchrow(
                "SELECT * FROM conversations WHERE id = $1 AND tenant = $2 AND user_id = $3 AND deleted_at IS NULL",
                id,
                who.tenant,
                who.user,
            )
            if head is None:
                raise NotFound("no such conversation")
            rows = await connection.fetch(_MESSAGES, id, ref.before, ref.limit + 1)
            messages, left = _fitting([_message_from_row(row) for row in rows[: ref.limit]], _MESSAGE_BYTES)
            turns: list[Turn] = []
            if ref.turns:
                ids = list({UUID(one.turn_id): None for one in messages})[:_MOST_TURNS]
                found = await connection.fetch(_TURNS, who.tenant, who.user, ids)
                turns, _ = _fitting([turn_from_row(row) for row in found], _ANSWER_BYTES - _MESSAGE_BYTES + left, least=0)
        return Conversation(
            conversation_id=ref.conversation_id,
            agent=head["agent"],
            directive=Directive(head["directive"]),
            created_at=head["created_at"],
            messages=tuple(reversed(messages)),
            more=len(rows) > len(messages),
            turns=tuple(reversed(turns)),
        )

    async def page(self, who: Principal, query: ListConversations) -> ConversationPage:
        """One page, newest activity first.

        A conversation that is new, or is talked in, while pages are read moves to the front of the list: it is on no page
        behind the one at hand, and none of the others moves.

        Raises:
            BadRequest: the cursor is not the caller's.
        """
        # One more than asked for tells whether there is another page.
        wanted = (who.tenant, who.user, query.limit + 1)
        place = None if query.cursor is None else decode_cursor(who, query.cursor)
        words = query.text.lower().split()
        if words:
            return await self._page_with(who, query, place, words)
        async with self._database.connection(who.tenant) as connection:
            if place is None:
                rows = await connection.fetch(_FIRST, *wanted)
            else:
                rows = await connection.fetch(_BEHIND, *wanted, place.updated_at, place.id)
        shown = rows[: query.limit]
        more = len(rows) > query.limit
        return ConversationPage(
            conversations=tuple(_summary_from_row(row) for row in shown),
            next=encode_cursor(who, PagePlace(shown[-1]["updated_at"], shown[-1]["id"])) if more else None,
        )

    async def _page_with(
        self, who: Principal, query: ListConversations, place: PagePlace | None, words: list[str]
    ) -> ConversationPage:
        """Conversations that hold the words: a bounded number is looked through, and the next page goes on there."""
        behind = (place.updated_at, place.id) if place else (None, None)
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_FOUND, who.tenant, who.user, query.limit + 1, *behind, words, LOOKED)
            last = rows[query.limit - 1] if len(rows) > query.limit else None
            if last is None:
                last = await connection.fetchrow(f"{_NEWEST} OFFSET $3 LIMIT 1", who.tenant, who.user, LOOKED - 1, *behind)
        return ConversationPage(
            conversations=tuple(_summary_from_row(row) for row in rows[: query.limit]),
            next=encode_cursor(who, PagePlace(last["updated_at"], last["id"])) if last else None,
        )

    async def users(self, tenant: str, query: ListUsers) -> SeenUsers:
        """Who has talked in a tenant, by name, and those who are asked for by name."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_USERS, tenant, query.after, query.text, list(query.also), query.limit)
        return SeenUsers(users=tuple(SeenUser(**dict(row)) for row in rows))

    async def ending(self, who: Principal, query: FindConversation) -> str | None:
        """The newest conversation of the caller that ends with these exchanges; `None` where none does."""
        wanted = (who.tenant, who.user, query.agent, list(query.exchanges), query.whole)
        async with self._database.connection(who.tenant) as connection:
            found = await connection.fetchval(_ENDING, *wanted)
        return None if found is None else str(found)

    async def recent(self, tenant: str, conversation_id: str) -> Past:
        id = parse_uuid(conversation_id, "conversation")
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_READ, id, 2 * WINDOW, 2 * AGED, MAX_CHARS)
        if not rows:
            return Past()
        parts = {
            part: tuple(turns_from_rows(row for row in rows if row["part"] == part)) for part in ("kept", "aged", "window")
        }
        return Past(
            directive=Directive(rows[0]["directive"]),
            summary=Summary.model_validate(rows[0]["summary"] or {}),
            focus=_focus_from_row(rows[0]["focus"]),
            labels=labels_from_row(rows[0]["labels"]),
            kept=parts["kept"],
            aged=parts["aged"],
            window=parts["window"],
        )

    async def keep_summary(self, tenant: str, conversation_id: str, summary: Summary) -> None:
        async with self._database.transaction(tenant) as connection:
            await connection.execute(
                _KEEP, parse_uuid(conversation_id, "conversation"), summary.model_dump(mode="json"), summary.through
            )

    async def delete(self, who: Principal, conversation_id: str) -> tuple[Deletion, tuple[str, ...]]:
        """Delete a conversation of the caller, once; the deletion, and the ids of the turns that it took from a worker.

        Raises:
            NotFound: there is no such conversation of the caller.
        """
        id = parse_uuid(conversation_id, "conversation")
        async with self._database.transaction(who.tenant) as connection:
            stopped = [row["id"] for row in await connection.fetch(_OPEN, id, who.tenant, who.user)]
            hidden = await connection.fetchval(_HIDE, id, who.tenant, who.user)
            if hidden:
                await _erase(connection, who, id)
            deletion = await _find_deletion(connection, who, "conversation_id", id)
        if deletion is None:
            raise NotFound("no such conversation")
        return deletion, tuple(str(turn) for turn in stopped) if hidden else ()

    async def shown(self, who: Principal, conversation_id: str) -> tuple[str, ...]:
        """Ids of a conversation's turns that ended so lately that the broker may still keep what was shown of them."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(
                "SELECT id::text FROM turns WHERE conversation_id = $1 AND tenant = $2 AND user_id = $3"
                " AND ended_at > now() - make_interval(secs => $4)",
                *(parse_uuid(conversation_id, "conversation"), who.tenant, who.user, SHOWN),
            )
        return tuple(row["id"] for row in rows)

    async def deletion(self, who: Principal, deletion_id: str) -> Deletion:
        """A deletion of the caller. Raises `NotFound`: there is no such deletion of the caller."""
        async with self._database.connection(who.tenant) as connection:
            found = await _find_deletion(connection, who, "id", parse_uuid(deletion_id, "deletion"))
        if found is None:
            raise NotFound("no such deletion")
        return found

    async def purged(self, tenant: str, service: str, report: Purged) -> None:
        """Enter what a service removed; the last report that is waited for completes the deletion."""
        id = parse_uuid(report.deletion_id, "deletion")
        async with self._database.transaction(tenant) as connection:
            # One after the other: of two reports at the same moment, one has to see that it is the last.
            await connection.execute("SELECT FROM deletions WHERE id = $1 AND tenant = $2 FOR UPDATE", id, tenant)
            await connection.execute(_REPORT, id, tenant, service, report.part, report.parts, report.removed)
            await connection.execute(_COMPLETE, id, tenant, _REPORTERS)


def _summary_from_row(row: asyncpg.Record) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=str(row["id"]),
        title=make_title(row["opening"]),
        agent=row["agent"],
        directive=Directive(row["directive"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        turns=row["turns"],
        excerpt=" ".join((row.get("excerpt") or "").split()),
    )


def _fitting(found: list[M], room: int, least: int = 1) -> tuple[list[M], int]:
    """The first of these messages, as many as have room and `least` at least, and the room that is left, in bytes of JSON."""
    for number, one in enumerate(found):
        size = len(one.model_dump_json().encode())
        if size > room and number >= least:
            return found[:number], room
        room -= size
    return found, room


def _message_from_row(row: asyncpg.Record) -> ConversationMessage:
    text, attached = message_of_user(row) if row["role"] == "user" else (row["text"], ())
    return ConversationMessage(
        seq=row["seq"],
        turn_id=str(row["turn_id"]),
        role=row["role"],
        text=text,
        attached=attached,
        created_at=row["created_at"],
    )


def _focus_from_row(stored: object) -> Focus:
    """A focus of another version that does not read is dropped: the next message then stands by itself."""
    try:
        return Focus.model_validate(stored or {})
    except ValidationError as error:
        log.warning("the focus of a conversation could not be read: %d errors", error.error_count())
        return Focus()


def turns_from_rows(rows: Iterable[asyncpg.Record]) -> list[PastTurn]:
    """Messages as turns: each begins with what the user said."""
    turns: list[PastTurn] = []
    for row in rows:
        if row["role"] == "user" or not turns:
            turns.append(PastTurn(row["seq"], "", ""))
        if row["role"] == "user":
            words, attached = message_of_user(row)
            turns[-1] = PastTurn(turns[-1].seq, words, "", attached)
        else:
            turns[-1] = replace(turns[-1], reply=row["text"])
    return turns


def message_of_user(row: asyncpg.Record) -> tuple[str, tuple[str, ...]]:
    """What the user typed, and the names of what was attached; also of a message that was stored with the attached text.

    The turn tells what was typed: its request, which names the media. Where there is no turn, the labels in the text do.
    """
    if row["attached"] or row["media"] == []:
        return row["text"], tuple(row["attached"])
    return split_attached(row["text"], row["typed"] if row["media"] else None)


async def _erase(connection: Connection, who: Principal, conversation: UUID) -> None:
    deletion = uuid4()
    released = [row["id"] for row in await connection.fetch(_RELEASED, conversation, who.tenant, who.user)]
    removed = {name: _count(await connection.execute(statement, conversation)) for name, statement in _REMOVE.items()}
    field = f'"conversation_id":"{conversation}"'.encode()
    removed["news"] = _count(await connection.execute(_UNSEND, who.tenant, TURN_ENDED.on(who.tenant), field))
    await connection.execute(
        "INSERT INTO deletions (id, tenant, user_id, conversation_id) VALUES ($1, $2, $3, $4)",
        deletion,
        who.tenant,
        who.user,
        conversation,
    )
    await connection.execute(_REPORT, deletion, who.tenant, SERVICE, 1, 1, removed)
    parts = [released[at : at + MAX_RELEASED] for at in range(0, len(released), MAX_RELEASED)] or [[]]
    for number, media in enumerate(parts, 1):
        news = ConversationDeleted(
            deletion_id=str(deletion),
            conversation_id=str(conversation),
            user=who.user,
            media=tuple(media),
            part=number,
            parts=len(parts),
        )
        await write_news(connection, SERVICE, who.tenant, CONVERSATION_DELETED, news)
    entry = audit_entry(who, "conversation.delete", {"conversation_id": str(conversation), "deletion_id": str(deletion)})
    await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], entry)


async def _find_deletion(connection: Connection, who: Principal, column: str, id: UUID) -> Deletion | None:
    row = await connection.fetchrow(
        f"SELECT * FROM deletions WHERE {column} = $1 AND tenant = $2 AND user_id = $3",  # noqa: S608
        id,
        who.tenant,
        who.user,
    )
    if row is None:
        return None
    reports = await connection.fetch("SELECT service, removed FROM deletion_reports WHERE deletion_id = $1", row["id"])
    return _deletion_from_rows(row, reports)


def _deletion_from_rows(row: asyncpg.Record, reports: list[asyncpg.Record]) -> Deletion:
    removed: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for report in reports:
        of_service = removed[report["service"]]
        for name, count in report["removed"].items():
            of_service[name] += count
    return Deletion(
        deletion_id=str(row["id"]),
        conversation_id=str(row["conversation_id"]),
        state=DeletionState.COMPLETE if row["completed_at"] else DeletionState.PENDING,
        requested_at=row["requested_at"],
        completed_at=row["completed_at"],
        removed={service: dict(counts) for service, counts in sorted(removed.items())},
    )


def _count(status: str) -> int:
    return int(status.rpartition(" ")[2])
