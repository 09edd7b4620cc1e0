"""Goals by rules: the parts that a goal in any words has, and the plan to all of them; or what of it cannot be done."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise
from typing import Any, Literal

import yaml

from phronesis_contracts import ServiceError, Tool
from phronesis_contracts.constitution.registry import TYPES, Kind, NodeType, declared_types, node_type
from phronesis_contracts.constitution.writes import CREATE, RELATE_TOOL, UPDATE, UPDATE_NODE_TOOL
from phronesis_contracts.memory import RECALL_TOOL, REMEMBER_TOOL, ItemKind
from phronesis_contracts.ontology import PropertyView
from phronesis_contracts.tasks import NoPlan
from phronesis_contracts.twin import MAX_ROWS, SURVEY_TOOL, GroupBy

from ..agents.counsel.answers import noun
from ..agents.counsel.reading import Reader, Record, Thing, spaced, vocabularies
from ..understanding.language import Language, Token, detect, parse
from ..understanding.lexicon import Lexicon
from ..understanding.plan import MAX_ENTITIES, Aggregate, Compare, Filter, Rank, Schema, Select, Selection
from ..understanding.reading import read
from .deliver import (
    STORED,
    Asker,
    FigureAsked,
    FiguresAsked,
    GoalPlan,
    ListAsked,
    PartPlan,
    Property,
    SetReport,
    find_lacking,
    holds_words,
)
from .ports import MAX_ITEMS, MAX_STEPS, MAX_WAVES, Each, Plan, QuestionAnswer, Step
from .runner import FigureSaid, figures_said, find_left_out, links_said

Deed = Literal["read", "write", "other"]


@dataclass(frozen=True)
class GoalWords:
    """How goals are put in one language."""

    language: Language
    said: Mapping[str, str]
    """Sentences, with braces to be filled in."""
    asked: Mapping[str, Sequence[str]]
    """Questions by the verb that orders what they ask, and ways to join two things."""
    verbs: Mapping[tuple[str, ...], tuple[Deed, str]]
    """Orders by their folded words, as they are written: what is counted is no order to count."""

    def words(self, kind: str) -> frozenset[tuple[str, ...]]:
        """The phrases of a kind, each as its folded words."""
        return _phrases(self.language.name, kind)

    def opening(self, tokens: Sequence[Token], at: int = 0) -> tuple[Deed, str, int] | None:
        """The order that stands at a place: its sort, its class, and where it ends."""
        best: tuple[Deed, str, int] | None = None
        for end in range(min(at + _LONGEST, len(tokens)), at, -1):
            found = self.verbs.get(tuple(token.folded for token in tokens[at:end]))
            if found is not None:
                best = (*found, end)
                break
        made = self._deliverable(tokens, at)
        return made if made is not None and (best is None or made[2] > best[2]) else best

    def _deliverable(self, tokens: Sequence[Token], at: int) -> tuple[Deed, str, int] | None:
        """A form that is asked for, with what comes in it: give me a short list of."""
        start = self.at("makers", tokens, at)
        named = self.past(tokens, start, "recipients", "articles", "own", "report_kinds.plain", "formats.short")
        for kind in ("list", "chart"):
            end = self.at(f"deliverables.{kind}", tokens, named)
            stop = self.at("contents", tokens, end)
            if end > named > at and stop > end and stop < len(tokens):
                return "read", kind, stop
        return None

    def names_form(self, tokens: Sequence[Token], at: int) -> bool:
        """Whether a form stands at a place with nothing that orders it: a table and *a chart of* …"""
        return self.at("makers", tokens, at) == at and self._deliverable(tokens, at) is not None

    def past(self, tokens: Sequence[Token], at: int, *kinds: str) -> int:
        """Where the first word stands that begins no phrase of these kinds, from a place on."""
        while (end := max(self.at(kind, tokens, at) for kind in kinds)) > at:
            at = end
        return at

    def at(self, kind: str, tokens: Sequence[Token], at: int = 0) -> int:
        """Where the longest phrase of a kind ends that stands at a place; the place itself where none does."""
        known = self.words(kind)
        for end in range(min(at + _LONGEST, len(tokens)), at, -1):
            if tuple(token.folded for token in tokens[at:end]) in known:
                return end
        return at

    def find(self, kind: str, tokens: Sequence[Token], start: int = 0) -> tuple[int, int] | None:
        """The first phrase of a kind from a place on: where it begins and ends."""
        for at in range(start, len(tokens)):
            if (end := self.at(kind, tokens, at)) > at:
                return at, end
        return None

    def times_at(self, tokens: Sequence[Token], at: int) -> tuple[str, int]:
        """How often something is to be done that is said at a word, and where its words end; an empty kind where nothing is."""
        found = [(self.at(kind, tokens, at), kind) for kind in self.language.words if kind.startswith("repeats.")]
        end, kind = max(found, default=(at, ""))
        return (kind.partition(".")[2], end) if end > at else ("", at)

    def sentence(self, name: str, **values: str) -> str:
        """What is said to a person. `values`: what stands for its braces."""
        return self.said[name].format(**values)

    @property
    def periods(self) -> Mapping[str, str]:
        """The words for how often a report comes, by their kind, with the days that it then looks at."""
        kinds = (kind for kind in self.language.words if kind.startswith("report_periods."))
        return {kind: kind.partition(".")[2] for kind in kinds}

    def questions(self, verb: str) -> tuple[str, ...]:
        """How a question is put that asks for what a verb orders: with `{object}`."""
        return tuple(self.asked.get(verb, ("{object}",)))


_LONGEST = 7
"""Words of the longest phrase."""


@cache
def goal_words() -> Mapping[str, GoalWords]:
    """Every language that goals are understood in, by its code."""
    found = {}
    folder = files("phronesis_orchestrator.understanding").joinpath("content")
    for one in sorted(folder.iterdir(), key=lambda each: each.name):
        file = one.joinpath("goals.yaml")
        if not file.is_file():
            continue
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        said, asked = data.pop("said"), data.pop("asked")
        language = parse(data)
        verbs: dict[tuple[str, ...], tuple[Deed, str]] = {
            _key(language, text): ("other", text) for text in language.words["other"]
        }
        for deed, kind in (("read", "reading"), ("write", "writing")):
            for value in data[kind]:
                verbs |= {_key(language, text): (deed, value) for text in language.words[f"{kind}.{value}"]}  # type: ignore[misc]
        found[one.name] = GoalWords(language, said, asked, verbs)
    return found


def _key(language: Language, phrase: str) -> tuple[str, ...]:
    return tuple(token.folded for token in language.tokens(phrase))


@cache
def _phrases(code: str, kind: str) -> frozenset[tuple[str, ...]]:
    language = goal_words()[code].language
    return frozenset(_key(language, text) for text in language.words.get(kind, ()))


def words_of(text: str) -> GoalWords:
    """The words of a goal's language; English where it is of another."""
    known = goal_words()
    return known.get(detect(text).name) or known["en"]


@dataclass(frozen=True)
class GoalPart:
    """One thing that a goal asks for."""

    said: str
    """As the goal has it, without what joins it to the part before."""
    deed: Deed
    verb: str
    """The class of its verb: `list`, `create`; of a deed for which there is no tool, the words that order it."""
    object: str
    """What is to be read, or what follows the verb of a deed."""
    each: str = ""
    """The set over which it is to be done, one by one."""
    formats: tuple[str, ...] = ()
    refused: str = ""
    """Words that no report can meet: a language, a way to send it."""
    report: bool = False
    """Whether a report over something broad is asked for, and no single answer."""
    ordered: bool = False
    """Whether the report is to look at what is worst: a risk report."""
    period: str = ""
    """What a report looks at first: this week, of a weekly one."""


_OPENING, _CLOSING = ('"', "“", "„", "«"), ('"', "”", "“", "»")
"""Marks around a quotation."""


@dataclass
class _Piece:
    text: str
    tokens: tuple[Token, ...]

    def words(self, start: int, end: int | None = None) -> str:
        """The text from one token to another, without marks around it."""
        tokens = self.tokens[start:end]
        if not tokens:
            return ""
        first, last = tokens[0].start, tokens[-1].end
        if self.text[first - 1 : first] in _OPENING and self.text[last : last + 1] in _CLOSING:
            first, last = first - 1, last + 1
        return _bare(self.text[first:last])

    def rest(self, start: int) -> str:
        """The text from a token on, with the marks inside it."""
        return self.text[self.starts(start) :].strip(" .;:,") if start < len(self.tokens) else ""

    def starts(self, at: int) -> int:
        """Where a token begins, with the mark that opens a quotation before it."""
        first = self.tokens[at].start
        return first - 1 if self.text[first - 1 : first] in _OPENING else first


def _bare(text: str) -> str:
    return text.strip(" \t.,;:!–—-")


def read_goal(text: str, words: GoalWords | None = None) -> tuple[GoalPart, ...]:
    """The parts of a goal in their order; empty where it says nothing."""
    words = words or words_of(text)
    parts: list[GoalPart] = []
    pieces = _pieces(_without_salutation(text, words), words)
    for at, piece in enumerate(pieces, 1):
        if at < len(pieces) and words.at("prefaces", words.language.tokens(piece)):
            continue  # I am writing the newsletter: what it is for, and no part of it
        part = _part(piece, words)
        if part is None:
            continue
        if parts and part.deed == "read" and not part.object and not part.report and (part.formats or part.refused):
            parts = [replace(one, formats=(*one.formats, *part.formats), refused=one.refused or part.refused) for one in parts]
        else:
            parts.append(part)
    return tuple(parts)


def read_times(text: str, words: GoalWords) -> tuple[str, str] | None:
    """A goal without the words for the times at which it is to be done again and again, and those times as a cron expression.

    `None` where it is to be done once.
    """
    tokens = words.language.tokens(text)
    begun = _past_polite(tokens, words)
    asks = any(words.at(kind, tokens, begun) > begun for kind in ("asks_what", "measures"))
    for at in (begun, *range(begun + 1, len(tokens))):
        kind, end = words.times_at(tokens, at)
        led = at > begun and any(words.at(each, tokens, at - 1) == at for each in ("about", "with", "in_language"))
        if not kind or (at > begun and (asks or led)):
            continue  # none, or a period that is asked about: for each month
        after, minute, hour = _clock(text, tokens, end, words)
        before_at = at
        if after == end and at > begun:  # at eight every day
            for start in range(max(begun, at - 4), at):
                reached, early, late = _clock(text, tokens, start, words)
                if reached == at:
                    before_at, minute, hour = start, early, late
                    break
        if at != begun and after != len(tokens):
            continue  # it stands inside of what is asked
        rest = " ".join(
            filter(
                None,
                (
                    text[: tokens[before_at].start] if at != begun else "",
                    text[tokens[after].start :] if after < len(tokens) else "",
                ),
            )
        )
        goal = _bare(rest)
        return (goal[:1].upper() + goal[1:], _CRON[kind].format(minute=minute, hour=hour)) if goal else None
    return None


_CRON = {
    "hour": "0 * * * *",
    "day": "{minute} {hour} * * *",
    "workday": "{minute} {hour} * * 1-5",
    "month": "{minute} {hour} 1 * *",
    "week": "{minute} {hour} * * 1",
    **{str(day): f"{{minute}} {{hour}} * * {day}" for day in range(7)},
}
_MORNING = 8
"""The hour of what is to be done at certain days, and at no certain time."""
_TIME = re.compile(r"(\d{1,2})(?:[:.](\d{2}))?")


