"""Asking the items of some sets, and a record of what became of each message."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import uuid4

from . import documents
from .client import Client, Reply, StackError
from .items import Item
from .judge import ERROR, group_of, verdict

PAUSE = 1.5
"""Seconds that a person takes at least before the next conversation; what a turn taught has to be known by then."""


@dataclass(frozen=True)
class Record:
    """What became of one message.

    Args:
        item: what it belongs to.
        agent: who was asked.
        turn: its place in the dialogue, from 0.
        kind: the kind of its expectation.
        outcome: one of `judge.OUTCOMES`.
        reply: what came back; its text is the code of an error where none did.
    """

    item: Item
    agent: str
    turn: int
    kind: str
    outcome: str
    reply: Reply

    @property
    def follow_up(self) -> bool:
        """Whether its meaning rests on what was said before in the same conversation."""
        return self.turn > 0 and not self.item.turns[self.turn].new


def run(
    client: Client, items: Iterable[Item], names: Sequence[str], workers: int, told: Callable[[int, int], None]
) -> list[Record]:
    """Ask everything, each item and agent as a user of its own.

    Args:
        client: a stack, by a key that may make keys.
        items: what to ask.
        names: names in the data, whose digits are no figures.
        workers: conversations at a time.
        told: is called with how many of how many are done.
    """
    jobs = [(item, agent) for item in items for agent in item.agents]
    records: list[Record] = []
    with ThreadPoolExecutor(workers) as pool:
        for done, some in enumerate(pool.map(lambda job: converse(client, job[0], job[1], names), jobs), start=1):
            records += some
            told(done, len(jobs))
    return records


def converse(client: Client, item: Item, agent: str, names: Sequence[str], role: str | None = None) -> list[Record]:
    """Ask the turns of one item, as a new user; with a role, where one is named."""
    records: list[Record] = []
    conversation, media = None, dict[str, str]()
    try:
        user = client.user(f"eval-{uuid4().hex[:12]}", role)
    except StackError as exc:
        return [_record(item, agent, turn, names, exc) for turn in range(len(item.turns))]
    with user:
        for place, turn in enumerate(item.turns):
            if turn.new:
                conversation = None
                time.sleep(PAUSE)
            try:
                for name in turn.attach:
                    content, kind = documents.make(name, item.files[name])
                    media[name] = user.upload(name, content, kind)
                reply = user.ask(turn.text, agent, conversation, tuple(media[name] for name in turn.attach))
            except StackError as exc:
                records.append(_record(item, agent, place, names, exc))
                continue
            conversation = reply.conversation
            records.append(_record(item, agent, place, names, reply))
    return records


def _record(item: Item, agent: str, place: int, names: Sequence[str], came: Reply | StackError) -> Record:
    turn = item.turns[place]
    if isinstance(came, StackError):
        return Record(item, agent, place, group_of(turn.expect), ERROR, Reply(text=str(came)))
    outcome = verdict(turn.expect, came, turn.text, names)
    return Record(item, agent, place, group_of(turn.expect), outcome, came)
