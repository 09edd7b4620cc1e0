"""A message read: its words covered by phrases of the language, the ontology and the store, and what nothing explains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any, Literal

from rapidfuzz.distance import Prefix

from .language import Language, Sense, Token, fold
from .lexicon import Lexicon, Match

_ENTITY, _ONTOLOGY, _OPERATOR, _PHRASE, _SMALL = 3.0, 2.2, 2.0, 1.0, 0.5
_AS_PARTS = _OPERATOR + 0.01
"""A phrase that says nothing explains its words a little better than each of them alone: fall under, make up."""
_GROWTH = 1.6
"""Exponent by which longer phrases are preferred to the shorter ones in them."""
_UNEXPLAINED = -3.0
_LEAST_SHARE = 0.45
"""The share of a name that has to be said, by what its words tell apart."""
_LEAST_ALONE = 0.65
"""The same for one word in small letters, which is as often a word as a name."""
_LEAST_OF_WORDS = 0.35
"""The same for several words that only one name has."""
_LEAST_OF_ONE = 0.2
"""The same before a word that stands for one of several things."""
_ONTOLOGY_KINDS = frozenset({"type", "property", "superlative", "relation", "value", "unit", "chain"})


@dataclass(frozen=True)
class Item:
    """A run of a message's words, with what it may mean."""

    at: int
    end: int
    senses: tuple[Sense, ...]
    text: str
    share: float = 1.0
    """For names: how much of the name was said."""

    @property
    def whole(self) -> bool:
        """Whether all of the name was said."""
        return self.share >= 0.999

    def of(self, kind: str) -> tuple[Any, ...]:
        """The values of its senses of a kind."""
        return tuple(sense.value for sense in self.senses if sense.kind == kind)

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(sense.kind for sense in self.senses)

    def has(self, *kinds: str) -> bool:
        """Whether it may be of one of the kinds."""
        return not self._kinds.isdisjoint(kinds)

    def names_type(self, type: str) -> bool:
        """Whether it may be a word for a type."""
        return any(one == type for one, _ in self.of("type"))

    def only(self, *kinds: str) -> Item:
        """The item with the senses of these kinds alone."""
        return replace(self, senses=tuple(sense for sense in self.senses if sense.kind in kinds))


@dataclass(frozen=True)
class Reading:
    """The items of a message in order; an item without senses is a word that nothing explains."""

    text: str
    language: Language
    tokens: tuple[Token, ...]
    items: tuple[Item, ...]
    mended: tuple[tuple[str, str], ...] = ()
    """Misspelt words, with what they were taken for."""

    def of(self, *kinds: str) -> tuple[Item, ...]:
        """The items that may be of one of the kinds."""
        return tuple(item for item in self.items if item.has(*kinds))

    def has(self, *kinds: str) -> bool:
        return any(item.has(*kinds) for item in self.items)

    def words(self, at: int, end: int) -> str:
        """A run of words as it was written."""
        if at >= end or at >= len(self.tokens):
            return ""
        return self.text[self.tokens[at].start : self.tokens[min(end, len(self.tokens)) - 1].end]


def read(text: str, lexicon: Lexicon) -> Reading:
    """Read a message. Words that are misspelt, or two known words in one, are taken for what they stand for."""
    language = lexicon.language
    tokens, mended = _mend(language.tokens(text), lexicon)
    spans = list(_phrases(tokens, lexicon)) + list(_numbers(tokens, lexicon))
    explained = {n for span in spans for n in range(span.at, span.end)}
    for match in lexicon.find_names(tokens):
        if match.end - match.at > 1 and _lacks_colon(match, text[tokens[match.at].start : tokens[match.end - 1].end], lexicon):
            continue  # two words beside each other are no thing called “one: other”
        if match.whole or _is_said(match, tokens, explained) or _stands_for_one(match, tokens, language):
            spans.append(Item(match.at, match.end, match.senses, "", match.share))
        elif _begins_name(match, tokens, lexicon):
            spans.append(Item(match.at, match.end, match.senses, "", max(match.share, _LEAST_SHARE)))
    articles = frozenset(n for n, token in enumerate(tokens) if token.folded in language.cues("article"))
    items = _amounts(_with_days(_cover(tokens, spans, lexicon), tokens, lexicon), articles)
    items = [_in_its_form(item, tokens, lexicon) for item in items]
    items = _moves(_first_and_last_dates(items, lexicon), tokens, lexicon)
    items = _known_by_a_word(_or_beyond(items, lexicon), tokens, lexicon)
    reading = Reading(text, language, tokens, (), mended)
    return replace(reading, items=tuple(replace(item, text=reading.words(item.at, item.end)) for item in items))


