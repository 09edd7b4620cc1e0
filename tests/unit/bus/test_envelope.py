"""Headers, deadlines and bodies."""

from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_bus import envelope
from phronesis_contracts import BadRequest, ServiceError, TooLarge
from phronesis_contracts.memory import Recall, Remember


def test_without_a_deadline_the_contracts_time_counts() -> None:
    assert 4.9 < envelope.parse_deadline(None, 5.0) - time.time() <= 5.0


def test_a_deadline_lies_no_further_ahead_than_the_longest() -> None:
    assert envelope.parse_deadline("1e300", 5.0) <= time.time() + envelope.LONGEST


@given(st.text())
def test_any_deadline_header_is_a_time_or_a_bad_request(found: str) -> None:
    try:
        assert math.isfinite(envelope.parse_deadline(found, 5.0))
    except BadRequest:
        return


def test_a_question_on_the_way_has_what_is_left_and_no_more() -> None:
    token = envelope.deadline.set(time.time() + 2)
    try:
        assert 1.9 < envelope.remaining(60) <= 2
        assert envelope.remaining(0.5) == 0.5
    finally:
        envelope.deadline.reset(token)


def test_a_body_comes_back_as_it_was() -> None:
    request = Recall(query="ü\n\u0000\U0001f600", limit=3)
    assert envelope.decode(Recall, envelope.encode(request), 1000) == request


def test_a_reader_ignores_fields_it_does_not_know() -> None:
    assert envelope.decode(Recall, b'{"query": "x", "added_in_a_later_release": {"a": 1}}', 1000) == Recall(query="x")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", None),
        (b"null", None),
        (b"[]", None),
        (b'{"query": "x"', None),
        (b'{"query": "\xff"}', None),
        (b"[" * 100_000, None),
        (b"{}", "query"),
        (b'{"query": 7}', "query"),
        (b'{"query": "x", "limit": 1e999}', "limit"),
        (b'{"query": "x", "kinds": ["fact", "wish"]}', "kinds.1"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_body_that_does_not_fit_names_the_first_field_at_fault(body: bytes, field: str | None) -> None:
    with pytest.raises(BadRequest) as caught:
        envelope.decode(Recall, body, 1_000_000)
    assert caught.value.field == field


def test_a_body_at_fault_is_not_repeated_in_the_error() -> None:
    with pytest.raises(BadRequest) as caught:
        envelope.decode(Remember, json.dumps({"items": [{"text": ["hunter2"]}]}).encode(), 1000)
    assert "hunter2" not in str(caught.value.body())


def test_a_body_over_the_limit_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(TooLarge):
        envelope.decode(Recall, b"{" * 1001, 1000)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_typed_error(body: bytes) -> None:
    try:
        found: Recall | int = envelope.decode(Recall, body, 1000)
    except ServiceError as error:
        found = error.status
    assert found == 400 or isinstance(found, Recall)