def _clock(text: str, tokens: Sequence[Token], at: int, words: GoalWords) -> tuple[int, int, int]:
    """A time of day that is said at a word: where its words end, the minute and the hour."""
    start = words.at("clock", tokens, at)
    if start == at or start >= len(tokens):
        return at, 0, _MORNING
    known = vocabularies().get(words.language.name)
    senses = known.language.phrases.get((tokens[start].stem,), ()) if known is not None else ()
    spoken = next((int(sense.value) for sense in senses if sense.kind == "number"), None)
    found = _TIME.match(text, tokens[start].start)
    noon = words.at("noon", tokens, start)
    if noon > start:
        return noon, 0, 12
    if found is None and spoken is None:
        return at, 0, _MORNING
    hour, minute = (int(found[1]), int(found[2] or 0)) if found is not None else (spoken or 0, 0)
    last = found.end() if found is not None else tokens[start].end
    end = next((n for n in range(start, len(tokens)) if tokens[n].start >= last), len(tokens))
    for kind, by in (("morning", 0), ("evening", 12)):
        if (reached := words.at(kind, tokens, end)) > end:
            end, hour = reached, hour % 12 + by
            break
    return (end, minute, hour) if hour < 24 and minute < 60 else (at, 0, _MORNING)


_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]|(?<!\w)['‘][^'‘’\n]{2,300}['’](?!\w)")
_HARD = re.compile(
    r"\s*\n\s*|\s*;\s*|(?<=[.!?])(?<!^\d\.)(?<!\s\d\.)(?<!^\d\d\.)(?<!\s\d\d\.)\s+(?=\S)|\s+(?=(?:\d{1,2}[.)]|\(\d{1,2}\))\s)"
)
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)]|\(\d{1,2}\))\s+")


def _pieces(text: str, words: GoalWords) -> list[str]:
    """A goal cut where one part ends and the next begins."""
    found: list[str] = []
    for piece in _cut_hard(text):
        said = _BULLET.sub("", piece).strip()
        if not said:
            continue
        if found and not _begins(said, words) and _is_free(found[-1], words):
            found[-1] = f"{found[-1]}. {said}"  # the text of what is to be written goes on
            continue
        found += _cut_soft(said, words)
    return found


def _cut_hard(text: str) -> Iterator[str]:
    kept = [match.span() for match in _QUOTED.finditer(text)]
    at = 0
    for match in _HARD.finditer(text):
        if any(start < match.start() < end for start, end in kept):
            continue
        yield text[at : match.start()]
        at = match.end()
    yield text[at:]


def _begins(text: str, words: GoalWords) -> bool:
    """Whether a text begins with an order, or with the set over which one is to be made."""
    tokens = words.language.tokens(text)
    at = _past_polite(tokens, words)
    return (
        words.opening(tokens, at) is not None or words.at("each", tokens, at) > at or _report_at(tokens, at, words) is not None
    )


def _is_free(text: str, words: GoalWords) -> bool:
    """Whether a part has a text of its own, which ends where the next order begins."""
    tokens = words.language.tokens(text)
    at = _past_polite(tokens, words)
    found = words.opening(tokens, at)
    if found is None:
        return (first := words.past(tokens, at, "articles")) > at and _heads(_Piece(text, tokens), first)
    return found[0] == "write" and found[1] in _WITH_TEXT


_WITH_TEXT = ("create", "record", "remember")


def _cut_soft(text: str, words: GoalWords) -> list[str]:
    """A sentence cut before each order that is joined to the one before."""
    tokens = words.language.tokens(text)
    kept = [match.span() for match in _QUOTED.finditer(text)]
    cuts = [0]
    begun = _past_polite(tokens, words)
    for at in range(begun + 1, len(tokens)):
        token = tokens[at]
        if any(start < token.start < end for start, end in kept):
            continue
        comma = text[tokens[at - 1].end : token.start].strip() in (",", ":")
        joined = (token.folded,) in words.words("joins")
        if (not comma and not joined) or words.at("totals", tokens, at) == len(tokens):
            continue
        first = _past_polite(tokens, words, at)
        after = words.opening(tokens, first)
        if first == len(tokens) or after is None or after[2] >= len(tokens) or cuts[-1] >= token.start:
            continue
        open_each = words.at("each", tokens, begun) > begun and len(cuts) == 1 and not joined
        if words.names_form(tokens, first):
            continue
        in_turn = any((one.folded,) in words.words("sequence") for one in tokens[at:first])
        if not in_turn and words.at("measures", tokens, first) > first:
            continue  # one more figure of the same: the number, the total cost
        if open_each or not _parts_here(text[cuts[-1] : token.start], tokens, after, words, in_turn=in_turn):
            continue
        cuts.append(token.start)
    return [_bare(text[at:end]) for at, end in zip(cuts, [*cuts[1:], len(text)], strict=True) if _bare(text[at:end])]


def _parts_here(before: str, tokens: Sequence[Token], after: tuple[Deed, str, int], words: GoalWords, *, in_turn: bool) -> bool:
    """Whether an order that is joined to something is a part of its own, and no words of a text that is to be written."""
    deed, verb, end = after
    if not _is_free(before, words):
        return True
    follows = any(words.at(kind, tokens, end) > end for kind in ("articles", "that"))
    return follows and (in_turn or (deed == "write" and verb in (*_WITH_TEXT, "mark", "link")))


def _past_polite(tokens: Sequence[Token], words: GoalWords, at: int = 0) -> int:
    """Where the first word stands that is more than courtesy, from a place on."""
    return words.past(tokens, at, "polite")


def _part(text: str, words: GoalWords) -> GoalPart | None:
    text, formats, refused = _without_formats(text, words)
    piece = _Piece(text, words.language.tokens(text))
    tokens, at = piece.tokens, _past_polite(piece.tokens, words)
    if not refused and (only := _forms_only(tokens, at, words)):
        formats, at = (*formats, *only), len(tokens)
    if at == len(tokens):
        return GoalPart(text, "read", "", "", formats=formats, refused=refused) if formats or refused else None
    said, each = piece.rest(at), ""
    if (end := words.at("each", tokens, at)) > at:
        begins = next((n for n in range(end + 1, len(tokens)) if _starts_deed(piece, n, words)), None)
        if begins is not None:
            each, at = piece.words(end, begins), _past_polite(tokens, words, begins)
    report = _report_at(tokens, at, words)
    found = words.opening(tokens, at)
    if found is None and (first := words.past(tokens, at, "articles")) > at and _heads(piece, first):
        found = ("write", "create", at)  # new task: wax the floor
    if report is not None:
        return _report(piece, at, report, formats, refused, each, words)
    if found is None:
        return GoalPart(said, "read", "find", piece.rest(at), each, formats, refused)
    deed, verb, end = found
    if deed != "read" and not each and (inside := words.find("each_inside", tokens, end)) is not None:
        return _each_inside(piece, found, inside, formats, refused, words)
    report_asked = deed == "read" and verb == "report"
    end = at if words.at("measures", tokens, at) > at else end  # the figure is a part of what is asked
    return GoalPart(said, deed, verb, piece.rest(end).rstrip(" ?!"), each, formats, refused, report_asked)


def _forms_only(tokens: Sequence[Token], at: int, words: GoalWords) -> tuple[str, ...]:
    """The forms that a sentence asks for which asks for nothing else: a table and a chart."""
    found: list[str] = []
    at = words.at("makers", tokens, at)
    while at < len(tokens):
        at = words.past(tokens, at, "recipients", "articles", "joins")
        kind = next((one for one in ("table", "chart", "list") if words.at(f"deliverables.{one}", tokens, at) > at), None)
        if kind is None:
            return tuple(found) if _past_polite(tokens, words, at) == len(tokens) else ()
        found.append(kind)
        at = words.at(f"deliverables.{kind}", tokens, at)
    return tuple(found)


def _heads(piece: _Piece, at: int) -> bool:
    """Whether a word stands alone before a colon."""
    return at < len(piece.tokens) and piece.text[piece.tokens[at].end :].lstrip().startswith(":")


def _starts_deed(piece: _Piece, at: int, words: GoalWords) -> bool:
    """Whether an order begins at a word behind the set that it is for: for every task that is late, create …"""
    first = _past_polite(piece.tokens, words, at)
    found = words.opening(piece.tokens, first)
    if found is None or found[2] >= len(piece.tokens):
        return False
    comma = "," in piece.text[piece.tokens[at - 1].end : piece.tokens[at].start]
    return comma or found[0] == "write" or found[0] == "other"


def _each_inside(
    piece: _Piece,
    order: tuple[Deed, str, int],
    inside: tuple[int, int],
    formats: tuple[str, ...],
    refused: str,
    words: GoalWords,
) -> GoalPart:
    """Create a task for each late project that asks why: the set stands inside of what is to be done."""
    deed, verb, end = order
    start, after = inside
    stop = next((n for n in range(after + 1, len(piece.tokens)) if _ends_set(piece, n, words)), len(piece.tokens))
    object = " ".join(part for part in (piece.words(end, start), piece.rest(stop)) if part)
    return GoalPart(piece.rest(0), deed, verb, object, piece.words(after, stop), formats, refused)


def _ends_set(piece: _Piece, at: int, words: GoalWords) -> bool:
    tokens = piece.tokens
    comma = "," in piece.text[tokens[at - 1].end : tokens[at].start] or ":" in piece.text[tokens[at - 1].end : tokens[at].start]
    named = words.at("named", tokens, at) > at
    return comma or named or (tokens[at].folded,) in words.words("purpose")


def _report_at(tokens: Sequence[Token], at: int, words: GoalWords) -> int | None:
    """Where the word stands that names a report which is asked for: a weekly status report on …; `None` where none is."""
    found = words.opening(tokens, at)
    start = at
    if found is not None and found[:2] != ("read", "report"):
        made = (found[0] == "write" and found[1] in ("create", "record")) or found[:2] == ("read", "list")
        if not made and tuple(token.folded for token in tokens[at : found[2]]) not in words.words("making"):
            return None
        start = found[2]
    if found is not None and found[:2] == ("read", "report") and words.at("report_words", tokens, at) == at:
        return None
    for n in range(start, min(len(tokens), start + _REPORT_WITHIN)):
        end = words.at("report_words", tokens, n)
        if end > n:
            closes = end == len(tokens) or words.at("about", tokens, end) > end or words.at("each_inside", tokens, end) > end
            return n if closes else None
        if words.at("that", tokens, n) > n:
            return None
    return None


_REPORT_WITHIN = 9
"""Words before the word that names a report."""


def _report(
    piece: _Piece, at: int, named: int, formats: tuple[str, ...], refused: str, each: str, words: GoalWords
) -> GoalPart:
    tokens = piece.tokens
    found = words.opening(tokens, at)
    start = found[2] if found is not None and found[2] <= named else words.at("making", tokens, at)
    own: list[int] = []
    ordered, more = False, list[str]()
    period = ""
    n = start
    while n < named:
        for kind in ("articles", "own", "report_kinds.plain", "report_kinds.ordered", "formats.short", *words.periods):
            if (end := words.at(kind, tokens, n)) > n:
                period = words.periods.get(kind, period)
                ordered = ordered or kind == "report_kinds.ordered"
                more += ["short"] if kind == "formats.short" else []
                n = end
                break
        else:
            own.append(n)
            n += 1
    end = words.at("report_words", tokens, named)
    about = words.at("about", tokens, end)
    behind = piece.rest(about)
    before = " ".join(tokens[n].text for n in own)
    object = " ".join(part for part in (before, behind) if part)
    return GoalPart(piece.rest(at), "read", "report", object, each, (*formats, *more), refused, True, ordered, period)


def _without_formats(text: str, words: GoalWords) -> tuple[str, tuple[str, ...], str]:
    """A text without the words for the form of what is delivered; the forms; and what is no form that there is."""
    tokens = words.language.tokens(text)
    order = words.opening(tokens, _past_polite(tokens, words))
    free = order is not None and order[0] == "write"
    if (found := words.find("not_delivered", tokens)) is not None and not free:
        return text, (), _span(text, tokens, found)
    if not free and (found := _language_asked(tokens, words)) is not None:
        return text, (), _span(text, tokens, found)
    formats, spans = list[str](), list[tuple[int, int]]()
    kept = [match.span() for match in _QUOTED.finditer(text)]
    for kind in _FORMATS if not free else ():
        start = 0
        while (place := words.find(f"formats.{kind}", tokens, start)) is not None:
            start = place[1]
            if any(begin < tokens[place[0]].start < end for begin, end in kept):
                continue
            formats.append(kind)
            spans.append((tokens[place[0]].start, tokens[place[1] - 1].end))
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start].rstrip(' ,')} {text[end:].lstrip(' ,')}"
    if not free:
        text = _without_audience(_without_bars(text, words), words)
    return _bare(" ".join(text.split()) if spans else text), tuple(dict.fromkeys(formats)), ""


