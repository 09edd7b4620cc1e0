"""Warm reading processes: kept, replaced, given back, and never blamed on the wrong medium."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from phronesis_contracts import UnsupportedMedia
from phronesis_media.reading.readers import LocalReader
from phronesis_media.uploads import formats
from tests.support import documents, pictures
from tests.support.bus import eventually
from tests.support.readers import processes, reader

pytestmark = pytest.mark.verify

PDF = documents.pdf([["words"]])
SLOW = documents.pdf([[f"line {line}" for line in range(250)] for _ in range(2)])
LONG = documents.pdf([[f"line {line}" for line in range(250)] for _ in range(120)])
"""Takes so much longer than a process takes to start that one which has worked for 2 s is in the midst of it."""
DAMAGED = b"%PDF-1.4\nnothing"


class Watched:
    """A reader, and the processes that came with it; those of other tests are not counted."""

    def __init__(self, read: LocalReader) -> None:
        self.read = read
        self._before = {process.pid for process in processes()}

    def own(self) -> list[psutil.Process]:
        return [process for process in processes() if process.pid not in self._before]


@asynccontextmanager
async def watched(**settings: float) -> AsyncIterator[Watched]:
    async with reader(**settings) as read:
        yield Watched(read)


async def test_nothing_runs_before_there_is_something_to_read_and_one_process_stays_warm() -> None:
    async with watched() as stage:
        assert stage.own() == []
        await stage.read.read(PDF, formats.PDF)
        (first,) = stage.own()
        await stage.read.read(PDF, formats.PDF)
        assert [process.pid for process in stage.own()] == [first.pid]
    assert stage.own() == []


async def test_a_process_with_nothing_to_do_is_ended_after_a_while() -> None:
    async with watched(idle_seconds=0.3) as stage:
        await stage.read.read(PDF, formats.PDF)
        await eventually(lambda: not stage.own())
        assert (await stage.read.read(PDF, formats.PDF)).text == "words"


async def test_as_many_run_side_by_side_as_there_are_readers_and_no_more() -> None:
    async with watched(parsers=2) as stage:
        reading = asyncio.gather(*(stage.read.read(SLOW, formats.PDF) for _ in range(4)))
        most = 0
        while not reading.done():
            most = max(most, len(stage.own()))
            await asyncio.wait([reading], timeout=0.02)
        assert (len(await reading), most) == (4, 2)


async def test_a_process_that_died_in_its_sleep_is_replaced() -> None:
    async with watched() as stage:
        await stage.read.read(PDF, formats.PDF)
        (first,) = stage.own()
        first.kill()
        assert (await stage.read.read(PDF, formats.PDF)).text == "words"
        assert first.pid not in [process.pid for process in stage.own()]


async def test_a_crash_is_held_against_a_medium_only_where_the_process_was_new() -> None:
    async with watched() as stage:
        await stage.read.read(PDF, formats.PDF)
        (warm,) = stage.own()
        warm.suspend()
        reading = asyncio.create_task(stage.read.read(PDF, formats.PDF))
        await asyncio.wait([reading], timeout=0.2)
        os.kill(warm.pid, signal.SIGSEGV)
        warm.resume()
        assert (await reading).text == "words"


async def test_a_caller_that_goes_away_leaves_the_loaded_models_to_the_next() -> None:
    async with watched() as stage:
        first = asyncio.create_task(stage.read.read(pictures.png_of(8, 8), "image/png"))
        await eventually(lambda: len(stage.own()) == 1)
        (process,) = stage.own()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await stage.read.read(pictures.encoded(pictures.drawn(["words"])), "image/png")
        assert [one.pid for one in stage.own()] == [process.pid]


async def test_a_medium_at_which_a_new_process_crashes_is_damaged() -> None:
    async with watched() as stage:
        reading = asyncio.create_task(stage.read.read(LONG, formats.PDF))
        await eventually(lambda: any(process.cpu_times().user > 2 for process in stage.own()))
        os.kill(stage.own()[0].pid, signal.SIGSEGV)
        with pytest.raises(UnsupportedMedia, match="the document is damaged"):
            await reading


async def test_a_process_that_met_a_damaged_medium_reads_no_other() -> None:
    async with watched() as stage:
        with pytest.raises(UnsupportedMedia):
            await stage.read.read(DAMAGED, formats.PDF)
        assert stage.own() == []
        assert (await stage.read.read(PDF, formats.PDF)).text == "words"


async def test_a_reading_process_has_no_environment_and_no_open_files_of_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "secret")
    async with watched() as stage:
        await stage.read.read(PDF, formats.PDF)
        (process,) = stage.own()
        assert [name for name in process.environ() if not name.startswith(("OMP_", "OPENBLAS_", "MKL_", "LANG", "LC_"))] == []
        assert process.open_files() == []
        assert process.net_connections() == []
