"""The message history of a Pydantic AI agent as a conversation in Phronesis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from phronesis import AsyncClient, batches
from phronesis_contracts.memories import Memory, NewMemory

_MARK, _MESSAGE = "pydantic_ai", "pydantic_ai_message"
"""What marks a message of an agent among the others of a conversation, and where it is kept whole."""
_MOST_TEXT = 20_000
"""Characters of a memory's text; the message itself is kept whole."""
_PAGE = 100
"""Messages of a page, and of one deletion."""


class PhronesisHistory:
    """The messages of one conversation, to go on with in a later run.

    Each message is kept whole, and found by its words and its meaning with the user's other memories.

    Args:
        conversation_id: names the conversation; up to 200 characters.
        client: your client; who made it closes it.
        user_id: your own name for the user whom the conversation belongs to; the key needs the scope `act_for_users`.
    """

    def __init__(self, conversation_id: str, client: AsyncClient, *, user_id: str | None = None) -> None:
        self.conversation_id = conversation_id
        self._memory, self._user_id = client.memory, user_id
        self._last = datetime.min.replace(tzinfo=UTC)

    async def load(self, limit: int | None = None) -> list[ModelMessage]:
        """The messages in their order, for `agent.run(..., message_history=...)`.

        Args:
            limit: only the last so many. Cut so, a history begins with a prompt of the user: a model refuses the result of
                a tool whose call it does not see.

        Raises:
            ServiceError: Phronesis refuses or is away.
        """
        if limit is not None and limit <= 0:
            return []
        messages = [_read(one) for one in reversed(await self._newest(limit))]
        if limit is not None and len(messages) == limit:
            while messages and not _is_prompt(messages[0]):
                messages.pop(0)
        return messages

    async def add(self, messages: Sequence[ModelMessage]) -> None:
        """Add messages, such as `result.new_messages()`, behind the history; up to 500 at once, all or none.

        Raises:
            ServiceError: Phronesis refuses or is away.
        """
        for some in batches([_make(message, self._next_moment()) for message in messages]):
            await self._memory.add(some, conversation_id=self.conversation_id, user_id=self._user_id)

    async def clear(self) -> None:
        """Remove every message of the history for good."""
        while some := await self._newest(_PAGE):
            await self._memory.delete([one.id for one in some], user_id=self._user_id)

    async def _newest(self, most: int | None) -> list[Memory]:
        """The last messages, the newest first: `most` of them, or all."""
        found: list[Memory] = []
        cursor: str | None = None
        while True:
            page = await self._memory.list(
                limit=_PAGE if most is None else min(most, _PAGE),
                cursor=cursor,
                conversation_id=self.conversation_id,
                metadata={_MARK: True},
                user_id=self._user_id,
            )
            found += page.memories
            cursor = page.next
            if cursor is None or (most is not None and len(found) >= most):
                return found[:most]

    def _next_moment(self) -> datetime:
        """Now, and later than the message before: a list of memories is ordered by when they were said."""
        self._last = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
        return self._last


def _make(message: ModelMessage, at: datetime) -> NewMemory:
    request = isinstance(message, ModelRequest)
    text = "\n".join(_texts(message))[:_MOST_TEXT].strip() or message.kind
    written = ModelMessagesTypeAdapter.dump_json([message]).decode()
    speaker = ("user" if _is_prompt(message) else "tool") if request else "assistant"
    return NewMemory(text=text, speaker=speaker, occurred_at=at, metadata={_MARK: True, _MESSAGE: written})


def _read(memory: Memory) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_json(str(memory.metadata[_MESSAGE]))[0]


def _is_prompt(message: ModelMessage) -> bool:
    return any(isinstance(part, UserPromptPart) for part in message.parts)


def _texts(message: ModelMessage) -> Iterator[str]:
    """What of a message was said, called and given back; instructions are none of it."""
    for part in message.parts:
        match part:
            case UserPromptPart(content=str(text)) | TextPart(content=text):
                yield text
            case UserPromptPart(content=parts):
                yield from (one for one in parts if isinstance(one, str))
            case ToolCallPart():
                yield f"{part.tool_name} {part.args_as_json_str()}"
            case ToolReturnPart():
                yield part.model_response_str()