_FORMATS = ("table", "chart", "list", "markdown", "html", "pdf", "short")
_NAMED = 4
"""Words at most by which a reader or an occasion is named."""


def _without_salutation(text: str, words: GoalWords) -> str:
    """A text without the address that it begins with: dear colleague, …"""
    tokens = words.language.tokens(text)
    start = words.past(tokens, 0, "salutations")
    for at in range(start - 1, min(start + _NAMED, len(tokens))) if start else ():
        end = tokens[at].end
        if text[end : end + 1] in (",", "!", ".", "\n"):
            return text[end + 1 :].strip()
    return text


def _without_audience(text: str, words: GoalWords) -> str:
    """What is asked without for whom or what it is meant: a list of the risks *for the supervisory board*."""
    tokens = words.language.tokens(text)
    for at in range(1, len(tokens)):
        first = words.at("meant_for", tokens, at)
        begun = words.past(tokens, first, "articles", "own")
        reached = first > at and any(
            words.at("audiences", tokens, n) == len(tokens) for n in range(begun, min(begun + _NAMED, len(tokens)))
        )
        if reached:
            return text[: tokens[at - 1].end]
    return text


def _without_bars(text: str, words: GoalWords) -> str:
    """What is asked of a chart without the word for what it draws of each: the stock, *one bar* per family."""
    tokens = words.language.tokens(text)
    for at in range(1, len(tokens)):
        end = words.at("bars", tokens, at)
        if end > at and any(words.at(kind, tokens, end) > end for kind in ("each_inside", "per")):
            return f"{text[: tokens[at - 1].end]} {text[tokens[end].start :]}"
    return text


def _span(text: str, tokens: Sequence[Token], found: tuple[int, int]) -> str:
    return text[tokens[found[0]].start : tokens[found[1] - 1].end]


def _language_asked(tokens: Sequence[Token], words: GoalWords) -> tuple[int, int] | None:
    for at in range(len(tokens) - 1):
        if (end := words.at("in_language", tokens, at)) > at and (last := words.at("languages", tokens, end)) > end:
            return at, last
    return None


class Undeliverable(Exception):
    """A part that cannot be done.

    Args:
        why: name of the sentence that says so.
        words: what it is about.
        part: the part of the goal that they stand in, where the sentence names that.
    """

    def __init__(self, why: str, words: str, part: str = "") -> None:
        super().__init__(why)
        self.why, self.words, self.part = why, " ".join(words.split())[:200], " ".join(part.split())[:500]


log = logging.getLogger(__name__)

_STATED = frozenset({"value", "confidence", "likelihood", "target"})
"""Fields that hold a figure and nothing else: what an order states for one is a figure, or is not understood."""


