"""What the stories do to the stack beside talking to it: run a command, end a part."""

from __future__ import annotations

import asyncio
import sys

from tests.support.people import Town
from tests.support.stack import RunningStack


async def command(stack: RunningStack, *arguments: str) -> tuple[int, str, str]:
    """Run `phronesis` on the stack: exit code, stdout, stderr."""
    line = [sys.executable, "-m", "phronesis", *arguments, "--data", str(stack.data.root)]
    process = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def restarted(stack: RunningStack, everybody: Town, name: str) -> None:
    """Kill a part, and return when the stack is ready again with a new one."""
    before = stack.part(name).process
    stack.process(name).kill()
    await stack.until(lambda now: now.parts[name].state == "up" and now.parts[name].process != before)
    await everybody.ready()
