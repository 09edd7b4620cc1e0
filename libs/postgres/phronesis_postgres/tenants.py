"""Whose rows a transaction reaches. The tables' policies read it, and reach nothing where it is not said."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias

SETTING: Final = "phronesis.tenant"
"""The setting of Postgres that the policies read; made for one transaction and gone with it."""


class _Every(Enum):
    TENANT = "*"


EVERY_TENANT: Final = _Every.TENANT
"""In place of a tenant: the platform's own work over all of them. No tenant's name, whatever it says, becomes this."""
Reach: TypeAlias = str | Literal[_Every.TENANT]


def reach(*tenants: str) -> Reach:
    """The tenant whose rows all these are, or every tenant where they are of several."""
    return tenants[0] if len(set(tenants)) == 1 else EVERY_TENANT


def beginning(tenant: Reach, *, writes: bool) -> str:
    """The statements that begin a transaction for a tenant, in one round trip.

    Raises:
        ValueError: no tenant can have this name, and the policies would take it for something else.
    """
    if tenant is EVERY_TENANT:
        name = tenant.value
    elif not tenant or tenant == EVERY_TENANT.value or "\0" in tenant:
        raise ValueError("not the name of a tenant")
    else:
        name = tenant.replace("'", "''")
    return f"BEGIN{'' if writes else ' READ ONLY'}; SET LOCAL {SETTING} = '{name}'"
