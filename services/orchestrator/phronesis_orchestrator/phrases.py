"""Key phrases of a message, found by code: names, quotations, runs of content words, and the topic a follow-up leans on."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .reasoner import MAX_PHRASE, MAX_PHRASES, PastMessage, TurnContext
from .text import STOP_WORDS, is_content, shorten, words

_LOOK_AT = 2_000
_TOKEN = re.compile(r"[^\W_](?:[\w&/.-]*\w)?|['’]s\b|&|[^\s\w]")
_QUOTED = re.compile(r"[\"“«]([^\"“”«»\n]{2,120})[\"”»]|(?<!\w)['‘]([^'‘’\n]{2,120})['’](?!\w)")
_ACRONYM = re.compile(r"\(([A-Z][A-Za-z0-9&-]{1,11})\)")
_BOLD = re.compile(r"\*\*([^*\n]{3,160})\*\*")
_POINTER = re.compile(
    r"\b(?:it|its|itself|they|them|their|theirs|this|these|those|him|his|she|her|hers|he|that (?:one|project|programme))\b",
    re.I,
)
_OPENING = re.compile(r"^\W*(?:and|but|so|then|also|what about|how about|or)\b", re.I)
_INSIDE_A_NAME = {"of", "and", "the", "for", "in", "on", "to", "&"}
_KINDS = {"programme", "program", "project", "scheme", "fund", "service", "system", "portfolio", "initiative", "strategy"}


def key_phrases(message: str, history: tuple[PastMessage, ...] = ()) -> tuple[str, ...]:
    """At most 8 phrases to search memory for, the most telling first; the whole message is one of them.

    Args:
        message: the user's message.
        history: earlier messages, oldest first, where a follow-up finds its topic.
    """
    text = message[:_LOOK_AT]
    whole = " ".join(text.split())
    about = topic(text, history)
    if about:
        return _tidy((about, f"{about}: {whole}", whole))
    found = names(text)
    telling = [run for run in runs(text) if " " in run or not found]
    return _tidy((*found[: MAX_PHRASES - 3], whole, *telling))


def focus(turn: TurnContext) -> str:
    """What the turn asks, made whole: a follow-up comes with the topic of the conversation before it."""
    question = " ".join((turn.user_text or turn.final_input)[:_LOOK_AT].split())
    about = None if turn.media_text else topic(question, turn.history)
    return f"{about}: {question}" if about else question


def topic(message: str, history: tuple[PastMessage, ...]) -> str | None:
    """What a message is about that does not name its subject: what was named last; `None` where it names its own."""
    if not history or not _leans_on_history(message):
        return None
    recent = [(past.role == "user", past.text[:_LOOK_AT]) for past in reversed(history[-6:])]
    for by_user, text in recent:
        found = (names(text) or runs(text)) if by_user and not _leans_on_history(text) else _BOLD.findall(text)
        if found:
            return shorten(found[0], MAX_PHRASE // 2)
    said = next((names(text) for by_user, text in recent if not by_user), [])
    return shorten(said[0], MAX_PHRASE // 2) if said else None


def names(text: str) -> list[str]:
    """Quotations, runs of capitalised words and acronyms in brackets, longest first."""
    quoted = [one or two for one, two in _QUOTED.findall(text)]
    found = [*quoted, *sorted(_capitalised(text), key=lambda name: -len(name)), *_ACRONYM.findall(text)]
    return list(dict.fromkeys(" ".join(name.split()) for name in found))


def runs(text: str) -> list[str]:
    """Runs of neighbouring content words, of two or more words before single ones."""
    found: list[list[str]] = [[]]
    for token in _TOKEN.findall(text):
        if is_content(token.casefold()) and token[0].isalnum():
            found[-1].append(token)
        elif found[-1]:
            found.append([])
    phrases = [" ".join(run) for run in found if run]
    return sorted(dict.fromkeys(phrases), key=lambda phrase: " " not in phrase)


def _leans_on_history(message: str) -> bool:
    named = names(message)
    if any(" " in name for name in named):
        return False
    if _POINTER.search(message):
        return True
    subject = [word for word in words(message) if is_content(word)]
    return not named and (len(subject) < 2 or _OPENING.match(message) is not None)


def _capitalised(text: str) -> list[str]:
    """Names as they are written: capitals with small words between them, and a kind (`programme`) after them."""
    found: list[str] = []
    run: list[str] = []
    starts = True
    for token in [*_TOKEN.findall(text), "."]:
        folded = token.casefold()
        capital = token[0].isupper() and not (starts and folded in STOP_WORDS)
        if capital or (run and (folded in _INSIDE_A_NAME or token[0].isdigit())):
            run.append(token)
        elif run:
            found.extend(_closed(run, folded if folded in _KINDS else None, token))
            run = []
        starts = token in ".!?\n"
    return found


def _closed(run: list[str], kind: str | None, token: str) -> Iterable[str]:
    while run and run[-1].casefold() in _INSIDE_A_NAME:
        run.pop()
    if run and run[0].casefold() in STOP_WORDS and len(run) > 1:
        run = run[1:]
    if kind and run:
        run = [*run, token]
    name = " ".join(run)
    if len(run) > 1 or (name.isupper() and 2 <= len(name) <= 12) or (len(name) > 3 and name.casefold() not in STOP_WORDS):
        yield name


def _tidy(phrases: Iterable[str]) -> tuple[str, ...]:
    kept = dict.fromkeys(shorten(" ".join(phrase.split()), MAX_PHRASE) for phrase in phrases)
    return tuple(phrase for phrase in kept if phrase)[:MAX_PHRASES]
