"""Turns with hostile files and addresses, through the front door of a whole stack, with a canary beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.canary import Canary, canary
from tests.support.hostile_files import TEXT, HostileFile, Lure, hostile_files
from tests.support.hostile_urls import HostileUrl, hostile_urls
from tests.support.people import MESSAGES, TURNS, Person
from tests.support.stack import RunningStack

pytestmark = [pytest.mark.verify, pytest.mark.timeout(300)]

FILES = {file.id: file for file in hostile_files()}
READABLE_AT_THE_DOOR = (
    *("zip-understated-size", "docx-no-xml", "docx-entity-by-http", "pdf-flate-bomb"),
    *("pdf-hundred-thousand-pages", "pdf-encrypted", "pdf-stream-of-a-file", "png-60000-by-60000", "png-signature-then-elf"),
    *("tiff-directory-loop", "jpeg-0-high", "flac-a-day-of-silence", "m3u8-after-an-id3-tag", "m4a-sound-in-another-file"),
)
REFUSED_AT_THE_DOOR = (
    *("zip-42", "zip-parent-folder", "zip-macro", "zip-overlapping", "png-that-is-elf", "svg-links", "m3u8-called-mp3"),
    *("text-of-lone-surrogates", "text-in-utf-16-unmarked", "ole", "gzip-bomb", "nothing"),
)
FAMILIES = ("loopback", "number", "private", "ipv6", "unicode", "name", "user", "port", "scheme", "shape")
"""Families of addresses that need no web of the tests."""
URLS = [url for url in hostile_urls() if url.family in FAMILIES and "\x00" not in url.url]  # no text with NUL gets so far


@pytest.fixture(scope="module")
async def bird() -> AsyncIterator[Canary]:
    async with canary() as listening:
        yield listening


@pytest.fixture
def lure(bird: Canary, tmp_path: Path) -> Lure:
    secret = tmp_path / "secret.txt"
    secret.write_text("the words of another file")
    return Lure(f"http://127.0.0.1:{bird.port}/", secret)


@pytest.mark.parametrize("id", READABLE_AT_THE_DOOR)
@pytest.mark.req("D-033")
async def test_a_turn_with_a_hostile_file_is_answered_and_says_that_it_could_not_be_read(
    somebody: Person, bird: Canary, lure: Lure, id: str
) -> None:
    file: HostileFile = FILES[id]
    media = await somebody.uploaded(file.name, file.make(lure), "application/octet-stream")
    reply = await somebody.reply("What does the attached file say about the harbour dues?", media=[media])
    text = reply["user_response"]
    unread = reply["degraded"] == ["media"] and "could not be read" in text
    assert (unread or TEXT in file.ends, "the words of another file" in text, bird.heard) == (True, False, [])


@pytest.mark.parametrize("id", REFUSED_AT_THE_DOOR)
@pytest.mark.req("D-031")
async def test_a_file_that_is_refused_at_the_door_is_a_problem_with_a_code(somebody: Person, lure: Lure, id: str) -> None:
    file = FILES[id]
    answer = await somebody.upload(file.name, file.make(lure), "application/octet-stream")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] in file.ends


@pytest.mark.req("D-152")
async def test_every_hostile_address_is_refused_by_its_place_and_nothing_inside_is_connected_to(
    somebody: Person, bird: Canary
) -> None:
    wrong = {url.id: found for url in URLS if (found := await _refused(somebody, bird, url)) != (400, "bad_request", True)}
    assert (wrong, bird.heard, await somebody.turns()) == ({}, [], [])


async def _refused(somebody: Person, bird: Canary, url: HostileUrl) -> tuple[int, str, bool]:
    """Status and code of a message with this address as its second medium, and whether it is the one that is named."""
    address = url.url.replace("{port}", str(bird.port))
    body = {"currentMessageText": "Read this.", "currentMessageMedia": [{"mediaId": str(uuid4())}, {"url": address}]}
    answer = await somebody.http.post(MESSAGES, json=body, headers={"Idempotency-Key": uuid4().hex})
    problem = answer.json()
    return answer.status_code, problem["code"], problem.get("field") == "currentMessageMedia.1.url"


async def test_the_media_service_has_lived_through_all_of_it(stack: RunningStack, somebody: Person) -> None:
    assert stack.part("media").restarts == 0
    media = await somebody.uploaded("note.txt", b"The harbour dues are paid in silver at Skagen.", "text/plain")
    assert (
        "silver"
        in (await somebody.reply("What does the attached note say of the harbour dues?", media=[media]))["user_response"]
    )
    assert (await somebody.http.get(TURNS)).status_code == 200
