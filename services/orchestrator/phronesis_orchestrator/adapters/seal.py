"""Encryption of what is kept of users' passwords (AES-256-GCM)."""

from __future__ import annotations

import hashlib
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from phronesis_contracts import BadRequest, Principal, Unavailable

_NONCE = 12
"""Bytes of the number that each encryption uses once."""


class Seal:
    """Encrypts for one owner: what was sealed for another one does not open."""

    def __init__(self, key: SecretStr | None) -> None:
        self._cipher = AESGCM(hashlib.sha256(key.get_secret_value().encode()).digest()) if key else None

    def shut(self, text: str, owner: Principal) -> bytes:
        """The text, encrypted.

        Raises:
            BadRequest: the installation has no key.
        """
        if self._cipher is None:
            raise BadRequest("this installation keeps no passwords: it has no key to encrypt them with", field="password")
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, text.encode(), _owner(owner))

    def open(self, sealed: bytes, owner: Principal) -> str:
        """The text again.

        Raises:
            Unavailable: there is no key, it is another one, or it was sealed for another owner.
        """
        try:
            if self._cipher is not None:
                return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _owner(owner)).decode()
        except (InvalidTag, ValueError) as error:
            raise Unavailable("the calendar's password cannot be read any more; set it anew") from error
        raise Unavailable("the calendar's password cannot be read without the installation's key")


def _owner(owner: Principal) -> bytes:
    return f"{owner.tenant}/{owner.user}".encode()
