"""Whom the bus believes."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from phronesis_bus import Signer, Verifier, new_key
from phronesis_contracts import Principal, Unauthorized
from tests.support.cases import for_each
from tests.support.personas import Persona

KEY = Ed25519PrivateKey.generate()
SIGNER = Signer("gateway", KEY)
ANN = Principal(tenant="acme", user="ann", **Persona.MAESTRO.rights, department="it", scopes=("operator",), key="k1")


def verifier(**more: Any) -> Verifier:
    return Verifier({"gateway": KEY.public_key(), **more})


def verifier_of(service: str) -> Verifier:
    return Verifier({"gateway": KEY.public_key()}, audience=service)


def claims(**changes: Any) -> dict[str, Any]:
    return {"tenant": "acme", "user": "ann", "iss": "gateway", "exp": time.time() + 60} | changes


def signed(key: Any = KEY, algorithm: str = "EdDSA", headers: dict[str, Any] | None = None, **changes: Any) -> str:
    return jwt.PyJWS().encode(json.dumps(claims(**changes)).encode(), key, algorithm=algorithm, headers=headers)


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_token_is_believed_by_the_service_that_it_names_alone() -> None:
    token = SIGNER.token(ANN, "memory")
    assert verifier_of("memory").principal(token) == ANN
    with pytest.raises(Unauthorized, match="for another service"):
        verifier_of("graph").principal(token)


def test_a_token_is_believed_with_the_request_that_it_names_alone() -> None:
    token = SIGNER.token(ANN, "memory", "one")
    assert verifier_of("memory").principal(token, request="one") == ANN
    for other in ("two", None):
        with pytest.raises(Unauthorized, match="for another request"):
            verifier_of("memory").principal(token, request=other)


def test_a_token_of_the_version_before_is_believed_by_every_service_with_every_request() -> None:
    old = SIGNER.long_lived(ANN, 60)
    assert {verifier_of(name).principal(old, request=id) for name in ("memory", "graph") for id in ("one", None)} == {ANN}


def test_the_version_before_believes_a_token_that_names_service_and_request() -> None:
    token = SIGNER.token(ANN, "memory", "one")
    # What it did with a token, word for word: a claim `aud` would have made it refuse.
    options = {"verify_exp": False, "verify_iat": False, "require": ["exp", "iss"]}
    claims = jwt.decode(token, KEY.public_key(), algorithms=["EdDSA"], audience=None, options=options)
    assert Principal.model_validate(claims) == ANN


def test_a_token_is_reused_for_one_service_and_one_request() -> None:
    tokens = [SIGNER.token(ANN, service, id) for service in ("memory", "graph") for id in ("one", "two")]
    assert len(set(tokens)) == 4
    assert SIGNER.token(ANN, "memory", "one") == tokens[0]


def test_a_signed_principal_comes_back_whole() -> None:
    assert verifier().principal(SIGNER.token(ANN)) == ANN


@pytest.mark.parametrize("persona", Persona)
def test_a_token_of_the_version_before_speaks_for_the_same_rights(persona: Persona) -> None:
    assert verifier().principal(signed(role=persona.value)) == Principal(tenant="acme", user="ann", **persona.rights)


@pytest.mark.parametrize("persona", Persona)
def test_a_token_states_the_word_that_the_version_before_knows(persona: Persona) -> None:
    token = SIGNER.token(Principal(tenant="acme", user="ann", **persona.rights))
    assert jwt.decode(token, options={"verify_signature": False})["role"] == persona.value


def test_a_token_is_reused_while_it_is_fresh() -> None:
    assert SIGNER.token(ANN) == SIGNER.token(ANN)


def test_an_expired_principal_is_refused() -> None:
    with pytest.raises(Unauthorized, match="expired"):
        verifier().principal(SIGNER.long_lived(ANN, -1))


def test_a_principal_that_expires_while_it_is_cached_is_refused() -> None:
    known = verifier()
    token = SIGNER.long_lived(ANN, 60)
    assert known.principal(token) == ANN
    with pytest.raises(Unauthorized, match="expired"):
        known.principal(token, at=time.time() + 61)


def test_a_principal_is_held_against_the_time_at_which_its_job_was_stored() -> None:
    token = SIGNER.long_lived(ANN, -10)
    assert verifier().principal(token, at=time.time() - 20) == ANN


def test_a_clock_that_is_ahead_makes_no_forger() -> None:
    assert verifier().principal(signed(iat=time.time() + 30)).user == "ann"


@for_each(
    "token",
    [
        None,
        "",
        "x",
        "a.b.c",
        "é.é.é",
        "." * 10_000,
        signed(key=Ed25519PrivateKey.generate()),
        signed(iss="memory"),
        signed(iss="gateway2"),
        signed(iss=None),
        signed(iss=["gateway"]),
        signed(exp=None),
        signed(exp="soon"),
        signed(exp=-1),
        signed(tenant=None),
        signed(tenant="a.b"),
        signed(tenant="*"),
        signed(user=">"),
        signed(role="root"),
        signed(headers={"crit": ["x"], "x": 1}),
        f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims())}.",
        f"{part({'alg': 'None', 'typ': 'JWT'})}.{part(claims())}.",
        signed(key="0" * 64, algorithm="HS256"),
    ],
)
def test_what_no_trusted_issuer_signed_is_refused(token: str | None) -> None:
    with pytest.raises(Unauthorized):
        verifier().principal(token)


def test_the_public_key_is_no_shared_secret() -> None:
    public = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    with pytest.raises(Unauthorized):
        verifier().principal(jwt.encode(claims(), public, algorithm="HS256"))


@pytest.mark.parametrize("changed", ["tenant", "user", "role", "access", "agents"])
def test_a_changed_claim_breaks_the_signature(changed: str) -> None:
    head, body, signature = SIGNER.long_lived(ANN, 60).split(".")
    found = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    forged = part(found | {changed: "admin"})
    with pytest.raises(Unauthorized):
        verifier().principal(f"{head}.{forged}.{signature}")


def test_an_issuer_cannot_sign_in_anothers_name() -> None:
    mine = Ed25519PrivateKey.generate()
    with pytest.raises(Unauthorized):
        verifier(memory=mine.public_key()).principal(signed(key=mine))


def test_keys_are_found_by_their_file_and_the_private_one_is_the_owners_alone(tmp_path: Path) -> None:
    new_key(tmp_path / "gateway.key", tmp_path / "gateway.pem")
    assert (tmp_path / "gateway.key").stat().st_mode & 0o777 == 0o600
    token = Signer.load("gateway", tmp_path / "gateway.key").token(ANN)
    assert Verifier.load(tmp_path).principal(token) == ANN


def test_a_file_without_an_ed25519_key_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "gateway.pem").write_text("nothing")
    with pytest.raises(ValueError, match="PEM"):
        Verifier.load(tmp_path)
