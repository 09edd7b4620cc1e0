"""Tokens and keys that must open nothing, by a name that says what is wrong with them."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Callable
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from phronesis_bus import Signer
from phronesis_contracts import Principal
from phronesis_gateway.auth.keys import new_secret
from tests.support.issuer import AUDIENCE, ISSUER, Issuer, bytes_of, public, rsa_key, text
from tests.support.personas import Persona

Forge = Callable[[Issuer], str]
"""Makes what stands after `Authorization: ` from an identity provider that the gateway trusts."""
BusForge = Callable[[Principal, Signer], str]
"""Makes a principal's token from a principal and the signer of a service that is trusted."""

_HOUR = 3_600


def _bearer(make: Forge) -> Forge:
    return lambda issuer: f"Bearer {make(issuer)}"


def _claims(**changes: Any) -> Forge:
    return lambda issuer: issuer.token(**changes)


def _header(**changes: Any) -> Forge:
    return lambda issuer: issuer.token("ed", headers=changes)


def _edited(part: int, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> Forge:
    """A good token with its header (0) or its payload (1) edited after it was signed."""

    def make(issuer: Issuer) -> str:
        parts = issuer.token("ed").split(".")
        parts[part] = text(edit(json.loads(bytes_of(parts[part]))))
        return ".".join(parts)

    return make


def _raw(payload: Callable[[str], str]) -> Forge:
    """A well signed token whose payload is what `payload` makes of good claims as JSON."""

    def make(issuer: Issuer) -> str:
        key, algorithm = issuer.keys["ed"]
        said = payload(json.dumps(issuer.claims()))
        return jwt.api_jws.encode(said.encode(), key, algorithm, {"kid": "ed", "typ": "JWT"})

    return make


def _raw_header(header: str) -> Forge:
    """A well signed token with this header, as text."""

    def make(issuer: Issuer) -> str:
        key = issuer.keys["ed"][0]
        assert isinstance(key, ed25519.Ed25519PrivateKey)
        said = f"{text(header)}.{text(issuer.claims())}"
        return f"{said}.{text(key.sign(said.encode()))}"

    return make


def _unsigned(algorithm: str, signature: str = "") -> Forge:
    def make(issuer: Issuer) -> str:
        return f"{text({'alg': algorithm, 'kid': 'rsa', 'typ': 'JWT'})}.{text(issuer.claims())}.{signature}"

    return make


def _with_public_key_as_secret(form: Encoding) -> Forge:
    def make(issuer: Issuer) -> str:
        shown = rsa_key("issuer").public_key()
        secret = shown.public_bytes(form, PublicFormat.SubjectPublicKeyInfo if form is Encoding.PEM else PublicFormat.PKCS1)
        said = f"{text({'alg': 'HS256', 'kid': 'rsa', 'typ': 'JWT'})}.{text(issuer.claims())}"
        signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(said.encode(), secret)
        return f"{said}.{text(signature)}"

    return make


def _by_a_stranger(kid: str = "rsa", **headers: Any) -> Forge:
    """Signed with a key that is not the issuer's, which the header brings along where it can."""

    def make(issuer: Issuer) -> str:
        key = rsa_key("stranger")
        stated = {name: public(key, kid=kid) if value == "key" else value for name, value in headers.items()}
        return jwt.encode(issuer.claims(), key, "RS256", {"kid": kid, **stated})

    return make


def _mismatched(kid: str, algorithm: str) -> Forge:
    """A good token of the key `rsa` that names another key, or another algorithm than the key is for."""
    return lambda issuer: jwt.encode(issuer.claims(), rsa_key("issuer"), algorithm, {"kid": kid})


def _encrypted(issuer: Issuer) -> str:
    packed = base64.urlsafe_b64encode(zlib.compress(b"a" * 1_000_000)).rstrip(b"=").decode()
    return ".".join(
        [text({"alg": "dir", "enc": "A256GCM", "zip": "DEF", "kid": "rsa"}), "", text(b"0" * 12), packed, text(b"1" * 16)]
    )


def _other_curve(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims(), ec.generate_private_key(ec.SECP384R1()), "ES384", {"kid": "ec"})


def _zero_signature(issuer: Issuer) -> str:
    return issuer.token("ec").rsplit(".", 1)[0] + "." + text(bytes(64))


TOKENS: dict[str, Forge] = {
    "alg none": _unsigned("none"),
    "alg None": _unsigned("None", "AA"),
    "alg nOnE": _unsigned("nOnE", "AA"),
    "alg NONE with a good signature": lambda issuer: _unsigned("NONE")(issuer) + issuer.token().rsplit(".", 1)[1],
    "alg empty": _unsigned("", "AA"),
    "alg none and no last dot": lambda issuer: _unsigned("none")(issuer).rstrip("."),
    "alg HS256 with the public key as PEM": _with_public_key_as_secret(Encoding.PEM),
    "alg HS256 with the public key as DER": _with_public_key_as_secret(Encoding.DER),
    "alg HS256 with an empty secret": lambda issuer: jwt.api_jws.encode(
        json.dumps(issuer.claims()).encode(), b"k" * 32, "HS256", {"kid": "rsa"}
    ),
    "alg RS512 with a key for RS256": _mismatched("rsa", "RS512"),
    "alg PS256 with a key for RS256": _mismatched("rsa", "PS256"),
    "alg ES384": _other_curve,
    "alg a list": _raw_header('{"alg":["EdDSA"],"kid":"ed"}'),
    "alg a number": _raw_header('{"alg":1,"kid":"ed"}'),
    "alg missing": _raw_header('{"kid":"ed"}'),
    "the key of another algorithm": _mismatched("ed", "RS256"),
    "another issuer's key": _by_a_stranger(),
    "another issuer's key in jwk": _by_a_stranger(jwk="key"),
    "another issuer's key at jku": _by_a_stranger(jku="http://127.0.0.1:9/keys"),
    "another issuer's key at x5u": _by_a_stranger(x5u="http://127.0.0.1:9/keys"),
    "another issuer's key in x5c": _by_a_stranger(x5c=["AQAB"]),
    "kid unknown": _by_a_stranger("unknown"),
    "kid a path": _by_a_stranger("../../../../etc/passwd"),
    "kid SQL": _by_a_stranger("rsa' OR '1'='1"),
    "kid a command": _by_a_stranger("rsa; curl http://127.0.0.1:9/"),
    "kid very long": _by_a_stranger("k" * 4_000),
    "kid a number": _raw_header('{"alg":"EdDSA","kid":5}'),
    "kid missing": _raw_header('{"alg":"EdDSA"}'),
    "crit unknown": _raw_header('{"alg":"EdDSA","kid":"ed","crit":["exp2"],"exp2":1}'),
    "crit empty": _raw_header('{"alg":"EdDSA","kid":"ed","crit":[]}'),
    "crit b64": _raw_header('{"alg":"EdDSA","kid":"ed","crit":["b64"],"b64":true}'),
    "b64 off": _raw_header('{"alg":"EdDSA","kid":"ed","b64":false}'),
    "typ of a logout token": _raw_header('{"alg":"EdDSA","kid":"ed","typ":"logout+jwt"}'),
    "typ a number": _raw_header('{"alg":"EdDSA","kid":"ed","typ":1}'),
    "the header's members twice": _raw_header('{"alg":"none","kid":"ed","alg":"EdDSA"}'),
    "the header a list": _raw_header("[]"),
    "the header nested deep": _raw_header('{"a":' * 900 + "1" + "}" * 900),
    "the header edited": _edited(0, lambda header: header | {"typ": "at+jwt"}),
    "the payload edited": _edited(1, lambda claims: claims | {"role": "admin"}),
    "the payload of another tenant": _edited(1, lambda claims: claims | {"tenant": "globex"}),
    "the signature cut": lambda issuer: issuer.token("ed")[:-8],
    "the signature gone": lambda issuer: issuer.token("ed").rsplit(".", 1)[0] + ".",
    "the signature of zeros": _zero_signature,
    "the signature of another token": lambda issuer: (
        f"{issuer.token().rsplit('.', 1)[0]}.{issuer.token(jti='2').rsplit('.', 1)[1]}"
    ),
    "a part too many": lambda issuer: issuer.token() + ".AA",
    "encrypted": _encrypted,
    "padded": lambda issuer: issuer.token() + "=",
    "expired": _claims(iat=int(time.time()) - _HOUR, exp=int(time.time()) - _HOUR // 2),
    "exp missing": _claims(exp=None),
    "exp null": _raw(lambda claims: json.dumps(json.loads(claims) | {"exp": None})),
    "exp far away": _claims(exp=10**18),
    "exp beyond numbers": _raw(lambda claims: claims[:-1].replace('"exp":', '"x":') + ',"exp":1e999}'),
    "exp a text": _claims(exp=str(int(time.time()) + 60)),
    "exp true": _claims(exp=True),
    "exp a list": _claims(exp=[int(time.time()) + 60]),
    "exp negative": _claims(exp=-1),
    "longer than a token may live": _claims(exp=int(time.time()) + 48 * _HOUR),
    "nbf in the future": _claims(nbf=int(time.time()) + _HOUR),
    "nbf a text": _claims(nbf="0"),
    "iat in the future": _claims(iat=int(time.time()) + _HOUR, exp=int(time.time()) + 2 * _HOUR),
    "iat missing": _claims(iat=None),
    "aud missing": _claims(aud=None),
    "aud another's": _claims(aud="billing"),
    "aud a list with ours": _claims(aud=[AUDIENCE, "billing"]),
    "aud in capitals": _claims(aud=AUDIENCE.upper()),
    "aud a beginning of ours": _claims(aud=AUDIENCE[:4]),
    "iss missing": _claims(iss=None),
    "iss another": _claims(iss="https://other.example"),
    "iss that begins as ours": _claims(iss=ISSUER + ".evil.example"),
    "iss with a slash more": _claims(iss=ISSUER + "/"),
    "iss a list": _raw(lambda claims: claims.replace(f'"{ISSUER}"', f'["{ISSUER}"]')),
    "a claim twice": _raw(lambda claims: claims[:-1] + ',"tenant":"globex"}'),
    "claims that are a list": _raw(lambda claims: f"[{claims}]"),
    "claims that are no JSON": _raw(lambda claims: claims[:-1]),
    "claims that are no text": _raw(lambda claims: claims[:-1] + ',"x":"\\ud800"}'),
    "claims with NaN": _raw(lambda claims: claims[:-1] + ',"x":NaN}'),
    "tenant missing": _claims(tenant=None),
    "tenant of the platform": _claims(tenant="system"),
    "tenant a wildcard": _claims(tenant="*"),
    "tenant two tokens of a subject": _claims(tenant="acme.globex"),
    "tenant with a line's end": _claims(tenant="acme\n"),
    "tenant a list": _claims(tenant=["acme"]),
    "user missing": _claims(sub=None),
    "user a rest of a subject": _claims(sub=">"),
    "user in capitals": _claims(sub="Ann"),
    "user unicode": _claims(sub="аnn"),
    "user very long": _claims(sub="a" * 65),
    "role unknown": _claims(role="root"),
    "role a list": _claims(role=["admin"]),
    "role in capitals": _claims(role="ADMIN"),
    "scopes an object": _claims(scope={"operator": True}),
    "8 KiB and more": _claims(pad="a" * 8_200),
    "40 KiB": _claims(pad="a" * 30_000),
}
"""What stands after `Bearer `, each in place of a token of tenant `acme`."""

HEADERS: dict[str, Forge] = {
    "no scheme": lambda issuer: issuer.token(),
    "the scheme alone": lambda issuer: "Bearer",
    "another scheme": lambda issuer: f"Basic {issuer.token()}",
    "two spaces": lambda issuer: f"Bearer  {issuer.token()}",
    "a tab": lambda issuer: f"Bearer\t{issuer.token()}",
    "a space inside": lambda issuer: f"Bearer {issuer.token()[:40]} {issuer.token()[40:]}",
    "a second token": lambda issuer: f"Bearer {issuer.token()} {issuer.token()}",
    "a second token after a comma": lambda issuer: f"Bearer {issuer.token()}, Bearer {issuer.token()}",
    "in quotes": lambda issuer: f'Bearer "{issuer.token()}"',
    "as a parameter": lambda issuer: f"Bearer token={issuer.token()}",
    "the scheme twice": lambda issuer: f"Bearer Bearer {issuer.token()}",
} | {what: _bearer(make) for what, make in TOKENS.items()}
"""What stands in the header `Authorization`."""

KEYS: dict[str, Callable[[str], str]] = {
    "one nobody made": lambda key: new_secret(),
    "its prefix alone": lambda key: "phr_",
    "its first characters": lambda key: key[:8],
    "cut by one": lambda key: key[:-1],
    "one more": lambda key: key + "A",
    "twice": lambda key: key + key,
    "in capitals": lambda key: key.upper(),
    "without its prefix": lambda key: key.removeprefix("phr_"),
    "another prefix": lambda key: "sk_" + key.removeprefix("phr_"),
    "a character changed": lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"),
    "percent-encoded": lambda key: key.replace("_", "%5F", 1),
    "padded": lambda key: key + "=",
    "a wildcard": lambda key: "phr_" + "%" * 43,
    "SQL": lambda key: "phr_'/**/OR/**/1=1--" + "a" * 27,
    "very long": lambda key: "phr_" + "a" * 20_000,
}
"""What stands after `Bearer ` in place of a key that is good."""


def _signed(by: Signer, who: Principal, **changes: Any) -> str:
    """A token of a service with changed claims."""
    stated = jwt.decode(by.token(who), options={"verify_signature": False}) | changes
    return jwt.encode({name: value for name, value in stated.items() if value is not None}, by._key, "EdDSA")


def _edit(token: str, **changes: Any) -> str:
    head, payload, signature = token.split(".")
    return f"{head}.{text(json.loads(bytes_of(payload)) | changes)}.{signature}"


def _bus_unsigned(algorithm: str) -> BusForge:
    def make(who: Principal, signer: Signer) -> str:
        _, payload, signature = signer.token(who).split(".")
        return f"{text({'alg': algorithm, 'typ': 'JWT'})}.{payload}.{signature if algorithm != 'none' else ''}"

    return make


def _bus_secret(who: Principal, signer: Signer) -> str:
    shown = signer._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    said = f"{text({'alg': 'HS256', 'typ': 'JWT'})}.{signer.token(who).split('.')[1]}"
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(said.encode(), shown)
    return f"{said}.{text(signature)}"


PRINCIPALS: dict[str, BusForge] = {
    "nothing": lambda who, signer: "",
    "no token": lambda who, signer: "admin",
    "the principal as plain JSON": lambda who, signer: who.model_dump_json(),
    "alg none": _bus_unsigned("none"),
    "alg NONE": _bus_unsigned("NONE"),
    "alg HS256 with the public key": _bus_secret,
    "alg ES256": _bus_unsigned("ES256"),
    "a key of nobody": lambda who, signer: Signer("gateway", ed25519.Ed25519PrivateKey.generate()).token(who),
    "another service's name": lambda who, signer: _signed(signer, who, iss="orchestrator"),
    "a service that signs nothing": lambda who, signer: _signed(signer, who, iss="graph"),
    "no issuer": lambda who, signer: _signed(signer, who, iss=None),
    "an issuer that is a path": lambda who, signer: _signed(signer, who, iss="../trust/gateway"),
    "an issuer that is a list": lambda who, signer: _edit(signer.token(who), iss=["gateway"]),
    "the payload edited": lambda who, signer: _edit(signer.token(who), role="admin"),
    "the tenant edited": lambda who, signer: _edit(signer.token(who), tenant="globex"),
    "expired": lambda who, signer: signer.long_lived(who, -1),
    "no expiry": lambda who, signer: _signed(signer, who, exp=None),
    "an expiry that is a text": lambda who, signer: _signed(signer, who, exp="soon"),
    "begins in the future": lambda who, signer: _signed(signer, who, nbf=int(time.time()) + _HOUR),
    "no tenant": lambda who, signer: _signed(signer, who, tenant=None),
    "no user": lambda who, signer: _signed(signer, who, user=None),
    "a tenant that is a wildcard": lambda who, signer: _signed(signer, who, tenant="*"),
    "a role there is not": lambda who, signer: _signed(signer, who, role="root"),
    "another tenant's": lambda who, signer: signer.token(who.model_copy(update={"tenant": "globex"})),
    "the signature cut": lambda who, signer: signer.token(who)[:-6],
    "the signature gone": lambda who, signer: signer.token(who).rsplit(".", 1)[0] + ".",
    "nested deep": lambda who, signer: f"{text({'alg': 'EdDSA'})}.{text('[' * 3_000)}.AA",
    "8 KiB and more": lambda who, signer: _signed(signer, who, department="d" * 8_200),
    "half a megabyte": lambda who, signer: "A" * 500_000,
    "twice": lambda who, signer: signer.token(who) + signer.token(who),
}
"""What stands in the header of a principal, each in place of a good one that the gateway signed."""

WHO = Principal(tenant="acme", user="ann", **Persona.NOOR.rights)
"""Whom the forged principals claim to be, more or less."""
