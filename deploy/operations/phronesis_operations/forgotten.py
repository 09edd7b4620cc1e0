"""What was forgotten since a backup was made: ids alone, kept through a restore, so that memory forgets it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import Refused
from .rows import Connection

_COLUMNS = ("id", "tenant", "owner", "ids", "turns", "conversation_id", "requested_at")
_READ = """
    SELECT id::text, tenant, owner, ids, turns, conversation_id, requested_at::text FROM memory.forgettings
    ORDER BY requested_at, id"""
_AGAIN = """
    INSERT INTO memory.forgettings (id, tenant, owner, ids, turns, conversation_id, requested_at, again)
    VALUES ($1::text::uuid, $2, $3, $4, $5, $6, $7::text::timestamptz, true) ON CONFLICT (id) DO NOTHING"""
Forgotten = Sequence[dict[str, Any]]


async def forgotten(connection: Connection) -> Forgotten:
    """Every forgetting that these stores know."""
    return [dict(row) for row in await connection.fetch(_READ)]


async def forget_again(connection: Connection, known: Forgotten) -> int:
    """Let the memory service repeat, when it starts, what the restored stores do not know; how many forgettings those are."""
    before = await connection.fetchval("SELECT count(*) FROM memory.forgettings")
    await connection.executemany(_AGAIN, [[one[name] for name in _COLUMNS] for one in known])
    return int(await connection.fetchval("SELECT count(*) FROM memory.forgettings")) - int(before)


def written(known: Forgotten, path: Path) -> None:
    """Write forgettings to a file of JSON Lines."""
    path.write_text("".join(f"{json.dumps(one)}\n" for one in known), encoding="utf-8")


def read(path: Path) -> Forgotten:
    """The forgettings of a file. Raises `Refused` where it is none."""
    try:
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise Refused(f"{path} is no list of what was forgotten") from error
    if not all(isinstance(one, dict) and set(one) == set(_COLUMNS) for one in found):
        raise Refused(f"{path} is no list of what was forgotten")
    return found
