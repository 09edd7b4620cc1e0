"""Facts that form by themselves: whether a memory keeps what was told, of the right person, once, and nothing else.

Each conversation of `sets/formed/{tune,held}.jsonl` is held by a user of its own: what the user says are turns, and the whole
of it, with what a system message and an assistant say in it, is added to memory as messages. The facts that are on record then
are judged by code: a fact is right where its words match what the conversation's author expects of the right person. Notes,
which are the user's own sentences and no facts, are judged in the same way and reported apart.

python -m evals.formed                           the local stack, both halves
python -m evals.formed --own --half held         a stack of its own
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from . import items, stack
from .client import Client, StackError
from .report import wilson

SETS = items.SETS / "formed"
OUTCOMES = ("right", "duplicate", "wrong person", "never", "not expected")
"""What a formed fact is: expected; expected and formed before; of somebody else; what must not be kept; anything else."""
_SETTLED = 15.0
"""Seconds from the end of a conversation until what it taught is on record: learning waits for a batch (10 s by default)."""


@dataclass(frozen=True)
class Formed:
    """One fact on record and what was made of it: one of `OUTCOMES`, and why it must not be kept where it must not."""

    conversation: str
    text: str
    subject: str
    outcome: str
    why: str = ""


@dataclass(frozen=True)
class Judged:
    """What one conversation left behind: its facts, and how many of the expected ones there are."""

    formed: tuple[Formed, ...]
    expected: int
    missed: tuple[str, ...]


def says(text: str, groups: Sequence[Sequence[str]]) -> bool:
    """Whether a text has one alternative of each group as whole words, whatever their case."""
    told = f" {_plain(text)} "
    return all(any(f" {_plain(one)} " in told for one in group) for group in groups)


def judge(conversation: Mapping[str, Any], facts: Sequence[Mapping[str, Any]]) -> Judged:
    """Judge the facts on record, the oldest first, by what is expected of a conversation."""
    expected = conversation["facts"]
    met: set[int] = set()
    found = []
    for fact in facts:
        matched = {at for at, one in enumerate(expected) if says(fact["text"], one["says"])}
        right = {at for at in matched if _is_of(fact, expected[at])}
        barred = next((one["why"] for one in conversation["never"] if says(fact["text"], one["says"])), "")
        outcome, why = "not expected", ""
        if right:
            outcome = "right" if right - met else "duplicate"
        elif matched:
            outcome = "wrong person"
        elif barred:
            outcome, why = "never", barred
        met |= right
        found.append(Formed(conversation["id"], fact["text"], fact["subject"], outcome, why))
    missed = tuple(" + ".join(group[0] for group in one["says"]) for at, one in enumerate(expected) if at not in met)
    return Judged(tuple(found), len(expected), missed)


def _is_of(fact: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Whether a fact is of whom it should be: its subject, or whom its sentence names, by name or as what of the user's."""
    about = expected["about"]
    if about == "user":
        return str(fact["subject"]) == "user"
    names = next((group for group in expected["says"] if about.casefold() in group), [about])
    return says(f"{fact['subject']} {fact['text']}", [[about, *names]])


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.casefold().replace("’", "'")))


def hold(client: Client, conversation: Mapping[str, Any]) -> Client:
    """Hold a conversation as a user of its own, who is returned."""
    user = client.user(f"formed-{uuid4().hex[:12]}")
    id = None
    for message in conversation["messages"]:
        if message["role"] == "user":
            id = user.ask(message["text"], "dialogue", id).conversation
    told = [{"text": one["text"], "speaker": one["role"]} for one in conversation["messages"]]
    user.call("POST", "/api/v1/memory", json={"memories": told, "conversation_id": f"added-{uuid4().hex[:8]}"})
    return user


def look(user: Client, conversation: Mapping[str, Any]) -> tuple[Judged, Judged]:
    """Judge what is on record of a user now: the facts, and the notes."""
    with user:
        facts, notes = (
            user.call("POST", "/api/v1/tools/facts.list", json={"limit": 200, **kind})["facts"][::-1]
            for kind in ({}, {"kind": "note"})
        )
    return judge(conversation, facts), judge(conversation, notes)


