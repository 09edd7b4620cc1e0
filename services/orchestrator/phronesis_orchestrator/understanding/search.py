"""Passages that answer a question: quoted where they hold what it asks for, and nothing where they do not."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rapidfuzz import process
from rapidfuzz.distance import OSA

from phronesis_contracts.media import MediaKind
from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem

from ..agents.text import node_year, sentences, shorten
from .language import Language, Sense, Token, fold
from .tables import Computed, asks_measure, choose, columns_of, compute, figures_of, is_row, limit_of, spell_tables

ATTACHED = frozenset(kind.value for kind in MediaKind)
"""Kinds of passages that are of what was attached to the conversation."""
_SUPPORT = 0.7
"""The share of a question's telling words that a source has to hold, in its title and a few of its sentences together."""
_SUPPORT_GIVEN = 0.5
"""The same of what the person attached to the conversation, which most questions in it are about."""
SURE = 0.8
"""The support from which a quote of what was attached is told as the answer; one with less comes nearest to it."""
_SEVERAL, _MOST = 3, 0.75
"""Of a topic of so many telling words, this share is enough."""
_UNDER = 5
"""Lines that are quoted of what stands under a heading, itself included."""
_SUPPORT_ROW = 0.3
"""The same of a row that holds a question's names, where it asks who: what somebody does stands in no cell."""
_PRIOR = 0.4
"""By how much more support another source has to be preferred to what was attached."""
_MENDED = 4
"""Letters of the shortest word that may be misspelt."""
_HEADING = 4
"""Words of a line at most that is taken for a heading: what stands under it is quoted with it."""
_NAMES = 0.99
"""The same for its names and numbers: a source that lacks one is about something else."""
_QUOTED = 3
"""Sentences that are quoted of the best source."""
_OTHERS = 1
"""Sentences that are quoted of another one."""
_NEAR = 0.85
"""A second source is quoted where it supports the question so well as this share of the best."""
_LONGEST = 420
"""Characters of one quoted sentence."""
_SENTENCE_END = re.compile(r"[.!?]\s+(?=\S)")
_NEAREST, _NEAREST_REMARK = 0.05, 0.35
"""The least cosine of a sentence that is near a question, and near a remark, such as words to look for."""
_BESIDE, _NEAREST_QUOTED = 0.25, 5
"""By how much another sentence may be less near than the nearest, and how many are quoted."""
_AS_MEANT = 0.05
"""By how much less near than the nearest sentence a quote may be that is told as the answer."""
_AROUND = 1
"""Sentences behind the nearest that are quoted with it."""
_BEFORE, _BEHIND = 4, 3
"""Words before and behind what is counted in which its number stands."""
_LOOK_AT = 400
"""Sentences of one source that are looked at."""


@dataclass(frozen=True)
class Passage:
    """A text that may hold the answer."""

    id: str
    title: str
    text: str
    kind: str
    score: float = 0.0
    place: str = ""
    """Page, sheet or heading, as a reader knows it."""
    first: bool = False
    """Whether its text begins a document."""

    @property
    def label(self) -> str:
        """Where it is from, as it is cited."""
        return f"{self.title}, {self.place}" if self.place else self.title


@dataclass(frozen=True)
class Quote:
    """Sentences of one source that support the question."""

    passage: Passage
    sentences: tuple[str, ...]
    support: float
    """The share of the question's telling words that they and the title hold, 0 to 1."""


@dataclass(frozen=True)
class _Terms:
    weights: dict[str, float]
    names: frozenset[str]
    exact: frozenset[str]
    """The words as they were said, folded."""
    sort: str = ""
    """What sort of answer is wanted: `when`, `who`, `how_many`, or any."""
    counted: str = ""
    """Stem of what is to be counted, where it asks how many there are."""
    priced: bool = False
    """Whether it asks for a sum of money."""
    unheld: bool = False
    """Whether it asks for a sort of thing (“which heading”) that no source speaks of."""


