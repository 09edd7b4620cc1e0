"""Attachments that stay in their conversation: from an upload through media and memory to a later turn, on a real broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

import pytest

from phronesis_bus import Blobs, Bus, announce, ask, connect
from phronesis_contracts import Principal
from phronesis_contracts.deletions import ConversationDeleted
from phronesis_contracts.media import ACCEPT_UPLOAD, EXTRACT_TEXT, UPLOADS, AcceptUpload, ExtractedText, TextRef
from phronesis_contracts.orchestrator import CONVERSATION_DELETED
from phronesis_media.app import build as build_media
from phronesis_media.fetching.web import DestinationResolver, PublicWeb, SystemResolver
from phronesis_memory.app import build as build_memory
from phronesis_memory.indexes import make_pgvector_index
from phronesis_memory.settings import MemorySettings
from phronesis_orchestrator.agents.context import cite, find_passages, keep_documents, list_documents
from phronesis_orchestrator.turns.execution import TurnRun
from phronesis_orchestrator.turns.ports import BusNeighbours
from phronesis_postgres import Database
from tests.support import documents
from tests.support.bus import eventually, somebody
from tests.support.memory import WordEmbedder, open_index
from tests.support.readers import reader
from tests.support.servers import NatsServer, PostgresServer, VectorServer


@dataclass(frozen=True)
class World:
    """The gateway and the orchestrator, with media and memory running."""

    gateway: Bus
    orchestrator: Bus

    async def upload(self, who: Principal, data: bytes, name: str) -> ExtractedText:
        id = uuid4().hex
        await Blobs(self.gateway, UPLOADS).put(id, data)
        media = await ask(self.gateway, who, ACCEPT_UPLOAD, AcceptUpload(upload=id, name=name))
        return await ask(self.orchestrator, who, EXTRACT_TEXT, TextRef(media_id=media.id))

    def turn(self, who: Principal, conversation: str) -> TurnRun:
        """A turn of a conversation, as far as documents need one."""
        return cast(TurnRun, Turn(Claim(who, conversation), BusNeighbours(self.orchestrator)))


@dataclass(frozen=True)
class Claim:
    """A claimed turn."""

    who: Principal
    conversation_id: str
    turn_id: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True)
class Turn:
    """A running turn."""

    claim: Claim
    neighbours: BusNeighbours
    degraded: list[str] = field(default_factory=list)

    def degrade(self, part: str) -> None:
        self.degraded.append(part)


@asynccontextmanager
async def _world(nats: NatsServer, postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[World]:
    embedder = WordEmbedder()
    async with (
        postgres.fresh_schema("memory") as where,
        Database.open(where, "memory") as database,
        open_index(weaviate, database, embedder) as index,
        connect("gateway", nats.settings("gateway")) as gateway,
        connect("orchestrator", nats.settings("orchestrator")) as orchestrator,
        connect("memory", nats.settings("memory")) as memory,
        connect("media", nats.settings("media")) as media,
        reader() as read,
    ):
        await build_media(media, read, PublicWeb(SystemResolver(), seconds=5), DestinationResolver(SystemResolver()))
        settings = MemorySettings(stage_seconds=4)
        vectors = index or make_pgvector_index(database, embedder.model, embedder.dimension, settings)
        await build_memory(memory, database, embedder, settings, vectors)
        yield World(gateway, orchestrator)
        await memory.stop()


@pytest.fixture(scope="module")
async def world(nats_server: NatsServer, postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[World]:
    async with _world(nats_server, postgres, weaviate) as opened:
        yield opened


async def test_a_second_question_about_a_pdf_finds_its_page_in_a_later_turn(world: World) -> None:
    who, conversation = somebody(), str(uuid4())
    pages = [["The lease of the mill.", "It begins in 2027."], ["The rent is 4,200 a month."], ["Dogs are welcome."]]
    pdf = await world.upload(who, documents.pdf(pages), "lease.pdf")
    sheet = await world.upload(who, documents.xlsx([("name", "cost"), ("roof", 700), ("stairs", 90)]), "costs.xlsx")
    first = world.turn(who, conversation)
    await keep_documents(first, (pdf, sheet))
    assert cast(Any, first).degraded == []
    later = world.turn(who, conversation)
    for question, place in (("What is the rent?", "lease.pdf, page 2"), ("Are dogs welcome?", "lease.pdf, page 3")):
        assert cite((await find_passages(later, question)).passages[0]) == place
    found = (await find_passages(later, "cost of the roof", limit=1)).passages[0]
    assert (found.name, bool(found.sheet), "700" in found.text) == ("costs.xlsx", True, True)
    assert [one.name for one in (await list_documents(later)).documents] == ["lease.pdf", "costs.xlsx"]
    assert (await find_passages(world.turn(who, str(uuid4())), "rent")).passages == ()
    assert (await find_passages(world.turn(somebody(tenant=who.tenant), conversation), "rent")).passages == ()


async def test_a_text_longer_than_one_message_is_kept_whole_and_goes_with_its_conversation(world: World) -> None:
    who, conversation = somebody(), str(uuid4())
    lines = "\n".join(f"Clause {number} speaks of {number * 7919} barrels." for number in range(20_000))
    long = await world.upload(who, lines.encode(), "clauses.txt")
    assert (long.truncated, long.length) == (True, len(lines))
    turn = world.turn(who, conversation)
    await keep_documents(turn, (long,))
    assert cast(Any, turn).degraded == []
    later = world.turn(who, conversation)
    for number in (3, 11_000, 19_999):
        passage = (await find_passages(later, f"{number * 7919} barrels", limit=1)).passages[0]
        assert f"Clause {number} speaks" in passage.text
    event = ConversationDeleted(deletion_id=str(uuid4()), conversation_id=conversation, user=who.user)
    await announce(world.orchestrator, who.tenant, CONVERSATION_DELETED, event)

    async def gone() -> bool:
        return (await list_documents(later)).documents == ()

    await eventually(gone)


async def test_a_limit_that_was_reached_marks_the_reply(world: World) -> None:
    who = somebody()
    turn = world.turn(who, str(uuid4()))
    whole = await world.upload(who, b"A short note.", "note.txt")
    await keep_documents(turn, (whole.model_copy(update={"limits": ("scans",)}),))
    assert cast(Any, turn).degraded == ["attachments_cut"]
