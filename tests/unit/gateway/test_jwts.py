"""What of a good token is believed, and by which clock; the forged ones stand in tests/integration/test_forged_tokens.py."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from phronesis_contracts import Agent, Principal, Role, Unauthorized
from phronesis_gateway.auth.tokens import IssuerKeys, TokenVerifier
from phronesis_gateway.settings import JwtSettings
from tests.support.issuer import Issuer
from tests.support.personas import Persona

NOW = 1_800_000_000.0
LEEWAY = 10.0
LONGEST = 3_600.0


async def read(token: str, issuer: Issuer, **settings: Any) -> Principal:
    """Whom `token` speaks for at `NOW`, its own id aside."""
    made = issuer.settings(leeway=LEEWAY, max_lifetime=LONGEST, **settings)
    key = await TokenVerifier(made, IssuerKeys(issuer.read, made.algorithms), lambda: NOW).caller(token)
    return key.principal.model_copy(update={"key": None})


def at(issuer: Issuer, kid: str = "ed", **changes: Any) -> str:
    """A token that is good at `NOW`, with `changes`."""
    return issuer.token(kid, **{"iat": NOW, "exp": NOW + 300, **changes})


@pytest.fixture
def issuer() -> Issuer:
    """An identity provider."""
    return Issuer()


@pytest.mark.parametrize("kid", ["rsa", "ec", "ed"])
async def test_a_token_signed_with_any_allowed_algorithm_speaks_for_its_caller(issuer: Issuer, kid: str) -> None:
    token = at(issuer, kid, role="editor", department="Planning", ministry="Works")
    assert await read(token, issuer) == Principal(
        tenant="acme", user="ann", **Persona.EDITOR.rights, department="Planning", ministry="Works"
    )


async def test_an_algorithm_that_is_not_allowed_is_refused_though_the_key_is_the_issuers(issuer: Issuer) -> None:
    with pytest.raises(Unauthorized, match="not valid"):
        await read(at(issuer, "ec"), issuer, algorithms=("EdDSA",))


async def test_the_names_of_the_claims_are_the_operators_choice(issuer: Issuer) -> None:
    token = at(issuer, tenant=None, sub="00u|X Y", role=None, org="acme", login="bob", job="admin")
    assert await read(token, issuer, tenant_claim="org", user_claim="login", role_claim="job") == Principal(
        tenant="acme", user="bob", **Persona.ADMIN.rights
    )


@pytest.mark.parametrize("named", [["mind", "discuss"], "discuss mind"])
async def test_a_token_states_a_role_and_agents_as_a_list_or_as_words(issuer: Issuer, named: object) -> None:
    assert await read(at(issuer, role="reader", agents=named), issuer) == Principal(
        tenant="acme", user="ann", role=Role.READER, agents=(Agent.DISCUSS, Agent.MIND)
    )


@pytest.mark.parametrize("claims", [{"role": "noor", "agents": ["maestro"]}, {"role": "member", "agents": ["root"]}])
async def test_a_token_with_agents_that_there_are_not_speaks_for_nobody(issuer: Issuer, claims: dict[str, object]) -> None:
    with pytest.raises(Unauthorized, match="not valid"):
        await read(at(issuer, **claims), issuer)


async def test_a_token_without_a_role_has_the_least(issuer: Issuer) -> None:
    assert await read(at(issuer, role=None), issuer) == Principal(tenant="acme", user="ann", **Persona.NOOR.rights)


@pytest.mark.parametrize("claim", ["operator other", ["other", "operator"]])
@pytest.mark.parametrize(("given", "got"), [((), ()), (("operator",), ("operator",)), (("reader",), ())])
async def test_a_token_gives_a_scope_only_where_the_operator_lets_it(
    issuer: Issuer, claim: Any, given: tuple[str, ...], got: tuple[str, ...]
) -> None:
    assert (await read(at(issuer, scope=claim), issuer, scopes=given)).scopes == got


async def test_callers_are_told_apart_by_issuer_tenant_and_user_and_by_nothing_else(issuer: Issuer) -> None:
    made = issuer.settings(leeway=LEEWAY)
    jwts = TokenVerifier(made, IssuerKeys(issuer.read, made.algorithms), lambda: NOW)
    tokens = [at(issuer), at(issuer, "rsa", role="admin", exp=NOW + 9), at(issuer, tenant="globex"), at(issuer, sub="bob")]
    first, again, elsewhere, other = [(await jwts.caller(token)).id for token in tokens]
    assert first == again
    assert len({first, elsewhere, other}) == 3


TIMES: dict[str, tuple[dict[str, float | None], bool]] = {
    "at its last moment": ({"exp": NOW - LEEWAY + 0.1}, True),
    "a moment after": ({"exp": NOW - LEEWAY}, False),
    "issued a little ahead": ({"iat": NOW + LEEWAY}, True),
    "issued too far ahead": ({"iat": NOW + LEEWAY + 0.1}, False),
    "begins a little later": ({"nbf": NOW + LEEWAY}, True),
    "begins too late": ({"nbf": NOW + LEEWAY + 0.1}, False),
    "as long as allowed": ({"exp": NOW - 30 + LONGEST}, True),
    "longer than allowed": ({"exp": NOW - 30 + LONGEST + 1}, False),
    "no beginning of its own": ({"nbf": None}, True),
}


@pytest.mark.parametrize("what", TIMES)
async def test_a_token_is_good_between_its_times(issuer: Issuer, what: str) -> None:
    changes, good = TIMES[what]
    token = at(issuer, **{"iat": NOW - 30} | changes)
    if good:
        assert (await read(token, issuer)).user == "ann"
        return
    with pytest.raises(Unauthorized):
        await read(token, issuer)


SETTINGS: dict[str, dict[str, Any]] = {
    "an issuer without keys": {"issuer": "https://id.example"},
    "an issuer with keys twice": {"issuer": "https://id.example", "jwks_url": "https://id.example/k", "jwks_file": "k.json"},
    "keys in clear text": {"issuer": "https://id.example", "jwks_url": "http://id.example/k"},
    "keys by another scheme": {"issuer": "https://id.example", "jwks_url": "file:///etc/keys"},
    "a shared secret": {"issuer": "https://id.example", "jwks_url": "https://id.example/k", "algorithms": ("HS256",)},
    "no algorithm's name": {"algorithms": ("none",)},
}


@pytest.mark.parametrize("what", SETTINGS)
def test_settings_that_are_not_safe_stop_the_gateway(what: str) -> None:
    with pytest.raises(ValidationError):
        JwtSettings(**SETTINGS[what])


def test_no_issuer_is_trusted_unless_one_is_set() -> None:
    assert JwtSettings().issuer is None
