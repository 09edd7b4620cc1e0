"""Recall quality by the labelled questions.

    python -m bench.quality                  both splits, and docs/generated/recall-quality.md
    python -m bench.quality --split dev      one split, printed; only this one may be looked at while tuning
    python -m bench.quality --json           the figures as JSON; nothing is written
    python -m bench.quality --vectors FILE   keep the vectors of stored texts between runs

It starts a Postgres of its own, puts the whole corpus into it by the service's own handlers, with the local model, and asks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from phronesis_contracts import Principal
from phronesis_memory.app import assemble
from phronesis_memory.settings import MemorySettings
from phronesis_memory.words.store import PostgresTexts
from phronesis_postgres import EVERY_TENANT, Database
from tests.support.personas import Persona
from tests.support.servers import PostgresServer

from .corpus import USER, Corpus
from .kept import KeptEmbedder
from .labels import Split, overlap, questions
from .report import DOCUMENT, Result, document, lines, summary
from .signals import Asked, Signals


async def measure(splits: list[Split], vectors: Path | None) -> dict[Split, list[Result]]:
    """Store the corpus and ask the questions of the splits."""
    corpus = Corpus()
    said: dict[str, list[str]] = defaultdict(list)
    for draft in corpus.drafts():
        said[draft.external_id or ""].append(draft.whole)
    who = Principal(tenant=f"quality-{uuid4().hex[:8]}", user=USER, **Persona.MAESTRO.rights)
    settings = MemorySettings(stage_seconds=30)
    with tempfile.TemporaryDirectory(prefix="phronesis-quality-") as folder:
        server = PostgresServer(Path(folder))
        await server.start()
        try:
            async with (
                server.fresh_schema("memory") as where,
                Database.open(where, "memory") as database,
                KeptEmbedder.open(settings.threads, vectors) as embedder,
            ):
                handlers, index = assemble(database, embedder, corpus, settings, lambda: None)
                await corpus.store(handlers, who, _progress())
                async with server.session(where, "memory") as session:
                    await session.execute("VACUUM ANALYZE", timeout=60)
                external = await _external(database)
                signals = Signals(handlers, index, PostgresTexts(database), embedder, database, who, external)
                return {split: await _ask(signals, split, said) for split in splits}
        finally:
            await server.stop()


async def _external(database: Database) -> dict[str, str]:
    async with database.connection(EVERY_TENANT) as connection:
        return {str(row["id"]): row["external_id"] for row in await connection.fetch("SELECT id, external_id FROM items")}


async def _ask(signals: Signals, split: Split, said: dict[str, list[str]]) -> list[Result]:
    asked: list[Asked] = []
    say = _progress()
    every = questions(split)
    for question in every[:20]:  # connections, statements and caches of a service that has run for a while
        await signals.ask(replace(question, text=f"{question.text} please"))
    for number, question in enumerate(every, 1):
        asked.append(await signals.ask(question))
        say(f"{split} questions {number} of {len(every)}")
    return [Result(q, overlap(q, said), a) for q, a in zip(every, asked, strict=True)]


def _progress() -> Callable[[str], None]:
    """Says where things stand on the error stream, once in two seconds."""
    last = 0.0

    def say(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 2:
            last = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    return say


async def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=("dev", "test"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--vectors", type=Path)
    chosen = parser.parse_args()
    splits: list[Split] = [chosen.split] if chosen.split else ["dev", "test"]
    results = await measure(splits, chosen.vectors)
    if chosen.json:
        print(json.dumps({split: summary(found) for split, found in results.items()}, indent=1))
        return
    print("\n".join(line for split in splits for line in lines(split, results[split])))
    if chosen.split is None:
        DOCUMENT.write_text(document(results), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
