"""What an audit entry may hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_bus import audit_entry
from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import Audited
from tests.support.personas import Persona

ANN = Principal(tenant="acme", user="ann", **Persona.CURATOR.rights)
MARK = "hunter2-hunter2"
SECRET_NAMES = ["api_key", "Authorization", "password", "PASSWORD", "bearer_token", "client_secret", "credentials"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=30),
    max_leaves=60,
)


def test_an_entry_says_who_did_what() -> None:
    assert audit_entry(ANN, "remember", {"limit": 3}) == Audited(
        who="ann", role="member (curator)", action="remember", outcome="done", code=None, arguments={"limit": 3}
    )


def test_a_refusal_says_with_which_code() -> None:
    entry = audit_entry(ANN, "remember", {}, code="forbidden")
    assert (entry.outcome, entry.code) == ("refused", "forbidden")


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_what_is_called_a_secret_is_masked_at_any_depth(name: str) -> None:
    entry = audit_entry(ANN, "x", {"outer": [{"inner": {name: MARK}}], name: {"nested": MARK}})
    assert MARK not in entry.model_dump_json()


def test_numbers_of_tokens_are_shown_and_tokens_are_not() -> None:
    entry = audit_entry(ANN, "x", {"tokens": 5000, "budget_tokens": 1.5, "token": 1234, "tokens_of": "ann", "max_tokens": "1"})
    shown = {"tokens": 5000, "budget_tokens": 1.5, "token": "***", "tokens_of": "***", "max_tokens": "***"}
    assert entry.arguments == shown


@given(values, st.sampled_from(SECRET_NAMES))
def test_no_secret_leaves_however_it_is_nested(value: Any, name: str) -> None:
    entry = audit_entry(ANN, "x", {"before": value, name: MARK, "list": [value, {name: [MARK]}]})
    assert MARK not in entry.model_dump_json()


@given(st.dictionaries(st.text(max_size=20), values, max_size=40))
def test_an_entry_is_short_whatever_the_arguments(arguments: dict[str, Any]) -> None:
    entry = audit_entry(ANN, "x", arguments)
    assert len(entry.arguments) <= 20
    for text in _texts(entry.arguments):
        assert len(text) <= 230
    json.loads(entry.model_dump_json())


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for inner in value.values() for text in _texts(inner)]
        case list() | tuple():
            return [text for inner in value for text in _texts(inner)]
        case _:
            return []
