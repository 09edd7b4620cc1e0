"""What the embedded Postgres answers while it takes no sessions, and what of it counts as recovering."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from phronesis_local import postgres


def refusal(code: str, text: str, detail: str = "") -> bytes:
    """An error of the server, as it goes over the wire."""
    fields = "".join(f"{name}{value}\0" for name, value in (("S", "FATAL"), ("C", code), ("M", text), ("D", detail)) if value)
    body = fields.encode() + b"\0"
    return b"E" + (len(body) + 4).to_bytes(4, "big") + body


def answering(answer: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(512)
        writer.write(answer)
        writer.close()

    return handle


@pytest.mark.parametrize(
    ("answer", "recovers"),
    [
        (refusal("57P03", "the database system is starting up"), True),
        (refusal("57P03", "the database system is in recovery mode"), True),
        (
            refusal(
                "57P03",
                "the database system is not yet accepting connections",
                "Consistent recovery state has not been yet reached.",
            ),
            True,
        ),
        (refusal("57P03", "the database system is shutting down"), False),
        (refusal("53300", "sorry, too many clients already"), False),
        (b"R\0\0\0\x08\0\0\0\0", False),
    ],
)
async def test_a_server_recovers_where_it_says_so_and_not_where_it_takes_nobody_for_another_reason(
    answer: bytes, recovers: bool
) -> None:
    with TemporaryDirectory() as name:  # short enough for a socket
        folder = Path(name)
        postgres.socket_folder(folder).mkdir()
        server = await asyncio.start_unix_server(answering(answer), postgres.socket_folder(folder) / ".s.PGSQL.5432")
        async with server:
            assert await postgres.program(folder, folder / "log", {}).says_it_recovers() is recovers