def quote(
    question: str, passages: Sequence[Passage], language: Language, *, given: bool = False, fewest: int = 2
) -> tuple[Quote, ...]:
    """The best sources with their best sentences, at most two; empty where none supports the question.

    Args:
        given: whether the person gave these texts to read: a question without telling words ("what does it say?") is then
            about them, and their first sentences are quoted.
        fewest: telling words that a question needs elsewhere, unless it has a name or a number.
    """
    texts = [_source_stems(passage, language) for passage in passages]
    own = [words for passage, words in zip(passages, texts, strict=True) if passage.kind in ATTACHED]
    terms = _terms(question, texts, frozenset().union(*own), language)
    if not given and len(terms.weights) < fewest and not terms.names:
        return ()
    found = [one for one in (_best(passage, terms, language) for passage in passages) if one is not None]
    found.sort(key=lambda one: (-round(one.support + _PRIOR * (one.passage.kind in ATTACHED), 1), -one.passage.score))
    if not found:
        return ()
    best = found[0]
    other = next(
        (one for one in found[1:] if one.support >= _NEAR * best.support and one.passage.label != best.passage.label), None
    )
    if other is None or terms.names:
        return (best,)
    return (best, Quote(other.passage, other.sentences[:_OTHERS], other.support))


def meant(question: str, passages: Sequence[Passage], language: Language) -> list[Passage]:
    """The passages of the one document that a question names by a word of its title or of its first line; else none."""
    heads: dict[str, set[str]] = {}
    for one in passages:
        head = next(iter(one.text.splitlines()), "") if one.first else ""
        heads.setdefault(one.title, set()).update(language.stem(word) for word in _words(f"{one.title} {head}"))
    tokens = language.tokens(question)
    several = language.cues("of_them") | language.cues("both_of")  # which of them: it is asked of all
    alone = len(heads) < 2 or any(token.folded in several for token in tokens)
    said = set() if alone else {token.stem for token in telling(tokens, language)}
    only = {title for title, held in heads.items() if said & (held - set().union(*(h for t, h in heads.items() if t != title)))}
    return [one for one in passages if one.title in only] if len(only) == 1 else []


def lines_of(passages: Sequence[Passage]) -> list[tuple[Passage, str]]:
    """The sentences and table rows of passages, each once, with the passage that it is first found in."""
    found: dict[tuple[str, str], Passage] = {}
    for passage in passages:
        text = spell_tables(passage.text) if passage.kind in ATTACHED else passage.text
        for line in sentences(text):
            found.setdefault((passage.id, line), passage)
    return [(passage, line) for (_, line), passage in found.items()]


def table_of(
    question: str,
    passages: Sequence[Passage],
    language: Language,
    likely: Mapping[str, float] | None = None,
    fresh: int = 0,
) -> tuple[Passage, Computed] | None:
    """What the one table that a question fits gives for it: a total, a count, or the row with the most or the least.

    Args:
        passages: all passages of the documents that hold tables.
        likely: how near the name of each column of figures is to the question, where none of them is named.
        fresh: where a follow-up begins in the question.
    """
    tables = _tables(passages)
    words = telling(language.tokens(question), language)

    def computed(some: Iterable[tuple[Passage, dict[str, None]]]) -> list[tuple[Passage, Computed]]:
        of = ((one, compute(question, words, list(rows), one.label, language, likely, fresh)) for one, rows in some)
        found = [(one, each) for one, each in of if each is not None]
        fewest = min((each.unexplained for _, each in found), default=0)
        return [one for one in found if one[1].unexplained == fewest]

    found = computed(tables.values())
    if len(found) > 1:  # of two sheets the one that is named
        asked = {word.stem for word in words}
        held = [len(asked & {token.stem for token in language.tokens(passage.label)}) for passage, _ in found]
        found = [one for one, own in zip(found, held, strict=True) if own == max(held)]
    if len(found) > 1:  # of sheets that are alike all of them
        alike = [tables[passage.label] for passage, _ in found]
        heads = {(passage.title, columns_of(next(iter(rows)))) for passage, rows in alike}
        whole = {row: None for _, rows in alike for row in rows}
        found = computed([(replace(alike[0][0], place=""), whole)]) if len(heads) == 1 else []
    return found[0] if len(found) == 1 else None