class GoalPlanner:
    """Plans one goal.

    Args:
        asker: who answers questions; each is asked once before anything is planned on it.
        tools: those that the plan may use, by name.
    """

    def __init__(self, asker: Asker, tools: Mapping[str, Tool[Any, Any]], goal: str) -> None:
        self._asker, self._tools, self._goal = asker, tools, goal
        self._words = words_of(goal)
        self._record = Record()
        self._reader = Reader(self._record)
        self._steps: list[Step] = []
        self._wave = 1
        self._last: str | None = None
        self._found: Step | None = None
        """The question before, where it found things that can be changed: what “them” stands for."""
        self._types: dict[str, tuple[str, ...]] = {}
        self._order: tuple[tuple[str, ...], bool] | None = None
        """Properties that a list is to stand in the order of, and whether its greatest comes first."""
        """Types of the things that questions find, by their step."""
        self._through: tuple[str, ...] = ()
        """Those of the set that the part at hand goes through."""
        self._vain = False
        """Whether something is asked for of which nothing is on record."""
        self._read = ""
        """What the part before was about, where it read."""
        self._told = False
        """Whether a question before was answered by things or figures, and not by telling of one thing."""

    async def plan(self) -> GoalPlan:
        """The plan to all of the goal.

        Raises:
            NoPlan: a part of it cannot be done; the detail says which, and names a goal that can be.
            ServiceError: what it has to be planned from is away.
        """
        repeated = read_times(self._goal, self._words)
        parts = read_goal(repeated[0] if repeated is not None else self._goal, self._words)
        if not parts:
            raise NoPlan(self._words.sentence("nothing_asked"))
        try:
            parts = await self._with_columns(parts)
            if len(parts) > MAX_WAVES:
                raise Undeliverable("too_many_parts", str(len(parts)), str(MAX_WAVES))
            planned = await self._planned(parts)
            if len(self._steps) > MAX_STEPS or len({step.wave for step in self._steps}) > MAX_WAVES:
                raise Undeliverable("too_long", str(len(parts)))
        except Undeliverable as fault:
            said = self._words.sentence(fault.why, words=fault.words, part=fault.part)
            nearest = await self._nearest(parts)
            raise NoPlan(" ".join([said, *([self._words.sentence("nearest", goal=nearest)] if nearest else [])])) from fault
        if repeated is not None:
            goal, times = repeated
            raise NoPlan(self._words.sentence("repeated", goal=goal.replace('"', "'"), times=times))
        title = self._goal.strip().splitlines()[0].strip(" .;:")[:300]
        plan = Plan(
            title=title[:1].upper() + title[1:], kind=_KINDS.get(parts[0].verb, parts[0].deed), steps=tuple(self._steps)
        )
        return GoalPlan(language=self._words.language.name, plan=plan, parts=tuple(planned))

    async def _with_columns(self, parts: Sequence[GoalPart]) -> tuple[GoalPart, ...]:
        """The parts; one that only names what else is told of the things of the one before, an owner next to each, is in it."""
        found: list[GoalPart] = []
        for part in map(self._with_asked, parts):
            before = found[-1] if found else None
            lists = before is not None and before.deed == "read" and before.verb in ("list", "find") and not before.each
            columns = await self._columns(part) if lists and part.deed == "read" and not (part.report or part.each) else ""
            if before is None or not columns:
                found.append(part)
                continue
            joined = f"{before.object.rstrip(' ?!')} {self._words.questions('beside')[0].format(object=columns)}"
            formats = tuple(dict.fromkeys((*before.formats, *part.formats)))
            found[-1] = replace(before, object=joined, said=joined, formats=formats, refused=before.refused or part.refused)
        return tuple(found)

    def _with_asked(self, part: GoalPart) -> GoalPart:
        """A part whose end asks something of each thing, with a column for it: which tasks are late, and whose are they?"""
        words, tokens = self._words, self._words.language.tokens(part.object)
        last = next((at for at in range(1, len(tokens)) if words.at("totals", tokens, at) == len(tokens)), None)
        if part.deed == "read" and last is not None:
            object = _Piece(part.object, tokens).words(0, last)
            said = object if part.said == part.object else part.said.removesuffix(part.object) + object
            return replace(part, object=object, said=said, formats=(*part.formats, "total"))
        kinds = [kind for kind in words.language.words if kind.startswith("asked_beside.")]
        for at in range(2, len(tokens)) if part.deed == "read" and not part.report else ():
            name = next((kind.partition(".")[2] for kind in kinds if words.at(kind, tokens, at) == len(tokens)), None)
            if name is None:
                continue
            end = at
            while (tokens[end - 1].folded,) in words.words("joins"):
                end -= 1
            piece = _Piece(part.object, tokens)
            start = words.past(tokens, 0, "measures")  # how many there are is told with any list
            joined = f"{piece.words(start, end)} {words.questions('beside')[0].format(object=name)}"
            return replace(part, object=joined, said=joined, verb="list")
        return part

    async def _columns(self, part: GoalPart) -> str:
        """The properties that a part names, where it names nothing else; empty where it does."""
        words, tokens = self._words, self._words.language.tokens(part.object)
        end = next((n for n in range(len(tokens)) if words.past(tokens, n, "beside") == len(tokens)), len(tokens))
        start = words.past(tokens, 0, "articles", "own")
        named = _Piece(part.object, tokens).words(start, end)
        if not named or (end == len(tokens) and part.verb not in ("list", "find")):
            return ""
        lexicon = await self._asker.lexicon(self._goal)
        reading = read(named, lexicon) if lexicon is not None else None
        if (
            reading is not None
            and reading.has("property")
            and all(one.has("property", "small", "also") for one in reading.items)
        ):
            return named
        known = Reader(await self._asker.record()).read(named)
        plain = known.has("property") and not (known.unknown or known.named or known.types or known.periods or known.has("ask"))
        return named if plain else ""

    async def _planned(self, parts: Sequence[GoalPart]) -> list[PartPlan]:
        for part in parts:
            self._refuse(part)
        found = []
        for number, part in enumerate(parts, 1):
            if part.deed == "write" and self._last is not None:
                self._next_wave()
            found.append(await (self._writing(number, part) if part.deed == "write" else self._reading(number, part)))
            if "total" in part.formats and found[-1].figures is None:
                raise Undeliverable("lacks", self._words.sentence("figure_total"), part.said)
            if part.deed == "write":
                self._next_wave()
        return found

    def _next_wave(self) -> None:
        self._wave = max((step.wave for step in self._steps), default=0) + 1

    def _refuse(self, part: GoalPart) -> None:
        if part.deed == "other":
            raise Undeliverable("not_possible", f"{part.verb} {part.object}".strip())
        if part.refused:
            raise Undeliverable("not_delivered", part.refused)
        if not part.object and not part.report:
            raise Undeliverable("nothing_asked", part.said)

    def _step(self, **given: Any) -> Step:
        step = Step(**{"wave": self._wave, **given})
        self._steps.append(step)
        self._last = step.id
        return step

    async def _refuse_uncovered(self, part: GoalPart) -> None:
        """Decline what is asked of a year for which there is no data of its sort, though there is of others."""
        lexicon = await self._asker.lexicon(self._goal)
        text = part.said if lexicon is None else _without(part.said, lexicon, "day")
        if lexicon is not None and _names_date(part.said, lexicon):
            return  # built before 2015
        said = [int(year) for year in _YEAR.findall(text)]
        known = sorted(await self._years_of(part.said)) if said else []
        inside = any(min(said) <= year <= max(said) for year in known) if len(said) > 1 else bool(set(said) & set(known))
        if known and not inside:
            raise Undeliverable("no_year", ", ".join(map(str, said)), _years_said(known))

    async def _years_of(self, text: str) -> set[int]:
        """Years for which there is data of the sorts of things that a text names."""
        found = set[int]()
        lexicon = await self._asker.lexicon(self._goal)
        if lexicon is not None:
            reading = read(text, lexicon)
            types = {type for item in reading.of("type") for type, _ in item.of("type")}
            types = types or {refs[0].type for item in reading.of("entity") for refs in item.of("entity")}
            found |= {year for type in types for year in lexicon.view.years_of(type)}
        if not found:
            record = await self._asker.record()
            types = set(Reader(record).read(text).types)
            values = [value for one in record if one.type in types for value in one.fields.values() if isinstance(value, str)]
            found |= {day.year for value in values if _DAY.match(value) and (day := record.day(value)) is not None}
        return found

    async def _refuse_ambiguous(self, text: str) -> None:
        """Decline a name that several have who are told apart by more than it."""
        lexicon = await self._asker.lexicon(self._goal)
        for item in read(text, lexicon).of("entity") if lexicon is not None else ():
            stems = set(lexicon.language.key(item.text)) if lexicon is not None else set()
            types = {ref.type for refs in item.of("entity") for ref in refs}
            if item.whole or item.has("type", "value") or lexicon is None:
                continue
            known = {one.name for type in types for one in lexicon.view.things(type)}
            having = sorted(name for name in known if stems <= set(lexicon.language.key(name)))
            if len(having) > 1:
                raise Undeliverable("which_one", item.text, ", ".join(f"“{name}”" for name in having[:_MOST_NAMED]))
        record = await self._asker.record()
        tokens = record.words.language.tokens(text)
        said = [token.folded for token in tokens]
        people = {owner for one in record for owner in record.owners(one)}
        people |= {one.title for one in record if one.type in ("human", "ai")}
        names = {name: [token.folded for token in record.words.language.tokens(name)] for name in sorted(people)}
        for at, token in enumerate(tokens):
            having = [name for name, own in names.items() if token.folded in own and len(own) > 1]
            whole = any(
                said[at - own.index(token.folded) : at - own.index(token.folded) + len(own)] == own
                for name in having
                if (own := names[name]) and at >= own.index(token.folded)
            )
            if len(having) > 1 and token.text[:1].isupper() and not whole:
                raise Undeliverable("which_one", token.text, ", ".join(f"“{name}”" for name in having[:_MOST_NAMED]))
        for each in Reader(record).read(text).named:
            if each.others and not each.whole and not each.typed:
                same = [one.title for one in (each.thing, *each.others)]
                words = " ".join(token.text for token in tokens[each.start : each.end])
                if len(set(same)) > 1:
                    raise Undeliverable("which_one", words, ", ".join(f"“{name}”" for name in same[:_MOST_NAMED]))

    # What is to be read

    async def _reading(self, number: int, part: GoalPart) -> PartPlan:
        await self._refuse_uncovered(part)
        await self._refuse_ambiguous(part.said)
        if part.report and not part.ordered and (told := await self._figures(number, part)) is not None:
            return told
        if part.report and (found := await self._report(number, part)) is not None:
            return found
        if RECALL_TOOL.name in self._tools and (stems := await self._looked_for(part)):
            return await self._recalling(number, part, stems)
        whole = self._with_them(part)
        part = await self._without_order(whole)
        if not part.report and (told := await self._figures(number, part)) is not None:
            return told
        part = whole if self._order is not None else part
        question, answer = await self._question(part)
        step = self._step(id=f"{number}.ask", description=_sentence(part.said), question=question)
        if "chart" in part.formats or part.verb == "chart":
            if not answer.charts and not answer.empty and not _can_chart(answer):
                raise Undeliverable("not_explained", part.said)
        if answer.items and all(one.type in TYPES for one in answer.items):
            self._found = step
            self._types[step.id] = _types_of(answer)
        formats = (*part.formats, *(["chart"] if part.verb == "chart" else []))
        return PartPlan(said=part.said, verb=part.verb, steps=(step.id,), formats=formats, report=part.report)

    def _with_them(self, part: GoalPart) -> GoalPart:
        """A part that asks of “them”, with what the part before was about in its place."""
        tokens, before = self._words.language.tokens(part.object), self._read
        self._read = part.object
        if not before or self._words.at("pronouns", tokens) != len(tokens):
            return part
        self._read = before
        verb = _Piece(part.said, self._words.language.tokens(part.said)).words(0, -len(tokens) or None)
        return replace(part, object=before, said=f"{verb} {before}")

    async def _without_order(self, part: GoalPart) -> GoalPart:
        """A part without what says which of the things comes first: “, the highest rating first”. A list of them notes it."""
        self._order = None
        lexicon, tokens = await self._asker.lexicon(self._goal), self._words.language.tokens(part.object)
        comma = part.object.rfind(",")
        start = next((n for n, token in enumerate(tokens) if token.start > comma), len(tokens)) if comma > 0 else len(tokens)
        last = next((n for n in range(start, len(tokens)) if self._words.at("order_first", tokens, n) == len(tokens)), None)
        if lexicon is None or last is None:
            return part
        tail = part.object[comma + 1 : tokens[last].start]
        falling, names = None, list[str]()
        for item in read(tail, lexicon).items:
            names += [name for _, name in item.of("property")] + [one[1] for one in item.of("superlative")]
            if (ends := [one[2] for one in item.of("superlative")]) or item.has("most", "largest"):
                falling = all(ends)
            elif item.has("least", "smallest"):
                falling = False
            elif not item.has("property", "small", "type"):
                return part
        if falling is None:
            return part
        self._order = (tuple(names), falling)
        said = part.said[: part.said.rfind(",")] if part.said.endswith(part.object) else part.said
        return replace(part, object=part.object[:comma], said=said)

    async def _figures(self, number: int, part: GoalPart) -> PartPlan | None:
        """Several figures over sets of the data, of which one question would tell one; `None` where fewer are asked."""
        lexicon = await self._asker.lexicon(self._goal)
        if lexicon is None or SURVEY_TOOL.name not in self._tools:
            return None
        for text in dict.fromkeys((part.said, part.object)):
            understood = await self._asker.understood(text)
            plan = understood.plan if understood is not None else None
            if isinstance(plan, Aggregate) and (listed := _as_list(text, plan, part, lexicon)) is not None:
                return await self._list_steps(number, part, *listed, lexicon, grouped=True)
            if isinstance(plan, Select) and ((links := links_said(text, lexicon, plan)) or self._order is not None):
                if len(find_left_out(text, lexicon, plan)) <= len(links):
                    return await self._list_steps(number, part, plan, links, lexicon)
                continue
            if self._order is not None:
                said_items = read(text, lexicon).items
                some = any(item.has("numbers") or (item.has("number") and not item.has("year")) for item in said_items)
                if isinstance(plan, Rank) and plan.by is not None and not some:
                    self._order = ((plan.by,), self._order[1])
                    return await self._list_steps(number, part, Select(of=plan.of, show=(plan.by,)), (), lexicon)
                if isinstance(plan, Rank) and plan.descending == self._order[1]:
                    self._order = None  # the best five, the best first
                    return None
                continue
            if not isinstance(plan, Aggregate | Compare) or (isinstance(plan, Compare) and plan.how != "side_by_side"):
                continue
            sides = plan.sides if isinstance(plan, Compare) else (plan,)
            said = figures_said(text, lexicon, sides[0].of.type)
            if sides[0].group_by and len(said) == 1 and said[0].property and "chart" not in (*part.formats, part.verb):
                said = (FigureSaid("", "count"), *said)  # what is added up is told with how many it is of
            counts = sum(item.has("count") for item in read(text, lexicon).items)
            apart = counts > 1 and len(sides) == 1 and len(_apart(sides[0].of)) > 1
            said = said or ((FigureSaid("", "count"),) if apart else ())  # how many of the one, and how many of the other
            if (
                not (1 if apart else 2) <= len(said) <= _MOST_FIGURES
                or find_left_out(text, lexicon, plan, said)
                or any(side.having or side.count_groups or side.limit for side in sides)
            ):
                continue
            return await self._figure_steps(number, part, said, sides, lexicon)
        if (part.verb == "compare" or self._words.find("versus", self._words.language.tokens(part.object))) and (
            compared := _compared(part.object, lexicon)
        ) is not None:
            return await self._list_steps(number, part, compared, (), lexicon)
        return None

    async def _list_steps(
        self, number: int, part: GoalPart, plan: Select, links: Sequence[Filter], lexicon: Lexicon, *, grouped: bool = False
    ) -> PartPlan | None:
        """A list with what its things are joined to; `None` where it is too long for one."""
        schema, language = Schema(lexicon.view.ontology), lexicon.language.name
        twin, type = self._asker.twin(schema), plan.of.type
        kept = tuple(one for one in plan.of.filters if one not in links)
        survey = await twin.survey_of(plan.of.model_copy(update={"filters": kept}))
        if await twin.count(survey) > MAX_ROWS or len(plan.show) + len(links) > _MOST_FIGURES:
            return None
        order = None
        if self._order is not None:
            order = self._ordering(plan, schema)
            plan = plan if order[0] in plan.show else plan.model_copy(update={"show": (*plan.show, order[0])})
        shown = []
        for name in plan.show:
            unit = schema.property(type, name).unit
            label = schema.property_name(type, name, language)
            shown.append((name, f"{label} ({unit})" if unit else label))

        def step(id: str, description: str, **given: Any) -> str:
            asked = survey.model_copy(update={"limit": MAX_ROWS, **given}).model_dump(mode="json", exclude_defaults=True)
            arguments = {"type": type} | asked
            return self._step(id=id, description=description, tool=SURVEY_TOOL.name, arguments=arguments).id

        steps = [step(f"{number}.list", _sentence(part.said), measure="list", show=plan.show)]
        names = []
        for at, one in enumerate(links, 1):
            names.append(schema.type_name(one.to or type, language, many=False))
            by = (GroupBy(property="id"), GroupBy(property="name", via=one.via, to=one.to))
            steps.append(step(f"{number}.link.{at}", _sentence(names[-1]), group_by=by))
        told = ListAsked(properties=tuple(shown), links=tuple(names), grouped=grouped, order=order)
        return PartPlan(said=part.said, verb=part.verb, steps=tuple(steps), formats=part.formats, list=told)

    def _ordering(self, plan: Select, schema: Schema) -> tuple[str, bool]:
        """By which property a list is ordered that says which of its things comes first, and whether that is the greatest."""
        assert self._order is not None, "it was read"
        names, falling = self._order
        own = [one.name for one in schema.properties(plan.of.type) if one.name in names]
        own = own or [name for name in plan.show if schema.property(plan.of.type, name).kind in ("number", "date")]
        if len(set(own)) != 1:
            raise Undeliverable("not_explained", ", ".join(names) or self._goal)
        return own[0], falling

    async def _figure_steps(
        self, number: int, part: GoalPart, said: Sequence[FigureSaid], sides: Sequence[Aggregate], lexicon: Lexicon
    ) -> PartPlan:
        schema, language = Schema(lexicon.view.ontology), lexicon.language.name
        twin, of = self._asker.twin(schema), sides[0].of
        what = schema.type_name(of.type, language, of.level)
        figures = []
        for one in said:
            name = schema.property_name(of.type, one.property, language) if one.property else ""
            unit = schema.property(of.type, one.property).unit if one.property else ""
            label = self._words.sentence(f"figure_of_{one.measure}", property=name, what=what)
            figures.append(FigureAsked(label=f"{label} ({unit})" if unit else label, property=name))
        sets = [side.of for side in sides] if len(sides) > 1 else _apart(of)
        names = _names_apart(sets)
        steps = []
        for at, (name, of_set) in enumerate(zip(names, sets, strict=True), 1):
            survey = await twin.survey_of(of_set)
            for n, (asked, told) in enumerate(zip(said, figures, strict=True), 1):
                measured = {"measure": "avg" if asked.measure == "mean" else asked.measure, "of": asked.property}
                given = survey.model_copy(update={"group_by": sides[0].group_by, "limit": MAX_ROWS, **measured})
                steps.append(
                    self._step(
                        id=f"{number}.figure.{at}.{n}",
                        description=_sentence(" – ".join(filter(None, (told.label, name)))),
                        tool=SURVEY_TOOL.name,
                        arguments={"type": of.type} | given.model_dump(mode="json", exclude_defaults=True),
                    ).id
                )
        groups = tuple(
            schema.type_name(one.to, language, many=False) if one.to else schema.property_name(of.type, one.property, language)
            for one in sides[0].group_by
        )
        totals = "total" in part.formats and bool(groups) and len(sets) == 1
        for n, (asked, told) in enumerate(zip(said, figures, strict=True), 1) if totals else ():
            measured = {"measure": "avg" if asked.measure == "mean" else asked.measure, "of": asked.property}
            whole = (await twin.survey_of(of)).model_copy(update={"limit": MAX_ROWS, **measured})
            arguments = {"type": of.type} | whole.model_dump(mode="json", exclude_defaults=True)
            description = _sentence(f"{told.label} – {self._words.sentence('figure_total')}")
            steps.append(
                self._step(id=f"{number}.total.{n}", description=description, tool=SURVEY_TOOL.name, arguments=arguments).id
            )
        asked_of = FiguresAsked(figures=tuple(figures), sets=names, groups=groups, totals=totals)
        formats = (*part.formats, *(["chart"] if part.verb == "chart" else []))
        return PartPlan(said=part.said, verb=part.verb, steps=tuple(steps), formats=formats, figures=asked_of)

    async def _looked_for(self, part: GoalPart) -> tuple[str, ...]:
        """Words of what is looked for in notes, documents or memory; none where the part does not speak of those."""
        language = self._words.language
        lexicon = await self._asker.lexicon(self._goal)
        text = part.object if lexicon is None else _without(part.object, lexicon, "property")
        if not language.holds(text, language.words["stored"]):
            return ()
        known = vocabularies().get(language.name)
        stop = known.stop if known is not None else frozenset()
        phrases = [text for kind in ("stored", "about", "own", "asks_what") for text in language.words[kind]]
        aside = {token.folded for text in phrases for token in language.tokens(text)} | stop
        tokens = [token for token in language.tokens(part.object) if token.folded.isalnum()]
        return tuple(dict.fromkeys(token.folded for token in tokens if token.folded not in aside and token.stem not in stop))

    async def _recalling(self, number: int, part: GoalPart, stems: tuple[str, ...]) -> PartPlan:
        """What notes and documents say, quoted. Raises `Undeliverable`: none of them speaks of it."""
        found = await self._asker.recall(part.object)
        if not any(holds_words(stems, one.model_dump()) for one in found.items):
            raise Undeliverable("not_stored", part.object)
        step = self._step(
            id=f"{number}.recall",
            description=_sentence(part.said),
            tool=RECALL_TOOL.name,
            arguments={"query": part.object[:4_000], "limit": 20, "kinds": [kind.value for kind in STORED]},
        )
        return PartPlan(said=part.said, verb=part.verb, steps=(step.id,), formats=part.formats, recalls=stems)

    async def _question(self, part: GoalPart) -> tuple[str, QuestionAnswer]:
        """The question that asks for a part, with its answer as it is now. Raises `Undeliverable`: no question does."""
        frames = self._words.questions(part.verb)
        over = self._words.questions("each") if part.each else ("{object}",)
        objects = [each.format(object=part.object, each=part.each) for each in over]
        asked = [*(one.format(object=object) for object in objects for one in frames), *([] if part.each else [part.said])]
        empty: tuple[str, QuestionAnswer] | None = None
        unexplained: list[str] = []
        lost: list[list[str]] = []
        for text in dict.fromkeys(asked):
            answer, words = await self._asker.ask(text)
            if answer is not None and answer.read != "passages" and not answer.unexplained:
                if lacking := find_lacking(_as_planned(part), answer, self._words.sentence):
                    lost.append(lacking)
                    continue
                if not answer.empty:
                    self._vain = self._vain or not (answer.items or answer.figures or answer.tables)
                    self._told = self._told or answer.total is not None or bool(answer.figures or answer.tables)
                    return text, answer
                empty = empty or (text, answer)
            unexplained += [", ".join(some)] if (some := _of_text(words, text)) else []
        if empty is not None:
            await self._refuse_absent(empty[0])
            self._vain = True
            return empty
        if lost:
            lost.sort(key=len)
            raise Undeliverable("lacks", ", ".join(lost[0]), part.said)
        raise Undeliverable("not_explained", min(unexplained, key=len, default=part.said))

    async def _refuse_absent(self, text: str) -> None:
        """Decline what is asked of a sort of thing of which nothing at all is on record."""
        record = await self._asker.record()
        types = Reader(record).read(text).types
        if types and record.things and not record.partial and not any(one.type in types for one in record):
            raise Undeliverable("none_at_all", ", ".join(noun(type) for type in types))

    async def _report(self, number: int, part: GoalPart) -> PartPlan | None:
        """A report over a set of the data, or over sets of the graph; `None` where it is about something else."""
        lexicon = await self._asker.lexicon(self._goal)
        if lexicon is not None and SURVEY_TOOL.name in self._tools:
            found = await self._selection(part, lexicon)
            if found is not None:
                return await self._set_report(number, part, *found, lexicon)
        objects = self._objects(part.object)
        steps = []
        for n, object in enumerate(objects, 1):
            try:
                question, _ = await self._question(replace(part, object=object, said=object, verb="list"))
            except Undeliverable:
                if len(objects) == 1:
                    return None
                raise
            steps.append(self._step(id=f"{number}.ask.{n}", description=_sentence(object), question=question).id)
            steps += await self._closer(f"{number}.ask.{n}", object, part)
        if not steps:
            return None
        return PartPlan(said=part.said, verb=part.verb, steps=tuple(steps), formats=part.formats, report=True)

    async def _closer(self, id: str, object: str, part: GoalPart) -> list[str]:
        """What a report looks at closer, of what it is about: what is late, and what its period holds."""
        found = list[str]()
        for kind in ("closer", *(["period"] if part.period else [])):
            for frame in self._words.questions(kind):
                text = frame.format(object=self._without_own(object), period=part.period)
                answer, _ = await self._asker.ask(text)
                if answer is not None and answer.read == "constitution" and not answer.unexplained and answer.total:
                    found.append(self._step(id=f"{id}.{kind}", description=_sentence(text), question=text).id)
                    break
        return found

    def _without_own(self, text: str) -> str:
        """A text without the words that say whose it is, and without articles: my tasks."""
        tokens = self._words.language.tokens(text)
        return _Piece(text, tokens).rest(self._words.past(tokens, 0, "own", "articles"))

    def _objects(self, text: str) -> list[str]:
        """What a report is about, one by one: my tasks and decisions."""
        tokens = self._words.language.tokens(text)
        cuts, at = list[str](), 0
        known = vocabularies().get(self._words.language.name)
        showing = known.language.words.get("showing", ()) if known is not None else ()
        colon = text.find(":")
        end = next((n for n, token in enumerate(tokens) if token.folded in showing or 0 <= colon < token.start), len(tokens))
        last = tokens[end].start if end < len(tokens) else len(text)
        told = text[last:].strip()  # what is to be told of each
        for n, token in enumerate(tokens[:end]):
            if n and ((token.folded,) in self._words.words("joins") or "," in text[tokens[n - 1].end : token.start]):
                cuts.append(text[at : tokens[n - 1].end])
                at = token.end if (token.folded,) in self._words.words("joins") else token.start
        objects = [_bare(one) for one in [*cuts, text[at:last]] if _bare(one)]
        return [" ".join(filter(None, (one, told))) for one in objects]

    async def _selection(self, part: GoalPart, lexicon: Lexicon) -> tuple[str, Selection] | None:
        """The set of the data that a report is about: as it is named, or what is judged and hangs on the thing that is."""
        language = lexicon.language.name
        types = [kind for kind in lexicon.view.types.values() if lexicon.view.years_of(kind.name)]
        judged = [kind for kind in types if any(_worst(one, language) for one in kind.properties)] if part.ordered else []
        schema = Schema(lexicon.view.ontology)
        rest = self._behind_judgement(part.object)
        of = [f"{schema.type_name(kind.name, language)} {part.object}" for kind in judged]
        linking = self._words.questions("of")
        asked = [
            part.object,
            *([rest] if rest and not _YEAR.fullmatch(rest) else []),
            *(
                one.format(things=schema.type_name(kind.name, language), object=part.object)
                for kind in judged
                for one in linking
            ),
            *of,
            self._words.questions("list")[0].format(object=part.object),
        ]
        for text in asked if part.object else [schema.type_name(kind.name, language) for kind in judged]:
            understood = await self._asker.understood(text)
            if understood is None or not isinstance(understood.plan, Select):
                continue
            if links_said(text, lexicon, understood.plan):
                continue  # no survey of a set tells what its things are joined to
            of_set = understood.plan.of
            named = {int(year) for year in _YEAR.findall(part.object)}
            if not lexicon.view.years_of(of_set.type) or not named <= set(of_set.years):
                continue
            if not _names_year(text):
                of_set = of_set.model_copy(update={"years": lexicon.view.years_of(of_set.type)[-_MOST_YEARS:]})
            twin = self._asker.twin(schema)
            if await twin.count(await twin.survey_of(of_set)):
                return text, of_set
        return None

    def _behind_judgement(self, text: str) -> str:
        """What stands behind words for what is judged: the risks of the projects; empty where there are none."""
        tokens = self._words.language.tokens(text)
        at = self._words.at("articles", tokens)
        end = self._words.at("report_kinds.ordered", tokens, at)
        about = self._words.at("about", tokens, end)
        return _Piece(text, tokens).rest(about) if about > end > at else ""

    async def _set_report(self, number: int, part: GoalPart, text: str, of: Selection, lexicon: Lexicon) -> PartPlan:
        language, schema = lexicon.language.name, Schema(lexicon.view.ontology)
        twin = self._asker.twin(schema)
        survey = await twin.survey_of(of)
        properties = _properties(of, lexicon)
        what = schema.type_name(of.type, language, of.level)
        filtered = bool(of.filters or of.among)
        steps: list[Step] = []

        def surveyed(id: str, description: str, **given: Any) -> None:
            asked = survey.model_copy(update=given).model_dump(mode="json", exclude_defaults=True)
            steps.append(
                self._step(
                    id=f"{number}.{id}", description=description, tool=SURVEY_TOOL.name, arguments={"type": of.type} | asked
                )
            )

        by_year = GroupBy(property="year")
        shown = tuple(one.name for one in properties)[:12]

        def sentence(name: str, **values: str) -> str:
            return self._words.sentence(name, what=what, **values)

        for year in of.years:
            surveyed(
                f"rows.{year}", sentence("step_rows", year=str(year)), years=(year,), measure="list", show=shown, limit=MAX_ROWS
            )
        surveyed("count", sentence("step_count"), group_by=(by_year,), limit=MAX_ROWS)
        self._wave += 1  # one wave after the other, so that the data is not asked everything at once
        for one in properties:
            if one.kind == "number":
                measure = "avg" if one.share else "sum"
                said = sentence("step_mean" if one.share else "step_sum", property=one.label)
                surveyed(f"sum.{one.name}", said, group_by=(by_year,), measure=measure, of=one.name, limit=MAX_ROWS)
            elif one.kind == "string":
                groups = (by_year, GroupBy(property=one.name))
                surveyed(f"by.{one.name}", sentence("step_by", property=one.label), group_by=groups, limit=MAX_ROWS)
        begun, self._wave = self._wave - 1, self._wave + 1
        if filtered:
            whole = await twin.survey_of(of.model_copy(update={"filters": (), "among": ()}))
            for one in [each for each in properties if each.worst][:1]:
                groups = (by_year, GroupBy(property=one.name))
                asked = whole.model_copy(update={"group_by": groups, "limit": MAX_ROWS}).model_dump(
                    mode="json", exclude_defaults=True
                )
                said = sentence("step_all", property=one.label)
                steps.append(
                    self._step(
                        id=f"{number}.all.{one.name}",
                        description=said,
                        tool=SURVEY_TOOL.name,
                        arguments={"type": of.type} | asked,
                    )
                )
        if RECALL_TOOL.name in self._tools:
            arguments = {"query": f"{part.said} {text}"[:4_000], "limit": 10, "kinds": [ItemKind.NOTE.value]}
            said, id = sentence("step_earlier"), f"{number}.earlier"
            self._step(id=id, description=said, tool=RECALL_TOOL.name, arguments=arguments, optional=True)
        self._wave = begun
        report = SetReport(what=what, years=of.years, properties=properties, filtered=filtered)
        ids = tuple(step.id for step in steps)
        return PartPlan(said=part.said, verb=part.verb, steps=ids, formats=part.formats, set=report, report=True)

    # What is to be written

    async def _writing(self, number: int, part: GoalPart) -> PartPlan:
        self._record = await self._asker.record()
        self._reader = Reader(self._record)
        through = None
        if (of_them := self._of_them(part)) is not None:
            through, part = of_them
        elif part.each:
            through = await self._going_through(number, part.each)
        elif part.verb in _CHANGING and (each := self._all_of(part.object)):
            through = await self._going_through(number, each[0])
            part = replace(part, object=each[1], each=each[0])
        self._through = self._types.get(through.id, ()) if through is not None else ()
        tool, arguments = self._written(part)
        if tool.name not in self._tools:
            raise Undeliverable("no_tool", part.said)
        given: dict[str, Any] = {}
        if through is not None:
            self._next_wave()
            given = {"each": Each(of=through.id, path="items", limit=MAX_ITEMS), "depends": (through.id,)}
        step = self._step(id=f"{number}.do", description=_sentence(part.said), tool=tool.name, arguments=arguments, **given)
        ids = (*([through.id] if through is not None else []), step.id)
        goes = through.id if through is not None else ""
        return PartPlan(said=part.said, verb=part.verb, steps=ids, writes=tool.name, goes_through=goes)

    async def _going_through(self, number: int, each: str) -> Step:
        question, answer = await self._question(GoalPart(each, "read", "list", each))
        if answer.total is not None and answer.total > MAX_ITEMS:
            raise Undeliverable("too_many", each)
        if not answer.items and not answer.empty:
            raise Undeliverable("not_explained", each)
        step = self._step(id=f"{number}.set", description=_sentence(each), question=question)
        self._types[step.id] = _types_of(answer) or self._reader.read(each).types
        return step

    def _of_them(self, part: GoalPart) -> tuple[Step, GoalPart] | None:
        """The step that found what a part calls “them”, and the part without that word; `None` where it calls nothing so."""
        if self._found is None:
            return None
        if self._words.at("pronouns", tokens := self._words.language.tokens(part.each)) == len(tokens) > 0:
            return self._found, part
        tokens = self._words.language.tokens(part.object)
        end = self._words.at("pronouns", tokens)
        if part.each or end == 0 or part.verb not in _CHANGING:
            return None
        return self._found, replace(part, each=part.object, object=_Piece(part.object, tokens).rest(end))

    def _all_of(self, text: str) -> tuple[str, str] | None:
        """The set of an order over all of something, and the rest: all overdue tasks as done."""
        tokens = self._words.language.tokens(text)
        if (end := self._words.at("all", tokens)) == 0:
            return None
        stop = next((n for n in range(end, len(tokens)) if self._words.at("as", tokens, n) > n), len(tokens))
        piece = _Piece(text, tokens)
        return piece.words(end, stop), piece.rest(stop)

    def _written(self, part: GoalPart) -> tuple[Tool[Any, Any], dict[str, Any]]:
        match part.verb:
            case "create" | "record":
                return self._created(part)
            case "remember":
                return self._created(part) if self._states_node(part.object) else self._remembered(part)
            case "complete":
                return self._updated(part, {"status": "done"}, part.object)
            case "archive":
                return self._updated(part, {"status": "archived"}, part.object)
            case "mark":
                return self._marked(part)
            case "link":
                return self._linked(part)
        return self._changed(part)

    def _states_node(self, text: str) -> bool:
        """Whether what is to be noted is a node of a type, called by its title in quotation marks: an observation “Frost”."""
        piece = _Piece(text, self._words.language.tokens(text))
        start = self._words.past(piece.tokens, 0, "articles")
        kind, end = self._type_at(piece, start)
        rest = piece.rest(end)
        return kind is not None and kind.name != "note" and end > start and bool(rest) and rest[0] in _OPENING

    def _created(self, part: GoalPart) -> tuple[Tool[Any, Any], dict[str, Any]]:
        piece = _Piece(part.object, self._words.language.tokens(part.object))
        kind, end = self._type_at(piece, self._words.past(piece.tokens, 0, "articles"))
        if kind is None:
            if (part.verb == "record" and self._words.at("named", piece.tokens)) or self._words.at("that", piece.tokens):
                return self._remembered(part)
            raise Undeliverable("no_tool", part.said)
        if kind.name == "note" and CREATE[kind.name].name not in self._tools:
            return self._remembered(replace(part, object=piece.rest(end)))
        fields, title = self._fields(piece, end, kind)
        if not title:
            raise Undeliverable("nothing_asked", part.said)
        described = self._words.language.tokens(str(fields.get("description", "")))
        if kind.property("value") is not None and "value" not in fields and (at := self._words.at("about", described)):
            piece = _Piece(str(fields["description"]), described)
            if at < len(described) and (told := self._field_value("value", piece, at, len(described), kind)) is not None:
                fields["value"] = told[0]  # an observation “Frost” of 41
                del fields["description"]
        if part.each and self._names_item(str(fields.get("description", "")), part.each):
            del fields["description"]
        arguments: dict[str, Any] = {"title": title[:500], **fields}
        if part.each:
            arguments["title"] = f'{title[:300]}: {{"$item": "title"}}'
        return CREATE[kind.name], arguments

    def _names_item(self, text: str, each: str) -> bool:
        """Whether words behind a title only say that the name of each thing comes with it: and the name of the plot."""
        words, language = self._words, self._words.language
        own = {token.stem for token in language.tokens(each)}
        tokens, at, named = language.tokens(text), 0, False
        while at < len(tokens):
            end = words.past(tokens, at, "joins", "item_joins", "articles", "own", "about")
            named = named or words.at("item_names", tokens, end) > end
            end = max(end, words.at("item_names", tokens, end))
            if end == at and tokens[at].stem not in own and tokens[at].folded != "s":
                return False
            at = max(end, at + 1)
        return named

    def _type_at(self, piece: _Piece, at: int) -> tuple[NodeType | None, int]:
        """The type of node that is named at a word, by the words for it in the language of the goal."""
        language = self._record.words.language
        tokens = language.tokens(piece.text)
        best: tuple[NodeType | None, int] = (None, at)
        for start, end, sense in language.senses_in(tokens):
            if start == at and sense.kind == "type" and end > best[1] and (kind := node_type(str(sense.value))) is not None:
                best = kind, end
        return best

    def _fields(self, piece: _Piece, start: int, kind: NodeType) -> tuple[dict[str, Any], str]:
        """The properties that an order states of what it makes, and the title that is left."""
        fields: dict[str, Any] = {}
        gone: list[tuple[int, int]] = []
        text, tokens = piece.text, piece.tokens
        named = self._named_fields(piece, start, kind)
        due = next((one.name for one in kind.properties if one.kind is Kind.DATE), None)
        at = start
        while at < len(tokens):
            if (stated := named.get(at)) is not None:
                name, value, first, stop = stated
                fields.setdefault(name, value)
                gone.append((tokens[first].start, tokens[stop - 1].end))
                at = stop
                if name not in _TEXTS and (colon := re.match(r"\s*:\s*(?=\S)", text[gone[-1][1] :])) is not None:
                    fields.setdefault("description", text[gone[-1][1] + colon.end() :].strip())
                    gone[-1] = (gone[-1][0], len(text))
                    break
                continue
            for cue in ("due", "priority", "effort", "because"):
                end = self._words.at(cue, tokens, at)
                if end > at and (found := self._field(cue, piece, end, kind, due)) is not None:
                    name, value, stop = found
                    fields.setdefault(name, value)
                    gone.append((tokens[at].start, tokens[stop - 1].end))
                    at = stop
                    break
            else:
                at += 1
        left, last = "", piece.starts(start) if start < len(tokens) else len(text)
        for begin, finish in gone:
            left, last = f"{left}{text[last:begin]}", finish
        left = _bare(f"{left}{text[last:]}".strip(" ,;.:"))
        head, mark, tail = left.partition(": ")
        if mark and tail.strip() and len(head.split()) <= _ASIDE and not _QUOTED.search(head):
            left = tail.strip()  # on the list: paint the hull
        quoted = _QUOTED.search(left)
        if quoted is not None and not _bare(left[: quoted.start()].strip()).count(" ") > 2:
            rest = _bare(left[quoted.end() :])
            left = quoted.group()[1:-1]
            fields |= {"description": rest} if rest else {}
        own = self._words.language.tokens(left)
        skip = self._words.at("named", own) or self._words.at("that", own)
        left = _Piece(left, own).rest(skip)
        head, _, more = left.partition(". ")
        if more and len(head) > 3:
            left = head
            fields.setdefault("description", more.strip())
        return fields, _sentence(_unquoted(" ".join(left.split()))) if left else ""

    def _named_fields(self, piece: _Piece, start: int, kind: NodeType) -> dict[int, tuple[str, Any, int, int]]:
        """Fields of a tool that an order names with their values, by where their words begin: the reasoning is, confidence 0.8.

        Each with the name, the value, and where its words begin and end. Raises `Undeliverable`: there is no such field.
        """
        text, tokens = piece.text, piece.tokens
        kept = [match.span() for match in _QUOTED.finditer(text)]
        language = self._words.language
        names = {
            language.key(said): name for name in (*_COMMON, *(one.name for one in kind.properties)) for said in self._said(name)
        }
        others = {language.key(spaced(one.name)): one.name for each in TYPES.values() for one in each.properties}
        places: list[tuple[int, int, int, str]] = []
        for at in range(start, len(tokens)):
            if any(begin < tokens[at].start < end for begin, end in kept) or (places and at < places[-1][2]):
                continue
            for end in range(min(at + 3, len(tokens)), at, -1):
                key = tuple(token.stem for token in tokens[at:end])
                name = names.get(key) or (others.get(key) and "")
                if name is None:
                    continue
                value = self._words.at("states", tokens, end)
                if (of := kind.property(name)) is not None and of.kind is Kind.DATE:
                    value = self._words.at("dated", tokens, value)  # decided on 4 May
                begins, stated = self._field_begins(piece, at, start), self._is_stated(piece, end, value)
                if begins is not None and (
                    stated or (value < len(tokens) and tokens[value].folded[0].isdigit() and value == end)
                ):
                    if not name:
                        raise Undeliverable("no_field", piece.words(at, end))
                    places.append((begins, at, value, name))
                    break
        found = {}
        for (begins, _, value, name), after in zip(places, [*(one[0] for one in places[1:]), len(tokens)], strict=False):
            if (told := self._field_value(name, piece, value, after, kind)) is not None:
                found[begins] = (name, told[0], begins, told[1])
            elif name in _STATED and value < after:
                raise Undeliverable("not_explained", piece.words(value, after))  # whose value is how many there are
        return found

    def _said(self, name: str) -> set[str]:
        """What a field is called: its own name, and the names of its sense."""
        own = spaced(name)
        return {
            own,
            own.removesuffix(" at"),  # decided on 4 May
            *(one for names in self._record.words.names.values() if own in names for one in names if name not in _COMMON),
        }

    def _field_begins(self, piece: _Piece, at: int, start: int) -> int | None:
        """Where the words of a field begin that is named at a word; `None` where the word stands inside of a sentence."""
        first = at
        for kind in ("articles", "own", "with"):
            if first > start and self._words.at(kind, piece.tokens, first - 1) == first:
                first -= 1
        before = piece.text[piece.tokens[first - 1].end : piece.tokens[first].start] if first > start else "."
        led = first < at and self._words.at("with", piece.tokens, first) > first
        return first if led or set(before) & set('.,;:\n"”“»)') else None

    @staticmethod
    def _is_stated(piece: _Piece, end: int, value: int) -> bool:
        if value >= len(piece.tokens):
            return False
        between = piece.text[piece.tokens[end - 1].end : piece.tokens[value].start]
        return value > end or ":" in between or "=" in between

    def _field_value(self, name: str, piece: _Piece, at: int, after: int, kind: NodeType) -> tuple[Any, int] | None:
        """The value of a field that stands at a word, and where its words end."""
        said = kind.property(name)
        of = said.kind if said is not None else Kind.TEXT
        text, tokens = piece.text, piece.tokens
        if of in (Kind.NUMBER, Kind.SHARE, Kind.HOURS, Kind.PRIORITY, Kind.ROI):
            read = self._reader.read(piece.words(at, min(at + 2, after)))
            value = [*read.figures, *([read.hours] if read.hours else []), *map(float, read.of("level"))]
            if not value and not tokens[at].folded[0].isdigit():
                return None
            number = value[0] if value else float(tokens[at].folded.replace(",", "."))
            percent = self._words.at("percent", tokens, at + 1) > at + 1
            number = number / 100 if of is Kind.SHARE and (percent or number > 1) else number
            told = int(number) if of is Kind.PRIORITY else {"total": number} if of is Kind.ROI else number
            return told, at + 2 if percent or (read.hours and at + 1 < after) else at + 1
        if of is Kind.DATE:
            stop = next((n for n in range(at + 1, after) if "," in text[tokens[n - 1].end : tokens[n].start]), after)
            read = self._reader.read(piece.words(at, stop))
            day = read.periods[0].last or read.periods[0].first if read.periods and not read.unknown else None
            return (day.isoformat(), stop) if day is not None else None
        last = tokens[after].start if after < len(tokens) else len(text)
        value_said = _unquoted(text[tokens[at].start : last].strip(" \t\n.,;"))
        return ([value_said] if of is Kind.TEXTS else value_said, after) if value_said else None

    def _field(self, cue: str, piece: _Piece, at: int, kind: NodeType, due: str | None) -> tuple[str, Any, int] | None:
        """A property that words behind a cue state: its name, its value, and where the words end."""
        tokens, text = piece.tokens, piece.text
        stop = next(
            (n for n in range(at, len(tokens)) if n > at and "," in text[tokens[n - 1].end : tokens[n].start]), len(tokens)
        )
        for other in ("due", "priority", "effort", "because"):
            stop = next((n for n in range(at + 1, stop) if self._words.at(other, tokens, n) > n), stop)
        said = piece.words(at, stop)
        if not said:
            return None
        if cue == "because":
            return ("reasoning", said, stop) if kind.property("reasoning") is not None else None
        read = self._reader.read(said)
        if cue == "due" and due is not None and read.periods and not read.unknown:
            day = read.periods[0].last or read.periods[0].first
            return (due, day.isoformat(), stop) if day is not None else None
        if cue == "priority" and kind.property("priority") is not None:
            value = [*read.figures, *map(float, read.of("level"))]
            return ("priority", int(value[0]), stop) if value and 1 <= value[0] <= 5 else None
        if cue == "effort" and kind.property("effortHours") is not None and read.hours:
            return "effortHours", read.hours, stop
        return None

    def _remembered(self, part: GoalPart) -> tuple[Tool[Any, Any], dict[str, Any]]:
        tokens = self._words.language.tokens(part.object)
        said = _Piece(part.object, tokens).rest(self._words.at("named", tokens) or self._words.at("that", tokens))
        if not said:
            raise Undeliverable("nothing_asked", part.said)
        text = f'{_sentence(said)}: {{"$item": "title"}}' if part.each else _sentence(said)
        return REMEMBER_TOOL, {"items": [{"text": text}]}

    def _marked(self, part: GoalPart) -> tuple[Tool[Any, Any], dict[str, Any]]:
        tokens = self._words.language.tokens(part.object)
        at = next((n for n in reversed(range(len(tokens))) if self._words.at("as", tokens, n) > n), None)
        piece = _Piece(part.object, tokens)
        if at is None:
            raise Undeliverable("not_explained", part.said)
        return self._updated(part, {"status": self._status(piece.words(at + 1), part)}, piece.words(0, at))

    def _status(self, said: str, part: GoalPart) -> str:
        if (tuple(token.folded for token in self._words.language.tokens(said))) in self._words.words("done"):
            return "done"
        known = {status for kind in TYPES.values() for status in kind.statuses}
        found = [value for value in self._reader.read(said).of("status") if value in known]
        if not found:
            raise Undeliverable("not_explained", said)
        return found[0]

    def _updated(self, part: GoalPart, fields: dict[str, Any], target: str) -> tuple[Tool[Any, Any], dict[str, Any]]:
        """A change of a thing that is named, or of each thing of the set that is gone through."""
        thing = self._thing(target) if not part.each else None
        types = (thing.type,) if thing is not None else self._through
        kinds = [kind for type in types if (kind := TYPES.get(type)) is not None]
        if (part.each and len(kinds) < max(1, len(types))) or any(not _has_fields(kind, fields) for kind in kinds):
            raise Undeliverable("not_possible", part.said)
        tool = UPDATE.get(types[0], UPDATE_NODE_TOOL) if len(types) == 1 else UPDATE_NODE_TOOL
        if tool.name not in self._tools:
            tool = UPDATE_NODE_TOOL
        if tool is UPDATE_NODE_TOOL and kinds:
            common = {"title", "status", *_COMMON}
            own = {name: value for name, value in fields.items() if name not in common}
            fields = {name: value for name, value in fields.items() if name in common} | ({"fields": own} if own else {})
        return tool, {"id": thing.id if thing is not None else {"$item": "id"}, **fields}

    def _thing(self, said: str) -> Thing:
        """The one node that words name. Raises `Undeliverable`."""
        quoted = _QUOTED.search(said)
        wanted = " ".join((quoted.group()[1:-1] if quoted else said).casefold().split())
        same = [one for one in self._record if one.title.casefold() == wanted or one.id.casefold() == wanted]
        if len(same) == 1:
            return same[0]
        read = self._reader.read(said)
        if not read.named or read.unknown:
            raise Undeliverable("not_found", said)
        first = read.named[0]
        if len(read.things) > 1 or (first.others and not first.whole and not first.typed):
            raise Undeliverable("several", said)
        return first.thing

    def _changed(self, part: GoalPart) -> tuple[Tool[Any, Any], dict[str, Any]]:
        """Postpone X to a day, rename X to a title, set the priority of X to high."""
        tokens = self._words.language.tokens(part.object)
        piece = _Piece(part.object, tokens)
        for at in reversed(range(1, len(tokens) - 1)):
            end = self._words.at("as", tokens, at)
            if end == at:
                continue
            target, value = piece.words(0, at), piece.rest(end)
            if (found := self._change(part, target, value)) is not None:
                return found
        raise Undeliverable("not_explained", part.said)

    def _change(self, part: GoalPart, target: str, value: str) -> tuple[Tool[Any, Any], dict[str, Any]] | None:
        verb = tuple(token.folded for token in self._words.language.tokens(part.said)[:1])
        if verb in self._words.words("renaming"):
            return self._updated(part, {"title": _unquoted(value)[:500]}, target)
        read = self._reader.read(target)
        names = [name for name in read.of("property") if name in _FIELDS]
        day = self._reader.read(value)
        if not names and day.periods and not day.unknown:
            names = ["due"]
        if not names:
            return None
        tokens = self._words.language.tokens(target)
        linked = next((n for n in range(1, len(tokens)) if self._words.at("about", tokens, n) > n), None)
        thing_said = _Piece(target, tokens).rest(linked + 1) if linked is not None and read.of("property") else target
        if names[0] == "status":
            return self._updated(part, {"status": self._status(value, part)}, thing_said)
        if names[0] == "title":
            return self._updated(part, {"title": _unquoted(value)[:500]}, thing_said)
        if names[0] == "due":
            when = day.periods[0].last or day.periods[0].first if day.periods and not day.unknown else None
            type = self._thing(thing_said).type if not part.each else next(iter(self._through), "")
            kind = TYPES.get(type)
            name = next((one.name for one in kind.properties if one.kind is Kind.DATE), None) if kind is not None else None
            return self._updated(part, {name: when.isoformat()}, thing_said) if when is not None and name is not None else None
        levels = [*day.figures, *map(float, day.of("level")), *([day.hours] if day.hours else [])]
        if not levels:
            return None
        return self._updated(part, {_FIELDS[names[0]]: int(levels[0]) if names[0] == "priority" else levels[0]}, thing_said)

    def _linked(self, part: GoalPart) -> tuple[Tool[Any, Any], dict[str, Any]]:
        tokens = self._words.language.tokens(part.object)
        piece = _Piece(part.object, tokens)
        fault: Undeliverable | None = None
        for at in range(1, len(tokens) - 1):
            if (end := self._words.at("with", tokens, at)) == at:
                continue
            try:
                one, other = self._thing(piece.words(0, at)), self._thing(piece.rest(end))
            except Undeliverable as error:
                fault = fault or error
                continue
            source, target = TYPES.get(one.type), TYPES.get(other.type)
            names = list(declared_types(source, target)) if source is not None and target is not None else []
            if names:
                return RELATE_TOOL, {"fromId": one.id, "toId": other.id, "type": names[0]}
            names = list(declared_types(target, source)) if source is not None and target is not None else []
            if names:
                return RELATE_TOOL, {"fromId": other.id, "toId": one.id, "type": names[0]}
        raise fault or Undeliverable("not_possible", part.said)

    # What can be done in its place

    async def _nearest(self, parts: Sequence[GoalPart]) -> str:
        """A goal that is near to one that cannot be reached, and that can; empty where none is found."""
        lexicon = await self._asker.lexicon(self._goal)
        candidates = map(_unmarked, await self._candidates(parts, lexicon))
        for text in islice(dict.fromkeys(filter(None, candidates)), _MOST_CANDIDATES):
            near = GoalPlanner(self._asker, self._tools, text)
            try:
                await near._planned(read_goal(text, self._words))
            except Undeliverable:
                continue
            except ServiceError as error:
                log.warning("a nearest goal could not be looked for: %s", error.code)
                return ""
            if not near._vain and (near._told or all(step.question is None for step in near._steps)):
                return text
        return ""

    async def _candidates(self, parts: Sequence[GoalPart], lexicon: Lexicon | None) -> list[str]:
        dated = [part.said for part in parts if lexicon is not None and _names_date(part.said, lexicon)]
        years = [
            (part, sorted(await self._years_of(part.said)))
            for part in parts
            if _names_year(part.said) and part.said not in dated
        ]
        near = [
            _YEAR.sub(lambda found, known=known: str(min(known, key=lambda year: abs(year - int(found[0])))), part.said)  # type: ignore[misc]
            for part, known in years
            if known
        ]
        return [*near, *dated, *self._like(parts, lexicon), *await self._broadly(lexicon)]

    async def _broadly(self, lexicon: Lexicon | None) -> list[str]:
        """Lists of what there is most of, whatever was asked for."""
        found = []
        if lexicon is not None:
            types = sorted(lexicon.view.types, key=lambda type: -len(lexicon.view.things(type)))
            found = [self._plural(type, lexicon) for type in types if lexicon.view.things(type) and lexicon.view.years_of(type)]
        record = await self._asker.record()
        kinds = Counter(one.type for one in record)
        found += [self._plural(type, None) for type, _ in kinds.most_common()]
        return [self._words.sentence("alternative_list", object=object) for object in found[:_BROADLY]]

    def _plural(self, type: str, lexicon: Lexicon | None) -> str:
        """What things of a type are called, several of them."""
        if lexicon is not None and type in lexicon.view.types:
            return Schema(lexicon.view.ontology).type_name(type, lexicon.language.name)
        known = vocabularies().get(self._words.language.name)
        said = known.language.words.get(f"type.{type}", ()) if known is not None else ()
        return noun(type) if self._words.language.name == "en" or not said else said[0]

    def _like(self, parts: Sequence[GoalPart], lexicon: Lexicon | None) -> Iterator[str]:
        for part in parts:
            if part.refused:
                yield _bare(re.sub(rf"\s*{re.escape(part.refused)}\b", "", part.said))
        for part in parts:
            if part.deed != "other" and not part.refused and len(parts) > 1:
                yield part.said
        for part in parts:
            text = part.each or part.object
            whole = part.deed != "write" or bool(part.each)
            for object in (*(_beginnings(text, self._words) if whole else ()), *self._about_types(text, lexicon)):
                yield self._words.sentence("alternative_list", object=self._in_plural(object, lexicon))

    def _in_plural(self, text: str, lexicon: Lexicon | None) -> str:
        """A text whose last word names a sort of thing, with the word for several of them: each overdue task."""
        tokens = self._words.language.tokens(text)
        if not tokens or (many := self._many(tokens[-1], lexicon)) is None:
            return text
        return f"{text[: tokens[-1].start]}{many}"

    def _many(self, token: Token, lexicon: Lexicon | None) -> str | None:
        """What several things are called of the sort that a word names; `None` where it names none."""
        known = vocabularies().get(self._words.language.name)
        senses = known.language.phrases.get((token.stem,), ()) if known is not None else ()
        of_twin = lexicon.look_up((token.stem,)) if lexicon is not None else ()
        of_graph = next((str(sense.value) for sense in senses if sense.kind == "type"), None)
        level = next((sense.value[0] for sense in of_twin if sense.kind == "type"), None)
        if level is not None and lexicon is not None:
            return self._plural(level, lexicon)
        return self._plural(of_graph, None) if of_graph is not None else None

    def _about_types(self, text: str, lexicon: Lexicon | None) -> Iterator[str]:
        """What a text says of each sort of thing that it names: the open tasks of it, and then its tasks."""
        tokens = self._words.language.tokens(text)
        piece = _Piece(text, tokens)
        known = vocabularies().get(self._words.language.name)

        def asks(token: Token) -> bool:
            senses = known.language.phrases.get((token.stem,), ()) if known is not None else ()
            return any(sense.kind == "ask" and sense.value != "overdue" for sense in senses)

        for n, token in enumerate(tokens):
            if (many := self._many(token, lexicon)) is None:
                continue
            for start in range(max(0, n - 2), n):
                before = tokens[start].text
                leads = any(self._words.at(kind, tokens, start) > start for kind in (*_LEADS, "measures")) or asks(
                    tokens[start]
                )
                if not leads and before[:1].isalnum() and piece.text[tokens[start].end : tokens[start].end + 1] == " ":
                    yield " ".join((piece.words(start, n), many))
            yield many


