"""Correcting a profile, and what it may be."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts import BadRequest, TooLarge
from phronesis_memory.profiles.handlers import MAX_DEPTH, MAX_PROFILE, check_profile, merge_patch

# The examples of RFC 7396, appendix A, whose target and patch are objects.
EXAMPLES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("profile", "patch", "result"), EXAMPLES)
def test_a_patch_merges_as_the_standard_says(profile: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    before = repr(profile)
    assert merge_patch(profile, patch) == result
    assert repr(profile) == before


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth - 1):
        found = {"a": found}
    return found


def test_a_profile_may_be_as_deep_as_the_limit_and_no_deeper() -> None:
    assert check_profile(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(BadRequest) as refused:
        check_profile(nested(MAX_DEPTH + 1), "patch")
    assert (refused.value.status, refused.value.field) == (400, "patch")
    with pytest.raises(BadRequest):
        check_profile(nested(100_000))


def test_a_profile_is_measured_in_bytes() -> None:
    with pytest.raises(TooLarge) as refused:
        check_profile({"a": "é" * (MAX_PROFILE // 2)})
    assert (refused.value.status, refused.value.field) == (413, "profile")


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", float("nan"), float("inf")])
def test_what_the_store_refuses_is_a_bad_request(value: object) -> None:
    with pytest.raises(BadRequest):
        check_profile({"a": [value]})
