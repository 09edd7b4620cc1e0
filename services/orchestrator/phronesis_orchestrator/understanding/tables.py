"""Tables in a text: spelled out, each row as `column: value` pairs, and computed on where more than a row is asked for."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from .language import Language, Token

_SEPARATORS = ("|", "\t", ";", ",")
_FEWEST = 2
"""Cells of the narrowest row, and rows with the head of the shortest table."""
_LONGEST = 4_000
"""Characters of a row at most."""
_PAIRS = "; "
_DECIMAL = re.compile(r"[^\W\d]\s+\d+,\d+\s+[^\W\d]")
"""A figure with a decimal comma between two words: no end of a cell."""


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


def columns_of(row: str) -> tuple[str, ...]:
    """The names of the columns of a spelled row."""
    return tuple(pair.partition(": ")[0] for pair in row.rstrip(".").split(_PAIRS))


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
        clauses = separator == "," and (any(c[:1] == " " for c in cells) or _DECIMAL.search(line) is not None)
        thousands = separator == "," and len(cells) == _FEWEST and cells[0][-1:].isdigit() and cells[1][:1].isdigit()
        if len(cells) >= _FEWEST and not clauses and not thousands:
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
    if len(head) == _FEWEST and _figure(head[1]) is not None and not _is_year(_figure(head[1])):
        yield from (f"{name}: {value}." for name, value in (head, *rows))  # Net | £12: each line says what it is
        return
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
        shown: a greatest or least figure as its cell has it, where that is no plain number.
        unexplained: words of the question that stand neither in the table nor in its title.
    """

    measure: str
    column: str
    value: float
    rows: tuple[str, ...]
    shown: str = ""
    unexplained: int = 0


_TOO_MANY = 99
"""What a word of a follow-up counts for that says nothing of the table: it asks for something else."""
_UNEXPLAINED = 1
"""Words of a question at most that stand neither in the table nor in its title: what its rows are."""


