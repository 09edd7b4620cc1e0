"""The contract of `memory_query`: four operations, a question, and nothing that names anybody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.episodes import MEMORY_QUERY_TOOL, MemoryOperation, MemoryQuery
from phronesis_contracts.principal import EVERYONE
from phronesis_contracts.tools import Risk

NAMES = ("episodes", "context", "style", "failures")


@pytest.mark.req("V-049")
def test_the_tool_has_four_operations() -> None:
    assert tuple(MemoryOperation) == NAMES
    assert MEMORY_QUERY_TOOL.function()["parameters"]["$defs"]["MemoryOperation"]["enum"] == list(NAMES)


@pytest.mark.req("V-048", "V-054", "V-057", "V-177")
def test_the_tool_is_registered_for_everyone_and_only_reads() -> None:
    tool = TOOLS["memory_query"]
    assert (tool.risk, tool.irreversible, tool.agents) == (Risk.READ, False, EVERYONE)


@pytest.mark.req("V-061")
@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"operation": "feelings", "query": "x"},
        {"operation": "style"},
        {"operation": "style", "query": ""},
        {"operation": "style", "query": " \n"},
        {"operation": "style", "query": 3},
        {"operation": ["style"], "query": "x"},
        {"query": "x"},
    ],
)
def test_a_bad_call_is_told_which_operations_there_are(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="episodes, context, style, failures"):
        MemoryQuery.model_validate(wrong)


@pytest.mark.req("V-064", "V-C09")
@pytest.mark.parametrize("extra", ["user", "user_id", "tenant", "owner", "anything"])
def test_no_argument_names_another_user(extra: str) -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        MemoryQuery.model_validate({"operation": "style", "query": "x", extra: "bob"})


@pytest.mark.req("V-063", "V-C09")
@given(st.integers())
def test_a_limit_is_from_one_to_twenty(limit: int) -> None:
    said = {"operation": "context", "query": "x", "limit": limit}
    if 1 <= limit <= 20:
        assert MemoryQuery.model_validate(said).limit == limit
    else:
        with pytest.raises(ValidationError):
            MemoryQuery.model_validate(said)


@pytest.mark.req("V-C09")
def test_a_question_has_500_characters_at_most_and_a_limit_of_five_by_default() -> None:
    assert MemoryQuery.model_validate({"operation": "context", "query": "x" * 500}).limit == 5
    with pytest.raises(ValidationError):
        MemoryQuery.model_validate({"operation": "context", "query": "x" * 501})
