"""Recordings: hours in a few bytes, headers that lie, playlists that lead outside (TRAPS 67)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from tests.support import speech
from tests.support.hostile_files.form import DAMAGED, LARGE, TEXT, HostileFile, Lure, fixed, ready

_NO_SOUND = (DAMAGED,)
_LONG_FRAME = 65_535
"""Samples of one FLAC frame, the most there can be."""


def _crc(data: bytes, width: int, polynomial: int) -> int:
    value, top, mask = 0, 1 << (width - 1), (1 << width) - 1
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = ((value << 1) ^ polynomial if value & top else value << 1) & mask
    return value


def silent_flac(seconds: int, rate: int = 16_000) -> bytes:
    """So long a silence in a few bytes for each four seconds: every frame says that all its samples are nought."""
    total = seconds * rate
    about = struct.pack(">HH", _LONG_FRAME, _LONG_FRAME) + bytes(6)
    about += ((rate << 44) | (0 << 41) | (15 << 36) | (total & (2**36 - 1))).to_bytes(8, "big") + bytes(16)
    head = b"fLaC" + b"\x80" + len(about).to_bytes(3, "big") + about
    return head + b"".join(_flac_frame(number) for number in range(total // _LONG_FRAME))


def _flac_frame(number: int) -> bytes:
    # 16-bit block size at the end of the header, 16 kHz, one channel, 16 bits
    head = b"\xff\xf8\x75\x08" + chr(number).encode("utf-8", "surrogatepass") + struct.pack(">H", _LONG_FRAME - 1)
    frame = head + bytes((_crc(head, 8, 0x07),)) + b"\x00\x00\x00"
    return frame + struct.pack(">H", _crc(frame, 16, 0x8005))


def _wav(
    channels: int = 1, rate: int = 16_000, bits: int = 16, align: int | None = None, codec: int = 1, size: int = 64_000
) -> bytes:
    align = channels * bits // 8 % 65_536 if align is None else align
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, codec, channels, rate, rate * align % 2**32, align, bits)
    return (
        struct.pack("<4sI4s", b"RIFF", min(size + 36, 2**32 - 1), b"WAVE")
        + form
        + struct.pack("<4sI", b"data", size)
        + bytes(64_000)
    )


def _riff(*chunks: bytes) -> bytes:
    return b"RIFF\xff\xff\xff\xffWAVE" + b"".join(chunks)


def _atoms(depth: int) -> bytes:
    inner = b""
    for level in range(depth):
        inner = struct.pack(">I", min(len(inner) + 8, 2**32 - 1)) + (b"moov" if level == depth - 1 else b"trak") + inner
    return struct.pack(">I", 24) + b"ftypM4A \x00\x00\x02\x00M4A mp42" + inner


def _id3(size: int, body: bytes = b"") -> bytes:
    return b"ID3\x04\x00\x00" + bytes((size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127)) + body


def _playlists() -> Iterator[HostileFile]:
    def hls(lure: Lure) -> bytes:
        key = f'#EXT-X-KEY:METHOD=AES-128,URI="{lure.url}"'
        return f"#EXTM3U\n{key}\n#EXTINF:1,\n{lure.secret.as_uri()}\n{lure.url}a.ts\n#EXT-X-ENDLIST\n".encode()

    def concat(lure: Lure) -> bytes:
        return f"ffconcat version 1.0\nfile '{lure.secret}'\nfile '{lure.url}'\n".encode()

    def plain(lure: Lure) -> bytes:
        return f"concat:{lure.secret}|{lure.url}\n".encode()

    def dash(lure: Lure) -> bytes:
        return f'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>{lure.url}</BaseURL></MPD>'.encode()

    made = {"m3u8": hls, "ffconcat": concat, "concat": plain, "dash": dash}
    for name, make in made.items():
        for extension in ("mp3", "wav", "m4a"):
            yield HostileFile(f"{name}-called-{extension}", f"a.{extension}", make, (DAMAGED,))
        yield HostileFile(f"{name}-after-an-id3-tag", "a.mp3", _tagged(make), _NO_SOUND)
    yield HostileFile("m3u8-as-a-text", "a.txt", hls, (TEXT,), "#EXTM3U")
    yield HostileFile("m4a-sound-in-another-file", "a.m4a", _referring, _NO_SOUND)


def _tagged(make: Callable[[Lure], bytes]) -> Callable[[Lure], bytes]:
    """The file after an empty ID3 tag."""
    return lambda lure: _id3(0) + b"\x00" + make(lure)


def _referring(lure: Lure) -> bytes:
    """An M4A whose samples stand in a file of this machine."""
    data = speech.recorded(speech.silence(1), "ipod")
    path = str(lure.secret).encode()
    own = struct.pack(">I", 12) + b"url \x00\x00\x00\x01"
    other = struct.pack(">I", 12 + len(path) + 1) + b"url \x00\x00\x00\x00" + path + b"\x00"
    at = data.index(own)
    return data[:at] + other + data[at + len(own) :]


def _lies() -> Iterator[HostileFile]:
    made: dict[str, tuple[str, bytes]] = {
        "wav-of-two-billion-samples": ("a.wav", _wav(size=2**32 - 1)),
        "wav-of-sixty-thousand-channels": ("a.wav", _wav(channels=60_000)),
        "wav-one-sample-a-second": ("a.wav", _wav(rate=1)),
        "wav-four-billion-samples-a-second": ("a.wav", _wav(rate=2**32 - 1)),
        "wav-no-rate": ("a.wav", _wav(rate=0)),
        "wav-no-bits": ("a.wav", _wav(bits=0)),
        "wav-no-alignment": ("a.wav", _wav(align=0)),
        "wav-unknown-codec": ("a.wav", _wav(codec=0x1234)),
        "wav-mp3-inside": ("a.wav", _wav(codec=0x55)),
        "wav-loop-of-empty-chunks": ("a.wav", _riff(*[b"LIST\x00\x00\x00\x00"] * 500_000)),
        "wav-chunk-of-four-gigabytes": ("a.wav", _riff(b"LIST\xff\xff\xff\xff", b"fmt \xff\xff\xff\xff")),
        "wav-without-anything": ("a.wav", b"RIFF\x04\x00\x00\x00WAVE"),
        "mp3-tag-of-256-megabytes": ("a.mp3", _id3(2**28 - 1, b"APIC\x7f\x7f\x7f\x7f\x00\x00" + bytes(500))),
        "mp3-tag-in-tags": ("a.mp3", _id3(10) * 200_000),
        "mp3-sync-words-alone": ("a.mp3", b"\xff\xfb\x90\x00" * 100_000),
        "flac-picture-of-sixteen-megabytes": ("a.flac", b"fLaC\x06\xff\xff\xff" + bytes(1_000)),
        "flac-garbage": ("a.flac", b"fLaC" + b"\xff" * 10_000),
        "ogg-pages-without-end": ("a.ogg", (b"OggS\x00\x02" + bytes(20) + b"\x01\x00") * 20_000),
        "ogg-a-thousand-streams": ("a.ogg", b"".join(_ogg_page(serial) for serial in range(1_000))),
        "m4a-atoms-in-atoms": ("a.m4a", _atoms(20_000)),
        "m4a-atom-of-nothing": ("a.m4a", _atoms(1) + b"\x00\x00\x00\x01moov" + b"\xff" * 8),
        "m4a-table-of-billions": ("a.m4a", _table()),
        "aac": ("a.aac", b"\xff\xf1\x50\x80\x02\x1f\xfc" * 100),
        "midi": ("a.mid", b"MThd\x00\x00\x00\x06\x00\x01\xff\xff\x00\x60" + bytes(100)),
        "wave-called-mp3-that-is-elf": ("a.mp3", b"\x7fELF" + bytes(200)),
    }
    for id, (name, data) in made.items():
        yield HostileFile(id, name, ready(data), (DAMAGED,))


def _ogg_page(serial: int) -> bytes:
    body = b"OpusHead\x01\x01" + bytes(9)
    page = b"OggS\x00\x02" + bytes(8) + struct.pack("<III", serial, 0, 0) + bytes((1, len(body))) + body
    return page


def _table() -> bytes:
    data = speech.recorded(speech.silence(1), "ipod")
    at = data.index(b"stsz") + 12
    return data[:at] + b"\xff\xff\xff\x00" + data[at + 4 :]


def sounds() -> Iterator[HostileFile]:
    """All of them."""
    yield HostileFile("flac-a-day-of-silence", "a.flac", fixed(lambda: silent_flac(86_400)), (LARGE,))
    yield HostileFile("mp3-six-hours-of-silence", "a.mp3", fixed(_six_hours), (LARGE,))
    yield from _playlists()
    yield from _lies()
    yield HostileFile("film-called-m4a", "a.m4a", fixed(speech.film), (DAMAGED,))
    whole = speech.recorded(speech.silence(2), "flac")
    for tenth in range(1, 10, 2):
        part = whole[: len(whole) * tenth // 10]
        yield HostileFile(f"flac-cut-at-{tenth}0-percent", "a.flac", ready(part), (DAMAGED,))


def _six_hours() -> bytes:
    """One silent frame of 72 ms (MPEG 2.5, 8 kHz, 8 kbit/s, one channel), again and again."""
    return (b"\xff\xe3\x18\xc4" + bytes(68)) * 300_000
