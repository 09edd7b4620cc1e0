"""What is kept of parts, and until when."""

from __future__ import annotations

from phronesis_orchestrator.sessions.start import PartCache
from tests.unit.orchestrator.sessions.fakes import Clock

ANN, BOB = ("acme", "ann"), ("other", "bob")


def kept(clock: Clock, most: int = 10, **values: str) -> PartCache[str]:
    found: PartCache[str] = PartCache(most, 600, clock)
    for user, value in values.items():
        put(found, ("acme", user), value)
    return found


def put(values: PartCache[str], key: tuple[str, ...], value: str) -> None:
    with values.loading(key) as load:
        load.value = value


def test_a_value_lasts_until_the_safety_time() -> None:
    clock = Clock()
    values = kept(clock, ann="x")
    clock.seconds = 599
    assert values.get(ANN) == "x"
    clock.seconds = 600
    assert values.get(ANN) is None


def test_the_oldest_goes_for_one_too_many() -> None:
    values = kept(Clock(), 2, ann="x", eve="y", joe="z")
    assert [values.get(("acme", user)) for user in ("ann", "eve", "joe")] == [None, "y", "z"]


def test_news_of_a_tenant_drops_that_tenant_s_values_alone() -> None:
    values = kept(Clock(), ann="x")
    put(values, BOB, "y")
    values.drop("acme")
    assert (values.get(ANN), values.get(BOB)) == (None, "y")


def test_only_what_is_touched_is_dropped() -> None:
    values = kept(Clock(), ann="x", eve="y")
    values.drop("acme", lambda value: value == "x")
    assert (values.get(ANN), values.get(("acme", "eve"))) == (None, "y")


def test_what_was_on_its_way_when_news_came_is_not_kept() -> None:
    values = kept(Clock())
    with values.loading(ANN) as mine, values.loading(BOB) as theirs:
        mine.value, theirs.value = "before the write", "another tenant's"
        values.drop("acme")
    assert (values.get(ANN), values.get(BOB)) == (None, "another tenant's")


def test_what_was_loaded_after_the_news_is_kept() -> None:
    values = kept(Clock())
    values.drop("acme")
    put(values, ANN, "after")
    assert values.get(ANN) == "after"


def test_when_everything_is_forgotten_what_is_on_its_way_is_too() -> None:
    values = kept(Clock(), ann="x")
    with values.loading(BOB) as load:
        load.value = "y"
        values.clear()
    assert (values.get(ANN), values.get(BOB)) == (None, None)


def test_a_load_that_fails_leaves_nothing_behind() -> None:
    values = kept(Clock())
    try:
        with values.loading(ANN):
            raise LookupError
    except LookupError:
        pass
    assert (values.get(ANN), values._loads) == (None, {})
