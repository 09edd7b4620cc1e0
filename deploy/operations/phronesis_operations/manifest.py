"""What an archive says of itself: first what it is, last what it holds."""

from __future__ import annotations

from datetime import datetime
from importlib.metadata import version
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT = 1
"""Of the archive; a reader refuses any other."""
PRODUCT = version("phronesis-operations")
MOST_MEMBERS = 10_000
_NAME = r"^[a-z][a-z0-9_-]*(/[a-z][a-z0-9_]*){0,2}$"


class About(BaseModel):
    """The first entry: enough to tell whether the rest is worth reading."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    product: str = Field(pattern=r"^\d{1,6}\.\d{1,6}\.\d{1,6}$")
    """Version of what wrote it."""
    kind: Literal["backup", "tenant"]
    tenant: str | None = None
    """Whose it is, where it holds one tenant."""


class Member(BaseModel):
    """One store's table, or what stands for one: cut into parts, which are files of the archive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=_NAME, max_length=200)
    count: int = Field(ge=0)
    """Rows, nodes, vectors, objects or events."""
    parts: int = Field(ge=0)
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of all parts, one after another."""


class Manifest(BaseModel):
    """The last entry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: About
    point: datetime
    """The moment whose state the archive holds, by the clock of Postgres."""
    migrations: dict[str, tuple[str, ...]]
    """Applied migrations of each schema."""
    sequences: dict[str, int]
    """The last value of each sequence that was used, by `schema.name`."""
    model: str | None
    """Whose vectors these are; `None` where there are none."""
    dimension: int | None
    """Numbers in a vector."""
    members: tuple[Member, ...] = Field(max_length=MOST_MEMBERS)

    def member(self, name: str) -> Member | None:
        """The member of that name."""
        return next((member for member in self.members if member.name == name), None)


def of(version: str) -> tuple[int, ...]:
    """A version that can be compared."""
    return tuple(int(part) for part in version.split("."))
