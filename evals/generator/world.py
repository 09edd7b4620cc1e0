"""A made-up twin: an ontology of a domain drawn by a seed, and its nodes as tables with years, gaps and links.

The same seed gives the same twin. What the tables hold is read back from their text by `truth.tables`, so that truths rest on
what is loaded and not on what was meant.
"""

from __future__ import annotations

import csv
import io
import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
MISSING_VALUE, MISSING_LINK, ABSENT = 0.07, 0.09, 0.08
"""Shares of values, of links, and of a thing's years that are left out."""
FIRST = """Alma Boris Clara Dario Edda Fabian Greta Hugo Ines Jonas Katja Leon Mara Nils Olga Pavel Quinn Rosa Sami
Tilda Udo Vera Wim Xenia Yara Zeno Ada Bruno Cleo Dora""".split()
LAST = """Abendroth Birk Castell Dahl Engel Falk Grau Holm Iversen Jansen Krog Lund Moller Nyberg Oster Palme Quist
Rask Sand Thorn Ulm Vinter Wolff Yding Zahn Arvid Brandt Corvin Delius Ekman""".split()
_ONSETS = [
    "b",
    "br",
    "d",
    "dr",
    "f",
    "fl",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "pr",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
    "w",
    "z",
]
_VOWELS = ["a", "e", "i", "o", "u", "au", "ei"]
_ENDS = ["", "l", "m", "n", "r", "rk", "sk", "nd", "x"]


@dataclass(frozen=True)
class Number:
    """A property with figures."""

    name: str
    unit: str
    low: float
    high: float
    decimals: int
    words: tuple[str, ...]
    german: tuple[str, ...]
    most: tuple[str, ...]
    least: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A property with a closed set of values."""

    name: str
    words: tuple[str, ...]
    german: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class Day:
    """A property with dates."""

    name: str
    words: tuple[str, ...]
    german: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True)
class Type:
    """A type of nodes with its words."""

    key: str
    archetype: str
    one: str
    many: str
    other: str
    german: str
    germans: str
    endings: tuple[str, ...]
    numbers: tuple[Number, ...]
    choices: tuple[Choice, ...]
    days: tuple[Day, ...]

    @property
    def properties(self) -> tuple[Number | Choice | Day, ...]:
        """All of its properties."""
        return (*self.numbers, *self.choices, *self.days)

    @property
    def others(self) -> str:
        """The plural of the other word."""
        return plural(self.other)


@dataclass(frozen=True)
class Link:
    """A relationship: each source has one target at most."""

    source: str
    name: str
    target: str
    forward: tuple[str, ...]
    backward: tuple[str, ...]


@dataclass
class World:
    """A twin.

    Args:
        years: its snapshots; none if its nodes have no year.
        files: the text of one table for each type.
    """

    seed: int
    domain: str
    years: tuple[int, ...]
    types: dict[str, Type]
    links: tuple[Link, ...]
    files: dict[str, str] = field(default_factory=dict)

    def ontology(self) -> dict[str, Any]:
        """As a tenant's own file has it."""
        return {
            "name": self.domain,
            "nodes": {one.key: {"words": _node_words(one), "properties": _properties(one)} for one in self.types.values()},
            "relationships": {
                link.name: {
                    "from": [link.source],
                    "to": [link.target],
                    "words": {"en": {"forward": list(link.forward), "backward": list(link.backward)}},
                }
                for link in self.links
            },
            "chains": self.chains(),
        }

    def chains(self) -> dict[str, dict[str, list[str]]]:
        """Each path over two relationships."""
        return {
            f"{a.name.title().replace('_', '')}Then{b.name.title().replace('_', '')}": {
                "steps": [a.source, a.name, a.target, b.name, b.target]
            }
            for a in self.links
            for b in self.links
            if a.target == b.source
        }


def make(seed: int) -> World:
    """The twin of a seed."""
    rng = random.Random(f"twin {seed}")
    themes = yaml.safe_load((HERE / "themes.yaml").read_text("utf-8"))
    domain = rng.choice(sorted(themes))
    raw = themes[domain]
    keys = list(raw["types"])
    if len(keys) > 5 and rng.random() < 0.6:
        keys.remove(rng.choice(keys))
    pools = yaml.safe_load((HERE / "properties.yaml").read_text("utf-8"))
    types = {key: _type(key, raw["types"][key], pools, rng) for key in keys}
    links = tuple(_link(one, rng) for one in raw["links"] if one[0] in types and one[2] in types)
    last = rng.randint(2021, 2025)
    years = tuple(range(last - rng.randint(1, 2), last + 1)) if rng.random() < 0.7 else ()
    world = World(seed, domain, years, types, links)
    _fill(world, rng)
    return world


