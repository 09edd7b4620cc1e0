"""Every hostile file against the media service as a process of its own, with a canary and a secret beside it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest

from phronesis_bus import Blobs, Bus, ask
from phronesis_contracts import ServiceError
from phronesis_contracts.media import (
    ACCEPT_UPLOAD,
    CAPTION,
    EXTRACT_TEXT,
    TRANSCRIBE,
    UPLOADS,
    AcceptUpload,
    ExtractedText,
    MediaKind,
    TextRef,
)
from phronesis_media.media import LONGEST_REPLY
from phronesis_media.settings import MediaSettings
from tests.support import documents
from tests.support.bus import connected, somebody
from tests.support.canary import Canary, canary
from tests.support.hostile_files import LATE, TEXT, HostileFile, Lure, hostile_files
from tests.support.media_process import Peaks, is_ready, media_process, watched
from tests.support.servers import NatsServer

PATIENT, HASTY = 60, 5
"""Seconds that a medium may take: most are read at once, but the machine of a test may be busy; what is made to take for ever
is given less."""
AT_ONCE = 4
CREWS = 5
SECRET = "the words of another file"
FILES = list(hostile_files())
TOOLS = {MediaKind.DOCUMENT: EXTRACT_TEXT, MediaKind.IMAGE: CAPTION, MediaKind.AUDIO: TRANSCRIBE}
WHO = somebody()
LIMITS = MediaSettings()
SERVICE = 512 * 1024 * 1024
"""Bytes that the service itself may have resident: itself, and a few uploads of 25 MB with their copies."""
OUTSIDE = Path("/tmp/phronesis-hostile")
"""Where archives want to write to."""

pytestmark = [pytest.mark.verify, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Tried:
    """What became of a file."""

    ended: str
    text: str
    seconds: float
    the_next_is_read: bool


@dataclass
class Run:
    """What became of all of them, of the services that read them, and of what they may never touch."""

    bird: Canary
    tried: dict[str, Tried] = field(default_factory=dict)
    peaks: list[Peaks] = field(default_factory=list)
    after: list[tuple[bool, bool, bool]] = field(default_factory=list)
    """Whether a service was ready after its share, read an honest PDF, and had no process too many."""


async def read(gateway: Bus, data: bytes, name: str) -> ExtractedText:
    """Upload a file and read it with the tool of its kind."""
    id = uuid4().hex
    await Blobs(gateway, UPLOADS).put(id, data)
    accept = AcceptUpload(upload=id, name=name)
    media = await ask(gateway, WHO, ACCEPT_UPLOAD, accept, timeout=2 * PATIENT)
    return await ask(gateway, WHO, TOOLS[media.kind], TextRef(media_id=media.id), timeout=5 * PATIENT)


async def tried(gateway: Bus, file: HostileFile, lure: Lure) -> Tried:
    """Read a hostile file, and an honest one after it."""
    data = await asyncio.to_thread(file.make, lure)
    start, text, ended = time.monotonic(), "", TEXT
    try:
        text = (await read(gateway, data, file.name)).text
    except ServiceError as error:
        ended = error.code
    taken = time.monotonic() - start
    honest = f"honest words {uuid4()}"
    return Tried(ended, text, taken, (await read(gateway, honest.encode(), "good.txt")).text == honest)


async def share(run: Run, nats: NatsServer, lure: Lure, files: Sequence[HostileFile], seconds: int) -> None:
    """Let a service with so many seconds for each read its share, a few side by side."""
    side_by_side = asyncio.Semaphore(AT_ONCE)

    async def one(file: HostileFile) -> None:
        async with side_by_side:
            run.tried[file.id] = await tried(gateway, file, lure)

    async with (
        connected(nats, "gateway") as (gateway,),
        media_process(nats, gateway, MEDIA_PARSE_SECONDS=str(seconds)) as process,
    ):
        with watched(process) as peaks:
            await asyncio.gather(*map(one, files))
            honest = documents.pdf([[f"honest words {uuid4()}"]])
            found = "honest words" in (await read(gateway, honest, "good.pdf")).text if seconds == PATIENT else True
        children = process.children(recursive=True)
        run.after.append((await is_ready(gateway), found, len(children) <= CREWS * LIMITS.parsers))
        run.peaks.append(peaks)


@pytest.fixture(scope="module")
async def run(nats_server: NatsServer, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Run:
    """Every file that this run of pytest is about, read by the media service."""
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    files = [file for spec in specs if spec and isinstance(file := spec.params.get("file"), HostileFile)]
    wanted = [file for file in FILES if file in files]
    secret = tmp_path_factory.mktemp("hostile") / "secret.txt"
    secret.write_text(SECRET)
    OUTSIDE.unlink(missing_ok=True)
    async with canary() as bird:
        run, lure = Run(bird), Lure(f"http://127.0.0.1:{bird.port}/", secret)
        await share(run, nats_server, lure, [file for file in wanted if LATE not in file.ends], PATIENT)
        await share(run, nats_server, lure, [file for file in wanted if LATE in file.ends], HASTY)
    return run


def test_there_are_enough_of_them_and_no_id_stands_for_two() -> None:
    counted = Counter(file.id for file in FILES)
    assert ([id for id, times in counted.items() if times > 1], len(counted) >= 60) == ([], True)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.id)
@pytest.mark.req("D-031", "D-032", "D-152")
async def test_a_hostile_file_ends_with_a_typed_error_or_a_bounded_text_and_the_next_is_read(
    run: Run, file: HostileFile
) -> None:
    found = run.tried[file.id]
    text = found.text
    assert found.ended in file.ends
    assert (file.words in text, SECRET in text, "root:" in text, len(text) <= LONGEST_REPLY) == (True, False, False, True)
    # a file waits for those before it, and one that crashed a process is tried once more
    assert (found.the_next_is_read, found.seconds < 2 * AT_ONCE * PATIENT) == (True, True)


async def test_after_all_of_them_the_service_is_ready_and_nothing_was_reached_or_written(run: Run) -> None:
    assert (run.bird.heard, OUTSIDE.exists(), run.after) == ([], False, [(True, True, True)] * 2)


async def test_neither_the_service_nor_a_reading_process_took_more_memory_than_its_limit(run: Run) -> None:
    for peaks in run.peaks:
        assert peaks.service < SERVICE
        assert max(peaks.readers.values(), default=0) < LIMITS.model_memory
        assert peaks.sum < SERVICE + LIMITS.parsers * (3 * LIMITS.parse_memory + 2 * LIMITS.model_memory)
