"""How much a past turn matters, told by its words alone (V-142 to V-150)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

_SUBSTANTIVE = 40
"""Characters from which on a reply answers something (V-148)."""
_DOCUMENT = re.compile(r"(?:^|\n\n)\[(?:document|image|audio): [^\n]{1,300}\]\n.*", re.S)
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
    """Whether the first word of a sentence, and one on the stop-list, may be a name, as the pattern alone has it (V-C19)."""
    stop: frozenset[str] = field(default=STOP_LIST)
    """Words that name nobody where `openers` is off."""

    def with_language(self, vocabulary: Vocabulary) -> Scoring:
        """The same with the words of one more language, which need no capitals (V-C19)."""
        return replace(self, vocabularies=(*self.vocabularies, vocabulary))

    def points(self, said: str) -> int:
        """Points of all signs that a text gives, each kind once (V-150)."""
        low = said.casefold()
        found = {sign for known in self.vocabularies for sign, words in known.items() if _gives(low, words)}
        return sum(POINTS[sign] for sign in found) + (_OF_NAME if self._names(said) else 0)

    def _names(self, said: str) -> bool:
        if self.openers:
            return _NAME.search(said) is not None
        openers = {match.end() for match in _OPENER.finditer(said)}
        return any(match.end() not in openers and match[0] not in self.stop for match in _NAME.finditer(said))


DEFAULT = Scoring()


def _gives(low: str, words: tuple[str, ...]) -> bool:
    for one in words:  # 200 turns are weighed for one prompt, and a generator costs twice as much
        if one in low and _holds(low, one):
            return True
    return False


def _holds(low: str, words: str) -> bool:
    """Whether words stand in a text between the bounds of words: `casino,` holds no `no,` (V-C20)."""
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


def importance(user: str, reply: str, scoring: Scoring = DEFAULT) -> int:
    """From 0 to 13: each kind of sign counts once.

    Args:
        user: what the user said, without the text of attachments.
        reply: what was answered.
        scoring: what counts.
    """
    said = user if user.isascii() else user.translate(_APOSTROPHES)
    return scoring.points(said) + (_OF_ANSWER if "?" in said and len(reply) >= _SUBSTANTIVE else 0)


def own_words(text: str) -> str:
    """A user's message without the text of its attachments, which is another's."""
    return _DOCUMENT.sub("", text) if "[" in text else text