_KINDS = {"report": "report", "list": "list", "count": "count", "compare": "comparison", "chart": "chart", "find": "question"}
_FIELDS = {"due": "dueDate", "priority": "priority", "effort": "effortHours", "status": "status", "title": "title"}
"""Names of properties by the senses that orders to change them have."""
_COMMON = ("description", "summary")
"""Texts that every node may have."""
_TEXTS = ("description", "summary", "reasoning", "narrative", "outcome", "target", "horizon")
_CHANGING = ("complete", "archive", "mark", "change")
"""Classes of verbs that change what there is."""
_MOST_NAMED = 5
"""Things of the same name that are named where it is asked which one is meant."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_ASIDE = 3
"""Words between the type of what is made and a colon that are no part of its title."""
_MOST_CANDIDATES = 16
"""Goals that are looked at for the nearest that can be reached."""
_BROADLY = 4
"""Of those, lists of what there is most of."""
_MOST_YEARS = 10
_CATEGORIES, _NUMBERS, _DATES = 4, 5, 2
"""Properties of each kind that a report looks at."""
_MOST_VALUES = 25
"""Values of a property beyond which a table by value says nothing."""
_YEAR = re.compile(r"\b(?:1[89]|20|21)\d\d\b")


def _of_text(words: Sequence[str], text: str) -> list[str]:
    """Words of a text that are not explained: single ones, where those are known, and not all of it."""
    most = min(_FEW_WORDS, max(1, len(text.split()) - 1))
    single = [one for one in dict.fromkeys(words) if len(one.split()) <= most and _bare(one) != _bare(text)]
    return single or list(dict.fromkeys(words))


_FEW_WORDS = 4
"""Words of a phrase that is no sentence."""


def _years_said(years: Sequence[int]) -> str:
    """Years as a person says them: those of a run by its ends."""
    whole = len(years) > 2 and years[-1] - years[0] == len(years) - 1
    return f"{years[0]}–{years[-1]}" if whole else ", ".join(map(str, years))


def _types_of(answer: QuestionAnswer) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.type for one in answer.items))


def _has_fields(kind: NodeType, fields: Mapping[str, Any]) -> bool:
    """Whether things of a type have these fields, and may be of the status among them."""
    known = all(name in ("title", "status", *_COMMON) or kind.property(name) is not None for name in fields)
    return known and fields.get("status", kind.statuses[0]) in kind.statuses


def _names_year(text: str) -> bool:
    return bool(_YEAR.search(text))


def _names_date(text: str, lexicon: Lexicon) -> bool:
    """Whether the years of a text are those of dates, and not of the data."""
    return _names_year(text) and (not _names_year(_without(text, lexicon, "day")) or _compares_date(text, lexicon))


def _compares_date(text: str, lexicon: Lexicon) -> bool:
    """Whether a year behind before, after or since is compared with a date of the things that a text is about."""
    reading = read(text, lexicon)
    types = {type for item in reading.of("type") for type, _ in item.of("type")}
    named = [(type, name) for item in reading.of("property") for type, name in item.of("property") if type in types]
    dated = any((one := lexicon.view.property(type, name)) is not None and one.kind == "date" for type, name in named)
    return dated and any(a.has("before", "after", "since", "until") and b.has("year") for a, b in pairwise(reading.items))


def _without(text: str, lexicon: Lexicon, kind: str) -> str:
    """A text without words of a kind: whole dates, which are no years of the data; minutes that are no record of a meeting."""
    found = read(text, lexicon)
    for item in reversed(found.of(kind)):
        text = text[: found.tokens[item.at].start] + text[found.tokens[item.end - 1].end :]
    return text


def _unquoted(text: str) -> str:
    """A text without marks that quote all of it, or that were opened or closed at one of its ends alone."""
    plain = text.strip()
    for opening, closing in (('"', '"'), ("“", "”"), ("„", "“"), ("«", "»"), ("‘", "’")):
        whole = len(plain) > 1 and plain[0] == opening and plain[-1] == closing
        if whole or (sum(plain.count(mark) for mark in {opening, closing}) == 1 and opening != "‘"):
            plain = plain.removeprefix(opening).removesuffix(closing).strip()
    return plain


def _unmarked(text: str) -> str:
    """A goal as one would type it: without marks around it that quote or ask."""
    plain = _bare(text).strip(" ?\"“”„«»'‘’")
    return plain[:1].upper() + plain[1:]


def _sentence(text: str) -> str:
    """A text as a sentence begins, at most as long as a step's description."""
    plain = _bare(text)[:900]
    return plain[:1].upper() + plain[1:]