_OF_DATA = ("type", "value", "superlative")
"""Kinds of words that show that a message is about the data."""


def _known_by_a_word(items: Sequence[Item], tokens: Sequence[Token], lexicon: Lexicon) -> list[Item]:
    """Is defence dearer than transport? Words that nothing explains as the one thing that each tells apart.

    A thing that has figures itself is called by more than a word of its name that may be a subject as well.
    """
    found = list(items)
    if not any(item.has(*_OF_DATA) for item in items):
        return found
    topics = lexicon.language.cues("topic")
    for n, item in enumerate(items):
        if item.senses:
            continue
        before = [" ".join(token.folded for token in tokens[max(0, item.at - length) : item.at]) for length in (1, 2)]
        if any(words in topics for words in before):
            continue  # about transport: what texts say of it
        refs = lexicon.known_by(tokens[item.at].stem) if item.end - item.at == 1 else ()
        types = {ref.type for ref in refs}
        figures = any(one.kind == "number" for type in types for one in lexicon.view.properties(type))
        if len({ref.name for ref in refs}) == 1 and len(types) == 1 and not figures:
            found[n] = replace(item, senses=(Sense("entity", refs),))
    return found


def _lacks_colon(match: Match, said: str, lexicon: Lexicon) -> bool:
    """Whether a name is only that of a thing that groups others, which is written with a colon."""
    refs = [ref for sense in match.senses if sense.kind == "entity" for ref in sense.value]
    groups = all(": " in ref.name and ref.level is not lexicon.view.usual_level(ref.type) for ref in refs)
    return bool(refs) and groups and ":" not in said


def _mend(tokens: Sequence[Token], lexicon: Lexicon) -> tuple[tuple[Token, ...], tuple[tuple[str, str], ...]]:
    found: list[Token] = []
    mended: list[tuple[str, str]] = []
    for token in tokens:
        if not token.folded.isalpha() or (lexicon.knows(token) and not lexicon.is_slip(token)):
            found.append(token)
        elif parts := lexicon.split(token.folded):
            found += [replace(token, folded=part, stem=lexicon.language.stem(part)) for part in parts]
        elif (better := lexicon.mend(token.folded)) is not None and _is_slip(token, better, lexicon.language):
            stem = lexicon.language.stem(better)
            found.append(replace(token, folded=better, stem=better if stem not in lexicon.stems else stem))
            mended.append((token.text, better))
        else:
            found.append(token)
    return tuple(found), tuple(mended)


def _is_slip(token: Token, better: str, language: Language) -> bool:
    """Whether a word was meant to be another: it is in no dictionary, or has two letters of a word such as “from” swapped."""
    if not language.is_word(token.text):
        return True
    stem = language.stem(better)
    return sorted(better) == sorted(token.folded) and any(key[0] == stem for key in language.phrases)


def _phrases(tokens: Sequence[Token], lexicon: Lexicon) -> Iterator[Item]:
    stems = tuple(token.stem for token in tokens)
    for at in range(len(stems)):
        for end in range(at + 1, min(len(stems), at + lexicon.longest(stems[at])) + 1):
            senses = lexicon.look_up(stems[at:end])
            if end - at > 1 and _hides_data(senses, stems[at:end], lexicon):
                continue
            if end - at == 1 or any(one.kind == "property" for one in lexicon.look_up(stems[at : at + 1])):
                senses = _as_verb(senses, tokens[at], lexicon)  # ratings by department
            if end - at == 1:
                senses = tuple(
                    one for one in senses if one.kind not in _AS_LISTED or _is_listed(one.kind, tokens[at], lexicon.language)
                )
                if tokens[at].folded in lexicon.language.words.get("small", ()):  # “sich” is not “sicher”
                    senses = tuple(one for one in senses if one.kind != "superlative")
            if senses:
                yield Item(at, end, senses, "")