def rows_of(question: str, passages: Sequence[Passage], language: Language) -> tuple[Passage, Computed] | None:
    """The few rows that hold what a question names, of the table that explains most of its words."""
    words = telling(language.tokens(question), language)
    found = [
        (passage, chosen)
        for passage, rows in _tables(passages).values()
        if (chosen := choose(question, words, list(rows), passage.label, language)) is not None
    ]
    best = min(found, key=lambda one: one[1].unexplained, default=None)
    return best if best is not None and best[1].unexplained <= min(1, len(words) - 1) else None


def columns_to_measure(question: str, passages: Sequence[Passage], language: Language) -> list[str]:
    """The columns of figures of all tables, where a question asks for a total, an extreme, or what is below a limit."""
    measures = asks_measure(question, telling(language.tokens(question), language), language)
    if not measures and limit_of(question, language) is None:
        return []
    rows = [line for _, lines in _tables(passages).values() for line in lines]
    return list(dict.fromkeys(column for row in rows for column in figures_of(row)))


def _tables(passages: Sequence[Passage]) -> dict[str, tuple[Passage, dict[str, None]]]:
    """The rows of each table, by its label."""
    found: dict[str, tuple[Passage, dict[str, None]]] = {}
    for passage, line in lines_of(passages):
        if is_row(line):
            found.setdefault(passage.label, (passage, {}))[1][line] = None
    return found


def nearest(
    question: str, lines: Sequence[tuple[Passage, str]], cosines: Sequence[float], language: Language, *, asks: bool
) -> tuple[Quote, ...]:
    """What comes nearest to a question in meaning, of what is of the sort that it asks for; each source with its sentences.

    Args:
        lines: as `lines_of` gives them.
        cosines: how near each is to the question.
        asks: whether the message is a question; a remark has to be nearer.
    """
    terms = _Terms({}, frozenset(), frozenset(), _sort_of(question, language))
    scored = [
        (cosine, n) for n, (cosine, (_, line)) in enumerate(zip(cosines, lines, strict=True)) if _fits([line], terms, language)
    ]
    if not scored and asks:  # nothing of the sort: what it may be told by
        scored = [(cosine, n) for n, cosine in enumerate(cosines)]
    best, place = max(scored, default=(0.0, 0))
    if best < (_NEAREST if asks else _NEAREST_REMARK):
        return ()
    title = lines[place][0].title
    beside = [n for cosine, n in sorted(scored, reverse=True) if cosine >= best - _BESIDE and lines[n][0].title == title]
    around = () if is_row(lines[place][1]) else range(place, min(len(lines), place + _AROUND + 1))
    context = [n for n in around if lines[n][0] is lines[place][0] and not is_row(lines[n][1])]
    quoted: dict[str, tuple[Passage, list[int]]] = {}
    for n in dict.fromkeys([place, *beside[:_NEAREST_QUOTED], *context]):
        quoted.setdefault(lines[n][0].label, (lines[n][0], []))[1].append(n)
    return tuple(
        Quote(passage, tuple(shorten(lines[n][1], _LONGEST) for n in sorted(places)), round(best, 4))
        for passage, places in quoted.values()
    )


def weigh(found: Quote, lines: Sequence[tuple[Passage, str]], cosines: Sequence[float]) -> tuple[Quote, bool]:
    """A quote that was found by its words, with the sentence behind it, and whether it means what is asked.

    Args:
        found: the quote.
        lines: as `lines_of` gives them.
        cosines: how near each is to the question.
    """
    if any(is_row(line) for line in found.sentences):
        return found, True
    places = [n for n, (_, line) in enumerate(lines) if shorten(line, _LONGEST) in found.sentences]
    own = max((cosines[n] for n in places), default=1.0)
    behind = places[-1] + 1 if places else len(lines)
    more = [
        shorten(line, _LONGEST) for passage, line in lines[behind : behind + 1] if passage is found.passage and not is_row(line)
    ]
    whole = replace(found, sentences=(*found.sentences, *more))
    return whole, any(map(_states, whole.sentences)) and own >= max(cosines, default=0.0) - _AS_MEANT


