"""A session of the OpenAI Agents SDK that is a conversation in Phronesis."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory import SessionSettings

from phronesis import AsyncClient, batches
from phronesis_contracts.memories import Memory, NewMemory

_MARK, _ITEM = "openai_agents", "openai_agents_item"
"""What marks an item among the other messages of a conversation, and where it is kept whole."""
_MOST_TEXT = 20_000
"""Characters of a memory's text; the item itself is kept whole."""
_PAGE = 100
"""Items of a page, and of one deletion."""


class PhronesisSession:
    """The history of one conversation: what `Runner.run(..., session=...)` reads and adds to.

    Each item is a message of a conversation in Phronesis, so that it is also found by meaning, from other sessions of the
    same user and by every other way to their memory.

    Args:
        session_id: names the conversation; up to 200 characters.
        client: your client; who made it closes it.
        user_id: your own name for the user whom the conversation belongs to; the key needs the scope `act_for_users`.
        session_settings: the SDK's settings; `limit` is the number of items that a run is given.
    """

    def __init__(
        self,
        session_id: str,
        client: AsyncClient,
        *,
        user_id: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self._memory, self._user_id = client.memory, user_id
        self._last = datetime.min.replace(tzinfo=UTC)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The history in the order in which it was said.

        Args:
            limit: only the last so many items; those of the session's settings by default.

        Raises:
            ServiceError: Phronesis refuses or is away.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        kept = await self._newest(limit)
        return [_read(one) for one in reversed(kept)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind the history; up to 500 of them are added at once, all or none.

        Raises:
            ServiceError: Phronesis refuses or is away.
        """
        for some in batches([_make(item, self._next_moment()) for item in items]):
            await self._memory.add(some, conversation_id=self.session_id, user_id=self._user_id)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item and return it; `None` where there is none."""
        while last := await self._newest(1):
            if (await self._memory.delete(last[0].id, user_id=self._user_id)).ids:
                return _read(last[0])
        return None

    async def clear_session(self) -> None:
        """Remove every item of the session for good; memories of other kinds in the same conversation stay."""
        while some := await self._newest(_PAGE):
            await self._memory.delete([one.id for one in some[:_PAGE]], user_id=self._user_id)

    async def _newest(self, most: int | None) -> list[Memory]:
        """The last items, the newest first: `most` of them, or all."""
        found: list[Memory] = []
        cursor: str | None = None
        while True:
            page = await self._memory.list(
                limit=_PAGE if most is None else min(most, _PAGE),
                cursor=cursor,
                conversation_id=self.session_id,
                metadata={_MARK: True},
                user_id=self._user_id,
            )
            found += page.memories
            cursor = page.next
            if cursor is None or (most is not None and len(found) >= most):
                return found[:most]

    def _next_moment(self) -> datetime:
        """Now, and later than the item before: a list of memories is ordered by when they were said."""
        self._last = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
        return self._last


def _make(item: TResponseInputItem, at: datetime) -> NewMemory:
    fields = cast(Mapping[str, Any], item)
    text = "\n".join(_texts(fields))[:_MOST_TEXT].strip() or str(fields.get("type", "item"))
    metadata = {_MARK: True, _ITEM: json.dumps(item, ensure_ascii=False)}
    return NewMemory(text=text, speaker=_speaker(fields), occurred_at=at, metadata=metadata)


def _read(memory: Memory) -> TResponseInputItem:
    return cast(TResponseInputItem, json.loads(str(memory.metadata[_ITEM])))


def _speaker(item: Mapping[str, Any]) -> str:
    if role := item.get("role"):
        return str(role)
    return "tool" if str(item.get("type", "")).endswith("_output") else "assistant"


def _texts(item: Mapping[str, Any]) -> Iterator[str]:
    """What of an item can be read: the texts of a message, a call with its arguments, what a tool gave back."""
    for name in ("content", "summary", "name", "arguments", "output"):
        match item.get(name):
            case str(text):
                yield text
            case list(parts):
                yield from (str(part["text"]) for part in parts if isinstance(part, Mapping) and part.get("text"))