_LEADS = ("articles", "own", "all", "that", "with", "asks_what")
"""Kinds of words that stand before what is meant."""


def _beginnings(text: str, words: GoalWords) -> Iterator[str]:
    """A text without what leads it, and its beginnings up to where another clause begins."""
    tokens = words.language.tokens(text)
    if words.at("measures", tokens) or words.at("asks_what", tokens):
        return  # how many, what is: no list would say that
    start = 0
    while (end := max(words.at(kind, tokens, start) for kind in _LEADS)) > start:
        start = end
    piece = _Piece(text, tokens)
    yield piece.words(start)
    for end in range(len(tokens) - 1, start, -1):
        if any(words.at(kind, tokens, end) > end for kind in ("that", "with", "in_language")):
            yield piece.words(start, end)


def _as_list(text: str, plan: Aggregate, part: GoalPart, lexicon: Lexicon) -> tuple[Select, tuple[Filter, ...]] | None:
    """A list that a question asks for by something, where its plan would only count: for every region list the huts."""
    reading = read(text, lexicon)
    counts = plan.measure == "count" and plan.property is None and not (plan.having or plan.count_groups or plan.limit)
    by = [one for one in plan.group_by if one.property != "year"]
    words = words_of(part.said)
    tokens = words.language.tokens(part.said)
    asked = any((found := words.opening(tokens, at)) is not None and found[1] == "list" for at in range(len(tokens)))
    if not (counts and by and asked) or reading.has("count", "share") or "chart" in part.formats:
        return None
    shown = tuple(one.property for one in by if one.via is None)
    links = tuple(Filter(property="id", op="linked", via=one.via, to=one.to) for one in by if one.via is not None)
    return Select(of=plan.of, show=shown), links


