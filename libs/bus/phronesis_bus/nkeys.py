"""The broker's own form of keys and tokens: what it asks and believes when it lets somebody in.

A public key is written as base32 of a prefix byte, the key, and a CRC-16; a token is a JWT signed with Ed25519 under the
name `ed25519-nkey`.
"""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .principals import load_key

_ACCOUNT = 0
"""Prefix byte of the keys that accounts sign with; they begin with `A`."""
_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}


class Issuer:
    """Signs what the broker believes about those who come in.

    Args:
        key: the private key whose public half stands in the broker's configuration.
    """

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        raw = bytes([_ACCOUNT]) + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        checked = raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")
        self.name = base64.b32encode(checked).decode().rstrip("=")
        """The public key, as the broker's configuration names the issuer."""

    @classmethod
    def load(cls, path: Path) -> Issuer:
        """The issuer whose private key stands in the PEM file `path`."""
        return cls(load_key(path))

    def token(self, claims: dict[str, Any]) -> str:
        """`claims`, signed."""
        signed = f"{_part(_HEADER)}.{_part({'iss': self.name} | claims)}"
        return f"{signed}.{_base64(self._key.sign(signed.encode()))}"


def claims(token: bytes) -> dict[str, Any]:
    """What a token of the broker's own says; its signature is not looked at.

    Raises:
        ValueError: it is no token.
    """
    part = token.split(b".", 2)[1:2]
    if not part:
        raise ValueError("no token")
    found = json.loads(base64.urlsafe_b64decode(part[0] + b"=" * (-len(part[0]) % 4)))
    if not isinstance(found, dict):
        raise ValueError("no claims")
    return found


def _part(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