def summary(judged: Sequence[Judged]) -> list[str]:
    """Lines of figures: precision, duplicates, the right person, what must not be kept, and what was not formed."""
    formed = [one for some in judged for one in some.formed]
    count = Counter(one.outcome for one in formed)
    kept = count["right"] + count["duplicate"]
    persons = kept + count["wrong person"]
    expected = sum(one.expected for one in judged)
    lines = [f"{len(judged)} conversations, {len(formed)} facts formed, {expected} expected"]
    for name, part, whole in (
        ("right (precision)", kept, len(formed)),
        ("duplicates", count["duplicate"], len(formed)),
        ("of the right person", kept, persons),
        ("must not be kept", count["never"], len(formed)),
        ("not expected", count["not expected"], len(formed)),
        ("formed of the expected (recall)", expected - sum(len(one.missed) for one in judged), expected),
    ):
        low, high = wilson(part, whole)
        lines.append(f"{name}: {part / max(1, whole):.3f} ({low:.3f} to {high:.3f}), {part} of {whole}")
    barred = Counter(one.why for one in formed if one.why)
    return [*lines, *(f"kept, though {why}: {n}" for why, n in barred.most_common())]


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module; the exit status is 0 where everything ran, whatever came of it."""
    parser = argparse.ArgumentParser(prog="python -m evals.formed", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--url", help="address of a gateway; the local stack's by default")
    parser.add_argument("--key", help="a key that may make keys; the local stack's own by default")
    parser.add_argument("--data", type=Path, help="data directory of a local stack; ~/.phronesis by default")
    parser.add_argument("--own", action="store_true", help="start a stack in a temporary directory, and stop it afterwards")
    parser.add_argument("--half", choices=items.HALVES, help="one half; both by default")
    parser.add_argument("--file", type=Path, help="conversations of another file")
    parser.add_argument("--limit", type=int, help="conversations of a half at most")
    parser.add_argument("--workers", type=int, default=2, help="conversations at a time (2)")
    parser.add_argument("--failures", type=Path, help="file for what was not right in the tuning half, in JSON lines")
    given = parser.parse_args(arguments)
    try:
        if not given.own:
            return _evaluate(given, stack.find(given.url, given.key, given.data))
        with tempfile.TemporaryDirectory(prefix="phronesis-formed-") as folder, stack.running(Path(folder)) as started:
            return _evaluate(given, started)
    except (StackError, OSError) as exc:
        print(exc, file=sys.stderr)
        return 1


def _evaluate(given: argparse.Namespace, where: stack.Stack) -> int:
    halves = [given.half] if given.half else list(items.HALVES)
    files = {"the file": given.file} if given.file else {half: SETS / f"{half}.jsonl" for half in halves}
    for half, file in files.items():
        conversations = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()][: given.limit]
        with Client(where.url, where.key) as client, ThreadPoolExecutor(given.workers) as pool:
            users = []
            for done, user in enumerate(pool.map(lambda one: hold(client, one), conversations), start=1):
                users.append(user)
                if done % 25 == 0:
                    print(f"{half}: {done} of {len(conversations)}", file=sys.stderr, flush=True)
            time.sleep(_SETTLED)
            judged = [look(user, one) for user, one in zip(users, conversations, strict=True)]
        facts, notes = [one for one, _ in judged], [one for _, one in judged]
        print("\n".join([f"## {half}: facts", *summary(facts), "", f"## {half}: notes", *summary(notes), ""]))
        if given.failures and half != "held":
            wrong = [vars(one) for some in (*facts, *notes) for one in some.formed if one.outcome != "right"]
            missed = [{"missed": what} for fact, note in judged for what in sorted({*fact.missed} & {*note.missed})]
            given.failures.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in [*wrong, *missed]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
