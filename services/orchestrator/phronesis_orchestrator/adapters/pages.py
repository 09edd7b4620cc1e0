"""The caller's conversations, page by page."""

from __future__ import annotations

import asyncpg

from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import (
    ConversationPage,
    ConversationSummary,
    Directive,
    FindConversation,
    ListConversations,
)
from phronesis_postgres import Database

from ..paging import Place, cursor_of, place_of, title_of

_OPENING = 240
"""Characters of a first message that a title is made of."""
_COLUMNS = f"""
SELECT c.id, c.agent, c.directive, c.created_at, c.updated_at, c.next_turn - 1 - c.moved AS turns,
       coalesce(nullif(left(btrim(t.request ->> 'text', E' \\n\\t\\r'), {_OPENING}), ''), left(m.text, {_OPENING}), '')
           AS opening
FROM conversations c
LEFT JOIN turns t ON t.conversation_id = c.id AND t.sequence = 1
LEFT JOIN messages m ON m.conversation_id = c.id AND m.seq = 1
WHERE c.tenant = $1 AND c.user_id = $2 AND c.deleted_at IS NULL"""  # noqa: S608
_ORDER = "ORDER BY c.updated_at DESC, c.id DESC"
_FIRST = f"{_COLUMNS} {_ORDER} LIMIT $3"
_BEHIND = f"{_COLUMNS} AND (c.updated_at, c.id) < ($4, $5) {_ORDER} LIMIT $3"
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
    SELECT count(*) FROM turns t WHERE t.conversation_id = c.id AND t.status = 'completed'))
ORDER BY c.updated_at DESC LIMIT 1"""  # noqa: S608
"""Of the caller's hundred newest conversations with an agent."""


class ConversationPages:
    """The part of the conversations' store that lists them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, who: Principal, query: ListConversations) -> ConversationPage:
        """One page, newest activity first.

        A conversation that is new, or is talked in, while pages are read moves to the front of the list: it is on no page
        behind the one at hand, and none of the others moves.

        Raises:
            BadRequest: the cursor is not the caller's.
        """
        # One more than asked for tells whether there is another page.
        wanted = (who.tenant, who.user, query.limit + 1)
        place = None if query.cursor is None else place_of(who, query.cursor)
        async with self._database.connection(who.tenant) as connection:
            if place is None:
                rows = await connection.fetch(_FIRST, *wanted)
            else:
                rows = await connection.fetch(_BEHIND, *wanted, place.updated_at, place.id)
        shown = rows[: query.limit]
        more = len(rows) > query.limit
        return ConversationPage(
            conversations=tuple(_summary(row) for row in shown),
            next=cursor_of(who, Place(shown[-1]["updated_at"], shown[-1]["id"])) if more else None,
        )

    async def ending(self, who: Principal, query: FindConversation) -> str | None:
        """The newest conversation of the caller that ends with these exchanges; `None` where none does."""
        wanted = (who.tenant, who.user, query.agent, list(query.exchanges), query.whole)
        async with self._database.connection(who.tenant) as connection:
            found = await connection.fetchval(_ENDING, *wanted)
        return None if found is None else str(found)


def _summary(row: asyncpg.Record) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=str(row["id"]),
        title=title_of(row["opening"]),
        agent=row["agent"],
        directive=Directive(row["directive"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        turns=row["turns"],
    )
