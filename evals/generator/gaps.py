"""Questions for what is missing, what changed between years, and what nobody can answer."""

from __future__ import annotations

from collections.abc import Callable

from ..truth import tables
from ..truth.tables import Row
from .scene import (
    FAKE,
    LONGEST,
    Made,
    Scene,
    listing,
    number,
)
from .world import Choice, Day, Number, Type


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


def moved(reverse: bool) -> Callable[[Scene], Made]:
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
    slots = scene.slots(source, scene.rng.choice(source.numbers)) | scene.ends(one, x=scene.rng.choice(FAKE))
    return slots, {"declined": True, "or_ask": True}


def unknown_year(scene: Scene) -> Made:
    one = scene.type(lambda t: t.numbers)
    if not scene.world.years:
        return None
    return scene.slots(one, scene.rng.choice(one.numbers), n=scene.rng.choice([1987, 1994, 2049])), {"declined": True}


KINDS: dict[str, Callable[[Scene], Made]] = {
    "no_link": no_link,
    "no_value": no_value,
    "count_no_value": count_no_value,
    "unpublished": unpublished,
    "missing": missing,
    "appeared": moved(False),
    "vanished": moved(True),
    "change": change,
    "count_change": count_change,
    "per_year": per_year,
    "unknown_property": unknown_property,
    "unknown_name": unknown_name,
    "unknown_year": unknown_year,
}
