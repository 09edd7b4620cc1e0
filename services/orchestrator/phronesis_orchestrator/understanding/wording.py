"""Phrases of answers in one language: figures with units, days, years, lists, things, and sets with their conditions.

What differs between languages is in `content/<language>/answers.yaml`; what things are called is in the ontology.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from phronesis_contracts.answers import Visualization
from phronesis_contracts.twin import GroupBy, Level

from .finding import Row
from .plan import FALLBACK, Aggregate, Filter, Schema, Selection

_CURRENCY = re.compile(r"^([£$€¥])\s*(.*)$")
MAX_QUOTE = 600
"""Characters of a text property that an answer quotes."""
MAX_LISTED = 60
"""Lines of a list that the answer itself shows; its table holds them all."""


@dataclass(frozen=True)
class Written:
    """An answer in one language, in parts."""

    text: str
    """Markdown."""
    insights: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    """The rows that it rests on, with headings in the language."""
    stats: Mapping[str, Any] = field(default_factory=dict)
    charts: tuple[Visualization, ...] = ()


@cache
def content(language: str) -> Mapping[str, Any]:
    """The phrases of a language; those of the fallback where it has no content."""
    file = files("phronesis_orchestrator.understanding").joinpath("content", language, "answers.yaml")
    if not language.isalpha() or not file.is_file():
        return content(FALLBACK)
    loaded: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return loaded


class Wording:
    """How one language says the parts of an answer about one ontology."""

    def __init__(self, schema: Schema, language: str) -> None:
        self.schema, self.language = schema, language
        self._content = content(language)

    def raw(self, key: str) -> Any:
        """An entry of the content by its path with slashes. Raises `KeyError`: neither the language nor the fallback has it."""
        for phrases in (self._content, content(FALLBACK)):
            found: Any = phrases
            for part in key.split("/"):
                found = found.get(part) if isinstance(found, Mapping) else None
            if found is not None:
                return found
        raise KeyError(key)

    def phrase(self, key: str, count: int | None = None, /, **values: object) -> str:
        """A phrase with its values; by `count`, the form for one or for several, in which it stands as `n`."""
        found = self.raw(key)
        if isinstance(found, Mapping):
            found = found["one" if count == 1 else "other"]
        given = values if count is None else {"n": self.number(count), **values}
        return str(found).format_map(given)

    def sentence(self, key: str, count: int | None = None, /, **values: object) -> str:
        """The same, beginning with a capital."""
        return capitalized(self.phrase(key, count, **values))

    def number(self, value: float) -> str:
        """A figure with at most two decimals."""
        text = f"{value:,.2f}".rstrip("0").rstrip(".") if value != int(value) else f"{int(value):,}"
        marks = self.raw("numbers")
        return text.translate({ord(","): marks["thousands"], ord("."): marks["decimal"]})

    def trend(self, type: str, property: str | None, first: tuple[object, float], last: tuple[object, float]) -> str:
        """By how much a figure changed from one year to another, each given with its figure."""
        step = self.amount(round(last[1] - first[1], 6), self.unit(type, property), signed=True)
        return self.sentence("aggregate/trend", first=first[0], last=last[0], step=step)

    def amount(self, value: float, unit: str | None = None, *, signed: bool = False) -> str:
        """A figure with its unit."""
        sign = "-" if value < 0 else "+" if signed and value else ""
        text = self.number(abs(value))
        if not unit:
            return f"{sign}{text}"
        if unit == "%":
            return str(self.raw("percent")).format(n=f"{sign}{text}")
        if currency := _CURRENCY.match(unit):
            symbol, counted = currency.groups()
            scale = self.raw("scales").get(counted, f" {counted}" if counted else "")
            return str(self.raw("currency")).format(sign=sign, symbol=symbol, n=text, scale=scale)
        return f"{sign}{text} {unit}"

    def percent(self, value: float, *, signed: bool = False) -> str:
        """A share or change in per cent, to a tenth."""
        return self.amount(round(value, 1), "%", signed=signed)

    def day(self, value: str) -> str:
        """A day that is stored as ISO text."""
        try:
            found = date.fromisoformat(value)
        except ValueError:
            return value
        return self.phrase("date", day=found.day, month=self.raw("months")[found.month - 1], year=found.year)

    def value(self, type: str | None, name: str, value: object) -> str:
        """A value of a property, with its unit; what is absent is said to be."""
        if value is None:
            return self.phrase("not_published")
        kind, unit = self._kind(type, name)
        if kind == "date":
            return self.day(str(value))
        if kind == "text":
            return self.quote(str(value))
        if isinstance(value, bool) or not isinstance(value, int | float) or name == "year":
            return str(value)
        return self.amount(value, unit)

    def _kind(self, type: str | None, name: str) -> tuple[str, str | None]:
        try:
            found = self.schema.property(type or "", name)
        except KeyError:
            return "string", None
        return found.kind, found.unit

    def unit(self, type: str, name: str | None) -> str | None:
        """The unit of a property."""
        return self._kind(type, name)[1] if name else None

    def is_money(self, type: str, name: str) -> bool:
        """Whether a property is a sum of money: its unit begins with a currency."""
        return _CURRENCY.match(self.unit(type, name) or "") is not None

    def quote(self, text: str, most: int = MAX_QUOTE) -> str:
        """A long text, cut at the end of a sentence."""
        if len(text) > most:
            end = max(text.rfind(mark, 0, most) for mark in (". ", "! ", "? ", "\n"))
            text = text[: end + 1] if end > most // 3 else text[:most].rsplit(" ", 1)[0]
            text = f"{text.strip()} …"
        return self.phrase("quote", text=" ".join(text.split()))

    def listed(self, words: Iterable[object], last: str = "last") -> str:
        """`a`, `a and b`, `a, b and c`."""
        every = [str(word) for word in words]
        joined = self.raw("list")
        return (
            str(joined[last]).join((str(joined["between"]).join(every[:-1]), every[-1])) if len(every) > 1 else "".join(every)
        )

    def some(self, words: Sequence[object], shown: int, total: int | None = None) -> str:
        """The first few of a list, and how many more there are."""
        rest = (len(words) if total is None else total) - min(len(words), shown)
        names = [str(word) for word in words[:shown]]
        if not rest:
            return self.listed(names)
        return self.phrase("and_more", names=str(self.raw("list")["between"]).join(names), n=self.number(rest))

    def years(self, years: Sequence[int], key: str = "years") -> str:
        """Years as a list, or as a range where none is left out."""
        known = sorted(set(years))
        if len(known) > 2 and known[-1] - known[0] == len(known) - 1:
            return str(self.raw(key)["range"]).format(first=known[0], last=known[-1])
        return str(self.raw(key)["one"]).format(years=self.listed(known))

    def in_years(self, years: Sequence[int]) -> str:
        """The same as part of a sentence."""
        return self.years(years, "in_years")

    def lines(self, items: Iterable[str]) -> str:
        """A Markdown list, cut where it gets too long for reading."""
        every = list(items)
        rest = len(every) - MAX_LISTED
        cut = [self.phrase("more", n=self.number(rest))] if rest > 0 else []
        return "\n".join(f"- {item}" for item in (*every[:MAX_LISTED], *cut))

    def type(self, type: str, level: Level | str | None = None, n: int | None = None) -> str:
        """What `n` nodes of a type are called; many where none is stated."""
        return self.schema.type_name(type, self.language, level, many=n != 1)

    def property(self, type: str | None, name: str) -> str:
        """What a property is called."""
        common = self.raw("common")
        known = type is not None and any(one.name == name for one in self.schema.properties(type))
        return str(common[name]) if name in common and not known else self.schema.property_name(type, name, self.language)

    def heading(self, type: str, name: str) -> str:
        """A column's heading: what a property is called, with its unit."""
        unit = self.unit(type, name)
        return f"{self.property(type, name)} ({unit})" if unit else self.property(type, name)

    def verb(self, relationship: str, forward: bool) -> str:
        """How one says a relationship."""
        if words := self.schema.verb(relationship, forward, self.language):
            return words
        if relationship == self.schema.view.hierarchy:
            return self.phrase("hierarchy/parent" if forward else "hierarchy/part")
        verb = self.schema.verb(relationship, not forward, self.language)
        return self.phrase("hierarchy/turned", verb=verb or relationship.replace("_", " ").lower())

    def group(self, by: GroupBy, type: str) -> str:
        """What a group is called: the linked type where its name or id makes the groups, else the property."""
        if by.via and by.to and by.property in ("id", "name"):
            return self.type(by.to, n=1)
        return self.property(by.to if by.via else type, by.property)

    def group_value(self, by: GroupBy, type: str, value: object) -> str:
        """The value that makes a group."""
        return self.phrase("no_group") if value is None else self.value(by.to if by.via else type, by.property, value)

    def set(self, of: Selection, n: int | None = None, without: Iterable[Filter] = ()) -> str:
        """A set, as the noun that it is and the conditions on it."""
        noun = self.type(of.type, of.level, n)
        skipped = list(without)
        conditions = [self.condition(one, of.type) for one in of.filters if one not in skipped]
        if of.among:
            named = len(of.among)
            conditions.append(
                self.phrase("conditions/among_one" if named == 1 else "conditions/among", named, value=of.among[0].name)
            )
        return self.phrase("set", noun=noun, conditions="; ".join(conditions)) if conditions else noun

    def condition(self, one: Filter, type: str) -> str:
        """A condition on the members of a set."""
        if one.via is None:
            return self._own_condition(one, type)
        forward = type in self.schema.relationship(one.via).sources
        verb = self.verb(one.via, forward)
        other = one.to or next(iter(self.schema.leads_to(type, one.via)), type)
        if one.where:
            inner = self.listed(self.condition(each, other) for each in one.where)
            verb = verb if one.op == "linked" else self.phrase("conditions/not", verb=verb)
            return self.phrase("conditions/via", verb=verb, type=self.type(other, n=1), condition=inner)
        if one.op in ("linked", "unlinked"):
            return self.phrase(f"conditions/{one.op}", verb=verb, type=self.type(other, n=1))
        if one.property in ("id", "name") and one.op in ("=", "<>", "in"):
            return self.phrase(
                "conditions/via<>" if one.op == "<>" else "conditions/via=", verb=verb, value=self._stated(one, other)
            )
        own = self._own_condition(one.model_copy(update={"words": ""}), other)
        return self.phrase("conditions/via", verb=verb, type=self.type(other, n=1), condition=own)

    def _own_condition(self, one: Filter, type: str) -> str:
        what = self.property(type, one.property)
        dated = self._kind(type, one.property)[0] == "date" and one.op in ("<", "<=", ">", ">=")
        return self.phrase(f"conditions/{'date' if dated else ''}{one.op}", what=what, value=self._stated(one, type))

    def _stated(self, one: Filter, type: str) -> str:
        if one.words:
            return one.words
        if isinstance(one.value, tuple):
            return self.listed((self.value(type, one.property, each) for each in one.value), "or")
        return self.value(type, one.property, one.value)

    def measure(self, plan: Aggregate) -> str:
        """What is measured of a set: its size, or a figure of a property."""
        dated = plan.property is not None and self._kind(plan.of.type, plan.property)[0] == "date"
        return str((self.raw("date_measures") if dated else {}).get(plan.measure) or self.raw("measures")[plan.measure])


def capitalized(text: str) -> str:
    """A sentence with a capital at its beginning; a name in bold type stays as it is."""
    return text[:1].upper() + text[1:]


def plain(value: object, words: Wording) -> object:
    """A value as a table has it; what is absent is said to be."""
    return words.phrase("not_published") if value is None else value
