"""Tables in a text: spelled out, each row as `column: value` pairs, and computed on where more than a row is asked for."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, pairwise

from .language import Language, Sense, Token

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
        measure: `sum`, `mean`, `count`, `most`, `least`, `rows` where those are asked for that have a value, or `most_of` and
            `least_of`, where the rows of one value add up to the most or the least.
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
    group: str = ""
    """Of `most_of` and `least_of`: the value whose rows these are."""


_TOO_MANY = 99
"""What a word of a follow-up counts for that says nothing of the table: it asks for something else."""
_UNEXPLAINED = 1
"""Words of a question at most that stand neither in the table nor in its title: what its rows are."""
_FEW_ROWS = 3
"""Rows that are quoted of a table at most where none is computed."""


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
    asked, table = _Question(question, tuple(words), language, fresh), _Table(rows, title, language)
    beyond = table.beyond(asked) if asked.limit is None and not asked.how_much else []
    if 0 < len(beyond) < len(rows):
        return table.told("rows", beyond)
    if asked.holds_figures_together or not asked.measure or len(rows) < _FEWEST:
        return None
    words = table.telling(asked)
    if fresh and not asked.goes_on_with_a_name and not any(word.start >= fresh for word in words):
        return None  # and the year before?
    meant = table.choose(asked, words, asked.measure)
    of_rows = asked.measure == "rows" and asked.limit is None
    if not of_rows or not meant.columns or len(meant.rows) == len(rows):
        most = _UNEXPLAINED + bool(likely) if asked.asks or asked.limit is not None else 0
    else:
        most = _UNEXPLAINED  # who has the morning shift on Thursday?
    if meant.unexplained > most or (asked.limit is None and table.leaves_to_reckon(words)):
        return None
    if asked.spent and not _FEWEST <= len(meant.rows) < len(rows):
        return None  # how much is one of them: its row is quoted
    if of_rows:
        some = (1 if meant.columns else _FEWEST) <= len(meant.rows) < len(rows)
        return table.told("rows", meant.rows) if some else None
    return _Measuring(asked, table, meant, likely or {}).answer()


def choose(question: str, words: Sequence[Token], rows: Sequence[str], title: str, language: Language) -> Computed | None:
    """The few rows of a table that hold what a question names; `None` where it names nothing of it, or too much has it."""
    asked, table = _Question(question, tuple(words), language), _Table(rows, title, language)
    passed = language.cues("table") | language.cues("whole_table") | language.cues("spent")
    meant = table.choose(asked, [word for word in words if word.folded not in passed], "rows")
    if len(rows) < _FEWEST or not 0 < len(meant.rows) < len(rows) or len(meant.rows) > _FEW_ROWS:
        return None
    return table.told("rows", meant.rows, unexplained=meant.unexplained)


@dataclass(frozen=True)
class _Question:
    """What a question asks, whichever table it is asked of."""

    text: str
    words: tuple[Token, ...]
    language: Language
    fresh: int = 0

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return self.language.tokens(self.text)

    @cached_property
    def said(self) -> frozenset[str]:
        """Its words, folded."""
        return frozenset(token.folded for token in self.tokens)

    @cached_property
    def senses(self) -> tuple[tuple[int, int, Sense], ...]:
        return tuple(self.language.senses_in(self.tokens))

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(sense.kind for _, _, sense in self.senses)

    @cached_property
    def limit(self) -> _Limit | None:
        return limit_of(self.text, self.language)

    @cached_property
    def how_much(self) -> bool:
        return any(sense.kind == "question_words" and sense.value == "how_much" for _, _, sense in self.senses)

    @cached_property
    def asks(self) -> str:
        """The measure that it names; that of a follow-up before that of the question it goes on from."""
        asks = asks_measure(self.text[self.fresh :], self.words, self.language) if self.fresh else ""
        asks = asks or asks_measure(self.text, self.words, self.language)
        if self.limit is not None and asks not in ("sum", "mean", "count"):
            return "rows"  # which cost less than 500: a condition on rows
        return asks

    @cached_property
    def spent(self) -> bool:
        """Whether it asks how much, or what was spent, and names no measure."""
        comes_to = self.language.holds(self.text, self.language.cues("comes_to"))
        return not self.asks and (self.how_much or self.says("spend") or comes_to)

    @cached_property
    def measure(self) -> str:
        """What is to be computed, `rows`, or nothing."""
        named = self.language.holds(self.text, self.language.cues("which") | self.language.cues("who"))
        return "sum" if self.spent else self.asks or ("rows" if named else "")

    @property
    def asks_for_amount(self) -> bool:
        """Whether the most or the least of something is asked for, and not the greatest single one."""
        return self.says("most_of_all") and not self.says("priced_high")

    @property
    def goes_on_with_a_name(self) -> bool:
        """Whether the follow-up asks which or who."""
        return self.language.holds(self.text[self.fresh :], self.language.cues("which") | self.language.cues("who"))

    @property
    def holds_figures_together(self) -> bool:
        """Whether one figure is held against another, and no total is over a whole table."""
        if self.limit is not None:
            return False
        whole = self.language.cues("whole_table") | self.language.cues("table")
        compared = any(
            sense.kind in ("compare_greater", "compare_less")
            and not whole & {token.folded for token in self.tokens[end : end + _FEWEST]}
            for _, end, sense in self.senses
        )
        return compared or ((self.how_much or "count" in self.kinds) and bool(self.kinds & {"more", "less"}))

    @property
    def counted(self) -> str:
        """The stem of the word behind “how many”; empty where there is none."""
        ends = (end for _, end, sense in self.senses if sense.kind == "count" and end < len(self.tokens))
        return next((self.tokens[end].stem for end in ends), "")

    def says(self, *cues: str) -> bool:
        """Whether a word of one of these cues stands in it."""
        return any(self.said & self.language.cues(cue) for cue in cues)

    def denies(self, word: Token) -> bool:
        """Whether a word is denied: no Sunday, not paid."""
        at = next((n for n, token in enumerate(self.tokens) if token.start == word.start), 0)
        return any(end in (at, at - 1) and sense.kind in ("without", "not") for _, end, sense in self.senses)


@dataclass(frozen=True)
class _Meant:
    """The rows that a question chooses, the columns that it names, and how many of its words say neither."""

    rows: list[int]
    columns: list[str]
    unexplained: int
    misses_name: bool = False
    """Whether one of these words is written as a name, or as a noun where nouns have capitals."""


class _Table:
    """The rows of one table, with the stems of its columns and values."""

    def __init__(self, rows: Sequence[str], title: str, language: Language) -> None:
        self.rows, self.language = rows, language
        self.cells = [dict(pair.partition(": ")[::2] for pair in row.rstrip(".").split(_PAIRS)) for row in rows]
        self.columns = list(dict.fromkeys(name for one in self.cells for name in one))
        self.named = {name: _stems(name, language) for name in self.columns}
        self.held = [{name: _stems(value, language) for name, value in one.items()} for one in self.cells]
        self.values = frozenset[str]().union(*(stems for row in self.held for stems in row.values()))
        self.known = _stems(title, language)

    def told(
        self,
        measure: str,
        rows: Sequence[int],
        column: str = "",
        value: float | None = None,
        shown: str = "",
        unexplained: int = 0,
    ) -> Computed:
        """What is told of some rows; without a value their number."""
        figure = len(rows) if value is None else value
        return Computed(measure, column, figure, tuple(self.rows[n] for n in rows), shown, unexplained)

    def telling(self, asked: _Question) -> list[Token]:
        """The words of a question that tell something here: a cell that says “off” does, the words for the table do not."""
        yes_or_no = self.language.cues("said_yes") | self.language.cues("said_no")
        held = {value.casefold() for one in self.cells for value in one.values()} - yes_or_no
        passed = self.language.cues("table") | self.language.cues("whole_table")
        passed = (passed | (self.language.cues("spent") if asked.spent else frozenset())) - held
        told = {word.start for word in asked.words}
        counted = {asked.counted} & self.values - self._joins  # how many label rolls: labels, and no word for what is said
        kept = [one for one in asked.tokens if one.start in told or one.folded in held or one.stem in counted]
        words = [one for one in kept if one.folded not in passed]
        limit = asked.limit
        return [one for one in words if limit is None or not limit.start <= one.start < limit.end]

    def choose(self, asked: _Question, words: Sequence[Token], measure: str) -> _Meant:
        """The rows that the words of a question choose.

        A value chooses by the columns that are named, where one of those has it: who is off on Monday? Two values of one column
        choose the rows of both, and one of a follow-up those of its own instead.
        """
        chosen, columns, values, unexplained = list(range(len(self.cells))), list[str](), list[Token](), 0
        groups: list[_Group] = []
        misses_name = False
        for word in words:
            denies = any(sense.kind in ("not", "without") for sense in self.language.phrases.get((word.stem,), ()))
            if says_measure(word, self.language) or denies or word.folded in self._times | self.language.cues("durations"):
                continue
            fresh = word.start >= asked.fresh
            if named := [name for name, stems in self.named.items() if word.stem in stems or self._abbreviates(name, word)]:
                for name in named:
                    said = self._said_so(name, word, asked) if measure not in _EXTREMES else []
                    chosen = [n for n in chosen if n in said] if said else chosen
                    columns += [] if said else [name]
            elif on_day := self._on_day(word):
                groups.append(_Group(*on_day, fresh))
            elif word.stem in self.values:
                values.append(word)
            elif in_month := self._in_month(word):
                groups.append(_Group(*in_month, fresh))
            elif word.stem not in self.known:
                unexplained += _TOO_MANY if asked.fresh and fresh else 1
                misses_name = misses_name or (word.start > 0 and word.text[:1].isupper())
        for value in values:
            places = self._places(value.stem)
            of_named = [(name, n) for name, n in places if name in columns]
            _join(
                groups, {name for name, _ in of_named or places}, {n for _, n in of_named or places}, value.start >= asked.fresh
            )
        columns = self._without_where_it_stands(columns, words, values, asked)
        for first, last in pairwise(values):
            between = {token.folded for token in self.language.tokens(asked.text[first.end : last.start])}
            if len(between) == 1 and between <= self.language.cues("range") - self.language.cues("joining"):
                self._reach(groups, first.stem, last.stem)
        for group in sorted(groups, key=lambda one: not one.fresh):
            here = [n for n in chosen if n in group.rows]
            unexplained += _TOO_MANY if asked.fresh and group.fresh and not here else 0
            chosen = here if here and (measure not in _EXTREMES or len(here) > 1) else chosen
        return _Meant(chosen, columns, unexplained, misses_name)

    def beyond(self, asked: _Question) -> list[int]:
        """The rows whose one figure is more, or less, than that of the column that is named behind it: more than planned."""
        numeric = [name for name in self.columns if all(_figure(one.get(name, "")) is not None for one in self.cells)]
        for _, end, sense in asked.senses:
            behind = {token.stem for token in asked.tokens[end : end + _FEWEST]}
            named = [name for name in numeric if behind & self.named[name]]
            others = [name for name in numeric if name not in named]
            if sense.kind in ("compare_greater", "compare_less") and len(named) == len(others) == 1:
                more = 1 if sense.kind == "compare_greater" else -1
                pairs = [(_figure(one[others[0]]) or 0.0, _figure(one[named[0]]) or 0.0) for one in self.cells]
                return [n for n, (figure, other) in enumerate(pairs) if more * figure > more * other]
        return []

    def leaves_to_reckon(self, words: Sequence[Token]) -> bool:
        """Whether a number stands in a question that is no value of the table, nor how many rows it has.

        What is asked for has to be worked out with it: three of them would come to what?
        """
        held = self.known.union(self.values, *self.named.values())
        for word in words:
            numbers = {one.value for one in self.language.phrases.get((word.stem,), ()) if one.kind == "numbers"}
            if (word.folded.isdigit() or numbers) and word.stem not in held and len(self.rows) not in numbers:
                return True
        return False

    def has_extreme(self, asked: _Question) -> bool:
        """Whether what is to be the most or the least may be a column: not of “the most acidic” where none is called so."""
        for _, end, sense in asked.senses:
            behind = asked.tokens[end] if sense.kind in ("most", "least") and end < len(asked.tokens) else None
            if behind is None or behind.stem in frozenset[str]().union(*self.named.values()):
                continue
            if not self.language.phrases.get((behind.stem,)) and behind.folded not in self.language.cues("priced"):
                return False
        return True

    def is_money(self, name: str) -> bool:
        """Whether a column holds prices, as its name or the currency in its values says."""
        words = {token.folded for token in self.language.tokens(name)}
        senses = (one for word in words for one in self.language.phrases.get((self.language.stem(word),), ()))
        priced = any(one.get(name, "").startswith(("€", "£", "$")) for one in self.cells)
        money = bool(words & self.language.cues("money_column")) or any(sense.kind == "currencies" for sense in senses)
        return priced or money

    def is_duration(self, name: str) -> bool:
        """Whether a column holds durations, as its name or the units in its values say."""
        units = self.language.cues("unit_hours") | self.language.cues("unit_minutes")
        tokens = self.language.tokens(name)
        if any(sense.kind == "group" for token in tokens for sense in self.language.phrases.get((token.stem,), ())):
            return False  # hours per week
        words = {token.folded for token in tokens}
        values = {unit.casefold() for one in self.cells for _, unit in _MEASURED.findall(one.get(name, ""))}
        return bool((words | values) & (units | self.language.cues("duration_column")))

    def called(self, cue: str) -> list[str]:
        """The columns that are called by a word of a cue."""
        stems = {self.language.stem(word) for word in self.language.cues(cue)}
        return [name for name in self.columns if stems & self.named[name]]

    @property
    def _joins(self) -> frozenset[str]:
        return frozenset(map(self.language.stem, self.language.cues("joins")))

    @property
    def _times(self) -> frozenset[str]:
        return _times(self.language)

    def _places(self, stem: str) -> list[tuple[str, int]]:
        """Where a value stands: the cells that are it, or else those that hold it; loam is no sandy loam."""
        places = [(name, n) for n, row in enumerate(self.held) for name, stems in row.items() if stem in stems]
        return [(name, n) for name, n in places if self.held[n][name] == {stem}] or places

    def _without_where_it_stands(
        self, columns: list[str], words: Sequence[Token], values: Sequence[Token], asked: _Question
    ) -> list[str]:
        """The columns that are named, without those that say no more than where a value stands: room 2."""
        for before, value in pairwise(words):
            own = [name for name, stems in self.named.items() if before.stem in stems]
            beside = not asked.text[before.end : value.start].strip()
            if beside and value in values and any(value.stem in row.get(name, ()) for name in own for row in self.held):
                columns = [name for name in columns if name not in own]
        return columns

    def _abbreviates(self, name: str, word: Token) -> bool:
        """Whether a column is called by the first letters of a day that is asked for."""
        short = name.casefold().rstrip(".")
        return len(short) >= _FEWEST and word.folded.startswith(short) and word.folded in self.language.cues("times")

    def _said_so(self, name: str, word: Token, asked: _Question) -> list[int]:
        """The rows that say yes in a column of nothing but yes and no, or no where it is denied; empty where it is none."""
        values = [one.get(name, "").casefold() for one in self.cells]
        yes, no = self.language.cues("said_yes"), self.language.cues("said_no")
        denied = asked.denies(word)
        if not all(value in yes | no for value in values):  # who worked no Sunday: a figure that is nought
            return [n for n, value in enumerate(values) if denied and _figure(value) == 0]
        return [n for n, value in enumerate(values) if value in (no if denied else yes)]

    def _in_month(self, word: Token) -> tuple[set[str], set[int]] | None:
        """The column of dates, and the rows whose date is in the month that a word names."""
        months = [int(sense.value) for sense in self.language.phrases.get((word.stem,), ()) if sense.kind == "months"]
        return self._where(lambda text: _month_of(text) in months) if months else None

    def _on_day(self, word: Token) -> tuple[set[str], set[int]] | None:
        """The column of days or times, and the rows of the days, or the part of the day, that a word names."""
        days = self.language.words.get("cue.days", ())
        asked = {at for at, day in enumerate(days) if word.folded in (day, f"{day}s")}
        asked |= set(range(_WORKDAYS)) if word.folded in self.language.cues("weekday") else set()
        asked |= set(range(_WORKDAYS, len(days))) if word.folded in self.language.cues("weekend") else set()
        if asked:
            return self._where(lambda text: asked <= _days_of(text, self.language))
        part = next((minutes for name, minutes in _PARTS_OF_DAY.items() if word.folded in self.language.cues(name)), None)
        if part is None:
            return None
        return self._where(lambda text: _CLOCK.fullmatch(text) and part[0] <= (_time_of(text) or 0) < part[1])

    def _where(self, holds: Callable[[str], object]) -> tuple[set[str], set[int]] | None:
        """The first column in which a cell fulfils a condition, and the rows in which it does."""
        for name in self.columns:
            rows = {n for n, one in enumerate(self.cells) if holds(one.get(name, "").strip())}
            if rows:
                return {name}, rows
        return None

    def _reach(self, groups: list[_Group], first: str, last: str) -> None:
        """Add to the group of two values of one column the rows between them: April to June."""
        for name in self.columns:
            begin = [n for n, row in enumerate(self.held) if first in row.get(name, ())]
            end = [n for n, row in enumerate(self.held) if last in row.get(name, ())]
            if begin and end and begin[0] < end[-1]:
                for group in groups:
                    group.rows |= set(range(begin[0], end[-1] + 1)) if name in group.columns else set()


class _Measuring:
    """A figure over the rows that are meant: by which column, and what it comes to."""

    def __init__(self, asked: _Question, table: _Table, meant: _Meant, likely: Mapping[str, float]) -> None:
        self._asked, self._table, self._meant, self._likely = asked, table, meant, likely
        self._measure, self._named = asked.measure, meant.columns
        self._timed = asked.measure in _EXTREMES and asked.says("time_last", "time_first")
        self._lasting = asked.measure in _EXTREMES and not self._timed and asked.says("durations")
        starts = table.called("start_column")
        if self._lasting and starts and not any(map(table.is_duration, table.columns)):
            self._timed, self._named = True, starts[:1]  # who has been here the longest
            self._measure = "least" if asked.measure == "most" else "most"
        self._figures = {name: [self._read(table.cells[n].get(name, "")) for n in meant.rows] for name in table.columns}
        self._numeric = [name for name, some in self._figures.items() if self._is_of_figures(some)]

    def answer(self) -> Computed | None:
        """What it comes to; `None` where that is not sure."""
        asked, table, meant = self._asked, self._table, self._meant
        if self._measure in _EXTREMES and not table.has_extreme(asked):
            return None
        counts_cells = self._named and not any(name in self._numeric for name in self._named)
        if self._measure == "sum" and "count" in asked.kinds and counts_cells:
            self._measure, self._named = "count", []  # how many nights does she do altogether: the rows with her name
        by = self._by()
        if self._measure == "count":
            if by and (meant.misses_name or (asked.counted and asked.counted not in table.named[by])):
                return None  # how many are late, where days late are a column
            if not by and asked.limit is None:
                return self._count()
        column = by or self._nearest()
        found = {n: one for n, one in zip(meant.rows, self._figures.get(column, ()), strict=False) if one is not None}
        if asked.limit is not None:
            found = {n: value for n, value in found.items() if asked.limit.holds(value)}
        return self._worked_out(column, found) if found else None

    def _read(self, text: str) -> float | None:
        return _time_of(text) if self._timed else _figure(text, self._table.language)

    def _is_of_figures(self, some: Sequence[float | None]) -> bool:
        known = sum(one is not None for one in some)
        return known * 2 > len(some) if self._timed else 0 < len(some) == known  # no service: a time that is none

    def _are_years(self, name: str) -> bool:
        return all(_is_year(one) for one in self._figures[name] if one is not None)

    def _by(self) -> str:
        """The column that the question names; of kilos 2024 and kilos 2025 the one whose year is said."""
        years = self._timed or self._measure not in (*_EXTREMES, "rows")
        fitting = [name for name in self._named if name in self._numeric and (years or not self._are_years(name))]
        if self._asked.says("priced"):  # the price of a crate, and not the crates
            fitting = [name for name in fitting if self._table.is_money(name)] or fitting
        by = max(fitting, key=self._named.count, default="")
        if self._measure == "sum" and not by:
            by = next((name for name in self._table.called("sums") if name in self._numeric), "")
        return by

    def _count(self) -> Computed | None:
        table, rows, first = self._table, self._meant.rows, self._table.columns[0]
        pieces = [name for name in table.called("quantity_column") if name in self._numeric]
        if len(pieces) == 1 and len(rows) < len(table.rows) and self._asked.counted in table.values and not self._named:
            total = sum(figure or 0.0 for figure in self._figures[pieces[0]])
            return table.told("sum", rows, pieces[0], round(total, 4), unexplained=self._meant.unexplained)
        if self._named and set(self._named) == {first} and self._asked.counted in table.named[first]:
            self._named = []  # how many orders, where each row is one and has its number
        whole = not self._named and (not self._meant.unexplained or self._asked.says("table"))
        fits = len(rows) < len(table.rows) or whole
        return table.told("count", rows, unexplained=self._meant.unexplained) if fits else None

    def _nearest(self) -> str:
        """The only column of figures, or the one whose name is nearest to the question."""
        measured = [name for name in self._numeric if not self._are_years(name)]
        if self._lasting:
            measured = [name for name in measured if self._table.is_duration(name)] or measured
        price = _OF_MONEY
        if self._asked.says("priced"):
            price = _PRICED
        elif "count" in self._asked.kinds:
            price = -_OF_MONEY  # how many are in stock
        elif self._asked.kinds & {"largest", "smallest"}:
            price = 0.0
        near = [name for name in measured if name in self._likely]
        near.sort(key=lambda name: -(self._likely[name] + price * self._table.is_money(name)))
        return measured[0] if len(measured) == 1 else next(iter(near), "")

    def _worked_out(self, column: str, found: Mapping[int, float]) -> Computed:
        values, rows = list(found.values()), list(found)
        told = partial(self._table.told, column=column, unexplained=self._meant.unexplained)
        if self._asked.limit is not None and self._measure in ("rows", "count"):
            return told("rows", rows)
        if self._measure == "mean":
            return told("mean", rows, value=round(sum(values) / len(values), 4))
        if self._measure in ("sum", "count"):
            return told("sum", rows, value=round(sum(values), 4))
        if (group := self._grouped_by(column, rows)) is not None:
            return group
        value = max(values) if self._measure == "most" else min(values)
        best = [n for n, one in found.items() if one == value]
        text = self._table.cells[best[0]][column].strip()
        shown = text if self._timed or not _NUMBER.fullmatch(text) else ""
        return told(self._measure, best, value=value, shown=shown)

    def _grouped_by(self, column: str, rows: Sequence[int]) -> Computed | None:
        """Whose rows add up to the most or the least, where a value of several rows is asked for: who claimed most?"""
        if self._timed or self._lasting or not self._asked.asks_for_amount:
            return None
        cells = self._table.cells
        named = self._named or (self._table.called("person_column")[:1] if self._asked.says("who") else [])
        by = next((name for name in named if name not in self._numeric and name != column), "")
        totals: dict[str, float] = {}
        for n in rows if by else ():
            totals[cells[n].get(by, "")] = totals.get(cells[n].get(by, ""), 0.0) + (self._read(cells[n][column]) or 0.0)
        if not _FEWEST <= len(totals) < len(rows) or "" in totals:
            return None
        value = max(totals.values()) if self._measure == "most" else min(totals.values())
        best = [name for name, total in totals.items() if total == value]
        if len(best) > 1:
            return None
        own = [n for n in rows if cells[n][by] == best[0]]
        told = self._table.told(f"{self._measure}_of", own, column, round(value, 4), unexplained=self._meant.unexplained)
        return replace(told, group=best[0])


_OF_MONEY, _PRICED = 0.3, 2.0
"""How much nearer a column of money is than others, and is where a price is spoken of."""


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


def _month_of(text: str) -> int | None:
    """The month of a date such as 2026-03-09 or 09.03.2026."""
    match = _DATE.fullmatch(text.strip())
    return int(match[1] or match[2]) if match else None


_WORKDAYS = 5
_PARTS_OF_DAY = {"morning": (0, 720), "noon": (720, 721), "afternoon": (720, 1_080), "evening": (1_020, 1_440)}
"""Minutes of a day."""


def _days_of(text: str, language: Language) -> set[int]:
    """The days of the week that a cell speaks of, from 0: Monday to Friday, Sat and Sun."""
    days, found, until = language.words.get("cue.days", ()), set[int](), False
    if text.casefold().strip() in language.cues("every_day"):
        return set(range(len(days)))
    until_word = min((word for word in language.cues("range") if word.isalpha()), default="")
    for token in language.tokens(_HYPHEN.sub(f" {until_word} ", text)):
        short = len(token.folded) > 2 or token.folded == text.casefold().strip()
        at = next((n for n, day in enumerate(days) if short and day.startswith(token.folded.rstrip("."))), None)
        if at is not None:
            found |= set(range(max(found), at + 1)) if until and found else {at}
        until = token.folded in language.cues("range")
    return found


_HYPHEN = re.compile(r"(?<=\w) ?[-–] ?(?=\w)")


def _times(language: Language) -> frozenset[str]:
    """Words that ask for the first or the last time."""
    return language.cues("time_last") | language.cues("time_first")


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
