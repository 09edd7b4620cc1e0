"""What tests of backups share: the commands, run as a person runs them, and a look into an archive."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from phronesis.local.environment import inherited
from phronesis.operations.reading import Archive, Kind

WITHOUT_A_MODEL = {"GROQ_API_KEY": "", "ORCHESTRATOR_MODEL_URL": ""}


async def phronesis(*arguments: str, data: Path, within: float = 250.0) -> tuple[int, str, str]:
    """Run the command on a data directory: exit code, stdout, stderr."""
    line = [sys.executable, "-m", "phronesis.client", *arguments, "--data", str(data)]
    process = await asyncio.create_subprocess_exec(
        *line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=inherited()
    )
    async with asyncio.timeout(within):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def counts(path: Path, kind: Kind = "backup") -> dict[str, int]:
    """How much an archive holds of everything."""
    return {member.name: member.count for member in Archive.checked(path, kind).manifest.members}


def content(path: Path, kind: Kind) -> bytes:
    """Everything that an archive holds, unpacked."""
    archive = Archive.checked(path, kind)
    held = [repr(frame.header).encode() + frame.body for _, frames in archive.members() for frame in frames]
    return b"\n".join([archive.manifest.model_dump_json().encode(), *held])
