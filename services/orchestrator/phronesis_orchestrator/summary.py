"""The view of a long conversation, and its summary by rules: the turns that leave the window become notes, and the notes of
little weight and great age go first. Everything here is arithmetic; the same turns give the same summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from phronesis_tokens import clean, count

from .history import KEPT, NO_SUMMARY, PRUNE_AFTER, WINDOW, Note, Past, PastMessage, PastTurn, Summary
from .importance import DEFAULT, Scoring, importance, own_words
from .reasoner import TurnContext
from .text import is_content, sentences, shorten, words

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
_NAME = re.compile(r"(?<!^)\b[A-Z][\w&-]{2,}")
_OWN = re.compile(r"\b(?:i|i'm|i've|my|mine|we|our|us)\b", re.I)


def view(past: Past, scoring: Scoring = DEFAULT) -> tuple[Summary, tuple[PastMessage, ...]]:
    """The summary that covers every turn before the window, and the messages that stand word for word, oldest first.

    Of the older turns the five most important stand word for word, with their number; all others are in the summary
    (V-151 to V-153). A conversation that is not longer than both together stands word for word (V-C18).

    Args:
        past: the conversation as it was read.
        scoring: what makes a turn important.
    """
    if past.summary == NO_SUMMARY and len(past.aged) <= PRUNE_AFTER - WINDOW:
        return past.summary, tuple(one for turn in (*past.aged, *past.window) for one in _messages(turn, numbered=False))
    summary = folded(past.summary, past.kept, past.aged, scoring)
    kept = [turn for turn in (*past.kept, *past.aged) if turn.seq in summary.kept]
    older = [message for turn in kept for message in _messages(turn, numbered=True)]
    return summary, (*older, *(message for turn in past.window for message in _messages(turn, numbered=False)))


def folded(summary: Summary, kept: Sequence[PastTurn], aged: Sequence[PastTurn], scoring: Scoring = DEFAULT) -> Summary:
    """The summary, carried on over the turns that have left the window since it was made.

    Args:
        summary: the stored summary.
        kept: the turns that it keeps word for word.
        aged: the turns after it, oldest first.
        scoring: what makes a turn important.
    """
    if not aged:
        return summary
    best, dropped = parted(kept, aged, scoring)
    through = aged[-1].seq + 1
    notes = _bounded((*summary.notes, *(note for turn in dropped for note in _notes(turn))), through)
    return summary.model_copy(update={"through": through, "kept": tuple(turn.seq for turn in best), "notes": notes})


def parted(
    kept: Sequence[PastTurn], aged: Sequence[PastTurn], scoring: Scoring = DEFAULT
) -> tuple[list[PastTurn], list[PastTurn]]:
    """The older turns that stay word for word, and those that do not any more; both oldest first."""
    older = [*kept, *aged]
    scores = {turn.seq: importance(own_words(turn.user), turn.reply, scoring) for turn in older}
    order = sorted((turn for turn in older if scores[turn.seq]), key=lambda turn: (-scores[turn.seq], -turn.seq))
    best = {turn.seq for turn in order[:KEPT]}
    by_age = sorted(older, key=lambda turn: turn.seq)
    return [turn for turn in by_age if turn.seq in best], [turn for turn in by_age if turn.seq not in best]


def stated(turn: TurnContext) -> list[str]:
    """What the user stated in the conversation and did not ask, a sentence each, oldest first."""
    notes = [note.text for note in turn.summary.notes if note.role == "user"]
    said = [own_words(past.text)[:_LOOK_AT] for past in turn.history if past.role == "user"]
    lines = [*notes, *(shorten(line, _NOTE) for text in said for line in sentences(text)[:_SENTENCES])]
    return [line for line in lines if not line.rstrip().endswith("?")]


def _messages(turn: PastTurn, *, numbered: bool) -> Iterable[PastMessage]:
    if turn.user:
        yield PastMessage("user", turn.user, turn.seq if numbered else None)
    if turn.reply:
        yield PastMessage("assistant", turn.reply, turn.seq + 1 if numbered else None)


def _notes(turn: PastTurn) -> list[Note]:
    """The most telling sentences of a turn: of what the user said, and of the answer where there was a question."""
    user = own_words(turn.user)[:_LOOK_AT]
    asked = "?" in user
    found = _told(turn.seq, "user", user, _OF_USER)
    return [*found, *_told(turn.seq + 1, "assistant", turn.reply[:_LOOK_AT], _OF_REPLY)] if asked else found


def _told(seq: int, role: str, text: str, most: int) -> list[Note]:
    lines = list(dict.fromkeys(clean(shorten(line, _NOTE)) for line in sentences(text)[:_SENTENCES]))
    weighed = [(_weight(role, line), -at, line) for at, line in enumerate(lines)]
    best = sorted((one for one in weighed if one[0] > 0), reverse=True)[:most]
    return [Note(seq=seq, role=role, text=line, weight=weight) for weight, _, line in sorted(best, key=lambda one: -one[1])]


def _weight(role: str, line: str) -> float:
    """What a sentence tells: names, numbers and content words; a user's statement more than a question or an answer."""
    content = len({word for word in words(line) if is_content(word)})
    if content < 2:
        return 0.0
    weight = min(content, 8) / 8 + bool(_NAME.search(line)) + any(map(str.isdigit, line))
    if role != "user":
        return 0.5 * weight
    if line.rstrip().endswith("?"):
        return 0.25 * weight
    return weight + importance(line, "") / 3 + bool(_OWN.search(line)) + 1.0


def _bounded(notes: Iterable[Note], through: int) -> tuple[Note, ...]:
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
