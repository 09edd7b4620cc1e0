"""Questions for a figure: counts, sums, extremes, shares, differences and groups."""

from __future__ import annotations

from collections.abc import Callable

from ..truth import tables
from ..truth.tables import Row
from .scene import (
    LONGEST,
    Made,
    Scene,
    Slots,
    beyond,
    number,
    plain,
    single,
)
from .world import Number, Type


def count_all(scene: Scene) -> Made:
    one = scene.type()
    return scene.slots(one), number(len(scene.of(one)))


def count_choice(scene: Scene) -> Made:
    one = scene.type(lambda t: t.choices)
    prop = scene.rng.choice(one.choices)
    value = scene.rng.choice(prop.values)
    return scene.slots(one, prop, v=value), number(len(scene.of(one, lambda r: r[prop.name] == value)))


def count_number(scene: Scene) -> Made:
    made = beyond(scene, True)
    return made and (scene.slots(made[0], made[1], n=plain(made[2])), number(len(made[3])))


def count_below(scene: Scene) -> Made:
    made = beyond(scene, False)
    return made and (scene.slots(made[0], made[1], n=plain(made[2])), number(len(made[3])))


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


def figure(how: Callable[[list[float]], float], filtered: bool = False) -> Callable[[Scene], Made]:
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


def extreme(least: bool) -> Callable[[Scene], Made]:
    def made(scene: Scene) -> Made:
        one = scene.type(lambda t: t.numbers)
        prop = scene.rng.choice(one.numbers)
        found = tables.extreme(scene.of(one), prop.name, least=least)
        return (scene.slots(one, prop), single(scene, one, found[0])) if found else None

    return made


def ranking(least: bool) -> Callable[[Scene], Made]:
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
    if len(known) < 2:
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


def group_figure(how: Callable[[list[float]], float]) -> Callable[[Scene], Made]:
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


KINDS: dict[str, Callable[[Scene], Made]] = {
    "count_all": count_all,
    "count_choice": count_choice,
    "count_number": count_number,
    "count_below": count_below,
    "count_two": count_two,
    "count_date": count_date,
    "sum": figure(sum),
    "sum_choice": figure(sum, filtered=True),
    "mean": figure(tables.mean),
    "median": figure(tables.median),
    "max": extreme(False),
    "min": extreme(True),
    "value_max": figure(max),
    "range_min": figure(min),
    "top": ranking(False),
    "bottom": ranking(True),
    "share": share,
    "ratio": ratio,
    "difference": difference,
    "compare": compare,
    "group": group,
    "group_sum": group_figure(sum),
    "group_mean": group_figure(tables.mean),
    "group_link": group_link,
    "most_link": most_link,
}
