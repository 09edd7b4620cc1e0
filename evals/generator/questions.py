"""Single questions about a generated twin: what each kind is about and its truth; `phrases.yaml` has the sentences."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..truth import tables
from ..truth.tables import Row
from .world import Choice, Day, Link, Number, Type, World

Slots = dict[str, Any]
Made = tuple[Slots, dict[str, Any]] | None
PHRASES = yaml.safe_load((Path(__file__).parent / "phrases.yaml").read_text("utf-8"))
LONGEST = 14
"""Names that a list may hold."""
_TRIES = 40
_DISTINCT = 3
"""Values by which at least two things have to differ for a question about both."""
_FAKE = (
    "Zorblax Minor",
    "Quibberton",
    "Old Fennimoor",
    "Xandrapolis",
    "Mount Ellwig",
    "Tarkwin Hollow",
    "Brimblewick",
    "Ostrava Nine",
)


@dataclass
class Scene:
    """What a question is drawn from.

    Args:
        world: the twin.
        rows: its rows by type.
        rng: chance.
        year: the year asked about; none without years.
        named: whether the question names it.
    """

    world: World
    rows: dict[str, list[Row]]
    rng: random.Random
    year: int | None = None
    named: bool = True
    words: Slots = field(default_factory=dict)

    def turn(self) -> None:
        """Choose a year: mostly the newest, which may go unsaid."""
        years = self.world.years
        self.year = None if not years else years[-1] if self.rng.random() < 0.6 else self.rng.choice(years)
        self.named = bool(years) and not (self.year == years[-1] and self.rng.random() < 0.25)

    def type(self, has: Callable[[Type], Sequence[Any]] | None = None) -> Type:
        return self.rng.choice([one for one in self.world.types.values() if has is None or has(one)])

    def of(self, one: Type | str, where: Callable[[Row], bool] = lambda row: True) -> list[Row]:
        return tables.of(self.rows[one if isinstance(one, str) else one.key], self.year, where)

    def link(self) -> Link:
        return self.rng.choice(self.world.links)

    def slots(self, one: Type, prop: Number | Choice | Day | None = None, **more: Any) -> Slots:
        """Words for a type and a property; now and then the other word of it."""
        other = self.rng.random() < 0.12
        found: Slots = {
            "one": one.other if other else one.one, "many": one.others if other else one.many,
            "done": one.german, "dmany": one.germans,
            "y": f" in {self.year}" if self.named else "", "y2": f"In {self.year}, " if self.named else "",
        }  # fmt: skip
        if prop:
            found |= {"p": prop.words[0] if isinstance(prop, Day) else self.rng.choice(prop.words), "dp": prop.german[0]}
        if isinstance(prop, Number):
            found |= {"u": prop.unit, "most": self.rng.choice(prop.most), "least": self.rng.choice(prop.least)}
        return found | more

    def ends(self, link: Link, **more: Any) -> Slots:
        """Words for a relationship and its target."""
        target = self.world.types[link.target]
        return {
            "target": target.one, "targets": target.many, "dtargets": target.germans,
            "fwd": self.rng.choice(link.forward), "bwd": self.rng.choice(link.backward), **more,
        }  # fmt: skip


def listing(scene: Scene, one: Type, chosen: Iterable[Row], **more: Any) -> dict[str, Any]:
    """Exactly these things are expected."""
    chosen = list(chosen)
    taken = {row["name"] for row in chosen}
    return {"names": sorted(taken), "not": sorted({row["name"] for row in scene.of(one)} - taken), **more}


def single(scene: Scene, one: Type, row: Row) -> dict[str, Any]:
    """One thing is expected before any other of its type."""
    return {"names": [row["name"]], "lead": sorted({other["name"] for other in scene.of(one)} - {row["name"]})}


def number(value: float, unit: str = "") -> dict[str, Any]:
    """A figure is expected."""
    return {"number": round(value, 4), "unit": unit}


def round_threshold(some: Sequence[float], at: float) -> float | None:
    """A round number that parts the values about there, and is none of them."""
    ordered = sorted(some)
    value = ordered[int(at * (len(ordered) - 1))]
    digits = len(str(int(value))) - 1
    rounded = float(round(value, -max(0, digits - 1)) or round(value, 1))
    return None if rounded in some else rounded


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 10_000 else f"{value:g}"


def count_all(scene: Scene) -> Made:
    one = scene.type()
    return scene.slots(one), number(len(scene.of(one)))


def count_choice(scene: Scene) -> Made:
    one = scene.type(lambda t: t.choices)
    prop = scene.rng.choice(one.choices)
    value = scene.rng.choice(prop.values)
    return scene.slots(one, prop, v=value), number(len(scene.of(one, lambda r: r[prop.name] == value)))


def _beyond(scene: Scene, above: bool) -> tuple[Type, Number, float, list[Row]] | None:
    one = scene.type(lambda t: t.numbers)
    prop = scene.rng.choice(one.numbers)
    known = tables.values(scene.of(one), prop.name)
    limit = (
        round_threshold(known, scene.rng.uniform(0.5, 0.85) if above else scene.rng.uniform(0.15, 0.5))
        if len(known) > 4
        else None
    )
    if limit is None:
        return None
    fits = scene.of(one, lambda r: r[prop.name] is not None and (r[prop.name] > limit if above else r[prop.name] < limit))
    return one, prop, limit, fits


def count_number(scene: Scene) -> Made:
    made = _beyond(scene, True)
    return made and (scene.slots(made[0], made[1], n=_plain(made[2])), number(len(made[3])))


def count_below(scene: Scene) -> Made:
    made = _beyond(scene, False)
    return made and (scene.slots(made[0], made[1], n=_plain(made[2])), number(len(made[3])))


def count_two(scene: Scene) -> Made:
    wide = [one for one in scene.world.types.values() if len(one.choices) > 1]
    if not wide:
        return None
    one = scene.rng.choice(wide)
    a, b = scene.rng.sample(one.choices, 2)
    v, w = scene.rng.choice(a.values), scene.rng.choice(b.values)
    found = scene.of(one, lambda r: r[a.name] == v and r[b.name] == w)
    return scene.slots(one, a, v=v, w=w, q=b.words[0]), number(len(found))


def count_date(scene: Scene) -> Made:
    """The sentence decides whether it is before or after; `before` in its text says so."""
    one = scene.type(lambda t: t.days)
    prop = scene.rng.choice(one.days)
    year = scene.rng.randint(prop.first + 2, prop.last - 2)
    after = scene.of(one, lambda r: r[prop.name] is not None and r[prop.name].year > year)
    before = scene.of(one, lambda r: r[prop.name] is not None and r[prop.name].year < year)
    return scene.slots(one, prop, n=year), {"after": number(len(after)), "before": number(len(before))}


def _figure(how: Callable[[list[float]], float], filtered: bool = False) -> Callable[[Scene], Made]:
    def made(scene: Scene) -> Made:
        one = scene.type(lambda t: t.numbers if not filtered else t.numbers and t.choices)
        prop = scene.rng.choice(one.numbers)
        more: Slots = {}
        where: Callable[[Row], bool] = lambda row: True  # noqa: E731
        if filtered:
            choice = scene.rng.choice(one.choices)
            value = scene.rng.choice(choice.values)
            more, where = {"q": choice.words[0], "v": value}, lambda row: row[choice.name] == value
        known = tables.values(scene.of(one, where), prop.name)
        return (scene.slots(one, prop, **more), number(how(known), prop.unit)) if len(known) > 2 else None

    return made


def _extreme(least: bool) -> Callable[[Scene], Made]:
    def made(scene: Scene) -> Made:
        one = scene.type(lambda t: t.numbers)
        prop = scene.rng.choice(one.numbers)
        found = tables.extreme(scene.of(one), prop.name, least=least)
        return (scene.slots(one, prop), single(scene, one, found[0])) if found else None

    return made


def _ranking(least: bool) -> Callable[[Scene], Made]:
    def made(scene: Scene) -> Made:
        one = scene.type(lambda t: t.numbers)
        prop, count = scene.rng.choice(one.numbers), scene.rng.randint(3, 5)
        found = tables.extreme(scene.of(one), prop.name, count, least)
        return (scene.slots(one, prop, k=count), {"names": [row["name"] for row in found], "ordered": True}) if found else None

    return made


def share(scene: Scene) -> Made:
    one = scene.type(lambda t: t.choices)
    prop = scene.rng.choice(one.choices)
    value = scene.rng.choice(prop.values)
    rows = scene.of(one)
    part, known = sum(row[prop.name] == value for row in rows), sum(row[prop.name] is not None for row in rows)
    wholes = dict.fromkeys([len(rows), known])
    return scene.slots(one, prop, v=value), {"any": [number(100 * part / whole, "%") for whole in wholes if whole]}


def ratio(scene: Scene) -> Made:
    one = scene.type(lambda t: t.choices)
    prop = scene.rng.choice(one.choices)
    v, w = scene.rng.sample(prop.values, 2)
    counts = tables.counts(scene.of(one), prop.name)
    if not counts.get(v) or not counts.get(w):
        return None
    return scene.slots(one, prop, v=v, w=w), {**number(counts[v] / counts[w]), "tolerance": 0.06}


def _two(scene: Scene) -> tuple[Type, Number, Row, Row] | None:
    one = scene.type(lambda t: t.numbers)
    prop = scene.rng.choice(one.numbers)
    known = [row for row in scene.of(one) if row[prop.name] is not None]
    if len(known) < _DISTINCT:
        return None
    x, z = sorted(scene.rng.sample(known, 2), key=lambda row: -row[prop.name])
    return (one, prop, x, z) if x[prop.name] != z[prop.name] else None


def difference(scene: Scene) -> Made:
    made = _two(scene)
    if not made:
        return None
    one, prop, x, z = made
    return scene.slots(one, prop, x=x["name"], z=z["name"]), number(x[prop.name] - z[prop.name], prop.unit)


def compare(scene: Scene) -> Made:
    made = _two(scene)
    if not made:
        return None
    one, prop, x, z = made
    first, second = scene.rng.sample([x, z], 2)
    expect = {"names": [x["name"]], "lead": [z["name"]]}
    return scene.slots(one, prop, x=first["name"], z=second["name"]), expect


def group(scene: Scene) -> Made:
    one = scene.type(lambda t: t.choices)
    prop = scene.rng.choice(one.choices)
    return scene.slots(one, prop), {"groups": tables.counts(scene.of(one), prop.name)}


def _group_figure(how: Callable[[list[float]], float]) -> Callable[[Scene], Made]:
    def made(scene: Scene) -> Made:
        one = scene.type(lambda t: t.numbers and t.choices)
        prop, choice = scene.rng.choice(one.numbers), scene.rng.choice(one.choices)
        found = tables.figures(scene.of(one), choice.name, prop.name, how)
        groups = {key: round(value, 4) for key, value in found.items()}
        return scene.slots(one, prop, q=choice.words[0]), {"groups": groups, "unit": prop.unit}

    return made


def group_link(scene: Scene) -> Made:
    link = scene.link()
    source = scene.world.types[link.source]
    found = tables.by_target(scene.of(source), link.name, scene.of(link.target))
    return (scene.slots(source) | scene.ends(link), {"groups": found}) if len(found) <= LONGEST else None


def most_link(scene: Scene) -> Made:
    link = scene.link()
    source = scene.world.types[link.source]
    found = tables.by_target(scene.of(source), link.name, scene.of(link.target))
    first = sorted(found, key=lambda name: -found[name])[:2]
    if len(first) < 2 or found[first[0]] == found[first[1]]:
        return None
    others = sorted(set(found) - {first[0]})
    return scene.slots(source) | scene.ends(link), {"names": [first[0]], "lead": others}


def list_choice(scene: Scene) -> Made:
    one = scene.type(lambda t: t.choices)
    prop = scene.rng.choice(one.choices)
    value = scene.rng.choice(prop.values)
    found = scene.of(one, lambda r: r[prop.name] == value)
    return (scene.slots(one, prop, v=value), listing(scene, one, found)) if 0 < len(found) <= LONGEST else None


def list_number(scene: Scene) -> Made:
    made = _beyond(scene, True)
    if not made or not 0 < len(made[3]) <= LONGEST:
        return None
    return scene.slots(made[0], made[1], n=_plain(made[2])), listing(scene, made[0], made[3])


def list_between(scene: Scene) -> Made:
    one = scene.type(lambda t: t.numbers)
    prop = scene.rng.choice(one.numbers)
    known = tables.values(scene.of(one), prop.name)
    low, high = (round_threshold(known, at) if len(known) > 6 else None for at in (0.3, 0.7))
    if low is None or high is None or low >= high:
        return None
    found = scene.of(one, lambda r: r[prop.name] is not None and low < r[prop.name] < high)
    if not 0 < len(found) <= LONGEST:
        return None
    return scene.slots(one, prop, n=_plain(low), m=_plain(high)), listing(scene, one, found)


def list_date(scene: Scene) -> Made:
    one = scene.type(lambda t: t.days)
    prop = scene.rng.choice(one.days)
    year = scene.rng.randint(prop.first + 2, prop.last - 1)
    found = scene.of(one, lambda r: r[prop.name] is not None and r[prop.name].year > year)
    return (scene.slots(one, prop, n=year), listing(scene, one, found)) if 0 < len(found) <= LONGEST else None


def list_all(scene: Scene) -> Made:
    one = scene.type()
    found = scene.of(one)
    return (scene.slots(one), listing(scene, one, found)) if len(found) <= 2 * LONGEST else None


def _property(kind: str) -> Callable[[Scene], Made]:
    def made(scene: Scene) -> Made:
        one = scene.type(lambda t: getattr(t, kind))
        prop = scene.rng.choice(getattr(one, kind))
        known = [row for row in scene.of(one) if row[prop.name] is not None]
        if not known:
            return None
        row = scene.rng.choice(known)
        return scene.slots(one, prop, x=row["name"]), value_of(prop, row)

    return made


def value_of(prop: Number | Choice | Day, row: Row) -> dict[str, Any]:
    """What is expected of one property of one thing."""
    value = row[prop.name]
    if value is None:
        return {"unpublished": True}
    if isinstance(prop, Number):
        return number(value, prop.unit)
    if isinstance(prop, Day):
        return {"date": value.isoformat()}
    return {"text": [[value]], "not": [other for other in prop.values if other != value]}


def yes(scene: Scene) -> Made:
    one = scene.type(lambda t: t.choices)
    prop = scene.rng.choice(one.choices)
    known = [row for row in scene.of(one) if row[prop.name] is not None]
    if not known:
        return None
    row, value = scene.rng.choice(known), scene.rng.choice(prop.values)
    same = row[prop.name] == value
    return scene.slots(one, prop, x=row["name"], v=value), {"yes": same, **({} if same else {"facts": [[row[prop.name]]]})}


def exists(scene: Scene) -> Made:
    one = scene.type()
    if scene.rng.random() < 0.6:
        return scene.slots(one, x=scene.rng.choice(scene.of(one))["name"]), {"yes": True}
    return scene.slots(one, x=scene.rng.choice(_FAKE)), {"any": [{"yes": False}, {"declined": True}]}


def _joined(scene: Scene, link: Link) -> list[tuple[Row, Row]]:
    """The pairs of a relationship in the year."""
    targets = {row["id"]: row for row in scene.of(link.target)}
    return [(row, targets[one]) for row in scene.of(link.source) for one in row[link.name] if one in targets]


def link(scene: Scene) -> Made:
    one = scene.link()
    pairs = _joined(scene, one)
    if not pairs:
        return None
    row, target = scene.rng.choice(pairs)
    source = scene.world.types[one.source]
    return scene.slots(source) | scene.ends(one, x=row["name"]), single(scene, scene.world.types[one.target], target)


def _linked(scene: Scene, least: int = 1) -> tuple[Link, Type, Row, list[Row]] | None:
    one = scene.link()
    pairs = _joined(scene, one)
    if not pairs:
        return None
    target = scene.rng.choice(pairs)[1]
    found = [row for row, other in pairs if other["id"] == target["id"]]
    return (one, scene.world.types[one.source], target, found) if least <= len(found) <= LONGEST else None


def link_back(scene: Scene) -> Made:
    made = _linked(scene)
    return made and (scene.slots(made[1]) | scene.ends(made[0], z=made[2]["name"]), listing(scene, made[1], made[3]))


def link_count(scene: Scene) -> Made:
    made = _linked(scene)
    return made and (scene.slots(made[1]) | scene.ends(made[0], z=made[2]["name"]), number(len(made[3])))


def link_sum(scene: Scene) -> Made:
    made = _linked(scene, 2)
    if not made or not made[1].numbers:
        return None
    prop = scene.rng.choice(made[1].numbers)
    known = tables.values(made[3], prop.name)
    return (
        (scene.slots(made[1], prop) | scene.ends(made[0], z=made[2]["name"]), number(sum(known), prop.unit)) if known else None
    )


def link_choice(scene: Scene) -> Made:
    """A list or a count, as the sentence asks."""
    made = _linked(scene, 2)
    if not made or not made[1].choices:
        return None
    prop = scene.rng.choice(made[1].choices)
    value = scene.rng.choice([row[prop.name] for row in made[3] if row[prop.name]] or [prop.values[0]])
    found = [row for row in made[3] if row[prop.name] == value]
    slots = scene.slots(made[1], prop, v=value) | scene.ends(made[0], z=made[2]["name"])
    return slots, {"list": listing(scene, made[1], found), "count": number(len(found))}


def _hops(scene: Scene) -> tuple[Type, Slots, list[Row]] | None:
    paths = [(a, b) for a in scene.world.links for b in scene.world.links if a.target == b.source]
    if not paths:
        return None
    first, second = scene.rng.choice(paths)
    far = _joined(scene, second)
    if not far:
        return None
    end = scene.rng.choice(far)[1]
    middles = {row["id"] for row, other in far if other["id"] == end["id"]}
    found = [row for row, other in _joined(scene, first) if other["id"] in middles]
    source = scene.world.types[first.source]
    slots = scene.slots(source) | scene.ends(first, z=end["name"], fwd2=scene.rng.choice(second.forward))
    return (source, slots, found) if 0 < len(found) <= LONGEST else None


def hop_count(scene: Scene) -> Made:
    made = _hops(scene)
    return made and (made[1], number(len(made[2])))


def hop_list(scene: Scene) -> Made:
    made = _hops(scene)
    return made and (made[1], listing(scene, made[0], made[2]))


def linked_property(scene: Scene) -> Made:
    one = scene.link()
    target = scene.world.types[one.target]
    pairs = _joined(scene, one)
    if not pairs or not target.numbers:
        return None
    prop, (row, end) = scene.rng.choice(target.numbers), scene.rng.choice(pairs)
    return scene.slots(target, prop) | scene.ends(one, x=row["name"]), value_of(prop, end)


def no_link(scene: Scene) -> Made:
    one = scene.link()
    source = scene.world.types[one.source]
    found = scene.of(source, lambda r: not r[one.name])
    return (scene.slots(source) | scene.ends(one), listing(scene, source, found)) if 0 < len(found) <= LONGEST else None


def _without(scene: Scene) -> tuple[Type, Number | Choice | Day, list[Row]]:
    one = scene.type()
    prop: Number | Choice | Day = scene.rng.choice(one.properties)
    return one, prop, scene.of(one, lambda r: r[prop.name] is None)


def no_value(scene: Scene) -> Made:
    one, prop, found = _without(scene)
    return (scene.slots(one, prop), listing(scene, one, found)) if 0 < len(found) <= LONGEST else None


def count_no_value(scene: Scene) -> Made:
    one, prop, found = _without(scene)
    return (scene.slots(one, prop), number(len(found))) if found else None


def unpublished(scene: Scene) -> Made:
    one, prop, found = _without(scene)
    return (
        (scene.slots(one, prop, x=scene.rng.choice(found)["name"]), {"unpublished": True})
        if found and isinstance(prop, Number)
        else None
    )


def missing(scene: Scene) -> Made:
    one = scene.type()
    row = scene.rng.choice(scene.of(one))
    gone = [list(prop.words) for prop in one.properties if row[prop.name] is None]
    types = scene.world.types
    gone += [
        [types[way.target].one, types[way.target].other, way.forward[0], way.name]
        for way in scene.world.links if way.source == one.key and not row[way.name]
    ]  # fmt: skip
    return (scene.slots(one, x=row["name"]), {"gaps": gone}) if gone else None


def _years(scene: Scene) -> tuple[int, int] | None:
    years = scene.world.years
    if len(years) < 2:
        return None
    at = scene.rng.randrange(len(years) - 1)
    scene.year = years[at + 1]
    return years[at], years[at + 1]


def _moved(reverse: bool) -> Callable[[Scene], Made]:
    def made(scene: Scene) -> Made:
        years = _years(scene)
        if not years:
            return None
        one = scene.type()
        here, there = (years[1], years[0]) if not reverse else years
        old = {row["id"] for row in tables.of(scene.rows[one.key], there)}
        scene.year = here
        found = scene.of(one, lambda r: r["id"] not in old)
        return (scene.slots(one, a=years[0], b=years[1]), listing(scene, one, found)) if 0 < len(found) <= LONGEST else None

    return made


def change(scene: Scene) -> Made:
    years = _years(scene)
    if not years:
        return None
    one = scene.type(lambda t: t.numbers)
    prop = scene.rng.choice(one.numbers)
    before = {row["id"]: row[prop.name] for row in tables.of(scene.rows[one.key], years[0]) if row[prop.name] is not None}
    known = [r for r in scene.of(one) if r[prop.name] is not None and r["id"] in before and r[prop.name] != before[r["id"]]]
    if not known:
        return None
    row = scene.rng.choice(known)
    return scene.slots(one, prop, x=row["name"], a=years[0], b=years[1]), number(row[prop.name] - before[row["id"]], prop.unit)


def count_change(scene: Scene) -> Made:
    years = _years(scene)
    if not years:
        return None
    one = scene.type()
    before, after = (len(tables.of(scene.rows[one.key], year)) for year in years)
    return scene.slots(one, a=years[0], b=years[1]), number(after - before)


def per_year(scene: Scene) -> Made:
    if len(scene.world.years) < 2:
        return None
    one = scene.type()
    return scene.slots(one), {"groups": {str(year): len(tables.of(scene.rows[one.key], year)) for year in scene.world.years}}


def unknown_property(scene: Scene) -> Made:
    one = scene.type()
    return scene.slots(one, x=scene.rng.choice(scene.of(one))["name"]), {"declined": True}


def unknown_name(scene: Scene) -> Made:
    one = scene.link()
    source = scene.world.types[one.source]
    if not source.numbers:
        return None
    slots = scene.slots(source, scene.rng.choice(source.numbers)) | scene.ends(one, x=scene.rng.choice(_FAKE))
    return slots, {"declined": True, "or_ask": True}


def unknown_year(scene: Scene) -> Made:
    one = scene.type(lambda t: t.numbers)
    if not scene.world.years:
        return None
    return scene.slots(one, scene.rng.choice(one.numbers), n=scene.rng.choice([1987, 1994, 2049])), {"declined": True}


KINDS: dict[str, Callable[[Scene], Made]] = {
    "count_all": count_all, "count_choice": count_choice, "count_number": count_number, "count_below": count_below,
    "count_two": count_two, "count_date": count_date, "sum": _figure(sum), "sum_choice": _figure(sum, filtered=True),
    "mean": _figure(tables.mean), "median": _figure(tables.median), "max": _extreme(False), "min": _extreme(True),
    "value_max": _figure(max), "range_min": _figure(min), "top": _ranking(False), "bottom": _ranking(True), "share": share,
    "ratio": ratio, "difference": difference, "compare": compare, "group": group, "group_sum": _group_figure(sum),
    "group_mean": _group_figure(tables.mean), "group_link": group_link, "most_link": most_link, "list_choice": list_choice,
    "list_number": list_number, "list_date": list_date, "list_between": list_between, "list_all": list_all,
    "property_number": _property("numbers"), "property_choice": _property("choices"), "property_date": _property("days"),
    "yes": yes, "exists": exists, "link": link, "link_back": link_back, "link_count": link_count, "link_sum": link_sum,
    "link_choice": link_choice, "hop_count": hop_count, "hop_list": hop_list, "linked_property": linked_property,
    "no_link": no_link, "no_value": no_value, "count_no_value": count_no_value, "unpublished": unpublished, "missing": missing,
    "appeared": _moved(False), "vanished": _moved(True), "change": change, "count_change": count_change, "per_year": per_year,
    "unknown_property": unknown_property, "unknown_name": unknown_name, "unknown_year": unknown_year,
}  # fmt: skip


def tidy(text: str) -> str:
    """A sentence without the traces of empty slots, and with *an* where it belongs."""
    text = " ".join(text.split()).replace(" ?", "?").replace(" ,", ",").replace(" :", ":")
    return re.sub(r"\b([Aa]) (?=[aeio])", r"\1n ", text)


def ask(scene: Scene, kind: str, pattern: str, language: str = "en") -> tuple[str, dict[str, Any]] | None:
    """A question of a kind in the words of a pattern, and what is expected; none where the twin has nothing for it."""
    for _ in range(_TRIES):
        scene.turn()
        made = KINDS[kind](scene)
        if not made:
            continue
        slots, expect = made
        if language == "de":
            slots["y"] = f" {scene.year}" if slots["y"] else ""
        if (
            "{y}" not in pattern
            and "{y2}" not in pattern
            and not {"{a}", "{b}"} & set(_fields(pattern))
            and kind not in _YEARLESS
        ):
            if scene.world.years and scene.year != scene.world.years[-1]:
                continue
        return tidy(pattern.format_map(slots)), _choose(expect, pattern)
    return None


_YEARLESS = ("per_year", "unknown_property", "unknown_year")


def _fields(pattern: str) -> list[str]:
    return [f"{{{part.split('}')[0]}}}" for part in pattern.split("{")[1:]]


def _choose(expect: dict[str, Any], pattern: str) -> dict[str, Any]:
    """What a sentence decides: before or after, a count or a list."""
    if "after" in expect:
        return dict(expect["before" if "before" in pattern or "prior" in pattern else "after"])
    if "count" in expect:
        return dict(expect["count" if "how many" in pattern.lower() else "list"])
    return expect