def _hides_data(senses: Sequence[Sense], stems: tuple[str, ...], lexicon: Lexicon) -> bool:
    """Whether a phrase that says nothing by itself has a property's name in it: a kind of, where each has a kind."""
    small = bool(senses) and all(one.kind == "small" for one in senses)
    return small and any(one.kind == "property" for stem in stems for one in lexicon.phrases.get((stem,), ()))


_AS_LISTED = frozenset({"share", "place"})
"""Kinds whose words mean something else in another form: who shared it, projects about housing."""


def _is_listed(kind: str, token: Token, language: Language) -> bool:
    return token.folded in language.words.get(kind, ())


def _as_verb(senses: tuple[Sense, ...], token: Token, lexicon: Lexicon) -> tuple[Sense, ...]:
    """Senses without the relationships of a word that is no form of their verb: a manager is not who manages."""
    if lexicon.lists(token):
        return senses
    endings = lexicon.language.words.get("verb_endings", ())
    rest = token.folded[Prefix.similarity(token.stem, token.folded) :]
    rest = rest[1:] if rest[:1] == token.stem[-1:] and len(rest) > 1 else rest  # running
    if not endings or rest == token.folded or (rest or "_") in endings:
        return senses
    return tuple(sense for sense in senses if sense.kind != "relation")


def _is_short_year(tokens: Sequence[Token], at: int, lexicon: Lexicon) -> bool:
    """Whether two digits stand for a year of the data: in 22, ’22, and at the end of a message that counts nothing by them."""
    word = tokens[at].folded
    if not at or len(word) != 2 or not word.isdigit() or 2000 + int(word) not in lexicon.view.years:
        return False
    before = tokens[at - 1]
    counting = {sense.kind for sense in lexicon.look_up((before.stem,))} & _COUNTING
    return before.folded in lexicon.language.cues("lead") or (
        at == len(tokens) - 1 and not counting and before.folded.isalpha()
    )


_COUNTING = frozenset(
    {"most", "least", "largest", "smallest", "rank", "count", "list", "number", "numbers", "type", "currencies"}
)
_COUNTING |= {"compare_greater", "compare_less", "compare_at_least", "compare_at_most", "compare_equal", "between", "range"}
"""Kinds of words behind which a figure is no year."""


def _numbers(tokens: Sequence[Token], lexicon: Lexicon) -> Iterator[Item]:
    for at, token in enumerate(tokens):
        number = parse_number(token.folded)
        if number is None:
            continue
        senses = [Sense("number", number)]
        if token.folded.isdigit() and len(token.folded) == 4 and 1900 <= number <= 2200:
            senses.insert(0, Sense("year", int(number)))
        elif _is_short_year(tokens, at, lexicon):
            senses.insert(0, Sense("year", 2000 + int(number)))
        yield Item(at, at + 1, tuple(senses), "")


def parse_number(word: str) -> float | None:
    """The number in a word: `1,200.5`, `1.200,5` and `1200` are told apart by their last sign; `None` where it is none."""
    plain = word.strip()
    if not plain or not plain[0].isdigit() or any(c.isalpha() for c in plain):
        return None
    comma, dot = plain.rfind(","), plain.rfind(".")
    decimal = "," if comma > dot else "."
    tail = len(plain) - 1 - max(comma, dot)
    if max(comma, dot) >= 0 and tail == 3 and (comma < 0 or dot < 0):
        decimal = ""  # 1,200 and 1.200 are thousands
    kept = "".join("." if c == decimal else "" if c in ",." else c for c in plain)
    try:
        return float(kept)
    except ValueError:
        return None


def _with_days(items: Sequence[Item], tokens: Sequence[Token], lexicon: Lexicon) -> list[Item]:
    """Items with each whole date in one: 2026-06-15, 15 June 2026, June 15th 2026, 15.6.2026."""
    found = list(items)
    for at in range(len(tokens)):
        day, end = _day_at(tokens, at, lexicon)
        if day is None or any(one.at < at < one.end or one.at < end < one.end for one in found):
            continue
        place = next((n for n, one in enumerate(found) if one.at >= at), len(found))
        kept = [one for one in found if one.end <= at or one.at >= end]
        found = [*kept[:place], Item(at, end, (Sense("day", day),), ""), *kept[place:]]
    return found


