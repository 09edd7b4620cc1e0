"""Keys that act for users: whose principal a request has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import Agent, BadRequest, Forbidden, Principal, Role
from phronesis_contracts.principal import ELEVATED
from phronesis_gateway.auth.keys import ACT_FOR_USERS, OPERATOR, READ, act_for, require_maker
from tests.support.personas import Persona, persona_of


def holder(role: Persona = Persona.NOOR, *scopes: str) -> Principal:
    return Principal(
        tenant="acme", user="backend", **role.rights, department="d", ministry="m", scopes=(ACT_FOR_USERS, *scopes), key="k1"
    )


def test_the_principal_is_the_users_in_the_tenant_of_the_key_with_nothing_of_its_holder() -> None:
    expected = Principal(tenant="acme", user="ada", **Persona.DISCUSS.rights, scopes=(READ,), key="k1", acted_by="backend")
    assert act_for(holder(Persona.DISCUSS, READ, OPERATOR), "ada") == expected


@pytest.mark.parametrize("role", [Persona.ADMIN, *sorted(map(Persona, ELEVATED))])
def test_no_user_gets_more_rights_than_a_member(role: Persona) -> None:
    assert persona_of(act_for(holder(role), "ada")) is Persona.NOOR


def test_a_reader_acts_for_readers_alone() -> None:
    reader = holder().model_copy(update={"role": Role.READER, "agents": (Agent.DISCUSS, Agent.MAESTRO)})
    acted = act_for(reader, "ada")
    assert (acted.role, acted.agents) == (Role.READER, (Agent.DISCUSS,))


def test_of_several_agents_those_are_left_that_give_no_more_than_a_member_has() -> None:
    several = holder().model_copy(update={"agents": (Agent.DISCUSS, Agent.EXECUTE, Agent.MIND)})
    assert act_for(several, "ada").agents == (Agent.DISCUSS, Agent.MIND)


def test_a_key_without_the_scope_acts_for_nobody() -> None:
    with pytest.raises(Forbidden) as error:
        act_for(Principal(tenant="acme", user="backend", **Persona.ADMIN.rights, scopes=(OPERATOR,), key="k1"), "ada")
    assert error.value.field == "Phronesis-User"


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=220))
def test_every_name_is_one_that_a_subject_may_hold_always_the_same_or_is_refused(user: str) -> None:
    plain = user.strip()
    if not plain or len(plain) > 200 or not plain.isprintable():
        with pytest.raises(BadRequest) as error:
            act_for(holder(), user)
        assert error.value.field == "Phronesis-User"
        return
    found = act_for(holder(), user)
    assert found == act_for(holder(), f" {user} ")
    assert Principal.model_validate(found.model_dump()) == found


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60), st.text(min_size=1, max_size=9))
def test_two_names_are_two_users(user: str, more: str) -> None:
    if (user + more).isprintable() and (user + more).strip() != user:
        assert act_for(holder(), user).user != act_for(holder(), user + more).user


def test_nobody_is_another_user_by_taking_the_name_that_theirs_was_turned_into() -> None:
    ada = act_for(holder(), "Ada@example.com")
    assert act_for(holder(), ada.user).user != ada.user
    assert act_for(holder(), ada.user, known=True) == ada


def test_an_administrator_gives_the_scope_to_keys_of_its_own_tenant_alone() -> None:
    admin = Principal(tenant="acme", user="owner", **Persona.ADMIN.rights, key="k1")
    require_maker(admin, "acme", (ACT_FOR_USERS,))
    for tenant, scopes in (("other", (ACT_FOR_USERS,)), ("acme", (ACT_FOR_USERS, OPERATOR))):
        with pytest.raises(Forbidden):
            require_maker(admin, tenant, scopes)
