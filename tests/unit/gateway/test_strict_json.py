"""The strict JSON parser takes what every parser reads alike, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import BadRequest
from phronesis_gateway.http.requests import MAX_DEPTH, parse_json

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
_NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBER | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES, st.booleans())
def test_whatever_is_plain_json_is_read_as_it_was_written(value: Any, escaped: bool) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=escaped).encode()) == value


@given(st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused_and_never_break_it(data: bytes) -> None:
    try:
        value = parse_json(data)
    except BadRequest:
        return
    assert parse_json(json.dumps(value).encode()) == value


@given(_TEXT, _VALUES, _VALUES)
def test_an_object_with_a_key_twice_is_refused_at_any_depth(key: str, first: Any, second: Any) -> None:
    name = json.dumps(key)
    twice = f"[{{{name}: {json.dumps(first)}, {name}: {json.dumps(second)}}}]"
    with pytest.raises(BadRequest, match="a key twice"):
        parse_json(twice.encode())


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
def test_a_number_that_is_not_finite_is_refused(number: str) -> None:
    with pytest.raises(BadRequest, match="not finite"):
        parse_json(f'{{"a": [{number}]}}'.encode())


@pytest.mark.parametrize("number", [str(2**63), str(-(2**63) - 1), "1" + "0" * 30, "9" * 5_000])
def test_a_number_beyond_64_bits_is_refused(number: str) -> None:
    with pytest.raises(BadRequest, match="beyond 64 bits"):
        parse_json(number.encode())


@given(st.integers(1, 2_000), st.booleans())
def test_depth_is_bounded(depth: int, objects: bool) -> None:
    opening, closing = ('{"a":', "}") if objects else ("[", "]")
    data = (opening * depth + "1" + closing * depth).encode()
    if depth <= MAX_DEPTH:
        assert parse_json(data) == json.loads(data)
    else:
        with pytest.raises(BadRequest, match="deeper"):
            parse_json(data)


@pytest.mark.parametrize("escape", ["\\u0000", "\\ud800", "\\udc00x", "\\ude00\\ud83d"])
def test_a_text_that_no_store_can_hold_is_refused_in_keys_and_values(escape: str) -> None:
    for data in (f'{{"a": ["{escape}"]}}', f'{{"{escape}": 1}}', f'"{escape}"'):
        with pytest.raises(BadRequest):
            parse_json(data.encode())


def test_a_whole_surrogate_pair_is_its_character() -> None:
    assert parse_json(b'"\\ud83d\\ude00"') == "\U0001f600"
