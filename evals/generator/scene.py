"""The scene that questions about a generated twin are drawn from, and what they expect."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..truth import tables
from ..truth.tables import Row
from .world import Choice, Day, Link, Number, Type, World

Slots = dict[str, Any]
Made = tuple[Slots, dict[str, Any]] | None
LONGEST = 14
"""Names that a list may hold."""
FAKE = (
    "Zorblax Minor",
    "Quibberton",
    "Old Fennimoor",
    "Xandrapolis",
    "Mount Ellwig",
    "Tarkwin Hollow",
    "Brimblewick",
    "Ostrava Nine",
)
"""Names that no twin has."""


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


def round_threshold(some: Sequence[float], at: float) -> float | None:
    """A round number that parts the values about there, and is none of them."""
    ordered = sorted(some)
    value = ordered[int(at * (len(ordered) - 1))]
    digits = len(str(int(value))) - 1
    rounded = float(round(value, -max(0, digits - 1)) or round(value, 1))
    return None if rounded in some else rounded


def plain(value: float) -> str:
    """A figure as a question has it."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:g}"


def beyond(scene: Scene, above: bool) -> tuple[Type, Number, float, list[Row]] | None:
    """A type, a property, a limit, and the rows beyond it."""
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


def joined(scene: Scene, link: Link) -> list[tuple[Row, Row]]:
    """The pairs of a relationship in the year."""
    targets = {row["id"]: row for row in scene.of(link.target)}
    return [(row, targets[one]) for row in scene.of(link.source) for one in row[link.name] if one in targets]


def linked(scene: Scene, least: int = 1) -> tuple[Link, Type, Row, list[Row]] | None:
    """A relationship, its source, a target, and what is joined to that."""
    one = scene.link()
    pairs = joined(scene, one)
    if not pairs:
        return None
    target = scene.rng.choice(pairs)[1]
    found = [row for row, other in pairs if other["id"] == target["id"]]
    return (one, scene.world.types[one.source], target, found) if least <= len(found) <= LONGEST else None


def tidy(text: str) -> str:
    """A sentence without the traces of empty slots, and with *an* where it belongs."""
    text = " ".join(text.split()).replace(" ?", "?").replace(" ,", ",").replace(" :", ":")
    return re.sub(r"\b([Aa]) (?=[aeio])", r"\1n ", text)
