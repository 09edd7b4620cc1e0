"""Recordings read by the local speech recognition: what comes out, and what a hostile recording can do."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from phronesis_contracts import TooLarge, Unavailable, UnsupportedMedia
from phronesis_media.reading.readers import LocalReader
from tests.support import speech
from tests.support.readers import reader as started
from tests.support.readers import text_of

pytestmark = pytest.mark.verify

SAID = (
    "This is a sample recording, the drilling for the geological disposal facility begins in September. "
    "12 engineers are working at the site."
)
PLAYLIST = b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\nhttp://127.0.0.1:9/\n#EXT-X-ENDLIST\n"


@pytest.fixture(scope="module")
async def reader() -> AsyncIterator[LocalReader]:
    """One reader for the module, with its model warm."""
    async with started(audio_limit=60) as made:
        yield made


def words(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum() or c == " ")


@pytest.mark.parametrize("format", ["wav", "mp3", "flac", "ogg", "ipod"])
@pytest.mark.req("D-023", "D-025")
async def test_speech_is_written_down_in_every_format(reader: LocalReader, format: str) -> None:
    assert words(await text_of(reader, speech.recorded(speech.samples(), format))) == words(SAID)


@pytest.mark.req("D-023")
async def test_the_sample_recording_of_the_examples_is_understood(reader: LocalReader) -> None:
    reading = await reader.read(speech.PATH.read_bytes(), "audio/ogg")
    assert words(reading.text) == words(SAID)
    assert (reading.engine.split()[0], reading.seconds) == ("faster-whisper", round(len(speech.samples()) / speech.RATE, 1))


@pytest.mark.parametrize("data", [speech.recorded(speech.silence(10)), speech.wav_claiming(0, 16_000, b"")])
@pytest.mark.req("D-034")
async def test_a_recording_in_which_nobody_speaks_has_no_text(reader: LocalReader, data: bytes) -> None:
    with pytest.raises(UnsupportedMedia, match="no speech was found in the recording"):
        await text_of(reader, data)


@pytest.mark.parametrize("format", ["flac", "ogg"])
@pytest.mark.req("D-032")
async def test_a_recording_that_lasts_too_long_is_refused_while_it_is_decoded(reader: LocalReader, format: str) -> None:
    data = speech.recorded(speech.silence(120), format)
    with pytest.raises(TooLarge, match="the recording is too long"):
        await text_of(reader, data)


@pytest.mark.parametrize(
    "data",
    [
        speech.wav_claiming(2**31 - 1, 16_000, bytes(3200)),
        speech.wav_claiming(2**32 - 1, 1, bytes(40_000)),
        speech.wav_claiming(40_000, 1000, bytes(40_000)),
        speech.wav_claiming(40_000, 2**31 - 1, bytes(40_000)),
        b"ID3\x04\x00\x00\x00\x00\x00\x00" + PLAYLIST,
        b"\xff\xfb" + PLAYLIST * 50,
        b"OggS\x00" + PLAYLIST,
        b"fLaC" + bytes(range(256)) * 20,
        b"\x00\x00\x00\x20ftypM4A " + bytes(range(256)) * 20,
        speech.PATH.read_bytes()[:200],
    ],
)
async def test_a_header_that_lies_and_a_list_of_addresses_are_no_recording(reader: LocalReader, data: bytes) -> None:
    with pytest.raises(UnsupportedMedia) as refused:
        await text_of(reader, data)
    assert refused.value.detail in ("the recording is damaged", "no speech was found in the recording")


async def test_half_a_recording_gives_its_half(reader: LocalReader) -> None:
    data = speech.recorded(speech.samples(), "wav")
    assert words(await text_of(reader, data[: len(data) // 2])).startswith("this is a sample recording")


async def test_a_video_that_calls_itself_a_recording_is_refused(reader: LocalReader) -> None:
    with pytest.raises(UnsupportedMedia, match="video is not readable"):
        await text_of(reader, speech.film(), "memo.m4a")


async def test_an_installation_without_the_extra_says_which_is_missing(
    reader: LocalReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phronesis_media.reading.readers.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"the extra phronesis-media\[speech\] is missing"):
        await text_of(reader, speech.PATH.read_bytes())


async def test_no_bytes_after_a_true_beginning_do_more_than_fail(reader: LocalReader) -> None:
    whole = speech.PATH.read_bytes()
    for at in range(0, 400, 37):
        broken = whole[: 50 + at] + bytes([at % 256]) * 60 + whole[110 + at : 4000]
        with contextlib.suppress(UnsupportedMedia):
            assert await text_of(reader, broken)