def plural(word: str) -> str:
    """The regular plural of an English noun."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def _type(key: str, raw: list[Any], pools: dict[str, Any], rng: random.Random) -> Type:
    archetype, one, many, other, german, germans, endings = raw
    pool = pools[archetype]
    numbers = rng.sample(pool["numbers"], min(len(pool["numbers"]), rng.randint(2, 3)))
    choices = rng.sample(pool["choices"], rng.randint(1, len(pool["choices"])))
    days = rng.sample(pool["dates"], rng.randint(1, len(pool["dates"])))
    return Type(
        key, archetype, one, many, other, german, germans, tuple(endings),
        tuple(Number(n[0], n[1], n[2], n[3], n[4], tuple(n[5]), tuple(n[6]), tuple(n[7]), tuple(n[8])) for n in numbers),
        tuple(Choice(c[0], tuple(c[1]), tuple(c[2]), tuple(rng.choice(c[3]))) for c in choices),
        tuple(Day(d[0], tuple(d[1]), tuple(d[2]), d[3], d[4]) for d in days),
    )  # fmt: skip


def _link(raw: list[str], rng: random.Random) -> Link:
    source, name, target, forward, forward2, backward, backward2 = raw
    both = rng.random() < 0.6
    return Link(
        source, name, target, (forward, forward2) if both else (forward,), (backward, backward2) if both else (backward,)
    )


def _fill(world: World, rng: random.Random) -> None:
    """Write the tables."""
    taken: set[str] = set()
    years: tuple[int | None, ...] = world.years or (None,)
    nodes = rng.randint(190, 560)
    size = nodes / len(years) / len(world.types)
    things = {
        key: [_named(one, taken, rng) for _ in range(max(8, int(size * rng.uniform(0.7, 1.3))))]
        for key, one in world.types.items()
    }
    ids = {key: [f"{key[:3].upper()}-{place:03d}" for place in range(1, len(names) + 1)] for key, names in things.items()}
    present = {(key, one): _present(years, rng) for key in things for one in ids[key]}
    base = {(key, one): _values(world.types[key], rng) for key in things for one in ids[key]}
    ends = {(link.name, one): rng.choice(ids[link.target]) for link in world.links for one in ids[link.source]}
    for key, type_ in world.types.items():
        links = [link for link in world.links if link.source == key]
        names = [*(n.name for n in type_.numbers), *(c.name for c in type_.choices), *(d.name for d in type_.days)]
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["id", "name", *(["year"] if world.years else []), *names, *(link.name for link in links)])
        for name, one in zip(things[key], ids[key], strict=True):
            for year in years:
                if year not in present[(key, one)]:
                    continue
                _drift(type_, base[(key, one)], rng)
                cells = ["" if rng.random() < MISSING_VALUE else base[(key, one)][column] for column in names]
                targets = [
                    ""
                    if rng.random() < MISSING_LINK or year not in present[(link.target, ends[(link.name, one)])]
                    else ends[(link.name, one)]
                    for link in links
                ]
                table.writerow([one, name, *([year] if world.years else []), *cells, *targets])
        world.files[key] = out.getvalue()


def _present(years: tuple[int | None, ...], rng: random.Random) -> set[int | None]:
    kept = {year for year in years if rng.random() >= ABSENT}
    return kept or {years[-1]}


def _values(one: Type, rng: random.Random) -> dict[str, str]:
    values = {number.name: _figure(number, number.low * (number.high / number.low) ** rng.random()) for number in one.numbers}
    values |= {choice.name: rng.choice(choice.values) for choice in one.choices}
    for day in one.days:
        start = date(day.first, 1, 1)
        values[day.name] = (start + timedelta(days=rng.randrange((date(day.last, 12, 28) - start).days))).isoformat()
    return values


def _drift(one: Type, values: dict[str, str], rng: random.Random) -> None:
    """From one year to the next some figures move and some states change."""
    for number in one.numbers:
        if rng.random() < 0.7:
            values[number.name] = _figure(number, float(values[number.name]) * rng.uniform(0.85, 1.25))
    for choice in one.choices:
        if rng.random() < 0.2:
            values[choice.name] = rng.choice(choice.values)


def _figure(number: Number, value: float) -> str:
    return f"{max(value, 10**-number.decimals):.{number.decimals}f}"


def _named(one: Type, taken: set[str], rng: random.Random) -> str:
    while True:
        if one.archetype == "person":
            stem = name = f"{rng.choice(FIRST)} {rng.choice(LAST)}"
        else:
            syllables = [rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(rng.randint(2, 3))]
            stem = ("".join(syllables) + rng.choice(_ENDS)).capitalize()
            name = f"{stem} {rng.choice(one.endings)}" if one.endings else stem
        if len(stem) > 4 and not any(stem in other or other in stem for other in taken):
            taken.add(stem)
            return name


def _node_words(one: Type) -> dict[str, list[str]]:
    """The label first, then its plural and the other word; German words too, without those that are written alike."""
    english, german = [one.one, one.many, one.other, one.others], [one.german, one.germans]
    return {"en": list(dict.fromkeys(english)), "de": list(dict.fromkeys(german))}


def _properties(one: Type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number in one.numbers:
        found[number.name] = {
            "type": "number", "unit": number.unit, "words": {"en": list(number.words), "de": list(number.german)},
            "most": {"en": list(number.most)}, "least": {"en": list(number.least)},
        }  # fmt: skip
    for choice in one.choices:
        found[choice.name] = {
            "type": "string",
            "enum": list(choice.values),
            "words": {"en": list(choice.words), "de": list(choice.german)},
        }
    for day in one.days:
        found[day.name] = {"type": "date", "words": {"en": list(day.words), "de": list(day.german)}}
    return found