def _states(line: str) -> bool:
    """Whether a line says something, and is no heading alone."""
    return line.rstrip().endswith((".", "!", "?", "…")) or ":" in line or any(map(str.isdigit, line))


def without(near: Sequence[Quote], found: Quote) -> tuple[Quote, ...]:
    """Quotes from the document of another, without the sentences that it quotes."""
    rest = (
        replace(one, sentences=tuple(line for line in one.sentences if line not in found.sentences))
        for one in near
        if one.passage.title == found.passage.title
    )
    return tuple(one for one in rest if one.sentences)


def things_about(topic: str, passages: Sequence[Passage], language: Language, most: int = 5) -> tuple[Quote, ...]:
    """The things whose texts hold the telling words of a topic, each with its best sentences; best first.

    Args:
        topic: what the things are to be about.
        passages: texts of things, a title for each.
        most: things at most.
    """
    terms = replace(_terms(topic, [_source_stems(one, language) for one in passages], frozenset(), language), names=frozenset())
    if not terms.weights:
        return ()
    enough = _MOST if len(terms.weights) >= _SEVERAL else 1.0
    found = [
        one for one in (_best(passage, terms, language) for passage in passages) if one is not None and one.support >= enough
    ]
    found.sort(key=lambda one: (-round(one.support, 1), -one.passage.score))
    return tuple({one.passage.title: one for one in reversed(found)}.values())[::-1][:most]


def _terms(question: str, texts: Sequence[frozenset[str]], own: frozenset[str], language: Language) -> _Terms:
    """The telling words of a question, weighted by how few of the sources hold them, and its names and numbers.

    A word that says what sort of answer is wanted (“what time”, “how heavy”), and what is said before the question itself
    (“I'm afraid of X. What is it?”), count only where a source holds them.

    Args:
        own: stems in what the person attached, by which a misspelt word is mended.
    """
    weights: dict[str, float] = {}
    names: set[str] = set()
    exact: set[str] = set()
    unheld = False
    asked = max((match.end() for match in _SENTENCE_END.finditer(question.strip())), default=0)
    tokens = language.tokens(question)
    silent = _silent_stems(language) if own else frozenset()
    spelt = sorted(own | silent)
    for n, token in enumerate(tokens):
        if not _tells(token.folded, token.stem, language):
            continue
        stem, held = token.stem, sum(token.stem in text for text in texts)
        named = n > 0 and token.text[:1].isupper() and language.name != "de"
        if not held and (stem := _mended(token, spelt, silent, named=named)) != token.stem:
            held = sum(stem in text for text in texts)
        aside = token.end <= asked or _is_sort(tokens, n, language, bool(own))
        if not stem or (aside and (stem not in own if own else not held)):
            unheld = unheld or (bool(stem) and token.end > asked)
            continue
        weights[stem] = math.log(1 + (len(texts) + 1) / (held + 0.5))
        exact.add(token.folded)
        if token.folded[:1].isdigit() or named:
            names.add(stem)
    counted = _counted(tokens, language)
    priced = bool(language.cues("priced") & {token.folded for token in tokens})
    return _Terms(weights, frozenset(names), frozenset(exact), _sort_of(question, language), counted, priced, unheld)


def _counted(tokens: Sequence[Token], language: Language) -> str:
    """The stem of the word after “how many”, where one follows."""
    for at, end, sense in language.senses_in(tokens):
        if sense.kind == "count" and end - at == 2 and end < len(tokens):
            return tokens[end].stem if _tells(tokens[end].folded, tokens[end].stem, language) else ""
    return ""