def _compared(text: str, lexicon: Lexicon) -> Select | None:
    """Things of one type that a part compares by properties, with those properties; `None` where it says anything else."""
    reading = read(text, lexicon)
    known = ("entity", "property", "small", "also", "group", "compare", "with", "type", "year")
    if not all(item.has(*known) for item in reading.items):
        return None
    refs = [refs[0] for item in reading.of("entity") for refs in item.of("entity")[:1] if len({one.name for one in refs}) == 1]
    types = {ref.type for ref in refs}
    if len(refs) < _FEWEST_COMPARED or len(types) != 1 or len(refs) != len(reading.of("entity")):
        return None
    type = refs[0].type
    own = [name for item in reading.of("property") for of, name in item.of("property") if of == type]
    if len(own) < len(reading.of("property")) or not own:
        return None
    common = set(lexicon.view.years_of(type)).intersection(*(ref.years for ref in refs if ref.years))
    years = tuple(int(item.of("year")[0]) for item in reading.of("year")) or ((max(common),) if common else ())
    if len(years) != 1 or len(refs) > MAX_ENTITIES:
        return None
    return Select(of=Selection(type=type, years=years, among=tuple(refs)), show=tuple(dict.fromkeys(own)))


_FEWEST_COMPARED = 2


def _apart(of: Selection) -> list[Selection]:
    """The sets that one question names at once, each by itself and then together: the red and the green ones."""
    several = next((one for one in of.filters if one.op == "in" and isinstance(one.value, tuple)), None)
    if several is None or not isinstance(several.value, tuple) or len(several.value) > _MOST_SETS:
        return [of]
    rest = tuple(one for one in of.filters if one is not several)
    of_each = [several.model_copy(update={"op": "=", "value": one, "words": str(one)}) for one in several.value]
    return [*(of.model_copy(update={"filters": (*rest, one)}) for one in of_each), of]


