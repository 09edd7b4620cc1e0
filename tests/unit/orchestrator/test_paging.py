"""Cursors and titles of conversations."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import BadRequest, Principal
from phronesis_orchestrator.conversations import store
from phronesis_orchestrator.conversations.store import TITLE, PagePlace, decode_cursor, encode_cursor, make_title

ANN = Principal(tenant="acme", user="ann")
PLACE = PagePlace(datetime(2026, 5, 4, 3, 2, 1, 123456, UTC), UUID("0d3cbb0a-77a5-4b7c-8f0d-1f0f6a0c9b11"))


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1)), st.uuids())
def test_a_cursor_brings_back_its_place_to_the_microsecond(at: datetime, id: UUID) -> None:
    place = PagePlace(at.replace(tzinfo=UTC), id)
    assert decode_cursor(ANN, encode_cursor(ANN, place)) == place


@pytest.mark.parametrize(
    "other",
    [Principal(tenant="acme", user="bob"), Principal(tenant="other", user="ann"), Principal(tenant="acme-a", user="nn")],
)
def test_a_cursor_is_good_for_nobody_else(other: Principal) -> None:
    with pytest.raises(BadRequest) as refused:
        decode_cursor(other, encode_cursor(ANN, PLACE))
    assert refused.value.field == "cursor"


def test_a_cursor_with_any_character_changed_is_refused() -> None:
    good = encode_cursor(ANN, PLACE)
    for at, character in enumerate(good):
        bad = good[:at] + ("A" if character != "A" else "B") + good[at + 1 :]
        with pytest.raises(BadRequest):
            decode_cursor(ANN, bad)


@given(st.text(max_size=200))
def test_garbage_is_a_bad_request_that_names_the_cursor(garbage: str) -> None:
    with pytest.raises(BadRequest) as refused:
        decode_cursor(ANN, garbage)
    assert (refused.value.status, refused.value.field) == (400, "cursor")


def test_a_sealed_place_beyond_all_time_is_refused() -> None:
    packed = store._PLACE.pack(2**63 - 1, uuid4().bytes)
    cursor = base64.urlsafe_b64encode(packed + store._seal(ANN, packed)).decode().rstrip("=")
    with pytest.raises(BadRequest):
        decode_cursor(ANN, cursor)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", ""),
        ("  What \n is\tit? ", "What is it?"),
        ("word " * 40, f"{'word ' * 11}word…"),
        ("x" * 100, f"{'x' * TITLE}…"),
    ],
)
def test_a_title_is_the_first_whole_words(text: str, title: str) -> None:
    assert make_title(text) == title