def compute(
    question: str,
    words: Sequence[Token],
    rows: Sequence[str],
    title: str,
    language: Language,
    likely: Mapping[str, float] | None = None,
    fresh: int = 0,
) -> Computed | None:
    """A total, a count, the rows with a value, or the one with the most or the least; `None` where that is not sure.

    Args:
        words: the words of the question that tell something.
        rows: all rows of one table, spelled.
        title: the table's name.
        likely: how near the name of each column of figures is to the question; the nearest is measured where none is named.
        fresh: where a follow-up begins in the question; a value in it stands for one of the same column before.
    """
    limit = limit_of(question, language)
    asks = asks_measure(question[fresh:], words, language) if fresh else ""
    asks = asks or asks_measure(question, words, language)
    tokens = language.tokens(question)
    senses = [sense for _, _, sense in language.senses_in(tokens)]
    said, kinds = {token.folded for token in tokens}, {sense.kind for sense in senses}
    how_much = any(sense.kind == "question_words" and sense.value == "how_much" for sense in senses)
    cells = [dict(pair.partition(": ")[::2] for pair in row.rstrip(".").split(_PAIRS)) for row in rows]
    if limit is None and not how_much and 0 < len(beyond := _beyond(tokens, cells, language)) < len(cells):
        return Computed("rows", "", len(beyond), tuple(rows[n] for n in beyond))
    if limit is None and (_compares(tokens, language) or ((how_much or "count" in kinds) and kinds & {"more", "less"})):
        return None  # two figures held against each other
    if limit is not None:  # which cost less than 500: a condition on rows
        asks = asks if asks in ("sum", "mean", "count") else "rows"
    spent = not asks and (how_much or bool(said & language.cues("spend")))
    named = language.holds(question, language.cues("which") | language.cues("who"))
    measure = "sum" if spent else asks or ("rows" if named else "")
    if not measure or len(cells) < _FEWEST:
        return None
    held = {value.casefold() for one in cells for value in one.values()} - language.cues("said_yes") - language.cues("said_no")
    told = {word.start for word in words}
    passed = (language.cues("table") | language.cues("whole_table") | (language.cues("spent") if spent else frozenset())) - held
    words = [one for one in tokens if (one.start in told or one.folded in held) and one.folded not in passed]  # who is off?
    which = language.holds(question[fresh:], language.cues("which") | language.cues("who"))
    if fresh and not which and not any(word.start >= fresh for word in words):
        return None  # and the year before?
    if limit is not None:
        words = [word for word in words if not limit.start <= word.start < limit.end]
    meant = _rows_meant(words, cells, _stems(title, language), language, measure, question, fresh)
    chosen, asked, unexplained = meant.rows, meant.asked, meant.unexplained
    if limit is None and _is_reckoned(words, cells, title, language):
        return None  # three of them would come to what?
    if measure in _EXTREMES and _asks_unknown_extreme(tokens, cells, language):
        return None
    of_cell = measure == "rows" and asked and len(chosen) < len(cells)  # who has the morning shift on Thursday?
    if unexplained > (_UNEXPLAINED + bool(likely) if asks or limit is not None else _UNEXPLAINED * bool(of_cell)):
        return None
    if spent and not _FEWEST <= len(chosen) < len(cells):
        return None  # how much is one of them: its row is quoted
    if measure == "rows" and limit is None:
        some = (1 if asked else _FEWEST) <= len(chosen) < len(cells)
        return Computed(measure, "", len(chosen), tuple(rows[n] for n in chosen)) if some else None
    columns = list(dict.fromkeys(name for one in cells for name in one))
    timed = measure in _EXTREMES and bool(said & _times(language))
    lasting = measure in _EXTREMES and not timed and bool(said & language.cues("durations"))
    begun = {language.stem(word) for word in language.cues("start_column")}
    starts = [name for name in columns if begun & _stems(name, language)]
    if lasting and starts and not any(_is_duration(name, cells, language) for name in columns):
        timed, asked, measure = True, starts[:1], "least" if measure == "most" else "most"  # who has been here the longest
    figures = {
        name: [_time_of(one) if timed else _figure(one, language) for one in (cells[n].get(name, "") for n in chosen)]
        for name in columns
    }
    if timed:  # no service, closed: a time that is none
        numeric = [name for name, some in figures.items() if sum(one is not None for one in some) * 2 > len(some)]
    else:
        numeric = [name for name, some in figures.items() if some and all(one is not None for one in some)]

    def years(name: str) -> bool:
        return all(_is_year(one) for one in figures[name] if one is not None)

    if measure == "sum" and "count" in kinds and asked and not any(name in numeric for name in asked):
        measure, asked = "count", []  # how many nights does she do altogether: the rows with her name
    sums = ("sum", "count", "mean")
    fitting = [name for name in asked if name in numeric and (timed or measure in sums or not years(name))]
    priced = bool(language.cues("priced") & said)
    if priced and any(_is_money(name, cells, language) for name in fitting):
        fitting = [name for name in fitting if _is_money(name, cells, language)]  # the price of a crate, and not the crates
    by = max(fitting, key=asked.count, default="")  # of kilos 2024 and kilos 2025 the one whose year is said
    if measure == "sum" and not by:
        by = next((name for name in numeric if _stems(name, language) & _stems(" ".join(language.cues("sums")), language)), "")
    if measure == "count" and by and meant.misses_name:
        return None
    noun = _counted_noun(question, language)
    if measure == "count" and by and noun and noun not in _stems(by, language):
        return None  # how many are late, where days late are a column
    if measure == "count" and asked and set(asked) == {columns[0]} and noun in _stems(columns[0], language):
        asked = []  # how many orders, where each row is one and has its number
    if measure == "count" and not by and limit is None:
        whole = bool(language.cues("table") & said)
        fits = len(chosen) < len(cells) or (not asked and (not unexplained or whole))
        return Computed(measure, "", len(chosen), tuple(rows[n] for n in chosen), unexplained=unexplained) if fits else None
    measured = [name for name in numeric if not years(name)]
    if lasting:
        measured = [name for name in measured if _is_duration(name, cells, language)] or measured
    price = _PRICED if priced else 0.0 if kinds & {"largest", "smallest"} else _OF_MONEY
    if price != _PRICED and any(sense.kind == "count" for sense in senses):
        price = -_OF_MONEY  # how many are in stock
    near = sorted(
        (name for name in measured if likely and name in likely),
        key=lambda name: -((likely or {})[name] + price * _is_money(name, cells, language)),
    )
    column = by or (measured[0] if len(measured) == 1 else near[0] if near else "")
    found = {n: value for n, value in zip(chosen, figures.get(column, ()), strict=False) if value is not None}
    if not found:
        return None
    if limit is not None:
        found = {n: value for n, value in found.items() if limit.holds(value)}
        if not found:
            return None
        if measure in ("rows", "count"):
            return Computed("rows", column, len(found), tuple(rows[n] for n in found), unexplained=unexplained)
    values, made = list(found.values()), tuple(rows[n] for n in found)
    if measure == "mean":
        return Computed("mean", column, round(sum(values) / len(values), 4), made, unexplained=unexplained)
    if measure in ("sum", "count"):
        return Computed("sum", column, round(sum(values), 4), made, unexplained=unexplained)
    value = max(values) if measure == "most" else min(values)
    best = [n for n, one in found.items() if one == value]
    text = cells[best[0]][column]
    shown = text.strip() if timed or not _NUMBER.fullmatch(text.strip()) else ""
    return Computed(measure, column, value, tuple(rows[n] for n in best), shown, unexplained)


