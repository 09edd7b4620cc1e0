"""The secrets of a stack: made at its first start, kept ever after."""

from __future__ import annotations

import secrets
from pathlib import Path
from threading import Lock

from .layout import DataDir, write_atomically

import_lock = Lock()
"""Held while a thread imports what the supervisor does not need at its start."""

SIGNERS = ("gateway", "orchestrator", "memory")


def ensure_owner_key(data: DataDir) -> str | None:
    """Make the owner's API key if there is none. Returns the key, if it was made now."""
    if data.key.exists():
        return None
    key = f"phr_{secrets.token_urlsafe(32)}"
    write_atomically(data.key, key)
    return key


def password_file(data: DataDir, user: str) -> Path:
    """The file with the password of `user`, made if there is none."""
    path = data.secrets / f"{user}.password"
    if not path.exists():
        write_atomically(path, secrets.token_urlsafe(24))
    return path


def role_password_file(data: DataDir, service: str) -> Path:
    """The file with the password of a service's role in a database that is not ours, made if there is none."""
    path = data.roles / f"{service}.password"
    if not path.exists():
        write_atomically(path, secrets.token_urlsafe(24))
    return path


def password(data: DataDir, user: str) -> str:
    """The password of `user`, made if there is none."""
    return password_file(data, user).read_text().strip()


def signing_key_file(data: DataDir, service: str) -> Path:
    """The file with the private key of `service`, made if there is none; the public one stands in `trust`."""
    return _key_file(data, service, data.trust / f"{service}.pem")


def admission_key_file(data: DataDir) -> Path:
    """The file with the key that outside systems are let in with, made if there is none. No service trusts it."""
    return _key_file(data, "admission")


def _key_file(data: DataDir, name: str, public: Path | None = None) -> Path:
    with import_lock:
        from phronesis_bus.secrets import key_pair

    private = data.secrets / f"{name}.key"
    key_pair(private, public)
    return private
