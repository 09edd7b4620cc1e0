"""Rules in words: what breaks them, however it is said, and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_embedding.wordnet import WordNet
from phronesis_graph.constitution.guardrails import open_judge
from phronesis_graph.constitution.meaning import Judge, Quantity, parse_wording, read_days, read_times
from phronesis_graph.constitution.wording import plain, plain_forms, split_words

KNOWS = WordNet(forms=plain_forms)
POOL = "glass bottles beside the swimming pool"
FIRE = "No open fire in the barn"
WOOD = "firewood is sold to a customer without a moisture test"
PURCHASE = "a purchase of more than 2,000 euros without a second signature"
LESSON = "lessons after 8 pm"
HORSE = "a horse is ridden on a Sunday"
PHOTOS = "photos of patients on social media"
HOUNDS = "Hunde im Speisesaal"


@pytest.fixture(scope="module")
def judge() -> Judge:
    return open_judge()


def reason(judge: Judge, trigger: str, write: str | dict[str, Any]) -> str | None:
    wording = parse_wording(trigger)
    assert wording is not None
    return judge.because([wording], {"title": write} if isinstance(write, str) else write)[0]


@pytest.mark.parametrize(
    ("trigger", "write"),
    [
        (POOL, "Put the glass bottles beside the pool for the party"),
        (POOL, "Serve wine in glass bottles at the edge of the swimming pool"),
        (POOL, {"title": "Party", "metadata": {"drinks": {"container": "glass bottle", "place": "next to the swimming pool"}}}),
        (FIRE, "Candles and an open fire in the barn for the wedding"),
        (FIRE, "Barbecue with charcoal inside the barn"),
        (WOOD, "Firewood goes out to the customer today, we skip the moisture test"),
        (WOOD, {"title": "Load of firewood for a customer", "properties": {"moistureTest": "none"}}),
        (WOOD, "Firewood is sold to the customer, don't bother waiting for the moisture test"),
        (PURCHASE, "Buy the lathe for €3,500, no second signature needed"),
        (PURCHASE, {"title": "Purchase of a saw", "properties": {"price_eur": 5000, "second_signature": "no"}}),
        (LESSON, "Piano lesson at half past eight in the evening"),
        (LESSON, {"title": "Plan", "properties": {"lessons": [{"what": "violin lesson", "begins": "20:45"}]}}),
        (HORSE, "Pony ride for visitors next Sunday"),
        (HORSE, {"title": "The horse is ridden by a guest", "properties": {"day": "2026-11-29"}}),
        (PHOTOS, "Upload pictures of a patient to social media"),
        ("gossip", "Gossip"),
        ("work at night", "We worked all night"),
        (HOUNDS, "Hunde dürfen in den Speisesaal"),
    ],
)
def test_what_says_it_in_other_words_or_in_another_field_breaks_a_rule(
    judge: Judge, trigger: str, write: str | dict[str, Any]
) -> None:
    assert reason(judge, trigger, write) is not None


@pytest.mark.parametrize(
    ("trigger", "write"),
    [
        (POOL, "Check that no glass bottles are left beside the swimming pool"),
        (POOL, "Take the glass bottles away from the swimming pool"),
        (POOL, "Tell the guests not to bring glass bottles to the pool"),
        (FIRE, "Put up a sign: no open fire in the barn"),
        (FIRE, "Was there an open fire in the barn?"),
        (WOOD, "Do not sell firewood to any customer without a moisture test"),
        (WOOD, "Withdraw the offer of firewood to the customer"),
        (PHOTOS, "Delete the photos of patients from social media"),
        (PHOTOS, "Train staff never to post photos of patients on social media"),
        (HOUNDS, "Keine Hunde im Speisesaal"),
        (HOUNDS, "Prüfen, ob Hunde im Speisesaal waren"),
    ],
)
def test_what_denies_removes_checks_or_asks_breaks_no_rule(judge: Judge, trigger: str, write: str) -> None:
    assert reason(judge, trigger, write) is None


@pytest.mark.parametrize(
    ("trigger", "write"),
    [
        (WOOD, "Firewood sold to the customer, moisture test passed on Monday"),
        (PURCHASE, "Purchase of a saw for 400 euros without a second signature"),
        (PURCHASE, "Ask the treasurer for a second signature on the purchase of 5,000 euros"),
        (LESSON, "Piano lesson at 4 pm"),
        (LESSON, "Piano lesson on Monday"),
        (HORSE, "Ride the horse on Monday morning"),
        ("nuts in the kitchen", "Nutmeg for the kitchen"),
        ("milk on the oat line", "Coconut milk on the oat line"),
        ("sugar in the baby food", "Sugar-free baby food"),
    ],
)
def test_another_amount_time_or_thing_breaks_no_rule(judge: Judge, trigger: str, write: str) -> None:
    assert reason(judge, trigger, write) is None


def test_the_reason_names_the_words_of_the_write_and_what_they_stand_for(judge: Judge) -> None:
    assert reason(judge, "nuts in the kitchen", "Hazelnuts for the kitchen") == "it speaks of hazelnuts (nuts) and kitchen"


def test_a_breach_is_found_in_a_long_text(judge: Judge) -> None:
    filler = "The choir meets in the hall and sings for an hour. " * 60
    assert reason(judge, FIRE, {"title": "Notes", "description": f"{filler} We light an open fire in the barn. {filler}"})


_LOOK_ALIKES = str.maketrans("aeopc", "аеорс")
_DIGITS = str.maketrans("oie", "013")
_WIDE = {code: code + 0xFEE0 for code in range(ord("a"), ord("z") + 1)}
_HIDDEN = st.sampled_from("\N{ZERO WIDTH SPACE}\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}\N{WORD JOINER}\N{COMBINING ACUTE ACCENT}")


def _hide(text: str, sign: str, every: int) -> str:
    return "".join(letter + (sign if at % every == 0 and letter != " " else "") for at, letter in enumerate(text))


OBFUSCATED = st.one_of(
    st.just("open fire in the barn".translate(_LOOK_ALIKES)),
    st.just("open fire in the barn".translate(_WIDE)),
    st.sampled_from([".", "-", "_", "·", "*"]).map(
        lambda by: " ".join(by.join(word) for word in "open fire in the barn".split())
    ),
    st.just("   ".join(" ".join(word) for word in "open fire in the barn".split())),
    st.just("0pen f1re in the b4rn"),
    st.builds(_hide, st.just("open fire in the barn"), _HIDDEN, st.integers(1, 5)),
    st.builds(str.upper, st.just("open fire in the barn")),
)


@given(written=OBFUSCATED)
def test_a_breach_that_is_hidden_is_read_all_the_same(written: str) -> None:
    assert split_words(plain(written, KNOWS)) == "open fire in the barn".split()


@given(st.lists(st.sampled_from("barn fire bottle glass horse lesson table river".split()), min_size=1, max_size=6), _HIDDEN)
def test_hidden_signs_change_nothing(words: list[str], sign: str) -> None:
    text = " ".join(words)
    assert plain(_hide(text, sign, 1), KNOWS) == plain(text, KNOWS) == text


@given(st.text(max_size=300))
def test_any_text_is_made_plain(text: str) -> None:
    assert isinstance(plain(text, KNOWS), str)


@pytest.mark.parametrize("text", ["4am", "2nd", "b2b", "30 kg", "a.m.", "mp3", "10,000", "2026-11-29", "room 12"])
def test_what_has_digits_of_its_own_stays(text: str) -> None:
    assert plain(text, KNOWS) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at half past four", [(270, 270), (990, 990)]),
        ("at 4 in the morning", [(240, 240)]),
        ("at 8:30 pm", [(1230, 1230)]),
        ("from 21:15", [(1275, 1275)]),
        ("a quarter to five a.m.", [(285, 285)]),
    ],
)
def test_times_are_read_as_people_write_them(text: str, expected: list[tuple[int, int]]) -> None:
    assert [span for _, _, spans in read_times(split_words(text)) for span in spans] == expected


def test_days_are_read_from_words_and_dates() -> None:
    assert read_days(["on", "fridays", "2026-11-29"]) == {4, 6}


def test_a_trigger_is_taken_apart() -> None:
    found = parse_wording(PURCHASE)
    assert found is not None
    assert found.parts == ((("purchase",),),)
    assert [one.part for one in found.absent] == [(("second", "signature"),)]
    assert found.quantities == (Quantity(2_000.000001, 1e9, "money"),)
    drinks = parse_wording("No beer, wine or gin in the hall")
    assert drinks is not None
    assert drinks.parts == ((("beer",), ("wine",), ("gin",)), (("hall",),))


@pytest.mark.parametrize(
    ("word", "kind", "expected"),
    [("hazelnuts", "nut", True), ("children", "person", True), ("nutmeg", "nut", False), ("ginger beer", "alcohol", False)],
)
def test_what_is_a_kind_of_what_is_known(word: str, kind: str, expected: bool) -> None:
    assert bool(KNOWS.is_a(word, kind)) is expected
