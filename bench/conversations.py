"""The section of conversations: how well what was said is found again, by HTTP, and how fast it goes in and is found.

    python -m bench.conversations                  both halves, printed
    python -m bench.conversations --half tune      the half that may be looked at while tuning
    python -m bench.conversations --locomo FILE    the questions of a file of the LoCoMo benchmark, for whoever has one

The same messages are stored twice: as messages of a conversation (`memory.add`), and each as a fact (`remember`). recall@k is
the share of the messages that answer a question which are among the first k found, over all questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, quantiles
from time import perf_counter
from typing import Any

import yaml

from phronesis import AsyncClient
from phronesis_embedding.local import LocalEmbedder
from tests.support.people import Person, town

from .progress import say
from .stacks import running

DATA = Path(__file__).parent / "quality" / "data" / "conversations"
DEPTHS = (5, 10, 25)
_BATCH, _MANY = 100, 6_000
_CATEGORY_WITHOUT_ANSWER = 5


@dataclass(frozen=True)
class Conversation:
    """What two people said, and questions with the messages that answer them, by their place from 0."""

    name: str
    messages: tuple[dict[str, Any], ...]
    questions: tuple[tuple[str, tuple[int, ...]], ...]


def read(half: str) -> list[Conversation]:
    """The conversations of a half, `tune` or `held`."""
    found = []
    for file in sorted((DATA / half).glob("*.yaml")):
        given = yaml.safe_load(file.read_text("utf-8"))
        messages = tuple(_message(one["speaker"], one["text"], one["at"]) for one in given["messages"])
        asked = tuple((one["text"], tuple(one["evidence"])) for one in given["questions"])
        found.append(Conversation(file.stem, messages, asked))
    return found


def read_locomo(file: Path) -> list[Conversation]:
    """The conversations of a file of LoCoMo, with the questions that have an answer in them."""
    found = []
    for number, sample in enumerate(json.loads(file.read_text("utf-8"))):
        said, places, messages = sample["conversation"], dict[str, int](), list[dict[str, Any]]()
        for session in range(1, 1 + sum(key.startswith("session_") and key[8:].isdigit() for key in said)):
            at = datetime.strptime(said[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for turn in said.get(f"session_{session}", ()):
                places[turn["dia_id"]] = len(messages)
                seen = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
                messages.append(_message(turn["speaker"], turn["text"] + seen, at))
        asked = [
            (one["question"], tuple(places[id] for id in one["evidence"] if id in places))
            for one in sample["qa"]
            if one.get("category") != _CATEGORY_WITHOUT_ANSWER
        ]
        found.append(Conversation(f"locomo-{number}", tuple(messages), tuple(one for one in asked if one[1])))
    return found


def _message(speaker: str, text: str, at: datetime | str) -> dict[str, Any]:
    when = at if isinstance(at, datetime) else datetime.fromisoformat(at)
    return {"speaker": speaker, "text": text, "occurred_at": (when if when.tzinfo else when.replace(tzinfo=UTC)).isoformat()}


@dataclass(frozen=True)
class Found:
    """What came of the questions to one conversation: for each the places found, best first, and milliseconds."""

    conversation: Conversation
    places: list[list[int]]
    times: list[float]

    def shares(self, depth: int) -> list[float]:
        """For each question the share of its messages that are among the first."""
        return [
            len(set(places[:depth]) & set(wanted)) / len(set(wanted))
            for places, (_, wanted) in zip(self.places, self.conversation.questions, strict=True)
        ]


async def as_messages(person: Person, one: Conversation) -> Found:
    """Add a conversation and ask its questions by `memory.search`."""
    async with AsyncClient(str(person.http.base_url), person.key) as client:
        ids: dict[str, int] = {}
        for start in range(0, len(one.messages), _BATCH):
            added = await client.memory.add(one.messages[start : start + _BATCH], conversation_id=one.name)
            ids |= {memory.id: start + number for number, memory in enumerate(added.memories)}
        places, times = [], []
        for question, _ in one.questions:
            began = perf_counter()
            found = await client.memory.search(question, limit=DEPTHS[-1])
            times.append(1_000 * (perf_counter() - began))
            places.append([ids[memory.id] for memory in found.memories])
    return Found(one, places, times)


async def as_facts(person: Person, one: Conversation) -> Found:
    """Store each message as a fact, and ask by `recall`, as it was before messages had a place."""
    async with AsyncClient(str(person.http.base_url), person.key) as client:
        ids: dict[str, int] = {}
        for start in range(0, len(one.messages), _BATCH):
            texts = [f"{said['speaker']}: {said['text']}" for said in one.messages[start : start + _BATCH]]
            stored = await client.memory.remember(texts)
            ids |= {item.id: start + number for number, item in enumerate(stored.items)}
        places, times = [], []
        for question, _ in one.questions:
            began = perf_counter()
            recalled = await client.memory.recall(question, limit=DEPTHS[-1])
            times.append(1_000 * (perf_counter() - began))
            places.append([ids[item.id] for item in recalled.items if item.id in ids])
    return Found(one, places, times)


async def recall_table(conversations: Sequence[Conversation], url: str, key: str) -> list[str]:
    """The lines of recall for some conversations, each of a user of its own."""
    rows = {"each message a fact, `recall`": as_facts, "messages, `memory.search`": as_messages}
    lines = [f"| {' | '.join(['', *(f'recall@{k}' for k in DEPTHS), 'p50 ms', 'p95 ms'])} |", "|---|---|---|---|---|---|"]
    async with town(url, key) as people:
        for name, ask in rows.items():
            found = [await ask(await people.someone(), one) for one in conversations]
            shares = [f"{100 * mean(share for each in found for share in each.shares(depth)):.1f}" for depth in DEPTHS]
            times = quantiles([time for each in found for time in each.times], n=20)
            lines.append(f"| {name} | {' | '.join(shares)} | {times[9]:.1f} | {times[18]:.1f} |")
    return lines


async def speed(conversations: Sequence[Conversation], url: str, key: str, many: int) -> list[str]:
    """The lines of speed: how fast so many messages go in, and how fast they are found, beside the bare embedder."""
    said = [dict(one, text=f"{one['text']} ({n})") for n in range(many) for one in [_nth(conversations, n)]]
    async with town(url, key) as people:
        person = await people.someone()
        async with AsyncClient(str(person.http.base_url), person.key) as client:
            began = perf_counter()
            for start in range(0, many, _BATCH):
                await client.memory.add(said[start : start + _BATCH], conversation_id=f"c{start // 500}")
            rate = many / (perf_counter() - began)
            say(f"{many} messages are stored")
            asked = [question for one in conversations for question, _ in one.questions][:200]
            times = []
            for question in asked:
                await client.memory.search(question)  # a question's vector is kept; the times are those of a search
                began = perf_counter()
                await client.memory.search(question)
                times.append(1_000 * (perf_counter() - began))
    sample = [f"{one['speaker']}. {one['text']}" for one in said[: min(many, 1_000)]]
    async with LocalEmbedder.open(2) as embedder:
        await embedder.embed_texts(sample[:50])
        began = perf_counter()
        for start in range(0, len(sample), _BATCH):
            await embedder.embed_texts(sample[start : start + _BATCH])
        bare = len(sample) / (perf_counter() - began)
    cut = quantiles(times, n=20)
    return [
        "",
        f"| {many} messages of one user | |",
        "|---|---|",
        f"| messages stored a second | {rate:.0f} |",
        f"| the bare embedder's texts a second | {bare:.0f} |",
        f"| share (at least 0.9, or 150 messages a second) | {rate / bare:.2f} |",
        f"| a search, p50 ms | {cut[9]:.1f} |",
        f"| a search, p95 ms (at most 25) | {cut[18]:.1f} |",
    ]


def _nth(conversations: Sequence[Conversation], n: int) -> dict[str, Any]:
    one = conversations[n % len(conversations)]
    return one.messages[n // len(conversations) % len(one.messages)]


async def section(quick: bool) -> list[str]:
    """Its lines."""
    async with running() as stack:
        held = read("held")[: 1 if quick else None]
        questions = sum(len(one.questions) for one in held)
        lines = [f"The half that was not looked at while tuning: {len(held)} conversations, {questions} questions.", ""]
        lines += await recall_table(held, stack.url, stack.key)
        return lines + await speed(held, stack.url, stack.key, 300 if quick else _MANY)


async def _print(conversations: Sequence[Conversation]) -> None:
    async with running() as stack:
        print("\n".join(await recall_table(conversations, stack.url, stack.key)))


def main() -> int:
    """See the module; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tune", "held"), action="append")
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    if chosen.locomo is not None:
        asyncio.run(_print(read_locomo(chosen.locomo)))
        return 0
    asyncio.run(_print([one for half in chosen.half or ("tune", "held") for one in read(half)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