def _counts(line: str, counted: str, language: Language) -> bool:
    """Whether a sentence has a number close to what is to be counted."""
    tokens = language.tokens(line)
    places = [n for n, token in enumerate(tokens) if token.stem == counted]
    near = (token for n in places for token in tokens[max(0, n - _BEFORE) : n + _BEHIND + 1])
    return any(_is_number(token, language) for token in near)


def _is_number(token: Token, language: Language) -> bool:
    return token.folded[:1].isdigit() or any(one.kind == "numbers" for one in language.phrases.get((token.stem,), ()))


def _mended(token: Token, own: Sequence[str], silent: frozenset[str], *, named: bool) -> str:
    """The stem that a misspelt word was meant to have: one of the attached texts, or none for a word without a subject.

    Args:
        own: stems of the attached texts and of words without a subject; empty where nothing was attached.
        silent: those of words without a subject.
        named: whether it is written as a name, which no such word is.
    """
    if not own or len(token.stem) < _MENDED or not token.folded.isalpha():
        return token.stem
    if named:
        silent = frozenset()
    allowed = 1 if len(token.stem) < 2 * _MENDED else 2
    near = process.extractOne(token.stem, own, scorer=OSA.distance, score_cutoff=allowed)
    if near is None:
        return token.stem
    return "" if near[0] in silent else str(near[0])


def _silent_stems(language: Language) -> frozenset[str]:
    return frozenset(key[0] for key, senses in language.phrases.items() if len(key) == 1 and _are_silent(senses))


def _is_sort(tokens: Sequence[Token], n: int, language: Language, given: bool) -> bool:
    """Whether a word says what sort of answer is wanted: the one after what or which, of an attached text also after how."""
    return n > 0 and tokens[n - 1].folded in language.cues("sort" if given else "which")


def _sort_of(question: str, language: Language) -> str:
    return next((sort for sort in ("how_many", "when", "who") if language.holds(question, language.cues(sort))), "")


def _fits(lines: Sequence[str], terms: _Terms, language: Language) -> bool:
    """Whether sentences hold the sort of thing that is asked for: a time, a name, or a number."""
    if terms.sort == "how_many" and terms.weights and (rows := [line for line in lines if is_row(line)]):
        # A figure of a row is the one that is asked for if its column is.
        asked = {language.stem(word) for row in rows for column in figures_of(row) for word in _words(column)}
        return bool(asked & terms.weights.keys())
    said = [token for line in lines for token in language.tokens(line)]
    kinds = {sense.kind for token in said for sense in language.phrases.get((token.stem,), ())}
    match terms.sort:
        case "when":
            timed = "months" in kinds or any(token.folded in language.cues("times") for token in said)
            return timed or any(_TIME.search(line) for line in lines)
        case "how_many" if terms.counted:
            return any(_counts(line, terms.counted, language) for line in lines)
        case "how_many" if terms.priced and not any(map(is_row, lines)):
            return any(_is_number(token, language) for token in said) and (
                "currencies" in kinds or any(map(_CURRENCY.search, lines))
            )
        case "how_many":
            return any(_is_number(token, language) for token in said)
        case "who" if language.name != "de":  # where every noun has a capital
            return any(_NAME.search(line) for line in lines)
    return True


_TIME = re.compile(r"\b(1[5-9]|2[01])\d\d\b|\b\d{1,2}([./:-]\d{1,2}|st|nd|rd|th)\b|\b\d{1,2} ?[ap]\.?m\b")
_CURRENCY = re.compile(r"[€£$¥]")
_NAME = re.compile(r"(?<=\S )[A-Z]|^[A-Z]\w+ [A-Z]")


_SILENT = frozenset(
    """small question_words detail list also follow_up existence pronoun_one pronoun_many concept purpose scope yes_or_no
    group document year_word compare_less compare_greater since until before after between""".split()
)
"""Kinds of words that carry no subject."""


def telling(tokens: Sequence[Token], language: Language) -> list[Token]:
    """The words of a message that say what it is about."""
    return [token for token in tokens if _tells(token.folded, token.stem, language)]


