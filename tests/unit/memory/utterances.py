"""What users say, with the facts that it states, and how well rules find them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phronesis_memory.facts.extraction import extract_statements
from phronesis_memory.facts.predicates import predicate_of

_FILE = Path(__file__).parent / "data" / "utterances.txt"
_FACT = re.compile(r"(?:(?P<subject>[^/:]+) / )?(?P<no>not )?(?P<predicate>[^:]+): (?P<object>.+)")
Triple = tuple[str, str, str, bool]


@dataclass(frozen=True)
class Utterance:
    """One message, what it states, and to which half it belongs: 0 was tuned on, 1 was not."""

    text: str
    facts: frozenset[Triple]
    half: int


def _triple(subject: str, predicate: str, thing: str, negated: bool) -> Triple:
    plain = re.sub(r"^(?:a|an|the|ein|eine|einen|der|die|das) ", "", thing.casefold().strip())
    return subject.casefold(), predicate_of(predicate).name, re.sub(r"\W+", " ", plain).strip(), negated


def read_utterances() -> list[Utterance]:
    """All utterances of the file."""
    found: list[tuple[str, list[Triple]]] = []
    for line in _FILE.read_text("utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith("  "):
            found.append((line, []))
            continue
        told = _FACT.fullmatch(line.strip())
        assert told is not None, line
        found[-1][1].append(_triple(told["subject"] or "user", told["predicate"], told["object"], bool(told["no"])))
    return [Utterance(text, frozenset(facts), number % 2) for number, (text, facts) in enumerate(found)]


def compare(one: Utterance) -> tuple[frozenset[Triple], frozenset[Triple]]:
    """What was not found of an utterance, and what was found and is not there."""
    found = frozenset(_triple(s.subject, s.predicate, s.object, s.negated) for s in extract_statements(one.text))
    return one.facts - found, found - one.facts


def score(utterances: Sequence[Utterance]) -> tuple[float, float]:
    """Precision and recall over utterances, 0 to 1."""
    missing = extra = told = 0
    for one in utterances:
        lost, wrong = compare(one)
        told, missing, extra = told + len(one.facts), missing + len(lost), extra + len(wrong)
    right = told - missing
    return right / (right + extra or 1), right / (told or 1)
