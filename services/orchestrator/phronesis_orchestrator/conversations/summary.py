"""The view of a long conversation, its summary by rules, and how much a past turn matters.

Turns that leave the window become notes; light and old notes go first. All of it is arithmetic: the same turns give the same
summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from phronesis_tokens import clean, count

from ..agents.text import is_content, sentences, shorten, words
from .history import KEPT, NO_SUMMARY, PRUNE_AFTER, WINDOW, Note, Past, PastMessage, PastTurn, Summary

_SUBSTANTIVE = 40
"""Characters from which on a reply answers something."""
_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_OPENER = re.compile(r"(?:^|[.!?:;\n]\s*)[\"'(\[\u201c]*[A-Z][a-z]{2,}\b")
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\uff07": "'"})
STOP_LIST = frozenset(
    """Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September
    October November December Please Thanks Hello What When Where Which Who Why How The This That These Those Yes Okay And But
    Also Then There Here Can Could Would Should Will""".split()
)
"""Words with a capital that name nobody; left out where sentence openers are."""


class Sign(StrEnum):
    """The kinds of sign that words give."""

    DECISION = "decision"
    CORRECTION = "correction"
    PREFERENCE = "preference"
    ACTION = "action"


POINTS: Mapping[Sign, int] = {Sign.DECISION: 3, Sign.CORRECTION: 3, Sign.PREFERENCE: 2, Sign.ACTION: 2}
_OF_NAME, _OF_ANSWER = 2, 1
Vocabulary = Mapping[Sign, tuple[str, ...]]
"""The words of each sign in one language, case-folded."""
ENGLISH: Vocabulary = {
    Sign.DECISION: ("let's do", "go with", "approved", "go ahead"),
    Sign.CORRECTION: ("no,", "wrong", "change it", "actually", "i meant"),
    Sign.PREFERENCE: ("i prefer", "always", "never", "i like"),
    Sign.ACTION: ("remind me", "don't forget", "make sure"),
}


@dataclass(frozen=True)
class Scoring:
    """What counts as a sign, and how names are found."""

    vocabularies: tuple[Vocabulary, ...] = (ENGLISH,)
    """One for each language; a sign counts once, in whatever language it is given."""
    openers: bool = True
    """Whether the first word of a sentence, and one on the stop-list, may be a name, as the pattern alone has it."""
    stop: frozenset[str] = field(default=STOP_LIST)
    """Words that name nobody where `openers` is off."""

    def with_language(self, vocabulary: Vocabulary) -> Scoring:
        """The same with the words of one more language, which need no capitals."""
        return replace(self, vocabularies=(*self.vocabularies, vocabulary))

    def points(self, said: str) -> int:
        """Points of all signs that a text gives, each kind once."""
        low = said.casefold()
        found = {sign for known in self.vocabularies for sign, words in known.items() if _holds_any(low, words)}
        return sum(POINTS[sign] for sign in found) + (_OF_NAME if self._names(said) else 0)

    def _names(self, said: str) -> bool:
        if self.openers:
            return _NAME.search(said) is not None
        openers = {match.end() for match in _OPENER.finditer(said)}
        return any(match.end() not in openers and match[0] not in self.stop for match in _NAME.finditer(said))


DEFAULT = Scoring()


def _holds_any(low: str, words: tuple[str, ...]) -> bool:
    for one in words:  # 200 turns are weighed for one prompt, and a generator costs twice as much
        if one in low and _holds_words(low, one):
            return True
    return False


def _holds_words(low: str, words: str) -> bool:
    """Whether words stand in a text between the bounds of words: `casino,` holds no `no,`."""
    at = low.find(words)
    while at >= 0:
        end = at + len(words)
        after = low[end : end + 1] if words[-1].isalnum() else ""
        if not (_is_letter(low[at - 1 : at]) or _is_letter(after)):
            return True
        at = low.find(words, at + 1)
    return False


def _is_letter(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def score_importance(user: str, reply: str, scoring: Scoring = DEFAULT) -> int:
    """From 0 to 13: each kind of sign counts once. `user`: what the user said, without the text of attachments."""
    said = user if user.isascii() else user.translate(_APOSTROPHES)
    return scoring.points(said) + (_OF_ANSWER if "?" in said and len(reply) >= _SUBSTANTIVE else 0)


NOTES = 600
"""Tokens of all notes together."""
_NOTE = 200
"""Characters of one note."""
_SENTENCES = 40
"""Sentences of a message that are weighed."""
_LOOK_AT = 4_000
"""Characters of a message that are looked at: counting and weighing take time, and a note is one sentence."""
_OF_USER, _OF_REPLY = 2, 1
_AGEING = 0.985
"""What the weight of a note is multiplied by for each turn that lies between it and the newest."""
_NAME_INSIDE = re.compile(r"(?<!^)\b[A-Z][\w&-]{2,}")
_OWN = re.compile(r"\b(?:i|i'm|i've|my|mine|we|our|us)\b", re.I)


def select_history(past: Past, scoring: Scoring = DEFAULT) -> tuple[Summary, tuple[PastMessage, ...]]:
    """The summary that covers every turn before the window, and the messages that stand word for word, oldest first.

        Of the older turns the five most important stand word for word, with their number; all others are in the summary
    . A conversation that is not longer than both together stands word for word.
    """
    if past.summary == NO_SUMMARY and len(past.aged) <= PRUNE_AFTER - WINDOW:
        return past.summary, tuple(one for turn in (*past.aged, *past.window) for one in turn.messages())
    summary = fold(past.summary, past.kept, past.aged, scoring)
    kept = [turn for turn in (*past.kept, *past.aged) if turn.seq in summary.kept]
    older = [message for turn in kept for message in turn.messages(numbered=True)]
    return summary, (*older, *(message for turn in past.window for message in turn.messages()))


def fold(summary: Summary, kept: Sequence[PastTurn], aged: Sequence[PastTurn], scoring: Scoring = DEFAULT) -> Summary:
    """The summary, carried on over the turns that have left the window since it was made.

    Args:
        aged: the turns after it, oldest first.
    """
    if not aged:
        return summary
    best, dropped = partition(kept, aged, scoring)
    through = aged[-1].seq + 1
    notes = _limit_notes((*summary.notes, *(note for turn in dropped for note in _notes(turn))), through)
    return summary.model_copy(update={"through": through, "kept": tuple(turn.seq for turn in best), "notes": notes})


def partition(
    kept: Sequence[PastTurn], aged: Sequence[PastTurn], scoring: Scoring = DEFAULT
) -> tuple[list[PastTurn], list[PastTurn]]:
    """The older turns that stay word for word, and those that do not any more; both oldest first."""
    older = [*kept, *aged]
    scores = {turn.seq: score_importance(turn.user, turn.reply, scoring) for turn in older}
    order = sorted((turn for turn in older if scores[turn.seq]), key=lambda turn: (-scores[turn.seq], -turn.seq))
    best = {turn.seq for turn in order[:KEPT]}
    by_age = sorted(older, key=lambda turn: turn.seq)
    return [turn for turn in by_age if turn.seq in best], [turn for turn in by_age if turn.seq not in best]


def _notes(turn: PastTurn) -> list[Note]:
    """The most telling sentences of a turn: of what the user said, and of the answer where there was a question."""
    user = turn.user[:_LOOK_AT]
    is_question = "?" in user
    found = _notes_from_text(turn.seq, "user", user, _OF_USER)
    return [*found, *_notes_from_text(turn.seq + 1, "assistant", turn.reply[:_LOOK_AT], _OF_REPLY)] if is_question else found


def _notes_from_text(seq: int, role: str, text: str, most: int) -> list[Note]:
    lines = list(dict.fromkeys(clean(shorten(line, _NOTE)) for line in sentences(text)[:_SENTENCES]))
    weighed = [(_weight(role, line), -at, line) for at, line in enumerate(lines)]
    best = sorted((one for one in weighed if one[0] > 0), reverse=True)[:most]
    return [Note(seq=seq, role=role, text=line, weight=weight) for weight, _, line in sorted(best, key=lambda one: -one[1])]


def _weight(role: str, line: str) -> float:
    """What a sentence tells: names, numbers and content words; a user's statement more than a question or an answer."""
    content = len({word for word in words(line) if is_content(word)})
    if content < 2:
        return 0.0
    weight = min(content, 8) / 8 + bool(_NAME_INSIDE.search(line)) + any(map(str.isdigit, line))
    if role != "user":
        return 0.5 * weight
    if line.rstrip().endswith("?"):
        return 0.25 * weight
    return weight + score_importance(line, "") / 3 + bool(_OWN.search(line)) + 1.0


def _limit_notes(notes: Iterable[Note], through: int) -> tuple[Note, ...]:
    """The notes within their tokens: each sentence once, the lightest and oldest left out first."""
    unique = {(note.role, note.text.casefold()): note for note in notes}
    order = sorted(unique.values(), key=lambda note: (-note.weight * _AGEING ** ((through - note.seq) / 2), -note.seq))
    kept, left = list[Note](), NOTES
    for note in order:
        left -= count(note.text, NOTES) + 1
        if left < 0:
            break
        kept.append(note)
    return tuple(sorted(kept, key=lambda note: note.seq))
