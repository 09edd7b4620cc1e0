"""Who may make a key for whom, and what a message and an upload's name become."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from phronesis_bus import Signer
from phronesis_contracts import BadRequest, Forbidden, Principal
from phronesis_contracts.catalog import TOOLS
from phronesis_gateway.auth.keys import OPERATOR, find_tools, is_secret, new_secret, require_maker
from phronesis_gateway.http.requests import MAX_TOOLS, MessageGiven
from phronesis_gateway.http.uploads import clean_file_name
from tests.support.personas import Persona

ADMIN = Principal(tenant="acme", user="boss", **Persona.ADMIN.rights, scopes=("audit",))
OWNER = Principal(tenant="local", user="owner", **Persona.ADMIN.rights, scopes=(OPERATOR,))


def test_secrets_have_one_form_and_are_never_the_same() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert (len(secrets), all(is_secret(secret) for secret in secrets)) == (100, True)


def test_an_administrator_gives_no_more_than_it_has() -> None:
    require_maker(ADMIN, "acme", ("audit",))
    with pytest.raises(Forbidden):
        require_maker(ADMIN, "acme", (OPERATOR,))
    with pytest.raises(Forbidden):
        require_maker(ADMIN, "other", ())


def test_an_operator_makes_keys_of_any_tenant_but_the_platforms_own() -> None:
    require_maker(OWNER, "acme", (OPERATOR, "any"))
    with pytest.raises(BadRequest) as refused:
        require_maker(OWNER, "system", ())
    assert refused.value.field == "tenant"


def test_a_scope_without_the_role_makes_no_keys() -> None:
    with pytest.raises(Forbidden):
        require_maker(OWNER.model_copy(update=Persona.NOOR.rights), "local", ())


@pytest.mark.req("D-C08")
def test_a_fingerprint_is_the_same_for_the_same_message_however_it_is_spelt() -> None:
    camel = MessageGiven.model_validate({"currentMessageText": "x", "currentMessageMedia": {"url": "http://a"}})
    snake = MessageGiven.model_validate({"current_message_media": [{"url": "http://a"}], "current_message_text": "x"})
    other = MessageGiven.model_validate({"currentMessageText": "x", "currentMessageMedia": [{"url": "http://b"}]})
    assert camel.fingerprint == snake.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\a.pdf", "a.pdf"),
        ("a\r\nSet-Cookie: x\x00.pdf", "aSet-Cookie: x.pdf"),
        ("..", ""),
        ("résumé.pdf", "résumé.pdf"),
        ("x" * 300, "x" * 255),
    ],
)
def test_a_files_name_is_no_path(given: str, kept: str) -> None:
    assert clean_file_name(given) == kept


def test_a_principal_with_the_longest_tools_fits_its_header() -> None:
    longest = sorted(TOOLS, key=lambda name: len("".join(find_tools((name,)))))[-MAX_TOOLS:]
    who = ADMIN.model_copy(update={"tools": find_tools(longest)})
    token = Signer("gateway", Ed25519PrivateKey.generate()).token(who)
    assert len(token) < 8 * 1024
