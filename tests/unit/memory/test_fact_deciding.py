"""What a new statement does to the facts of its slot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts.facts import FactKind, Origin, Statement
from phronesis_memory.facts.decision import TRUST, Assertion, Decision, Evidence, StoredFact, decide
from phronesis_memory.facts.predicates import slot_of

START = datetime(2026, 1, 1, tzinfo=UTC)
numbers = count()


def at(minute: int) -> datetime:
    """A minute of that day."""
    return START + timedelta(minutes=minute)


def said(thing: str, minute: int, origin: Origin = Origin.USER, *, negated: bool = False) -> Assertion:
    """Somebody said where the user works."""
    statement = Statement(
        predicate="works at", object=thing, text=f"The user works at {thing}.", negated=negated, origin=origin
    )
    return Assertion(statement, Evidence(f"turn:{next(numbers)}/0", at(minute), origin, 0.9))


def told(sayings: Sequence[Assertion]) -> tuple[tuple[StoredFact, ...], Decision | None]:
    """What is known once these came, in this order."""
    known: tuple[StoredFact, ...] = ()
    decided = None
    for saying in sayings:
        decided = decide(known, saying, lambda: f"f{next(numbers)}")
        known = decided.facts
    return known, decided


def lines(facts: Sequence[StoredFact]) -> list[tuple[str, datetime, datetime | None]]:
    """The values with their times, oldest first, without what was never held."""
    shown = [(fact.value, fact.valid_from, fact.valid_to) for fact in facts if fact.valid_from != fact.valid_to]
    return sorted(shown, key=lambda line: line[1])


def test_the_same_said_again_confirms_what_is_held_and_makes_it_surer() -> None:
    first, _ = told([said("Acme", 0)])
    facts, decided = told([said("Acme", 0), said("acme.", 5)])
    assert decided is not None
    assert decided.status == "confirmed"
    assert lines(facts) == [("acme", at(0), None)]
    assert facts[0].confidence > first[0].confidence


def test_a_contradiction_supersedes_and_both_keep_their_times() -> None:
    facts, decided = told([said("Acme", 0), said("Bolt", 7)])
    old, new = facts
    assert decided is not None
    assert (decided.status, decided.superseded) == ("added", (old.id,))
    assert lines(facts) == [("acme", at(0), at(7)), ("bolt", at(7), None)]
    assert old.superseded_by == new.id


def test_what_arrives_late_takes_its_place_in_the_past() -> None:
    facts, decided = told([said("Acme", 0), said("Cord", 9), said("Bolt", 5)])
    assert decided is not None
    assert decided.superseded == ()
    assert lines(facts) == [("acme", at(0), at(5)), ("bolt", at(5), at(9)), ("cord", at(9), None)]


def test_what_was_said_again_after_something_that_arrives_late_is_still_held() -> None:
    facts, _ = told([said("Acme", 0), said("Acme", 9), said("Bolt", 5)])
    assert lines(facts) == [("acme", at(0), at(5)), ("bolt", at(5), at(9)), ("acme", at(9), None)]


def test_a_document_does_not_take_the_place_of_what_the_user_said() -> None:
    facts, decided = told([said("Acme", 0), said("Bolt", 5, Origin.MEDIA)])
    assert decided is not None
    assert decided.status == "kept"
    assert lines(facts) == [("acme", at(0), None)]
    (aside,) = [fact for fact in facts if fact.value == "bolt"]
    assert (aside.valid_from, aside.valid_to, aside.superseded_by) == (at(5), at(5), facts[0].id)


def test_the_user_takes_the_place_of_what_a_document_said() -> None:
    facts, _ = told([said("Bolt", 0, Origin.MEDIA), said("Acme", 5)])
    assert lines(facts) == [("bolt", at(0), at(5)), ("acme", at(5), None)]


def test_to_have_left_one_employer_says_nothing_of_another() -> None:
    facts, _ = told([said("Acme", 0), said("Bolt", 5, negated=True)])
    assert lines(facts) == [("acme", at(0), None)]
    left, _ = told([said("Acme", 0), said("Acme", 5, negated=True)])
    assert lines(left) == [("acme", at(0), at(5)), ("not:acme", at(5), None)]


def test_what_ended_with_a_forgotten_successor_does_not_come_back() -> None:
    facts, _ = told([said("Acme", 0), said("Bolt", 5)])
    ended = [StoredFact(**{**facts[0].__dict__, "superseded_by": None, "ended_at": at(5)})]
    decided = decide(ended, said("Acme", 9), lambda: "again")
    assert lines(decided.facts) == [("acme", at(0), at(5)), ("acme", at(9), None)]
    assert decided.status == "added"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("short answers", "long answers", True),
        ("short answers", "short answers in reports", False),
        ("short answers", "green tea", False),
    ],
)
def test_preferences_contradict_each_other_where_they_are_about_the_same(one: str, other: str, same: bool) -> None:
    kind = FactKind.PREFERENCE
    slots = [slot_of(Statement(kind=kind, predicate="prefers", object=thing, text=thing))[0] for thing in (one, other)]
    assert (slots[0] == slots[1]) is same


def test_to_like_and_not_to_like_a_thing_contradict_each_other_and_two_things_do_not() -> None:
    likes = Statement(kind=FactKind.PREFERENCE, predicate="likes", object="Olives", text="x")
    assert slot_of(likes)[0] == slot_of(likes.model_copy(update={"negated": True}))[0]
    assert slot_of(likes)[0] != slot_of(likes.model_copy(update={"object": "tea"}))[0]


moments = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(0, 12), st.sampled_from([Origin.USER, Origin.IMPORT, Origin.MEDIA])),
    min_size=1,
    max_size=12,
    unique_by=lambda moment: moment[1],
)


@given(moments)
def test_times_of_one_slot_never_overlap_and_one_at_most_is_held(drawn: list[tuple[str, int, Origin]]) -> None:
    facts, _ = told([said(*one) for one in drawn])
    shown = lines(facts)
    assert sum(fact.held for fact in facts) == 1
    assert all(until is not None and until <= since for (_, _, until), (_, since, _) in pairwise(shown))
    assert len({fact.id for fact in facts}) == len(facts)
    ids = {fact.id for fact in facts}
    assert all(fact.superseded_by in ids for fact in facts if not fact.held)


@given(moments)
def test_nothing_that_was_said_is_lost(drawn: list[tuple[str, int, Origin]]) -> None:
    sayings = [said(*one) for one in drawn]
    facts, _ = told(sayings)
    kept = [(fact.value, one.source) for fact in facts for one in fact.evidence]
    assert sorted(kept) == sorted((saying.statement.object.lower(), saying.evidence.source) for saying in sayings)


@given(moments, st.randoms(use_true_random=False))
def test_the_order_of_arrival_makes_no_difference(drawn: list[tuple[str, int, Origin]], chance: object) -> None:
    sayings = [said(*one) for one in drawn]
    mixed = list(sayings)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert lines(told(sayings)[0]) == lines(told(mixed)[0])


@given(moments)
def test_the_newest_of_the_most_trusted_is_held(drawn: list[tuple[str, int, Origin]]) -> None:
    facts, _ = told([said(*one) for one in drawn])
    most = max(TRUST[origin] for _, _, origin in drawn)
    newest = max((minute, thing) for thing, minute, origin in drawn if TRUST[origin] == most)
    (held,) = [fact for fact in facts if fact.held]
    assert held.value == newest[1].lower()