def _day_at(tokens: Sequence[Token], at: int, lexicon: Lexicon) -> tuple[date | None, int]:
    """The whole date that begins at a word, and where it ends."""
    said = [token.folded for token in tokens[at : at + 6]]
    parts = [one for one in said if one not in ("-", "/")]
    if said[1:2] in (["-"], ["/"]) and said[3:4] == said[1:2] and len(parts) > 2 and all(map(str.isdigit, parts[:3])):
        numbers = [int(one) for one in parts[:3]]
        return _as_day(*(numbers if len(parts[0]) == 4 else numbers[::-1])), at + 5
    dotted = re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.?", said[0])
    if dotted is not None and len(said) > 1 and re.fullmatch(r"\d{4}", said[1]):
        return _as_day(int(said[1]), int(dotted[2]), int(dotted[1])), at + 2
    months: list[int] = []
    numbers = []
    for n, token in enumerate(tokens[at : at + 4]):
        number = re.fullmatch(r"(\d{1,4})(?:st|nd|rd|th)?", token.folded)
        month = [one.value for one in lexicon.language.phrases.get((token.stem,), ()) if one.kind == "months"]
        if number is not None and len(numbers) < 2:
            numbers.append(int(number[1]))
        elif month and not months:
            months.append(int(month[0]))
        elif n == 0 or not _is_small(token, lexicon):
            break
        if months and len(numbers) == 2:
            return (_as_day(numbers[1], months[0], numbers[0]) if numbers[1] > 31 else None), at + n + 1
    return None, at


def _as_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day) if year >= 1000 else None
    except ValueError:
        return None


def _is_said(match: Match, tokens: Sequence[Token], explained: set[int]) -> bool:
    """Whether a part of a name was meant: enough of it, and a word in it that nothing else explains or that is in capitals."""
    alone = match.end - match.at == 1 and not tokens[match.at].text[:1].isupper()
    of_one = match.end - match.at > 1 and len(match.senses) == 1 and not explained & set(range(match.at, match.end))
    if match.share < (_LEAST_ALONE if alone else _LEAST_OF_WORDS if of_one else _LEAST_SHARE):
        return False
    run = range(match.at, match.end)
    return any(n not in explained for n in run) or any(tokens[n].text[:1].isupper() and n > 0 for n in run)