def _names_apart(sets: Sequence[Selection]) -> tuple[str, ...]:
    """What tells sets from each other: the words of the conditions that not all have, and their years."""
    if len(sets) == 1:
        return ("",)
    common = [one for one in sets[0].filters if all(one in of.filters for of in sets)]
    names = []
    for of in sets:
        own = [one.words or str(one.value) for one in of.filters if one not in common]
        own += [one.name for one in of.among] if any(one.among != of.among for one in sets) else []
        own += list(map(str, of.years)) if any(one.years != of.years for one in sets) else []
        names.append(" ".join(own) or of.type)
    return tuple(names)


_MOST_SETS = 6
_MOST_FIGURES = 20
"""Columns of one table that are asked for."""


def _as_planned(part: GoalPart) -> PartPlan:
    """A part as the deliverable of its answer is made, before there are steps."""
    formats = (*part.formats, *(["chart"] if part.verb == "chart" else []))
    return PartPlan(said=part.said, verb=part.verb, steps=(), formats=formats, report=part.report)


def _can_chart(answer: QuestionAnswer) -> bool:
    rows = answer.tables[0].rows if answer.tables else ()
    return len(rows) > 1 and any(all(isinstance(row[at], int | float) for row in rows) for at in range(len(rows[0])))


def _worst(one: PropertyView, language: str) -> tuple[str, ...]:
    """The last values of a closed set that is in an order: its words say what stands last."""
    return (
        one.choices[-max(1, len(one.choices) * 2 // 5) :]
        if one.choices and (one.most.get(language) or one.most.get("en"))
        else ()
    )


def _properties(of: Selection, lexicon: Lexicon) -> tuple[Property, ...]:
    """The properties that a report over a set looks at: those that are known of some, what is judged first."""
    language = lexicon.language.name
    schema = Schema(lexicon.view.ontology)
    known = lexicon.view.known
    fixed = {one.property for one in of.filters if one.via is None and one.op == "="}
    room = {"string": _CATEGORIES, "number": _NUMBERS, "date": _DATES}
    found = []
    declared = [one for one in schema.properties(of.type) if (of.type, one.name) in known and one.name not in fixed]
    for one in sorted(declared, key=lambda each: not (each.choices and each.most)):
        values = known[of.type, one.name]
        if one.kind == "string" and not one.choices and not 1 < len(values.values) <= _MOST_VALUES:
            continue
        if room.get(one.kind, 0) == 0:
            continue
        room[one.kind] -= 1
        bounded = one.lowest is not None and one.highest is not None
        found.append(
            Property(
                name=one.name,
                label=schema.property_name(of.type, one.name, language),
                kind=one.kind,
                unit=one.unit or "",
                choices=one.choices,
                worst=_worst(one, language),
                share=one.unit == "%" or bounded,
            )
        )
    return tuple(found)