def _asks_unknown_extreme(tokens: Sequence[Token], cells: Sequence[Mapping[str, str]], language: Language) -> bool:
    """Whether what is to be the most or the least is said in a word that no column has: the most acidic."""
    columns = frozenset[str]().union(*(_stems(name, language) for one in cells for name in one))
    for _, end, sense in language.senses_in(tokens):
        behind = tokens[end] if sense.kind in ("most", "least") and end < len(tokens) else None
        if behind is not None and behind.stem not in columns and not language.phrases.get((behind.stem,)):
            return behind.folded not in language.cues("priced")
    return False


def _is_reckoned(words: Sequence[Token], cells: Sequence[Mapping[str, str]], title: str, language: Language) -> bool:
    """Whether a number stands in a question that is no value of the table: what is asked for has to be worked out with it."""
    held = _stems(title, language).union(*(_stems(value, language) for one in cells for value in one.values()))
    held |= frozenset[str]().union(*(_stems(name, language) for name in cells[0]))
    kinds = {word.stem: {sense.kind for sense in language.phrases.get((word.stem,), ())} for word in words}
    return any((word.folded.isdigit() or "numbers" in kinds[word.stem]) and word.stem not in held for word in words)


def _compares(tokens: Sequence[Token], language: Language) -> bool:
    """Whether one figure is held against another, and no total is over a whole table."""
    whole = language.cues("whole_table") | language.cues("table")
    return any(
        sense.kind in ("compare_greater", "compare_less")
        and not whole & {token.folded for token in tokens[end : end + _FEWEST]}
        for _, end, sense in language.senses_in(tokens)
    )


def _beyond(tokens: Sequence[Token], cells: Sequence[Mapping[str, str]], language: Language) -> list[int]:
    """The rows whose one figure is more, or less, than that of the column that is named behind it: more than planned."""
    columns = list(dict.fromkeys(name for one in cells for name in one))
    numeric = [name for name in columns if all(_figure(one.get(name, "")) is not None for one in cells)]
    for _, end, sense in language.senses_in(tokens):
        behind = {token.stem for token in tokens[end : end + _FEWEST]}
        named = [name for name in numeric if behind & _stems(name, language)]
        others = [name for name in numeric if name not in named]
        if sense.kind in ("compare_greater", "compare_less") and len(named) == len(others) == 1:
            more = 1 if sense.kind == "compare_greater" else -1
            pairs = [(_figure(one[others[0]]) or 0.0, _figure(one[named[0]]) or 0.0) for one in cells]
            return [n for n, (figure, other) in enumerate(pairs) if more * figure > more * other]
    return []


