"""The secrets of a deployment: made where they are missing, never written over, never shown.

python -m phronesis_bus.secrets DIR
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
from pathlib import Path

import bcrypt

from phronesis_contracts.service import SERVICES

from .admission import Issuer
from .declare import USER as DECLARE
from .permissions import password_variable, users_config
from .principals import load_key, new_key, public_key
from .recording import USER as OPERATOR

SIGNERS = ("gateway", "orchestrator", "memory")
"""Services that sign principals."""
_POSTGRES = ("gateway", "orchestrator", "memory", "instructions")
"""Services with a schema, and so a role, in Postgres."""
_USERS = (*SERVICES, DECLARE, OPERATOR)
_ROUNDS = 4
"""Of bcrypt, the fewest there are: passwords of 192 random bits gain nothing by more, and everybody comes in at once again
when the broker restarts."""
_HASH = re.compile(r'^(\w+): "(.*)"$', re.MULTILINE)


def make(folder: Path) -> None:
    """Make what is missing. Whoever deletes a file gets a new one: that is how a secret is changed.

    Args:
        folder: where they stand; `deploy/nats/README.md` says which is whose. Nobody else may look into it.
    """
    trust = folder / "trust"
    for place in (folder, trust):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    texts = [f"nats-{user}.password" for user in _USERS] + [f"postgres-{service}.password" for service in _POSTGRES]
    for name in (*texts, "postgres.password", "neo4j.password", "weaviate.key", "calendar.key", "grafana.password"):
        _text(folder / name, secrets.token_urlsafe(24))
    _text(folder / "gateway.key", f"phr_{secrets.token_urlsafe(32)}")
    for service in SIGNERS:
        key_pair(folder / f"signing-{service}.key", trust / f"{service}.pem")
    key_pair(folder / "admission.pem")
    for name in ("groq.key", "model.key"):
        _text(folder / name, "")  # somebody else's to fill
    _users(folder)
    # Nobody but its owner comes into the folder. A file of it is mounted by itself, for whichever user a container has.
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def key_pair(private: Path, public: Path | None = None) -> None:
    """Make a private key if there is none, and let the public file say its public half.

    Args:
        private: its PEM file.
        public: the PEM file of the public half, where one is needed.
    """
    if not private.exists():
        fresh, half = private.with_name(f".{private.name}.new"), private.with_name(f".{private.name}.pub")
        new_key(fresh, half)
        half.unlink()
        fresh.replace(private)
    if public is not None:
        half_now = public_key(load_key(private)).decode()
        if not public.exists() or public.read_text() != half_now:
            _write(public, half_now)


def _users(folder: Path) -> None:
    """The file that the server reads: the hash of each user's password, and the public half of the admission key."""
    path = folder / "nats-users.conf"
    known = dict(_HASH.findall(path.read_text())) if path.exists() else {}
    hashes = {}
    for user in _USERS:
        password = (folder / f"nats-{user}.password").read_bytes().strip()
        old = known.get(password_variable(user), "")
        hashes[user] = old if _proves(password, old) else bcrypt.hashpw(password, bcrypt.gensalt(_ROUNDS)).decode()
    text = users_config(hashes, Issuer.load(folder / "admission.pem").name)
    if not path.exists() or path.read_text() != text:
        _write(path, text)


def _proves(password: bytes, value: str) -> bool:
    try:
        return bcrypt.checkpw(password, value.encode())
    except ValueError:
        return False


def _text(path: Path, text: str) -> None:
    if not path.exists():
        _write(path, text)


def _write(path: Path, text: str) -> None:
    """Write a file that its owner alone may read, and that a reader, or a kill half-way, sees whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    fresh.replace(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where they stand")
    make(parser.parse_args().folder)
