"""Drafts: from what is to be stored to items with words and vectors."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from phronesis_contracts import UNKNOWN, Label, OriginKind, Unavailable, formed, untrusted
from phronesis_contracts.episodes import RecordStrategy
from phronesis_contracts.memory import ItemKind, KeepMemory, RememberItem
from phronesis_contracts.orchestrator import TurnEndedNews
from phronesis_contracts.twin import Node

from ..embedding.chunks import pool, split_chunks, split_passages, split_pieces
from ..ports import Embedder
from ..values import MEMORY_KIND, Draft, Said, Vector, VectorMissing
from ..words.analysis import count_words

T = TypeVar("T")
StoredDigests = Mapping[tuple[str, str], bytes]
MAX_TEXT = 20_000
"""Characters of an item."""
_USER_PART = 8_000
_OPENING = 240
"""Characters of an episode that its vector is made of: every turn leaves one, so that its cost is the system's."""


class Drafter:
    """Completes drafts: counts their words, and makes their vectors."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def store(self, drafts: Sequence[Draft], known: StoredDigests, write: Callable[[Sequence[Draft]], Awaitable[T]]) -> T:
        """Complete the drafts that are not `known` to be stored as they are, and write all of them.

        Vectors are made before the transaction. Where an item has changed since `known` was read, all are made, once. Raises
        `Unavailable`: the embedder does not answer, or items change faster than they are written.
        """
        for seen in (known, {}):
            try:
                return await write(await self.complete(drafts, seen))
            except VectorMissing:
                continue
        raise Unavailable("the items change too fast", retry_after=1)

    async def complete(self, drafts: Sequence[Draft], known: StoredDigests) -> list[Draft]:
        """The drafts; those that are not known, and are not complete yet, with words and vector."""
        fresh = [d for d in drafts if d.vector is None and known.get((d.external_id or "", d.part)) != d.digest]
        if not fresh:
            return list(drafts)
        worded, vectors = await asyncio.gather(with_words(fresh), self.vectors(fresh))
        done = {
            id(draft): replace(counted, vector=whole, passages=close)
            for draft, counted, (whole, close) in zip(fresh, worded, vectors, strict=True)
        }
        return [done.get(id(draft), draft) for draft in drafts]

    async def vectors(self, drafts: Sequence[Draft]) -> list[tuple[Vector, tuple[Vector, ...]]]:
        """For each draft the vector of all of it, and those of its passages. Raises `Unavailable`."""
        cut = [_texts_to_embed(draft) for draft in drafts]
        close = [_passages_to_embed(draft) for draft in drafts]
        texts = [piece for some, parts in zip(cut, close, strict=True) for piece in (*some, *parts)]
        made = iter(await self._embedder.embed_texts(texts))
        return [
            (pool(list(islice(made, len(some)))), tuple(islice(made, len(parts))))
            for some, parts in zip(cut, close, strict=True)
        ]


async def with_words(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts with their words counted: for a large batch that takes seconds, which the loop does not have."""
    counted = await asyncio.to_thread(lambda: [count_words(draft.whole) for draft in drafts])
    return [replace(draft, words=found) for draft, found in zip(drafts, counted, strict=True)]


def _texts_to_embed(draft: Draft) -> list[str]:
    """What is embedded: all of an item, of an episode its opening, which is what its user said; words find the rest."""
    return [draft.text[:_OPENING]] if draft.kind is ItemKind.EPISODE else split_pieces(draft.title, draft.text)


def _passages_to_embed(draft: Draft) -> list[str]:
    """What is embedded once more, closely: what people said.

    Texts of nodes, passages and messages are many, and gain nothing by it.
    """
    if draft.kind in (ItemKind.NODE, ItemKind.PASSAGE, ItemKind.MESSAGE):
        return []
    return split_passages(draft.title, draft.text[:_OPENING] if draft.kind is ItemKind.EPISODE else draft.text)


def draft_from_item(item: RememberItem, labels: tuple[Label, ...] = UNKNOWN) -> Draft:
    """What a caller wants remembered, as a draft."""
    sources = tuple(dict.fromkeys(item.sources))
    said = [item.kind, item.title, item.text, item.metadata, item.links, *sources]
    return Draft(
        item.kind,
        item.text,
        hash_content(said, labels),
        item.external_id,
        title=item.title,
        metadata=item.metadata,
        sources=sources,
        labels=labels,
    )


def draft_from_memory(memory: KeepMemory, labels: tuple[Label, ...]) -> Draft:
    """What is to be kept in a scope, as a draft."""
    digest = hash_content([memory.content, memory.confidence], labels)
    metadata = {"confidence": memory.confidence}
    return Draft(MEMORY_KIND, memory.content, digest, memory.key, metadata=metadata, labels=labels)


def drafts_from_node(node: Node) -> list[Draft]:
    """A node's texts, field by field in chunks, each of them an item with the node's key and name."""
    drafts: list[Draft] = []
    # Whoever may write the graph wrote it, which need not be whoever reads it.
    whose = (Label(kind=OriginKind.PERSON, id=node.key[:200], name=node.name[:300]),)
    for text in node.texts:
        for number, chunk in enumerate(split_chunks(text.text.replace("\x00", " "))):
            metadata = {"field": text.field, "type": node.type, "year": node.year}
            digest = hash_content([node.name, text.field, chunk])
            part = f"{text.field}/{number}"
            family = f"{node.type}/{node.id}"
            drafts.append(Draft(ItemKind.NODE, chunk, digest, node.key, part, family, node.name, metadata, labels=whose))
    return drafts


def draft_from_turn(turn: TurnEndedNews) -> Draft:
    """A turn as an episode, one for each turn."""
    spoken = [f"User: {_indent(turn.user_text[:_USER_PART])}", f"Assistant: {_indent(turn.reply_text)}"]
    if turn.attached:
        spoken.insert(1, f"Attached: {', '.join(' '.join(name.split()) for name in turn.attached)}")
    text = "\n".join(spoken).replace("\x00", " ")[:MAX_TEXT]
    said = {"code": turn.code, "tier": turn.tier, "task": turn.task, "at": turn.at.isoformat() if turn.at else None}
    metadata = {"conversation_id": turn.conversation_id, "agent": turn.agent, "outcome": str(turn.status)}
    metadata |= {name: value for name, value in said.items() if value is not None}
    sources = (turn.conversation_id,)
    name, at, labels = f"turn:{turn.turn_id}", Said(occurred_at=turn.at), formed(turn.labels)
    digest = hash_content([text])
    return Draft(ItemKind.EPISODE, text, digest, name, metadata=metadata, sources=sources, said=at, labels=labels)


def _indent(text: str) -> str:
    """A text whose lines after the first are indented, so that none of them passes for what somebody else said."""
    return "\n  ".join(text.splitlines())


def draft_from_strategy(strategy: RecordStrategy, labels: tuple[Label, ...]) -> Draft:
    """A strategy as a draft: its goal, since that is what it is found by."""
    sources = (strategy.conversation_id,) if strategy.conversation_id else ()
    name = f"strategy:{strategy.task_id}"
    return Draft(ItemKind.STRATEGY, strategy.goal, hash_content([strategy.goal]), name, sources=sources, labels=labels)


def hash_content(said: Sequence[Any], labels: Sequence[Label] = ()) -> bytes:
    """The hash of what an item says, and of where it comes from unless that is the user."""
    whose = [[one.kind, one.id, one.name] for one in untrusted(labels)]
    return hashlib.sha256(json.dumps([*said, *whose], sort_keys=True, default=str).encode()).digest()
