"""Questions for things: lists, one thing and its properties, and what is joined to it."""

from __future__ import annotations

from collections.abc import Callable

from ..truth import tables
from ..truth.tables import Row
from .scene import (
    FAKE,
    LONGEST,
    Made,
    Scene,
    Slots,
    beyond,
    joined,
    linked,
    listing,
    number,
    plain,
    round_threshold,
    single,
    value_of,
)
from .world import Type


def list_choice(scene: Scene) -> Made:
    one = scene.type(lambda t: t.choices)
    prop = scene.rng.choice(one.choices)
    value = scene.rng.choice(prop.values)
    found = scene.of(one, lambda r: r[prop.name] == value)
    return (scene.slots(one, prop, v=value), listing(scene, one, found)) if 0 < len(found) <= LONGEST else None


def list_number(scene: Scene) -> Made:
    made = beyond(scene, True)
    if not made or not 0 < len(made[3]) <= LONGEST:
        return None
    return scene.slots(made[0], made[1], n=plain(made[2])), listing(scene, made[0], made[3])


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
    return scene.slots(one, prop, n=plain(low), m=plain(high)), listing(scene, one, found)


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


def property_of(kind: str) -> Callable[[Scene], Made]:
    def made(scene: Scene) -> Made:
        one = scene.type(lambda t: getattr(t, kind))
        prop = scene.rng.choice(getattr(one, kind))
        known = [row for row in scene.of(one) if row[prop.name] is not None]
        if not known:
            return None
        row = scene.rng.choice(known)
        return scene.slots(one, prop, x=row["name"]), value_of(prop, row)

    return made


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
    return scene.slots(one, x=scene.rng.choice(FAKE)), {"any": [{"yes": False}, {"declined": True}]}


def link(scene: Scene) -> Made:
    one = scene.link()
    pairs = joined(scene, one)
    if not pairs:
        return None
    row, target = scene.rng.choice(pairs)
    source = scene.world.types[one.source]
    return scene.slots(source) | scene.ends(one, x=row["name"]), single(scene, scene.world.types[one.target], target)


def link_back(scene: Scene) -> Made:
    made = linked(scene)
    return made and (scene.slots(made[1]) | scene.ends(made[0], z=made[2]["name"]), listing(scene, made[1], made[3]))


def link_count(scene: Scene) -> Made:
    made = linked(scene)
    return made and (scene.slots(made[1]) | scene.ends(made[0], z=made[2]["name"]), number(len(made[3])))


def link_sum(scene: Scene) -> Made:
    made = linked(scene, 2)
    if not made or not made[1].numbers:
        return None
    prop = scene.rng.choice(made[1].numbers)
    known = tables.values(made[3], prop.name)
    return (
        (scene.slots(made[1], prop) | scene.ends(made[0], z=made[2]["name"]), number(sum(known), prop.unit)) if known else None
    )


def link_choice(scene: Scene) -> Made:
    """A list or a count, as the sentence asks."""
    made = linked(scene, 2)
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
    far = joined(scene, second)
    if not far:
        return None
    end = scene.rng.choice(far)[1]
    middles = {row["id"] for row, other in far if other["id"] == end["id"]}
    found = [row for row, other in joined(scene, first) if other["id"] in middles]
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
    pairs = joined(scene, one)
    if not pairs or not target.numbers:
        return None
    prop, (row, end) = scene.rng.choice(target.numbers), scene.rng.choice(pairs)
    return scene.slots(target, prop) | scene.ends(one, x=row["name"]), value_of(prop, end)


KINDS: dict[str, Callable[[Scene], Made]] = {
    "list_choice": list_choice,
    "list_number": list_number,
    "list_date": list_date,
    "list_between": list_between,
    "list_all": list_all,
    "property_number": property_of("numbers"),
    "property_choice": property_of("choices"),
    "property_date": property_of("days"),
    "yes": yes,
    "exists": exists,
    "link": link,
    "link_back": link_back,
    "link_count": link_count,
    "link_sum": link_sum,
    "link_choice": link_choice,
    "hop_count": hop_count,
    "hop_list": hop_list,
    "linked_property": linked_property,
}
