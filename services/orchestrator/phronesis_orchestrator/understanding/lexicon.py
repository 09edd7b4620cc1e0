"""What a tenant's words mean: types, properties, relationships, values and names, read from its ontology and its store.

Nothing here knows a domain. A lexicon is built once for each version of a vocabulary and each language, and looked up by stems.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rapidfuzz import process
from rapidfuzz.distance import OSA, Indel

from phronesis_contracts.ontology import (
    EntityName,
    OntologyView,
    PropertyValues,
    PropertyView,
    RelationshipView,
    TypeView,
    Vocabulary,
    Words,
)
from phronesis_contracts.twin import Level

from .language import Language, Sense, Token, fold
from .plan import EntityRef

_LONGEST = 14
"""Tokens of the longest phrase that is looked up."""
_COMMON = 400
"""Names that a word may stand in and still tell them apart in part."""
_SLIP = 8
"""How many times more names hold a word than its misspelling."""
_TELLS_LITTLE = 0.05
"""How much a small word tells names apart."""
_MOST_AT_ONE_LEVEL = 0.8
"""Share of a type's things from which one level is meant where none is stated."""


@dataclass(frozen=True)
class VocabularyView:
    """All pages of a vocabulary, put together."""

    ontology: OntologyView
    years: tuple[int, ...] = ()
    values: tuple[PropertyValues, ...] = ()
    names: tuple[EntityName, ...] = ()

    @staticmethod
    def of(pages: Sequence[Vocabulary]) -> VocabularyView:
        """The pages in their order; there is at least one."""
        names: dict[tuple[str, str], EntityName] = {}
        for one in (name for page in pages for name in page.names):
            known = names.get((one.type, one.id))
            years = tuple(sorted({*one.years, *(known.years if known else ())}))
            names[one.type, one.id] = one.model_copy(update={"years": years})
        first = pages[0]
        return VocabularyView(pages[-1].ontology, first.years, first.values, tuple(names.values()))

    @cached_property
    def types(self) -> Mapping[str, TypeView]:
        return {one.name: one for one in self.ontology.types}

    @cached_property
    def relationships(self) -> Mapping[str, RelationshipView]:
        return {one.name: one for one in self.ontology.relationships}

    @cached_property
    def _properties(self) -> Mapping[tuple[str, str], PropertyView]:
        return {(kind.name, one.name): one for kind in self.ontology.types for one in kind.properties}

    @cached_property
    def known(self) -> Mapping[tuple[str, str], PropertyValues]:
        """What is on record of each property, by type and name."""
        return {(one.type, one.property): one for one in self.values}

    @cached_property
    def _by_type(self) -> Mapping[str, list[EntityName]]:
        found: dict[str, list[EntityName]] = defaultdict(list)
        for one in self.names:
            found[one.type].append(one)
        return found

    def property(self, type: str, name: str) -> PropertyView | None:
        """A declared property of a type."""
        return self._properties.get((type, name))

    def properties(self, type: str) -> tuple[PropertyView, ...]:
        """All properties of a type."""
        return self.types[type].properties if type in self.types else ()

    def things(self, type: str) -> Sequence[EntityName]:
        """The names of a type."""
        return self._by_type.get(type, [])

    @cached_property
    def _years(self) -> Mapping[str, tuple[int, ...]]:
        return {type: tuple(sorted({y for one in names for y in one.years})) for type, names in self._by_type.items()}

    def years_of(self, type: str) -> tuple[int, ...]:
        """The years in which there is anything of a type, oldest first; those of the whole store where nothing is known."""
        return self._years.get(type) or self.years

    @cached_property
    def _levels(self) -> Mapping[str, Level | None]:
        found: dict[str, Level | None] = {}
        for type, names in self._by_type.items():
            counts = Counter(one.level for one in names)
            level, most = counts.most_common(1)[0]
            found[type] = level if len(counts) > 1 and most >= _MOST_AT_ONE_LEVEL * len(names) else None
        return found

    def usual_level(self, type: str) -> Level | None:
        """The level at which nearly all things of a type stand; `None` where they are spread, or there is but one level."""
        return self._levels.get(type)

    def between(self, one: str, other: str) -> tuple[tuple[RelationshipView, bool], ...]:
        """The relationships that may join two types, with whether `one` is the source; the hierarchy is left out."""
        found = []
        for relationship in self.ontology.relationships:
            if relationship.name == self.ontology.hierarchy:
                continue
            if one in relationship.sources and other in relationship.targets:
                found.append((relationship, True))
            elif other in relationship.sources and one in relationship.targets:
                found.append((relationship, False))
        return tuple(found)


