"""The NATS server's configuration for a deployment, which holds no secret: `deploy/nats/nats.conf`."""

from __future__ import annotations

from phronesis_contracts.service import SERVICES

from .declare import USER as DECLARE
from .permissions import LIMITS, users
from .recording import USER as OPERATOR
from .topology import streams

USERS_FILE = "secrets/nats-users.conf"
"""Where the server reads what is secret, beside its configuration."""
ISSUER = "admission"
"""Variable with the public key of whoever lets outside systems in."""
_GIB = 1024**3


def variable(user: str) -> str:
    """The variable that holds the hash of a user's password."""
    return f"password_{user}"


def server_config() -> str:
    """The file. It reads `secrets/nats-users.conf` beside it, and takes JetStream's folder from `NATS_STORE_DIR`."""
    reserved = sum(int(config["max_bytes"]) for config in streams())
    return "\n".join(
        [
            f'include "{USERS_FILE}"',
            "port: 4222",
            "http_port: 8222",
            *LIMITS,
            # What the streams reserve, rounded up, and one more: a stream that is added needs no other number here.
            f"jetstream {{ store_dir: $NATS_STORE_DIR, max_mem: 64MB, max_file: {reserved // _GIB + 2}GB }}",
            users({name: f"${variable(name)}" for name in (*SERVICES, DECLARE, OPERATOR)}, f"${ISSUER}"),
            "",
        ]
    )


def users_config(hashes: dict[str, str], issuer: str) -> str:
    """The file with the users' secrets.

    Args:
        hashes: bcrypt hash of each password, by user.
        issuer: who lets outside systems in, as `Issuer.name` says.
    """
    lines = [f'{variable(user)}: "{value}"' for user, value in hashes.items()]
    return "\n".join([*lines, f'{ISSUER}: "{issuer}"', ""])