def _times(language: Language) -> frozenset[str]:
    """Words that ask for the first or the last time."""
    return language.cues("time_last") | language.cues("time_first")


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
    fresh: int,
) -> _Meant:
    """The rows that the words of a question choose, the columns that they name, and how many words say neither.

    A value chooses by the columns that are named, where one of those has it: who is off on Monday? Two values of one column
    choose the rows of both, and one of a follow-up those of its own instead.
    """
    named = {name: _stems(name, language) for name in dict.fromkeys(name for one in cells for name in one)}
    held = [{name: _stems(value, language) for name, value in one.items()} for one in cells]
    every = frozenset[str]().union(*(stems for row in held for stems in row.values()))
    chosen, asked, values, unexplained = list(range(len(cells))), list[str](), list[Token](), 0
    groups: list[_Group] = []
    misses_name = False
    for word in words:
        denies = any(sense.kind in ("not", "without") for sense in language.phrases.get((word.stem,), ()))
        if says_measure(word, language) or denies or word.folded in _times(language) | language.cues("durations"):
            continue
        if here_named := [name for name, stems in named.items() if word.stem in stems or _abbreviates(name, word, language)]:
            for name in here_named:
                said = _said_so(cells, name, word, question, language) if measure in ("count", "rows", "sum", "mean") else []
                chosen = [n for n in chosen if n in said] if said else chosen
                asked += [] if said else [name]
        elif on_day := _on_day(word, cells, language):
            groups.append(_Group(*on_day, word.start >= fresh))
        elif word.stem in every:
            values.append(word)
        elif in_month := _in_month(word, cells, language):
            groups.append(_Group(*in_month, word.start >= fresh))
        elif word.stem not in known:
            unexplained += _TOO_MANY if fresh and word.start >= fresh else 1
            misses_name = misses_name or (word.start > 0 and word.text[:1].isupper())
    for value in values:
        places = [(name, n) for n, row in enumerate(held) for name, stems in row.items() if value.stem in stems]
        exact = [(name, n) for name, n in places if held[n][name] == {value.stem}]
        places = exact or places  # loam is no sandy loam
        of_named = [(name, n) for name, n in places if name in asked]
        _join(groups, {name for name, _ in of_named or places}, {n for _, n in of_named or places}, value.start >= fresh)
    for before, value in pairwise(words):  # room 2: the column says no more than where its value stands
        own = [name for name, stems in named.items() if before.stem in stems]
        beside = not question[before.end : value.start].strip()
        if beside and value in values and any(value.stem in row.get(name, ()) for name in own for row in held):
            asked = [name for name in asked if name not in own]
    for first, last in pairwise(values):
        between = {token.folded for token in language.tokens(question[first.end : last.start])}
        if len(between) == 1 and between <= language.cues("range") - language.cues("joining"):
            _reach(groups, held, first.stem, last.stem)
    for group in sorted(groups, key=lambda one: not one.fresh):
        here = [n for n in chosen if n in group.rows]
        chosen = here if here and (measure in ("sum", "mean", "count", "rows") or len(here) > 1) else chosen
    return _Meant(chosen, asked, unexplained, misses_name)


@dataclass(frozen=True)
class _Meant:
    """The rows that a question chooses, the columns that it names, and how many of its words say neither."""

    rows: list[int]
    asked: list[str]
    unexplained: int
    misses_name: bool = False
    """Whether one of these words is written as a name, or as a noun where nouns have capitals."""


def choose(question: str, words: Sequence[Token], rows: Sequence[str], title: str, language: Language) -> Computed | None:
    """The few rows of a table that hold what a question names; `None` where it names nothing of it, or too much has it."""
    cells = [dict(pair.partition(": ")[::2] for pair in row.rstrip(".").split(_PAIRS)) for row in rows]
    passed = language.cues("table") | language.cues("whole_table") | language.cues("spent")
    words = [word for word in words if word.folded not in passed]
    meant = _rows_meant(words, cells, _stems(title, language), language, "rows", question, 0)
    if len(cells) < _FEWEST or not 0 < len(meant.rows) < len(cells) or len(meant.rows) > _FEW_ROWS:
        return None
    return Computed("rows", "", len(meant.rows), tuple(rows[n] for n in meant.rows), "", meant.unexplained)


_FEW_ROWS = 3
"""Rows that are quoted of a table at most where none is computed."""


@dataclass
class _Group:
    """Rows that are chosen together by values of the same columns."""

    columns: set[str]
    rows: set[int]
    fresh: bool


def _join(groups: list[_Group], columns: set[str], rows: set[int], fresh: bool) -> None:
    """Add a value to the group of its columns, or as a group of its own."""
    for group in groups:
        if not group.columns & columns:
            continue
        if group.rows & rows and group.fresh == fresh:
            group.columns, group.rows = group.columns & columns, group.rows & rows  # two words of one value
        elif group.fresh == fresh:
            group.rows |= rows
        else:
            group.columns, group.rows, group.fresh = columns, rows, fresh
        return
    groups.append(_Group(columns, rows, fresh))


