"""Roles and agents: what each opens, and that callers of the version before keep exactly their rights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_contracts import Agent, Principal, Risk, Role, agents, twin
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.constitution import values
from phronesis_contracts.memory import scopes_recalled
from phronesis_gateway.tools.offers import AGENTS

OLD: dict[str, dict[str, Any]] = json.loads((Path(__file__).parents[2] / "contract" / "old_roles.json").read_text())
"""What each role of the version before opened, written down by that version."""
KNOWN = [tool for name, tool in TOOLS.items() if name in OLD["admin"]["tools"]]
"""Tools that the version before had."""


def principal(role: str, *named: str) -> Principal:
    return Principal.model_validate({"tenant": "acme", "user": "ann", "role": role} | ({"agents": named} if named else {}))


def rights(who: Principal) -> dict[str, Any]:
    """What a caller may do, in the form of `OLD`."""
    return {
        "tools": sorted(tool.name for tool in KNOWN if tool.open_to(who)),
        "layers": sorted(layer.value for layer, writers in values.WRITERS.items() if who.writes_as(writers)),
        "scopes": sorted(scope.value for scope in scopes_recalled(who)),
        "constitution": who.acts_as(values.READERS),
        "twin": who.acts_as(twin.READERS),
        "publishes": who.writes_as(agents.EDITORS),
        "elevated": who.elevated,
        "listed": bool(who.agents) and set(who.agents) <= AGENTS,
        "manages_keys": who.administers,
    }


PEOPLE = st.builds(
    principal,
    st.sampled_from(Role).map(str),
    *[st.sampled_from(Agent).map(str)] * 3,
)


@pytest.mark.parametrize("word", sorted(OLD))
def test_a_role_of_the_version_before_keeps_its_rights_and_gets_no_other(word: str) -> None:
    assert rights(principal(word)) == OLD[word]


@pytest.mark.parametrize("word", sorted(set(OLD) - {"admin"}))
def test_a_role_of_the_version_before_is_a_member_with_the_agent_of_that_name(word: str) -> None:
    assert principal(word) == principal("member", word)


@given(PEOPLE)
def test_a_principal_that_is_written_is_read_back(who: Principal) -> None:
    assert Principal.model_validate_json(who.model_dump_json(exclude_none=True)) == who


@given(PEOPLE)
def test_the_version_before_reads_a_word_that_gives_no_right_which_the_caller_lacks(who: Principal) -> None:
    word = who.model_dump(mode="json")["role"]
    if who.role is Role.READER:
        assert word not in OLD, "a word that the version before refuses"
        return
    old, now = OLD[word], rights(who)
    assert {name for name in ("tools", "layers", "scopes") if not set(old[name]) <= set(now[name])} == set()
    assert all(now[name] for name in ("constitution", "twin", "publishes", "manages_keys") if old[name])
    assert old["elevated"] == who.elevated, "the version before acts for a user who has more rights than a member"


@pytest.mark.parametrize("word", sorted(OLD))
def test_a_caller_of_one_agent_is_told_to_the_version_before_as_that_version_knew_it(word: str) -> None:
    assert principal(word).model_dump(mode="json")["role"] == word


@given(PEOPLE)
def test_several_agents_give_what_each_gives(who: Principal) -> None:
    alone = [principal(who.role.value, agent) for agent in who.agents or Agent]
    assert {tool.name for tool in KNOWN if tool.open_to(who)} >= {t.name for one in alone for t in KNOWN if t.open_to(one)}
    if not who.administers:
        assert {tool.name for tool in KNOWN if tool.open_to(who)} == {t.name for one in alone for t in KNOWN if t.open_to(one)}


@given(PEOPLE)
def test_a_reader_may_use_what_a_member_may_that_changes_nothing(who: Principal) -> None:
    if who.administers:
        return
    reader, member = (principal(role, *who.agents) for role in ("reader", "member"))
    for tool in TOOLS.values():
        assert tool.open_to(reader) == (tool.open_to(member) and tool.risk is Risk.READ), tool.name
    assert not any(reader.writes_as(writers) for writers in values.WRITERS.values())


def test_an_owner_and_an_administrator_may_use_every_tool() -> None:
    assert [all(tool.open_to(principal(role)) for tool in TOOLS.values()) for role in ("owner", "admin")] == [True, True]


def test_somebody_of_whom_nothing_is_stated_is_a_member_who_may_act_as_noor() -> None:
    who = Principal(tenant="acme", user="ann")
    assert (who.role, who.agents, who.rights) == (Role.MEMBER, (Agent.NOOR,), "member (noor)")


@pytest.mark.parametrize(
    "stated",
    [
        {"role": "root"},
        {"role": "ADMIN"},
        {"role": None},
        {"role": ["admin"]},
        {"role": "noor", "agents": ["maestro"]},
        {"role": "member", "agents": []},
        {"role": "member", "agents": ["admin"]},
        {"role": "member", "agents": ["owner"]},
        {"role": "admin", "access": "root"},
        {"role": "admin", "access": None},
        {"role": "admin", "access": "maestro"},
        {"role": "root", "access": "member", "agents": ["noor"]},
        {"role": "noor", "access": "admin"},
        {"role": "noor", "access": "member", "agents": ["maestro"]},
        {"access": "admin"},
    ],
)
def test_what_is_no_role_or_no_agent_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Principal.model_validate({"tenant": "acme", "user": "ann", **stated})


def test_the_version_before_takes_a_caller_with_tools_for_nobody() -> None:
    narrow = Principal(tenant="acme", user="ann", agents=(Agent.MAESTRO,), tools=("recall",))
    written = narrow.model_dump(mode="json", exclude_none=True)
    assert (written["role"], written["access"]) == ("reader", "member")
    assert Principal.model_validate(written) == narrow
    with pytest.raises(ValidationError):  # tools cannot be taken out of what was signed, nor be put in
        Principal.model_validate({name: value for name, value in written.items() if name != "tools"})


def test_a_tool_is_open_to_a_caller_with_tools_only_where_it_is_among_them() -> None:
    everything = Principal(tenant="acme", user="root", role=Role.ADMIN)
    narrow = everything.model_copy(update={"tools": ("recall",)})
    assert {name for name, tool in TOOLS.items() if tool.open_to(narrow)} == {"recall"}
    assert not any(tool.open_to(everything.model_copy(update={"tools": ()})) for tool in TOOLS.values())
