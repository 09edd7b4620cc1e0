"""Dialogues of four to eight turns about a generated twin; each turn is true of what the turns before have left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from ..truth import tables
from ..truth.tables import Row
from .questions import PHRASES
from .scene import LONGEST, Scene, linked, listing, number, single, tidy, value_of
from .scene import joined as joined_pairs
from .world import Choice, Number, Type

Said = list[tuple[str, dict[str, Any]]]
WAYS = yaml.safe_load((Path(__file__).parent / "dialogues.yaml").read_text("utf-8"))
TALK = {"talk": True}


def _say(scene: Scene, way: str, expect: dict[str, Any], **slots: Any) -> tuple[str, dict[str, Any]]:
    return tidy(str(scene.rng.choice(WAYS[way])).format_map(slots)), expect


def _open(scene: Scene, kind: str, slots: dict[str, Any]) -> str:
    return tidy(str(scene.rng.choice(PHRASES[kind]["en"])).format_map(slots))


def thing(scene: Scene) -> Said | None:
    """One thing: its figures, its other end, and what else hangs there."""
    link = scene.link()
    one, target = scene.world.types[link.source], scene.world.types[link.target]
    pairs = [(row, end) for row, end in joined_pairs(scene, link) if all(row[n.name] is not None for n in one.numbers)]
    if not pairs or len(one.numbers) < 2:
        return None
    row, end = scene.rng.choice(pairs)
    first, second = scene.rng.sample(one.numbers, 2)
    said = [(_open(scene, "property_number", scene.slots(one, first, x=row["name"])), value_of(first, row))]
    said.append(_say(scene, "number", value_of(second, row), p=second.words[0]))
    ends = scene.ends(link)
    said.append(_say(scene, "link", single(scene, target, end), **ends))
    prop = scene.rng.choice(target.properties)
    said.append(_say(scene, "of_target", value_of(prop, end), p=prop.words[0], target=target.one))
    others = [other for other, to in joined_pairs(scene, link) if to["id"] == end["id"] and other["id"] != row["id"]]
    if 0 < len(others) <= LONGEST:
        said.append(_say(scene, "siblings", {"names": [other["name"] for other in others]}, many=one.many, **ends))
    return said


def years(scene: Scene) -> Said | None:
    """One thing over the years."""
    if len(scene.world.years) < 2:
        return None
    one = scene.type(lambda t: t.numbers and t.choices)
    prop, choice = scene.rng.choice(one.numbers), scene.rng.choice(one.choices)
    scene.year, scene.named = scene.world.years[-1], True
    row = scene.rng.choice(scene.of(one))
    by_year = {other["year"]: other for other in scene.rows[one.key] if other["id"] == row["id"]}
    before = scene.world.years[-2]
    if before not in by_year or row[prop.name] is None:
        return None
    said = [(_open(scene, "property_number", scene.slots(one, prop, x=row["name"])), value_of(prop, row))]
    said.append(_say(scene, "year", value_of(prop, by_year[before]), a=before))
    said.append(_say(scene, "choice", value_of(choice, by_year[before]), p=choice.words[0]))
    said.append(_say(scene, "year", value_of(choice, row), a=scene.year))
    said.append(_say(scene, "before", value_of(choice, by_year[before])))
    return said


def chosen(scene: Scene) -> Said | None:
    """A list, then what stands out in it."""
    one = scene.type(lambda t: t.numbers and t.choices)
    choice, prop = scene.rng.choice(one.choices), scene.rng.choice(one.numbers)
    value = scene.rng.choice(choice.values)
    rows = scene.of(one, lambda r: r[choice.name] == value)
    most, least = tables.extreme(rows, prop.name), tables.extreme(rows, prop.name, least=True)
    if not 2 < len(rows) <= LONGEST or not most or not least:
        return None
    said: Said = [(_open(scene, "list_choice", scene.slots(one, choice, v=value)), listing(scene, one, rows))]
    said.append(_say(scene, "how_many", number(len(rows))))
    word = prop.words[0]
    said.append(_say(scene, "most", single(scene, one, most[0]), p=word))
    said.append(_say(scene, "least", single(scene, one, least[0]), p=word))
    known = tables.values(rows, prop.name)
    said.append(_say(scene, "total", number(sum(known), prop.unit), p=word))
    said.append(_say(scene, "mean", number(tables.mean(known), prop.unit), p=word))
    return said


def narrowed(scene: Scene) -> Said | None:
    """A list that gets shorter, and a correction."""
    wide = [one for one in scene.world.types.values() if len(one.choices) > 1]
    if not wide:
        return None
    one = scene.rng.choice(wide)
    a, b = scene.rng.sample(one.choices, 2)
    v, other = scene.rng.sample(a.values, 2)
    rows = scene.of(one, lambda r: r[a.name] == v)
    instead = scene.of(one, lambda r: r[a.name] == other)
    w = scene.rng.choice([row[b.name] for row in rows if row[b.name]] or [b.values[0]])
    fewer = [row for row in instead if row[b.name] == w]
    if not 2 < len(rows) <= LONGEST or not 1 < len(instead) <= LONGEST or not fewer:
        return None
    said: Said = [(_open(scene, "list_choice", scene.slots(one, a, v=v)), listing(scene, one, rows))]
    said.append(_say(scene, "no_meant", listing(scene, one, instead), v=v, w=other))
    said.append(_say(scene, "only", listing(scene, one, fewer), q=b.words[0], w=w))
    said.append(_say(scene, "how_many", number(len(fewer))))
    return said


def counted(scene: Scene) -> Said | None:
    """Counts that differ in one thing each."""
    one = scene.type(lambda t: t.choices)
    choice = scene.rng.choice(one.choices)
    v, w = scene.rng.sample(choice.values, 2)
    counts = tables.counts(scene.of(one), choice.name)
    said: Said = [(_open(scene, "count_choice", scene.slots(one, choice, v=v)), number(counts.get(v, 0)))]
    said.append(_say(scene, "instead", number(counts.get(w, 0)), w=w))
    if scene.world.years and scene.year != scene.world.years[0]:
        before = scene.world.years[0]
        earlier = tables.counts(tables.of(scene.rows[one.key], before), choice.name)
        said.append(_say(scene, "year", number(earlier.get(w, 0)), a=before))
        said.append(_say(scene, "all_types", number(len(tables.of(scene.rows[one.key], before))), many=one.many))
    else:
        said.append(_say(scene, "all_types", number(len(scene.of(one))), many=one.many))
    said.append(_say(scene, "thanks", TALK))
    return said


def ranked(scene: Scene) -> Said | None:
    """A ranking and its places."""
    link = scene.link()
    one: Type = scene.world.types[link.source]
    props: list[Number | Choice] = [*one.numbers, *one.choices]
    prop = scene.rng.choice(one.numbers)
    found = tables.extreme(scene.of(one), prop.name, 3)
    ends: dict[str, Row] = {row["id"]: end for row, end in joined_pairs(scene, link)}
    if not found or found[1]["id"] not in ends:
        return None
    other = scene.rng.choice([one for one in props if one is not prop])
    said: Said = [
        (_open(scene, "top", scene.slots(one, prop, k=3)), {"names": [row["name"] for row in found], "ordered": True})
    ]
    said.append(_say(scene, "second", value_of(other, found[1]), p=other.words[0]))
    said.append(_say(scene, "link", single(scene, scene.world.types[link.target], ends[found[1]["id"]]), **scene.ends(link)))
    total = number(sum(tables.values(found, prop.name)), prop.unit)
    said.append(_say(scene, "three", total, p=prop.words[0]))
    return said


def joined(scene: Scene) -> Said | None:
    """What hangs on one thing, then figures over it."""
    made = linked(scene, 3)
    if not made or not made[1].numbers:
        return None
    link, one, target, rows = made
    prop = scene.rng.choice(one.numbers)
    most = tables.extreme(rows, prop.name)
    if not most:
        return None
    slots = scene.slots(one) | scene.ends(link, z=target["name"])
    said: Said = [(_open(scene, "link_back", slots), listing(scene, one, rows))]
    said.append(_say(scene, "total", number(sum(tables.values(rows, prop.name)), prop.unit), p=prop.words[0]))
    said.append(_say(scene, "most", single(scene, one, most[0]), p=prop.words[0]))
    day = scene.rng.choice(one.days)
    said.append(_say(scene, "date", value_of(day, most[0]), p=day.words[0]))
    said.append(_say(scene, "thanks", TALK))
    return said


SHAPES: dict[str, Callable[[Scene], Said | None]] = {
    made.__name__: made for made in (thing, years, chosen, narrowed, counted, ranked, joined)
}