def _reach(groups: list[_Group], held: Sequence[Mapping[str, frozenset[str]]], first: str, last: str) -> None:
    """Add to the group of two values of one column the rows between them: April to June."""
    for name in dict.fromkeys(name for row in held for name in row):
        begin = [n for n, row in enumerate(held) if first in row.get(name, ())]
        end = [n for n, row in enumerate(held) if last in row.get(name, ())]
        if begin and end and begin[0] < end[-1]:
            for group in groups:
                group.rows |= set(range(begin[0], end[-1] + 1)) if name in group.columns else set()


def _in_month(word: Token, cells: Sequence[Mapping[str, str]], language: Language) -> tuple[set[str], set[int]] | None:
    """The column of dates, and the rows whose date is in the month that a word names."""
    months = [int(sense.value) for sense in language.phrases.get((word.stem,), ()) if sense.kind == "months"]
    return _rows_where(cells, lambda text: _month_of(text) in months) if months else None


def _on_day(word: Token, cells: Sequence[Mapping[str, str]], language: Language) -> tuple[set[str], set[int]] | None:
    """The column of days or times, and the rows of the days, or the part of the day, that a word names."""
    days = language.words.get("cue.days", ())
    asked = {at for at, day in enumerate(days) if word.folded in (day, f"{day}s")}
    asked |= set(range(_WORKDAYS)) if word.folded in language.cues("weekday") else set()
    asked |= set(range(_WORKDAYS, len(days))) if word.folded in language.cues("weekend") else set()
    if asked:
        return _rows_where(cells, lambda text: asked <= _days_of(text, language))
    part = next((minutes for name, minutes in _PARTS_OF_DAY.items() if word.folded in language.cues(name)), None)
    if part is None:
        return None
    return _rows_where(cells, lambda text: _CLOCK.fullmatch(text) and part[0] <= (_time_of(text) or 0) < part[1])


_WORKDAYS = 5
_PARTS_OF_DAY = {"morning": (0, 720), "noon": (720, 721), "afternoon": (720, 1_080), "evening": (1_020, 1_440)}
"""Minutes of a day."""


def _days_of(text: str, language: Language) -> set[int]:
    """The days of the week that a cell speaks of, from 0: Monday to Friday, Sat and Sun."""
    days, found, until = language.words.get("cue.days", ()), set[int](), False
    for token in language.tokens(text):
        short = len(token.folded) > 2 or token.folded == text.casefold().strip()
        at = next((n for n, day in enumerate(days) if short and day.startswith(token.folded.rstrip("."))), None)
        if at is not None:
            found |= set(range(max(found), at + 1)) if until and found else {at}
        until = token.folded in language.cues("range")
    return found


def _rows_where(cells: Sequence[Mapping[str, str]], holds: Callable[[str], object]) -> tuple[set[str], set[int]] | None:
    """The first column in which a cell fulfils a condition, and the rows in which it does."""
    for name in dict.fromkeys(name for one in cells for name in one):
        rows = {n for n, one in enumerate(cells) if holds(one.get(name, "").strip())}
        if rows:
            return {name}, rows
    return None


def _month_of(text: str) -> int | None:
    """The month of a date such as 2026-03-09 or 09.03.2026."""
    match = _DATE.fullmatch(text.strip())
    return int(match[1] or match[2]) if match else None


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
    tokens = language.tokens(question)
    at = next((n for n, token in enumerate(tokens) if token.start == word.start), 0)
    denied = any(end in (at, at - 1) and sense.kind in ("without", "not") for _, end, sense in language.senses_in(tokens))
    if not all(value in yes | no for value in values):  # who worked no Sunday: a figure that is nought
        return [n for n, value in enumerate(values) if denied and _figure(value) == 0]
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
_EXTREMES = ("most", "least")


