"""Definitions of own agents: what is taken, what is refused and by which field."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_contracts.agents import (
    DEFAULT_BASE,
    DEFAULT_TOOL_BASE,
    MAX_INSTRUCTIONS,
    AgentDefinition,
    AnswerSource,
    PhraseName,
    PublishAgent,
    source_of,
)
from phronesis_contracts.catalog import TOOLS

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=200)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "tokens": st.integers(500, 10_000_000),
        "tool_calls": st.integers(1, 20),
        "seconds": st.floats(1, 3_600) | st.integers(1, 3_600),
    },
)
DEFINITIONS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "description": TEXTS,
        "based_on": st.sampled_from(("dialogue", "noor", "nova")),
        "instructions": TEXTS,
        "phrases": st.dictionaries(st.sampled_from(get_args(PhraseName)), TEXTS.filter(str.strip)),
        "tools": st.lists(st.sampled_from(sorted(TOOLS)), min_size=1, max_size=5, unique=True),
        "sources": st.lists(st.sampled_from([source.value for source in AnswerSource]), min_size=1, unique=True),
        "model": st.from_regex(r"[!-~]{1,40}", fullmatch=True),
        "limits": LIMITS,
    },
)


@given(DEFINITIONS, TEXTS, st.booleans())
def test_a_definition_is_kept_as_it_was_stated(stated: dict[str, Any], note: str, dry_run: bool) -> None:
    published = PublishAgent.model_validate({**stated, "note": note, "dry_run": dry_run})
    kept = published.definition().model_dump(mode="json", exclude_unset=True)
    assert kept == AgentDefinition.model_validate(stated).model_dump(mode="json", exclude_unset=True)
    stored = published.definition().model_dump(mode="json", exclude_defaults=True)
    assert AgentDefinition.model_validate(stored) == published.definition()


@given(DEFINITIONS, NAMES.filter(lambda name: name not in PublishAgent.model_fields))
def test_a_field_that_there_is_not_is_refused_by_its_name(stated: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        PublishAgent.model_validate({**stated, field: "x"})
    assert [fault["loc"] for fault in refused.value.errors()] == [(field,)]


@given(st.text(max_size=50))
def test_a_name_is_a_slug_or_refused(name: str) -> None:
    slug = name.isascii() and name[:1].isalpha() and name == name.lower() and len(name) <= 40
    slug = slug and all(part.isalnum() for part in name.split("-"))
    if slug:
        assert AgentDefinition(name=name).name == name
    else:
        with pytest.raises(ValidationError):
            AgentDefinition(name=name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Librarian"),
        ("name", "a--b"),
        ("name", "a\n"),
        ("instructions", "x" * (MAX_INSTRUCTIONS + 1)),
        ("instructions", "a\x00b"),
        ("phrases", {"hello": "Hi"}),
        ("phrases", {"greeting": "  "}),
        ("tools", []),
        ("sources", []),
        ("sources", ["web"]),
        ("sources", ["memory", "memory"]),
        ("limits", {"tokens": "5000"}),
        ("limits", {"tool_calls": 21}),
        ("limits", {"tool_calls": 0}),
        ("limits", {"seconds": 0.5}),
        ("limits", {"minutes": 1}),
        ("model", ""),
    ],
)
def test_what_does_not_fit_is_refused_by_its_field(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        PublishAgent.model_validate({"name": "librarian", field: value})
    assert {fault["loc"][0] for fault in refused.value.errors()} == {field}


def test_the_base_follows_from_whether_tools_are_listed() -> None:
    assert AgentDefinition(name="a").base == DEFAULT_BASE
    assert AgentDefinition(name="a", tools=("recall",)).base == DEFAULT_TOOL_BASE
    assert AgentDefinition(name="a", tools=("recall",), based_on="noor").base == "noor"


def test_every_tool_that_reads_a_store_is_known_by_its_source() -> None:
    expected = {
        "recall": "memory",
        "recall_memory": "memory",
        "facts.list": "memory",
        "profile.get": "memory",
        "query_graph": "memory",
        "document.extract_text": "documents",
        "read_neo4j_cypher": "twin",
        "survey_twin": "twin",
        "graph_upsert": "twin",
        "semantic.search.v1": "constitution",
        "node.get.v1": "constitution",
        "vision.list.v2": "constitution",
        "session.start.v1": "constitution",
        "http_fetch": None,
        "turn.get": None,
    }
    assert {name: source_of(TOOLS[name]) for name in expected} == expected
    of_stores = [tool for tool in TOOLS.values() if tool.rpc.service in ("memory", "graph")]
    assert [tool.name for tool in of_stores if source_of(tool) is None] == []
