"""The media service's own reader, for the length of a block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psutil

from phronesis_media.reading.readers import LocalReader
from phronesis_media.settings import MediaSettings
from phronesis_media.uploads.formats import detect_type

SECONDS = 60.0
"""More than the service's own limit: the machine of a test may be busy."""


@asynccontextmanager
async def reader(**settings: Any) -> AsyncIterator[LocalReader]:
    """A reader whose processes end with the block."""
    made = LocalReader(MediaSettings(**{"parse_seconds": SECONDS, **settings}))
    try:
        yield made
    finally:
        await made.close()


async def text_of(read: LocalReader, data: bytes, name: str = "") -> str:
    """The text of a medium, its type found as the service finds it."""
    return (await read.read(data, detect_type(data, name, None))).text


def processes() -> list[psutil.Process]:
    """The reading processes below this one."""
    found = []
    for child in psutil.Process().children():
        try:
            if "phronesis_media.reading.process" in child.cmdline():
                found.append(child)
        except psutil.Error:
            continue
    return found
