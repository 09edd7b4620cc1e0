"""Tables in a text: spelled out, each row as `column: value` pairs, and computed on where more than a row is asked for."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from .language import Language, Token

_SEPARATORS = ("|", "\t", ";", ",")
_FEWEST = 2
"""Cells of the narrowest row, and rows with the head of the shortest table."""
_LONGEST = 4_000
"""Characters of a row at most."""
_PAIRS = "; "


def spell_tables(text: str) -> str:
    """A text in which the rows of its tables say for each value which column it stands in; the rest as it was."""
    lines = [line for line in text.splitlines() if not _is_rule(line)]
    return "\n".join(line for _, run in groupby(lines, _shape) for line in _spelled(list(run)))


def figures_of(row: str) -> Iterator[str]:
    """The names of those columns of a spelled row in which a figure stands."""
    for pair in row.rstrip(".").split(_PAIRS):
        column, found, value = pair.partition(": ")
        if found and any(c.isdigit() for c in value):
            yield column


def is_row(line: str) -> bool:
    """Whether a line is a spelled row."""
    pairs = line.rstrip(".").split(_PAIRS)
    return len(pairs) >= _FEWEST and all(": " in pair for pair in pairs)


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and not line.strip(" |-:=+")


def _shape(line: str) -> tuple[str, int]:
    """The separator of a line's cells, and how many there are; a line of text is of no shape."""
    if len(line) > _LONGEST:
        return "", 0
    for separator in _SEPARATORS:
        cells = _cells(line, separator)
        # A comma parts clauses, too: those of a table have no space behind it.
        if len(cells) >= _FEWEST and (separator != "," or (len(cells) > _FEWEST and not any(c[:1] == " " for c in cells))):
            return separator, len(cells)
    return "", 0


def _cells(line: str, separator: str) -> list[str]:
    bare = line.strip().strip("|") if separator == "|" else line.strip()
    return next(csv.reader([bare], delimiter=separator), [])


def _spelled(run: Sequence[str]) -> Iterator[str]:
    separator, _ = _shape(run[0])
    if not separator or len(run) < _FEWEST:
        yield from run
        return
    head, *rows = ([cell.strip() for cell in _cells(line, separator)] for line in run)
    for row in rows:
        yield _PAIRS.join(f"{name}: {value}" for name, value in zip(head, row, strict=False) if value) + "."


@dataclass(frozen=True)
class Computed:
    """What a table gives for a question.

    Args:
        measure: `sum`, `mean`, `count`, `most`, `least`, or `rows` where those are asked for that have a value.
        column: the column that it is measured by; empty for a count.
        value: the sum, the mean or the count, or the greatest or least figure.
        rows: the rows that it is made of, spelled; of `most` and `least` the row itself.
    """

    measure: str
    column: str
    value: float
    rows: tuple[str, ...]


_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_UNEXPLAINED = 1
"""Words of a question at most that stand neither in the table nor in its title: what its rows are."""


