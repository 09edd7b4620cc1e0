"""Rows of the tables as values, and what a schema that is not migrated means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import asyncpg

from phronesis_contracts import Unavailable

from ..domain.texts import Text


@asynccontextmanager
async def migrated() -> AsyncIterator[None]:
    """A block that reads tables of ours.

    Raises:
        Unavailable: they are not there yet, or lack a column.
    """
    try:
        yield
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError, asyncpg.InvalidSchemaNameError) as error:
        raise Unavailable("the instructions' tables are not there yet", retry_after=1) from error


def text_of(row: Mapping[str, Any], kind: Literal["bundle", "element"], *, own: bool = False) -> Text:
    """A text from the columns of its table; what a table has no column for is absent."""
    return Text(
        row["tag"],
        kind,
        row["content"],
        row["version"],
        row["status"],
        row["avg_tokens"] or 0,
        tier=row.get("tier"),
        category=row.get("category"),
        dependencies=tuple(row.get("dependencies") or ()),
        use_cases=tuple(row.get("use_cases") or ()),
        position=row.get("position"),
        own=own,
    )