def asks_measure(question: str, words: Sequence[Token], language: Language) -> str:
    """What is to be computed; a count only where nothing else is said, and never of what a name stands before."""
    tokens, telling = language.tokens(question), {word.start for word in words}
    found = []
    for at, end, sense in language.senses_in(tokens):
        beside = at > 0 and not question[tokens[at - 1].end : tokens[at].start].strip()
        of_name = beside and tokens[at - 1].start in telling  # a phone number is no count
        means = sense.kind == "mean" and tokens[at].folded in language.cues("definition")
        if means and not {token.start for token in tokens[end : end + 1]} & telling:
            continue  # what does E1 mean
        ordered = tokens[at].folded in language.cues("count_order")  # count the ones in March
        if sense.kind in _MEASURES and (sense.kind != "count" or ((end - at > 1 or ordered) and not of_name)):
            found.append(_MEASURES[sense.kind])
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.folded in _times(language) and (after is None or after.folded not in language.cues("times")):
            found.insert(0, "most" if token.folded in language.cues("time_last") else "least")
    return next((one for one in found if one != "count"), found[0] if found else "")


def _counted_noun(question: str, language: Language) -> str:
    """The stem of the word behind “how many”; empty where there is none."""
    tokens = language.tokens(question)
    for _, end, sense in language.senses_in(tokens):
        if sense.kind == "count" and end < len(tokens):
            return tokens[end].stem
    return ""


def says_measure(word: Token, language: Language) -> bool:
    """Whether a word alone asks for a figure or an extreme."""
    return any(sense.kind in _MEASURES for sense in language.phrases.get((word.stem,), ()))


def _is_year(value: float | None) -> bool:
    return value is not None and value.is_integer() and 1_800 <= value <= 2_200


def _stems(text: str, language: Language) -> frozenset[str]:
    return frozenset(language.stem(word) for word in re.findall(r"[^\W_]+", text.casefold()))


_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_COMMA = re.compile(r"[-+]?\d[\d.]*,\d{1,2}")
"""A figure with a decimal comma."""
_CLOCK = re.compile(r"(\d{1,2})[:.](\d{2})(?: ?(am|pm))?|(\d{1,2}) ?(am|pm)", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-(\d{2})-\d{2}|\d{1,2}[./](\d{1,2})[./]\d{2,4}")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_NOON, _HOUR = 12, 60
_MEASURED = re.compile(r"([-+]?[\d.,]+) ?([^\W\d]+[²³]?)")
"""A figure with its unit."""


def _figure(text: str, language: Language | None = None) -> float | None:
    """The figure of a cell, without its currency or unit; of a duration its minutes."""
    plain = text.strip().strip("€£$%").strip()
    if _COMMA.fullmatch(plain):
        return float(plain.replace(".", "").replace(",", "."))
    if _NUMBER.fullmatch(plain):
        return float(plain.replace(",", ""))
    if language is None:
        return None
    pairs = _MEASURED.findall(plain)
    if not pairs or "".join(f"{number}{unit}" for number, unit in pairs) != plain.replace(" ", ""):
        return None
    parts = [(_figure(number), unit.casefold()) for number, unit in pairs]
    hours, minutes = language.cues("unit_hours"), language.cues("unit_minutes")
    if all(number is not None and unit in hours | minutes for number, unit in parts):
        return float(sum((number or 0) * (_HOUR if unit in hours else 1) for number, unit in parts))
    return parts[0][0] if len(parts) == 1 else None


def _time_of(text: str) -> float | None:
    """A time of day in minutes, or a date as a number that grows with it."""
    plain = text.strip()
    if _ISO.fullmatch(plain) or (plain.isdigit() and _is_year(float(plain))):
        return float(plain.replace("-", "").ljust(8, "0"))
    match = _CLOCK.fullmatch(plain)
    if match is None:
        return None
    hour, half = int(match[1] or match[4]), (match[3] or match[5] or "").casefold()
    hour = hour % _NOON + (_NOON if half == "pm" else 0) if half else hour
    return float(hour * _HOUR + int(match[2] or 0))


def _is_duration(name: str, cells: Sequence[Mapping[str, str]], language: Language) -> bool:
    """Whether a column holds durations, as its name or the units in its values say."""
    units = language.cues("unit_hours") | language.cues("unit_minutes")
    tokens = language.tokens(name)
    if any(sense.kind == "group" for token in tokens for sense in language.phrases.get((token.stem,), ())):
        return False  # hours per week
    words = {token.folded for token in tokens}
    values = {unit.casefold() for one in cells for _, unit in _MEASURED.findall(one.get(name, ""))}
    return bool((words | values) & (units | language.cues("duration_column")))