def compute(
    question: str,
    words: Sequence[Token],
    rows: Sequence[str],
    title: str,
    language: Language,
    likely: Mapping[str, float] | None = None,
) -> Computed | None:
    """A total, a count, the rows with a value, or the one with the most or the least; `None` where that is not sure.

    Args:
        words: the words of the question that tell something.
        rows: all rows of one table, spelled.
        title: the table's name.
        likely: how near the name of each column of figures is to the question; the nearest is measured where none is named.
    """
    asks, limit = asks_measure(question, words, language), limit_of(question, language)
    senses = [sense for _, _, sense in language.senses_in(language.tokens(question))]
    kinds = {sense.kind for sense in senses}
    how_much = any(sense.kind == "question_words" and sense.value == "how_much" for sense in senses)
    if limit is None and (kinds & {"compare_greater", "compare_less"} or (how_much and kinds & {"more", "less"})):
        return None  # two columns, or two figures, held against each other
    if limit is not None:  # which cost less than 500: a condition on rows
        asks = asks if asks in ("sum", "mean", "count") else "rows"
    spent = not asks and how_much
    named = language.holds(question, language.cues("which") | language.cues("who"))
    measure = "sum" if spent else asks or ("rows" if named else "")
    cells = [dict(pair.partition(": ")[::2] for pair in row.rstrip(".").split(_PAIRS)) for row in rows]
    if not measure or len(cells) < _FEWEST:
        return None
    held = {value.casefold() for one in cells for value in one.values()} - language.cues("said_yes") - language.cues("said_no")
    told = {word.start for word in words}
    words = [one for one in language.tokens(question) if one.start in told or one.folded in held]  # who is off?
    if limit is not None:
        words = [word for word in words if not limit.start <= word.start < limit.end]
    chosen, asked, unexplained = _rows_meant(words, cells, _stems(title, language), language, measure, question)
    if unexplained > (_UNEXPLAINED + bool(likely) if asks or limit is not None else 0):
        return None
    if spent and not _FEWEST <= len(chosen) < len(cells):
        return None  # how much is one of them: its row is quoted
    if measure == "rows" and limit is None:
        several = _FEWEST <= len(chosen) < len(cells)
        return Computed(measure, "", len(chosen), tuple(rows[n] for n in chosen)) if several else None
    columns = list(dict.fromkeys(name for one in cells for name in one))
    figures = {name: [_figure(cells[n].get(name, "")) for n in chosen] for name in columns}
    numeric = [name for name, some in figures.items() if all(one is not None for one in some)]

    def years(name: str) -> bool:
        return all(_is_year(one) for one in figures[name])

    sums = ("sum", "count", "mean")
    fitting = [name for name in asked if name in numeric and (measure in sums or not years(name))]
    by = max(fitting, key=asked.count, default="")  # of kilos 2024 and kilos 2025 the one whose year is said
    noun = _counted_noun(question, language)
    if measure == "count" and by and noun and noun not in _stems(by, language):
        return None  # how many are late, where days late are a column
    if measure == "count" and asked and set(asked) == {columns[0]} and noun in _stems(columns[0], language):
        asked = []  # how many orders, where each row is one and has its number
    if measure == "count" and not by and limit is None:
        whole = bool(language.cues("table") & {token.folded for token in language.tokens(question)})
        fits = len(chosen) < len(cells) or (not asked and (not unexplained or whole))
        return Computed(measure, "", len(chosen), tuple(rows[n] for n in chosen)) if fits else None
    measured = [name for name in numeric if not years(name)]
    price = _PRICED if language.cues("priced") & {token.folded for token in language.tokens(question)} else _OF_MONEY
    if price != _PRICED and any(sense.kind == "count" for _, _, sense in language.senses_in(language.tokens(question))):
        price = -_OF_MONEY  # how many are in stock
    near = sorted(
        (name for name in measured if likely and name in likely),
        key=lambda name: -((likely or {})[name] + price * _is_money(name, cells, language)),
    )
    column = by or (measured[0] if len(measured) == 1 else near[0] if near else "")
    values = [one for one in figures.get(column, ()) if one is not None]
    if not values:
        return None
    if limit is not None:
        kept = [n for n, value in zip(chosen, values, strict=True) if limit.holds(value)]
        values = [value for value in values if limit.holds(value)]
        if not kept:
            return None
        if measure in ("rows", "count"):
            return Computed("rows", column, len(kept), tuple(rows[n] for n in kept))
        chosen = kept
    if measure == "mean":
        return Computed("mean", column, round(sum(values) / len(values), 4), tuple(rows[n] for n in chosen))
    if measure in ("sum", "count"):
        return Computed("sum", column, sum(values), tuple(rows[n] for n in chosen))
    value = max(values) if measure == "most" else min(values)
    return Computed(measure, column, value, tuple(rows[n] for n, one in zip(chosen, values, strict=True) if one == value))


@dataclass(frozen=True)
class _Limit:
    """A condition on a column of figures, and where it stands in the question."""

    kind: str
    figure: float
    start: int
    end: int

    def holds(self, value: float) -> bool:
        """Whether a figure meets it."""
        match self.kind:
            case "compare_less":
                return value < self.figure
            case "compare_at_most":
                return value <= self.figure
            case "compare_greater":
                return value > self.figure
        return value >= self.figure


_LIMITS = ("compare_less", "compare_at_most", "compare_greater", "compare_at_least")


def limit_of(question: str, language: Language) -> _Limit | None:
    """What a question asks of a figure: less than 500, at least £20."""
    tokens = language.tokens(question)
    for at, end, sense in language.senses_in(tokens):
        behind = [token for token in tokens[end : end + 2] if _figure(token.text) is not None]
        if sense.kind in _LIMITS and behind:
            return _Limit(sense.kind, _figure(behind[0].text) or 0.0, tokens[at].start, behind[0].end)
    return None