def _begins_name(match: Match, tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    """Whether a name is called by how it begins, and that is no ordinary word: Type 9, Heron, the Merlin programme."""
    run, language = tokens[match.at : match.end], lexicon.language
    if not match.leads or all(_is_small(token, lexicon) for token in run):
        return False
    if any(token.text[:1].isdigit() for token in run):
        return len(run) > 1
    nouns = bool(language.cues("capital_nouns"))
    return all(token.text[:1].isupper() and (not language.is_word(token.text) or (match.at > 0 and not nouns)) for token in run)


def _stands_for_one(match: Match, tokens: Sequence[Token], language: Language) -> bool:
    """Whether a word of a name tells one of several things apart: the Oxford one."""
    behind = tokens[match.end : match.end + 1]
    year = tokens[match.at].folded.isdigit()  # the 2022 one is of that year
    return match.share >= _LEAST_OF_ONE and not year and bool(behind) and behind[0].folded in language.cues("stand_in")


def _cover(tokens: Sequence[Token], spans: Sequence[Item], lexicon: Lexicon) -> list[Item]:
    """The phrases that together explain the message best, each word in one of them."""
    at_place: dict[tuple[int, int], Item] = {}
    for span in spans:
        known = at_place.get((span.at, span.end))
        if known is None:
            at_place[span.at, span.end] = span
        else:
            senses = tuple(dict.fromkeys((*known.senses, *span.senses)))
            at_place[span.at, span.end] = replace(known, senses=senses, share=min(known.share, span.share))
    ending: dict[int, list[tuple[float, Item]]] = {}
    for span in at_place.values():
        ending.setdefault(span.end, []).append((_weight(span, tokens, lexicon), span))
    best: list[float] = [0.0] + [float("-inf")] * len(tokens)
    chosen: list[Item | None] = [None] * (len(tokens) + 1)
    for end in range(1, len(tokens) + 1):
        best[end] = best[end - 1] + _UNEXPLAINED
        chosen[end] = Item(end - 1, end, (), "")
        for weight, span in ending.get(end, []):
            if best[span.at] + weight > best[end]:
                best[end], chosen[end] = best[span.at] + weight, span
    items: list[Item] = []
    place = len(tokens)
    while place > 0:
        item = chosen[place]
        assert item is not None, "every place was reached"
        items.append(item)
        place = item.at
    return items[::-1]


def _weight(span: Item, tokens: Sequence[Token], lexicon: Lexicon) -> float:
    small = sum(1 for n in range(span.at, span.end) if _is_small(tokens[n], lexicon))
    length = max(1.0, span.end - span.at - 0.7 * small)
    ontology = span.has("entity", *_ONTOLOGY_KINDS)
    if all(sense.kind in ("small", "polite") for sense in span.senses) or (span.end - span.at == 1 and small and not ontology):
        single = span.end - span.at == 1
        words = span.end - span.at
        parts = _AS_PARTS * words if small < words else 0.0
        return _SMALL if single else max(_PHRASE * float(words**_GROWTH), parts)
    if span.has("entity") and span.whole and not (length == 1 and span.has(*_ONTOLOGY_KINDS)):
        base = _ENTITY
    elif span.has("entity"):
        base = _ENTITY * span.share
    else:
        base = _ONTOLOGY if span.has(*_ONTOLOGY_KINDS) else _OPERATOR
    return float(base * length**_GROWTH)


def _is_small(token: Token, lexicon: Lexicon) -> bool:
    """Whether a word carries nothing by itself, in the language and in the ontology."""
    small = any(sense.kind == "small" for sense in lexicon.language.phrases.get((token.stem,), ()))
    return small and not lexicon.phrases.get((token.stem,))


def _amounts(items: list[Item], articles: frozenset[int]) -> list[Item]:
    """Currency, number, multiplier and unit beside each other as one amount. `articles`: places of words like “a”."""
    found: list[Item] = []
    n = 0
    while n < len(items):
        item = items[n]
        start, currency = n, False
        if item.has("currencies") and n + 1 < len(items) and items[n + 1].has("number"):
            currency, n, item = True, n + 1, items[n + 1]
        if item.at in articles and n + 1 < len(items) and items[n + 1].has("multipliers"):
            item = replace(item, senses=(Sense("number", 1.0),))  # a billion
        ranges = n + 2 < len(items) and items[n + 1].has("range") and items[n + 2].has("number", "numbers")
        if item.has("numbers") and (_scaled(items, n + 1) or (ranges and n > 0 and items[n - 1].has("between"))):
            item = replace(item, senses=(Sense("number", float(item.of("numbers")[0])),))  # ten billion
        if not item.has("number") or (item.has("year") and not currency and not _scaled(items, n + 1)):
            found.append(item if not currency else items[start])
            n = start + 1
            continue
        value, end = float(item.of("number")[0]), n + 1
        scale, unit = 1.0, ""
        while end < len(items):
            after = items[end]
            if after.has("multipliers") and scale == 1.0:
                scale = float(after.of("multipliers")[0])
            elif after.has("unit") and not unit:
                unit = str(after.of("unit")[0])
            elif after.has("currencies") and not currency:
                currency = True
            else:
                break
            end += 1
        if not currency and scale == 1.0 and not unit:
            found.append(item)
        else:
            amount = Sense("amount", (value, scale, unit, currency))
            found.append(Item(items[start].at, items[end - 1].end, (amount,), ""))
        n = end
    return found


def _or_beyond(items: list[Item], lexicon: Lexicon) -> list[Item]:
    """A value “or worse”, or “or better”, is each value from there on, in the order that the ontology declares."""
    found = list(items)
    for value, between, end in zip(items, items[1:], items[2:], strict=False):
        if not (value.has("value") and between.has("or") and end.has("worst", "best")):
            continue
        type, property, said = value.of("value")[0]
        declared = lexicon.view.property(type, property)
        if declared is not None and said in declared.choices:
            at = declared.choices.index(said)
            more = declared.choices[at + 1 :] if end.has("worst") else declared.choices[:at]
            senses = [(Sense("value", (type, property, one)),) for one in more] or [(Sense("small"),)]
            place = found.index(end)
            found[place : place + 1] = [replace(end, senses=one) for one in senses]
    return found


def _in_its_form(item: Item, tokens: Sequence[Token], lexicon: Lexicon) -> Item:
    """A word for a value or a property is the value only as it is listed: finished is a status, to finish has a date."""
    if item.end - item.at > 1 or not item.has("value") or not item.has("property"):
        return item

    def listed(sense: Sense) -> bool:
        if sense.kind != "value":
            return True
        type, property, value = sense.value
        declared = lexicon.view.property(type, property)
        words = declared.value_words.get(value, {}) if declared is not None else {}
        return tokens[item.at].folded in {fold(one) for one in (value, *(word for some in words.values() for word in some))}

    return replace(item, senses=tuple(sense for sense in item.senses if listed(sense)))


def _first_and_last_dates(items: list[Item], lexicon: Lexicon) -> list[Item]:
    """“Which project finishes latest”, “the last one to end”: a date, where words beside it ask for the end of its order."""
    if not any(item.has("type") for item in items):
        return items
    found = list(items)
    for n, item in enumerate(items):
        declared = [lexicon.view.property(type, name) for type, name in item.of("property")]
        if not any(one is not None and one.kind == "date" for one in declared):
            continue
        for step in (-1, 1):
            m = n + step
            while 0 <= m < len(items) and (
                items[m].has("small", "type", "pronoun_many") and not items[m].has("relative_years")
            ):
                m += step
            end = _end_of_order(items[m]) if 0 <= m < len(items) else None
            if end is not None:
                found[m] = replace(items[m], senses=(Sense(end),))
                found[n] = replace(item, senses=item.only("property").senses)
                break
    return found


def _moves(items: list[Item], tokens: Sequence[Token], lexicon: Lexicon) -> list[Item]:
    """“Got cheaper” and “teurer geworden” are a move of what things are cheap by."""
    found, become = list(items), lexicon.language.cues("become")
    best = tuple(lexicon.language.words.get("superlative_endings", ()))
    for n, item in enumerate(items):
        if item.end - item.at > 1 or tokens[item.at].folded not in become:
            continue
        after = n + 1
        while after < len(items) and items[after].has("year", "relative_years", "more", "less"):
            after += 1
        size = next((m for m in (after, n - 1) if 0 <= m < len(items) and items[m].has("superlative")), None)
        ends = {bool(one[2]) for one in items[size].of("superlative")} if size is not None else set()
        if size is None or len(ends) != 1 or tokens[items[size].end - 1].folded.endswith(best):
            continue  # get cheapest projects
        between = items[n + 1 : size]
        less = any(one.has("less") for one in between)
        found[n] = replace(item, senses=(Sense("rose" if ends.pop() != less else "fell"),))
        found[n + 1 : n + 1 + len(between)] = [
            replace(one, senses=(Sense("small"),)) if one.has("more", "less") else one for one in between
        ]
        properties = (Sense("property", (type, property)) for type, property, *_ in items[size].of("superlative"))
        found[size] = replace(items[size], senses=tuple(dict.fromkeys(properties)))
    return found


def _end_of_order(item: Item) -> Literal["earliest", "latest"] | None:
    if item.has("earliest", "latest"):
        return "earliest" if item.has("earliest") else "latest"
    if 0 in item.of("relative_years"):
        return "latest"
    ends: dict[object, Literal["earliest", "latest"]] = {1: "earliest", -1: "latest"}
    return next((ends[one] for one in item.of("ordinals") if one in ends), None)


def _scaled(items: Sequence[Item], at: int) -> bool:
    return at < len(items) and items[at].has("multipliers", "unit", "currencies")


def folded_words(reading: Reading) -> tuple[str, ...]:
    """The message's words, folded as they were written."""
    return tuple(fold(token.text) for token in reading.tokens)
