"""MCP servers that are commands: started with nothing of our environment, spoken to by lines, ended with their whole group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from phronesis_contracts.outside import OutsideFailed

MAX_LINE = 2 * 1024 * 1024
"""Bytes of one message."""
_GRACE = 2.0
"""Seconds that a server has to end once nobody speaks to it any more."""
LAUNCHER = Path(__file__).with_name("mcp_launcher.py")
"""The program that starts a command, and ends it with its worker."""


@asynccontextmanager
async def command_streams(command: tuple[str, ...]) -> AsyncIterator[TransportStreams]:
    """A running command as a transport of the SDK.

    Args:
        command: the program and its arguments; no shell reads them.

    Raises:
        OutsideFailed: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="phronesis-mcp-", ignore_cleanup_errors=True) as home:
        process = await _started(command, home)
        heard, hears = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        says, said = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [asyncio.create_task(_read(process, heard)), asyncio.create_task(_write(process, said))]
        try:
            yield hears, says
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.shield(asyncio.create_task(_end(process, tasks)))
            for stream in (heard, hears, says, said):
                stream.close()


async def _started(command: tuple[str, ...], home: str) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-B", str(LAUNCHER), str(os.getpid()), *command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={"PATH": os.defpath, "HOME": home, "LANG": "C.UTF-8"},
            cwd=home,
            limit=MAX_LINE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise OutsideFailed("the command cannot be started") from error


async def _read(process: Process, heard: anyio.abc.ObjectSendStream[SessionMessage | Exception]) -> None:
    """Pass lines on until one is no message, or too long: what comes after it could be anything."""
    assert process.stdout is not None
    async with heard:
        with contextlib.suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await process.stdout.readline():
                await heard.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))


async def _write(process: Process, said: anyio.abc.ObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError, anyio.ClosedResourceError):
        async with said:
            async for one in said:
                process.stdin.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()


async def _end(process: Process, tasks: list[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
    assert process.stdin is not None
    process.stdin.close()
    await _ended(process)
    if process.returncode is None:
        process.terminate()  # the launcher then ends the whole group
        await _ended(process)
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _ended(process: Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await process.wait()