def _tells(folded: str, stem: str, language: Language) -> bool:
    if not any(c.isalnum() for c in folded) or folded in ("'s", "s"):
        return False
    if folded in language.cues("telling"):
        return True  # a plan passes over it; a text may say it
    senses = language.phrases.get((stem,), ())
    return not _are_silent(senses)


def _are_silent(senses: Sequence[Sense]) -> bool:
    return any(sense.kind in _SILENT for sense in senses)


def _source_stems(passage: Passage, language: Language) -> frozenset[str]:
    return frozenset(language.stem(word) for word in _words(f"{passage.title} {passage.text}"))


def _words(text: str) -> list[str]:
    return [word for word in "".join(c if c.isalnum() else " " for c in fold(text)).split() if word]


def _best(passage: Passage, terms: _Terms, language: Language) -> Quote | None:
    text = spell_tables(passage.text) if passage.kind in ATTACHED else passage.text
    listed = sentences(text)[:_LOOK_AT]
    if not listed:
        return None
    if not terms.weights:
        return Quote(passage, tuple(shorten(one, _LONGEST) for one in listed[:_QUOTED]), _SUPPORT)
    title = {language.stem(word) for word in _words(passage.title)}
    words = [_words(line) for line in listed]
    held = [{language.stem(word) for word in line} & terms.weights.keys() for line in words]
    exact = [len(terms.exact & set(line)) for line in words]
    chosen: list[int] = []
    covered = title & terms.weights.keys()
    while len(chosen) < _QUOTED:
        gains = [
            (sum(terms.weights[t] for t in held[n] - covered), len(held[n]), exact[n], -n)
            for n in range(len(listed))
            if n not in chosen
        ]
        if not gains:
            break
        gain, size, _, place = max(gains)
        if (chosen and gain <= 0) or size == 0:
            break
        chosen.append(-place)
        covered = covered | held[-place]
    if not chosen:
        return None
    whole = sum(terms.weights.values())
    support = sum(terms.weights[t] for t in covered) / whole
    given = passage.kind in ATTACHED
    named = not terms.names or len(terms.names & covered) >= _NAMES * len(terms.names)
    others = terms.weights.keys() - terms.names
    about = not given and terms.names and not covered & others and (others or terms.unheld)
    enough = _SUPPORT_GIVEN if given else _SUPPORT
    if terms.names and terms.sort == "who" and is_row(listed[chosen[0]]):
        enough = _SUPPORT_ROW
    if support < enough or not named or about:
        return None
    quoted = [n for place in chosen for n in _with_heading(place, words)]
    if given:  # rows of a table
        quoted += [n for n in range(len(listed)) if held[n] == held[chosen[0]]][:_QUOTED]
    places = sorted({*chosen, *quoted})
    if not _fits([listed[n] for n in places], terms, language):
        return None
    return Quote(passage, tuple(shorten(listed[n], _LONGEST) for n in places), round(support, 4))


def _with_heading(place: int, lines: Sequence[Sequence[str]]) -> range:
    """A line, and after a heading the lines under it."""
    return range(place, min(place + _UNDER, len(lines)) if len(lines[place]) <= _HEADING else place + 1)


_DOCUMENT = re.compile(r"^\[(document|image|audio): ([^\n]{1,300})\]\n(.*?)(?:^\[end of \1\]$|\Z)", re.M | re.S)


def attached(media_text: str) -> list[Passage]:
    """The texts of the attachments of the message at hand."""
    return [Passage(match[2], match[2], match[3], match[1], 1.0) for match in _DOCUMENT.finditer(media_text)]


def passages_of(memory: AugmentedMemoryContext | None) -> list[Passage]:
    """What retrieval found, as passages: of a thing with a text for each year, the newest first."""
    if memory is None:
        return []
    found = [_passage(item) for item in (*memory.memory_units, *memory.concepts)]
    return sorted(found, key=lambda one: (-one.score, one.id))


def _passage(item: ContextItem) -> Passage:
    _, year = node_year(item)
    return Passage(item.external_id or item.id, item.title, item.text, item.kind, item.score, year)