def pick(words: Words, language: str) -> tuple[str, ...]:
    """The words of a language; English where it has none, else any."""
    return words.get(language) or words.get("en") or next(iter(words.values()), ())


@dataclass(frozen=True)
class _Name:
    stems: tuple[str, ...]
    senses: tuple[Sense, ...]
    capitals: bool
    """Whether it is one word in capitals, which another word in small letters is not."""
    in_full: bool = False
    """Whether no part of it stands for it: a thing that only groups others is rarely meant, and called like what it groups."""


@dataclass(frozen=True)
class Match:
    """A name, or a part of one, in the words of a message."""

    at: int
    end: int
    senses: tuple[Sense, ...]
    share: float
    """How much of the name was said, 0 to 1, by what its words tell apart."""
    leads: bool = False
    """Whether it is how the name begins, or two words and more of it as they stand in it."""

    @property
    def whole(self) -> bool:
        return self.share >= 0.999


@dataclass
class Lexicon:
    """The senses of phrases and names, in one language."""

    view: VocabularyView
    language: Language
    phrases: dict[tuple[str, ...], tuple[Sense, ...]] = field(default_factory=dict)
    _names: list[_Name] = field(default_factory=list)
    _holding: dict[str, list[int]] = field(default_factory=dict)
    _words: set[str] = field(default_factory=set)
    _listed: set[str] = field(default_factory=set)

    @staticmethod
    def build(view: VocabularyView, language: Language) -> Lexicon:
        """Index a vocabulary. Takes some 60 ms for 750 names and five seconds for 50,000, so it belongs in a thread."""
        made = Lexicon(view, language)
        for kind in view.ontology.types:
            made._add_type(kind)
        for relationship in view.ontology.relationships:
            made._add_relationship(relationship)
        for chain in view.ontology.chains:
            for phrase in pick(chain.words, language.name):
                made._add(phrase, Sense("chain", chain.name))
        made._add_values()
        made._add_names()
        return made

    def look_up(self, stems: tuple[str, ...]) -> tuple[Sense, ...]:
        """The senses of a phrase, those of the ontology before those of the language."""
        return (*self.phrases.get(stems, ()), *self.language.phrases.get(stems, ()))

    def lists(self, token: Token) -> bool:
        """Whether the ontology lists a word in just this form."""
        return token.folded in self._listed

    def longest(self, stem: str) -> int:
        """Tokens of the longest phrase that begins with a word; 0 where none does."""
        return self._longest.get(stem, 0)

    @cached_property
    def _longest(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for key in (*self.phrases, *self.language.phrases):
            found[key[0]] = min(_LONGEST, max(len(key), found.get(key[0], 0)))
        return found

    def _add(self, phrase: str, *senses: Sense) -> None:
        key = self.language.key(phrase)
        if key:
            known = self.phrases.get(key, ())
            self.phrases[key] = (*known, *(sense for sense in senses if sense not in known))
            words = {token.folded for token in self.language.tokens(phrase)}
            self._listed |= words
            self._words |= words

    def _both(self, words: Words) -> Iterator[str]:
        """The words of this language, and the English ones: names of data are often English."""
        yield from dict.fromkeys((*words.get(self.language.name, ()), *pick(words, "en")))

    def _add_type(self, kind: TypeView) -> None:
        # A name that a level has is that level; a name that all levels share is the type.
        for level, words in kind.levels.items():
            for phrase in self._both(words):
                self._add(phrase, Sense("type", (kind.name, level)))
        for phrase in self._both(kind.words):
            known = self.phrases.get(self.language.key(phrase), ())
            is_named = any(one.kind == "type" and one.value[0] == kind.name for one in known)
            self._add(phrase, *(() if is_named else (Sense("type", (kind.name, None)),)))  # a plural is a word to spell
        if not self.phrases.get(self.language.key(kind.name)):  # as it stands in the ontology
            self._add(kind.name, Sense("type", (kind.name, None)))
        for one in kind.properties:
            for phrase in self._both(one.words):
                self._add(phrase, Sense("property", (kind.name, one.name)))
            for phrase in self._with_comparatives(one.most):
                self._add(phrase, Sense("superlative", (kind.name, one.name, True)))
            for phrase in self._with_comparatives(one.least):
                self._add(phrase, Sense("superlative", (kind.name, one.name, False)))
            if one.unit:
                self._add(one.unit, Sense("unit", one.unit))
            for value, words in one.value_words.items():
                for phrase in self._both(words):
                    self._add(phrase, Sense("value", (kind.name, one.name, value)))

    def _with_comparatives(self, words: Words) -> Iterator[str]:
        """Superlatives, and the comparatives that are built as they are: cheapest, cheaper."""
        for phrase in self._both(words):
            yield phrase
            for ending in self.language.cues("superlative"):
                if " " not in phrase and phrase.endswith(ending):
                    yield from (phrase.removesuffix(ending) + other for other in self.language.cues("comparative"))

    def _add_relationship(self, relationship: RelationshipView) -> None:
        for phrase in (relationship.name.replace("_", " "), *self._both(relationship.forward)):
            self._add(phrase, Sense("relation", (relationship.name, True)))
        for phrase in self._both(relationship.backward):
            self._add(phrase, Sense("relation", (relationship.name, False)))
            words, _, last = phrase.rpartition(" ")
            if " " in words and last in self.language.cues("joins"):
                self._add(words, Sense("relation", (relationship.name, False)))  # who is in charge?

    def _add_values(self) -> None:
        listed: dict[str, list[Sense]] = defaultdict(list)
        for kind in self.view.ontology.types:
            for one in kind.properties:
                if one.kind != "string":
                    continue
                stored = self.view.known.get((kind.name, one.name))
                found = [value.value for value in stored.values] if stored else []
                for value in dict.fromkeys((*one.choices, *found)):
                    listed[value].append(Sense("value", (kind.name, one.name, value)))
        for value, senses in listed.items():
            self._add(value, *senses)
            self._name(value, tuple(senses))

    def _add_names(self) -> None:
        called: dict[tuple[str, str], list[EntityRef]] = defaultdict(list)
        written: dict[tuple[str, str], str] = {}
        for one in self.view.names:
            if values := self._as_values(one):
                # A thing that only groups others by a value of theirs: its names are names of the value.
                for name in one.aliases:
                    self._add(name, *values)
                    self._name(name, values)
                continue
            ref = EntityRef(type=one.type, id=one.id, name=one.name, level=one.level, years=one.years)
            for name in dict.fromkeys((one.name, *one.aliases, one.id)):
                called[one.type, fold(name)].append(ref)
                written.setdefault((one.type, fold(name)), name)
                for short in _short_forms(name):
                    called[one.type, fold(short)].append(ref)
                    written.setdefault((one.type, fold(short)), short)
        together: dict[str, list[Sense]] = defaultdict(list)
        shown: dict[str, str] = {}
        grouping = {folded for _, folded in called}
        for (type, folded), refs in called.items():
            distinct = tuple({ref.id: ref for ref in refs}.values())
            usual = self.view.usual_level(type)
            if usual is None or any(ref.level == usual for ref in distinct):
                grouping.discard(folded)
            together[folded].append(Sense("entity", distinct))
            shown.setdefault(folded, written[type, folded])
        for folded, senses in together.items():
            self._name(shown[folded], tuple(senses), in_full=folded in grouping)

    def _as_values(self, one: EntityName) -> tuple[Sense, ...]:
        """The values of its own type's properties that a thing is called like, where it stands above the usual level."""
        usual = self.view.usual_level(one.type)
        if usual is None or one.level == usual:
            return ()
        return tuple(
            sense
            for sense in self.phrases.get(self.language.key(one.name), ())
            if sense.kind == "value" and sense.value[0] == one.type
        )

    def _name(self, name: str, senses: tuple[Sense, ...], *, in_full: bool = False) -> None:
        tokens = self.language.tokens(name)
        stems = tuple(dict.fromkeys(token.stem for token in tokens))
        if not stems:
            return
        for stem in stems:
            self._holding.setdefault(stem, []).append(len(self._names))
        self._words.update(token.folded for token in tokens)
        self._names.append(_Name(stems, senses, len(stems) == 1 and _has_capitals(name), in_full))

    @cached_property
    def _telling(self) -> Mapping[str, float]:
        """How much each word of the names tells them apart."""
        every = len(self._names) + 1
        return {
            stem: _TELLS_LITTLE if self._is_little(stem) else math.log(1 + every / (len(held) + 0.5))
            for stem, held in self._holding.items()
        }

    def _is_little(self, stem: str) -> bool:
        return any(sense.kind in ("small", "also", "group", "or") for sense in self.language.phrases.get((stem,), ()))

    def find_names(self, tokens: Sequence[Token]) -> list[Match]:
        """Names and parts of names in a message, the most complete first."""
        stems = [token.stem for token in tokens]
        candidates = {
            number
            for stem in dict.fromkeys(stems)
            if len(held := self._holding.get(stem, [])) <= _COMMON or len(held) * 4 < len(self._names)
            for number in held
        }
        candidates |= {
            n for stem in dict.fromkeys(stems) for n in self._holding.get(stem, []) if len(self._names[n].stems) == 1
        }
        found: dict[tuple[int, int], list[tuple[float, _Name]]] = defaultdict(list)
        leading: set[tuple[int, int]] = set()
        standing: dict[str, list[int]] = defaultdict(list)
        for place, stem in enumerate(stems):
            standing[stem].append(place)
        telling = self._telling
        for number in candidates:
            name = self._names[number]
            weights = {stem: telling[stem] for stem in name.stems}
            whole = sum(weights.values())
            places = sorted(n for stem in name.stems if weights[stem] > _TELLS_LITTLE for n in standing.get(stem, ()))
            for at, end in _windows(stems, places, weights, self._joining):
                if name.capitals and not _has_capitals(tokens[at].text) and self.language.phrases.get((stems[at],)):
                    continue
                said = {stem for stem in stems[at:end] if stem in weights}
                share = sum(weights[stem] for stem in said) / whole
                parted = any(stem not in weights for stem in stems[at:end])
                if len(said) == len(weights) and (not parted or _in_order(stems[at:end], name.stems)):
                    share = 1.0
                elif name.in_full or not _in_order(stems[at:end], name.stems):
                    continue
                found[at, end].append((share, name))
                if _begins(stems[at:end], name.stems):
                    leading.add((at, end))
        matches = []
        for (at, end), listed in found.items():
            best = max(share for share, _ in listed)
            senses = _merged(sense for share, name in listed if share >= 0.93 * best for sense in name.senses)
            matches.append(Match(at, end, senses, best, (at, end) in leading))
        return sorted(matches, key=lambda match: (-match.share, match.at - match.end, match.at))

    @cached_property
    def _joining(self) -> frozenset[str]:
        """Words that may stand between two words of a name."""
        parting = ("or", "also", "not", "group", "between", "compare", "range")
        kinds = {key[0]: {sense.kind for sense in senses} for key, senses in self.language.phrases.items() if len(key) == 1}
        return frozenset(stem for stem, its in kinds.items() if "small" in its and not its & set(parting))

    @cached_property
    def _spellable(self) -> list[str]:
        own = {word for word in self._words if len(word) >= 4 and word.isalpha()}
        common = {word for kind in self.language.words.values() for phrase in kind for word in phrase.split() if len(word) >= 3}
        return sorted(own | {word for word in common if word.isalpha()})

    def knows(self, token: Token) -> bool:
        """Whether a word stands anywhere in the lexicon or the language."""
        return token.stem in self.stems or token.folded in self._words

    def known(self, text: str) -> int:
        """How many words of a text stand in the lexicon or the language."""
        return sum(self.knows(token) for token in self.language.tokens(text))

    def holding(self, stem: str) -> list[EntityRef]:
        """The things in whose names a word stands, a thing once for each of its names."""
        senses = (sense for number in self._holding.get(stem, ()) for sense in self._names[number].senses)
        return [ref for sense in senses if sense.kind == "entity" for ref in sense.value]

    def known_by(self, stem: str) -> tuple[EntityRef, ...]:
        """The things that one word of their name tells apart, where its other words are small ones and words of their type."""
        return self._known_by.get(stem, ())

    def beginning(self, stem: str) -> tuple[EntityRef, ...]:
        """The things whose names begin with a word, but for small words and words of their type."""
        return self._beginning.get(stem, ())

    @cached_property
    def _beginning(self) -> Mapping[str, tuple[EntityRef, ...]]:
        return self._by_word(lambda name: next((stem for stem in name.stems if not self._is_generic(stem)), None))

    @cached_property
    def _known_by(self) -> Mapping[str, tuple[EntityRef, ...]]:
        def told_by(name: _Name) -> str | None:
            telling = [stem for stem in name.stems if not self._is_generic(stem)]
            return telling[0] if len(telling) == 1 and len(name.stems) > 1 else None

        return self._by_word(told_by)

    def _by_word(self, told_by: Callable[[_Name], str | None]) -> dict[str, tuple[EntityRef, ...]]:
        """The things of names that are not spelt out in full, by the word of each that `told_by` gives."""
        found: dict[str, dict[tuple[str, str], EntityRef]] = defaultdict(dict)
        for name in self._names:
            if not name.in_full and (word := told_by(name)) is not None:
                refs = (ref for sense in name.senses if sense.kind == "entity" for ref in sense.value)
                found[word].update({(ref.type, ref.id): ref for ref in refs})
        return {stem: tuple(refs.values()) for stem, refs in found.items()}

    def _is_generic(self, stem: str) -> bool:
        kinds = {sense.kind for sense in self.look_up((stem,))}
        return bool(kinds & {"type", "small"})

    def may_name(self, token: Token) -> bool:
        """Whether a word stands in a name of the data, is written as one, or is in no dictionary."""
        capital = token.start > 0 and token.text[:1].isupper() and not self.language.cues("capital_nouns")
        return token.stem in self._holding or capital or not self.language.is_word(token.text)

    def is_slip(self, token: Token) -> bool:
        """Whether a known word is itself the misspelling of one that stands in many more names."""
        word, held = token.folded, len(self._holding.get(token.stem, ()))
        if len(word) < 8 or held == 0 or (token.stem,) in self.phrases or (token.stem,) in self.language.phrases:
            return False
        near = process.extract(word, self._spellable, scorer=OSA.distance, score_cutoff=1, limit=3)
        return any(len(self._holding.get(self.language.stem(one[0]), ())) > _SLIP * held for one in near if one[0] != word)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of every phrase and name."""
        keys = {stem for key in (*self.phrases, *self.language.phrases) for stem in key}
        return frozenset(keys | set(self._holding))

    def mend(self, word: str) -> str | None:
        """The known word that an unknown one is a misspelling of: two letters swapped, one letter off from five letters on, two
        from eight on."""
        if len(word) < 3 or not word.isalpha():
            return None
        allowed = 2 if len(word) >= 8 else 1
        near = process.extract(word, self._spellable, scorer=OSA.distance, score_cutoff=allowed, limit=8)
        near = [one for one in near if one[0] != word and (_is_near(one[0], word) or self._is_common_slip(one[0], word))]
        near.sort(
            key=lambda one: (
                one[1],
                sorted(one[0]) != sorted(word),
                one[0][:1] != word[:1],
                -Indel.normalized_similarity(one[0], word),
                one[0] not in self._words,
            )
        )
        return str(near[0][0]) if near else self._mend_stem(word)

    def _is_common_slip(self, known: str, word: str) -> bool:
        """Whether a word of four letters has one other letter inside than a word of the language: meny."""
        common = known not in self._words
        return common and len(known) == len(word) == 4 and (known[0], known[-1]) == (word[0], word[-1])

    def _mend_stem(self, word: str) -> str | None:
        """The same by stems, for forms that stand nowhere: a plural that the ontology does not give."""
        stem = self.language.stem(word)
        if len(stem) < 4:
            return None
        near = process.extract(stem, self._spellable_stems, scorer=OSA.distance, score_cutoff=1, limit=3)
        near = [one for one in near if one[0][0] == stem[0]]
        return str(near[0][0]) if near else None

    @cached_property
    def _spellable_stems(self) -> list[str]:
        return sorted({self.language.stem(word) for word in self._words if len(word) >= 5 and word.isalpha()})

    def split(self, word: str) -> tuple[str, str] | None:
        """A compound of two known words, as German builds them; `None` where it is none."""
        for at in range(4, len(word) - 3):
            head, tail = word[:at], word[at:]
            bare = head.removesuffix("s")
            first = head if self._builds(head) else bare if self._builds(bare) else None
            if first and self._builds(tail):
                return first, tail
        return None

    def _builds(self, word: str) -> bool:
        """Whether a word builds compounds: it is known, and no comparison (“undertakings” is not what is under something)."""
        senses = self.look_up((self.language.stem(word),))
        return bool(senses) and not any(one.kind.startswith("compare_") or one.kind in _APART for one in senses)


_APART = frozenset({"since", "until", "before", "after", "between", "not", "without"})
"""Kinds of words that build no compounds."""


def _in_order(said: Sequence[str], name: Sequence[str]) -> bool:
    """Whether the words of a name that were said stand as they do in the name: “rating of X” is no part of “X rating”."""
    places = [name.index(stem) for stem in said if stem in name]
    return places == sorted(places)


def _begins(said: Sequence[str], name: tuple[str, ...]) -> bool:
    """Whether a name begins with a word, or holds several in a row."""
    size = len(said)
    places = range(len(name) - size + 1) if size > 1 else (0,)
    return any(name[at : at + size] == tuple(said) for at in places)


def _is_near(known: str, word: str) -> bool:
    """Whether a short word is near enough: three letters swapped, or one left out inside; four with one more besides."""
    swapped = sorted(known) == sorted(word)
    if len(known) <= 3 or len(word) <= 3:
        return swapped or (len(known) == 4 and (known[0], known[-1]) == (word[0], word[-1]))
    return len(word) > 4 or swapped or (len(known) == 5 and known[0] == word[0])


def _has_capitals(word: str) -> bool:
    """Whether a word is written as an abbreviation is."""
    return any(c.isupper() for c in word.strip()[1:])


def _short_forms(name: str) -> Iterator[str]:
    """Abbreviations that a name holds, and the name without what stands in brackets: `Big Project (BP)`."""
    if "(" in name and ")" in name:
        before, _, rest = name.partition("(")
        inside, _, after = rest.partition(")")
        if inside.strip() and len(inside.split()) <= 3:
            yield inside.strip()
        if bare := f"{before.strip()} {after.strip()}".strip():
            yield bare


def _windows(
    stems: Sequence[str], places: Sequence[int], weights: Mapping[str, float], joining: frozenset[str]
) -> Iterator[tuple[int, int]]:
    """Runs of a message's words that stand in a name, at most one other word between two of them, and that a small one."""
    run: list[int] = []
    for place in places:
        parted = run and any(stem not in joining and stem not in weights for stem in stems[run[-1] + 1 : place])
        again = next((n for n, at in enumerate(run) if stems[at] == stems[place]), None)
        if run and (parted or place - run[-1] > 2 or again is not None):
            yield run[0], run[-1] + 1
            run = [] if again is None or parted or place - run[-1] > 2 else run[again + 1 :]
        run.append(place)
    if run:
        yield run[0], run[-1] + 1


def _merged(senses: Iterable[Sense]) -> tuple[Sense, ...]:
    """Senses without repeats; the things of one type that share a name together."""
    entities: dict[str, dict[str, EntityRef]] = defaultdict(dict)
    other: dict[Sense, None] = {}
    for sense in senses:
        if sense.kind == "entity":
            for ref in sense.value:
                entities[ref.type][ref.id] = ref
        else:
            other[sense] = None
    return (*(Sense("entity", tuple(refs.values())) for refs in entities.values()), *other)
