"""What tests of backups share: the commands, run as a person runs them, and a look into an archive."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from phronesis_local.layout import inherited_environment
from phronesis_operations.archive import Archive, Kind

_ROUNDING = 1e-4
"""Of a figure: the cosines of Weaviate differ in the sixth digit from one process to the next."""
WITHOUT_A_MODEL = {"GROQ_API_KEY": "", "ORCHESTRATOR_MODEL_URL": ""}


async def phronesis(
    *arguments: str, data: Path, within: float = 250.0, environment: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """Run the command on a data directory: exit code, stdout, stderr."""
    line = [sys.executable, "-m", "phronesis", *arguments, "--data", str(data)]
    process = await asyncio.create_subprocess_exec(
        *line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=inherited_environment() | (environment or {})
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


def alike(found: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether recalls have the same items in the same order, with figures that are the same but for a store's rounding."""
    if [[item["id"] for item in items] for items in found.values()] != [[i["id"] for i in items] for items in other.values()]:
        return False
    pairs = [(a, b) for query in found for a, b in zip(found[query], other[query], strict=True)]
    figures = [(a["score"], b["score"]) for a, b in pairs]
    figures += [(a["why"].get(name, 0.0), b["why"].get(name, 0.0)) for a, b in pairs for name in a["why"] | b["why"]]
    return all(abs(a - b) < _ROUNDING for a, b in figures) and all(a["text"] == b["text"] for a, b in pairs)