def _rows_meant(
    words: Sequence[Token],
    cells: Sequence[Mapping[str, str]],
    known: frozenset[str],
    language: Language,
    measure: str,
    question: str,
) -> tuple[list[int], list[str], int]:
    """The rows that the words of a question choose, the columns that they name, and how many words say neither.

    A value chooses by the columns that are named, where one of those has it: who is off on Monday?
    """
    named = {name: _stems(name, language) for name in dict.fromkeys(name for one in cells for name in one)}
    held = [{name: _stems(value, language) for name, value in one.items()} for one in cells]
    every = frozenset[str]().union(*(stems for row in held for stems in row.values()))
    chosen, asked, values, unexplained = list(range(len(cells))), list[str](), list[str](), 0
    for word in words:
        denies = any(sense.kind in ("not", "without") for sense in language.phrases.get((word.stem,), ()))
        if _says_measure(word, language) or denies:
            continue
        if here_named := [name for name, stems in named.items() if word.stem in stems or _abbreviates(name, word, language)]:
            for name in here_named:
                said = _said_so(cells, name, word, question, language) if measure in ("count", "rows", "sum", "mean") else []
                chosen = [n for n in chosen if n in said] if said else chosen
                asked += [] if said else [name]
        elif word.stem in every:
            values.append(word.stem)
        elif word.stem not in known:
            unexplained += 1
    for value in values:
        holding = [n for n in chosen if any(value in stems for stems in held[n].values())]
        of_named = [n for n in holding if any(value in held[n].get(name, ()) for name in asked)]
        here = of_named or holding
        chosen = here if here and (measure in ("sum", "mean", "count", "rows") or len(here) > 1) else chosen
    return chosen, asked, unexplained


def _abbreviates(name: str, word: Token, language: Language) -> bool:
    """Whether a column is called by the first letters of a day that is asked for."""
    short = name.casefold().rstrip(".")
    return len(short) >= _FEWEST and word.folded.startswith(short) and word.folded in language.cues("times")


_OF_MONEY, _PRICED = 0.3, 2.0
"""How much nearer a column of money is than others, and is where a price is spoken of."""


def _is_money(name: str, cells: Sequence[Mapping[str, str]], language: Language) -> bool:
    """Whether a column holds prices, as its name or the currency in its values says."""
    words = {token.folded for token in language.tokens(name)}
    senses = (one for word in words for one in language.phrases.get((language.stem(word),), ()))
    priced = any(one.get(name, "").startswith(("€", "£", "$")) for one in cells)
    return priced or bool(words & language.cues("money_column")) or any(sense.kind == "currencies" for sense in senses)


def _said_so(cells: Sequence[Mapping[str, str]], name: str, word: Token, question: str, language: Language) -> list[int]:
    """The rows that say yes in a column of nothing but yes and no, or no where it is denied; empty where it is none."""
    values = [one.get(name, "").casefold() for one in cells]
    yes, no = language.cues("said_yes"), language.cues("said_no")
    if not all(value in yes | no for value in values):
        return []
    tokens = language.tokens(question)
    at = next((n for n, token in enumerate(tokens) if token.start == word.start), 0)
    denied = any(end in (at, at - 1) and sense.kind in ("without", "not") for _, end, sense in language.senses_in(tokens))
    return [n for n, value in enumerate(values) if value in (no if denied else yes)]


_MEASURES = {
    "sum": "sum",
    "mean": "mean",
    "count": "count",
    "most": "most",
    "largest": "most",
    "more": "most",
    "table_most": "most",
}
_MEASURES |= {"least": "least", "smallest": "least", "less": "least", "table_least": "least"}


def asks_measure(question: str, words: Sequence[Token], language: Language) -> str:
    """What is to be computed; a count only where nothing else is said, and never of what a name stands before."""
    tokens, telling = language.tokens(question), {word.start for word in words}
    found = []
    for at, end, sense in language.senses_in(tokens):
        beside = at > 0 and not question[tokens[at - 1].end : tokens[at].start].strip()
        of_name = beside and tokens[at - 1].start in telling  # a phone number is no count
        if sense.kind in _MEASURES and (sense.kind != "count" or (end - at > 1 and not of_name)):
            found.append(_MEASURES[sense.kind])
    return next((one for one in found if one != "count"), found[0] if found else "")


def _counted_noun(question: str, language: Language) -> str:
    """The stem of the word behind “how many”; empty where there is none."""
    tokens = language.tokens(question)
    for _, end, sense in language.senses_in(tokens):
        if sense.kind == "count" and end < len(tokens):
            return tokens[end].stem
    return ""


def _says_measure(word: Token, language: Language) -> bool:
    return any(sense.kind in _MEASURES for sense in language.phrases.get((word.stem,), ()))


def _is_year(value: float | None) -> bool:
    return value is not None and value.is_integer() and 1_800 <= value <= 2_200


def _stems(text: str, language: Language) -> frozenset[str]:
    return frozenset(language.stem(word) for word in re.findall(r"[^\W_]+", text.casefold()))


def _figure(text: str) -> float | None:
    plain = text.strip().strip("€£$%").strip()
    return float(plain.replace(",", "")) if _NUMBER.fullmatch(plain) else None
