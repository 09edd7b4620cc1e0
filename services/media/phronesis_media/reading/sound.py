"""Sound, decoded within its limits: from bytes alone, as the one format that it was found to be."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import av

from .jobs import Job, Refused

RATE = 16_000
"""Samples a second that speech is recognised at."""
_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/flac": "flac", "audio/ogg": "ogg", "audio/mp4": "mp4"}
_CODECS = frozenset({"mp3", "mp3float", "flac", "opus", "libopus", "vorbis", "aac", "alac"})
_SLOWEST, _FASTEST = 4_000, 384_000
"""Samples a second of a recording."""
_CHANNELS = 16
_BROKEN = 100
"""Frames that may be damaged."""
# The format is forced, so that no playlist is recognised; and no protocol may be opened, whatever a container refers to.
_OPTIONS = {"protocol_whitelist": "none", "format_whitelist": "wav,mp3,flac,ogg,mov,mp4", "max_streams": "16"}


def frames(data: bytes, job: Job) -> Iterator[Any]:
    """The frames of the first recording in `data`.

    Raises:
        Refused: it is too long, it is a video, or nothing can be decoded.
    """
    try:
        with av.open(
            BytesIO(data), mode="r", format=_FORMATS[job.type], container_options=_OPTIONS, metadata_errors="ignore"
        ) as container:
            if any(not stream.disposition & av.stream.Disposition.attached_pic for stream in container.streams.video):
                raise Refused("video")
            if not container.streams.audio:
                raise Refused("unreadable")
            yield from _checked(container, container.streams.audio[0], job)
    except av.FFmpegError as error:
        raise Refused("unreadable") from error


def _checked(container: Any, stream: Any, job: Job) -> Iterator[Any]:
    context = stream.codec_context
    if not (context.name in _CODECS or context.name.startswith("pcm_")) or context.channels > _CHANNELS:
        raise Refused("unreadable")
    context.thread_count = 1
    length = 0.0
    for frame in _decoded(container, stream):
        if not _SLOWEST <= frame.sample_rate <= _FASTEST:
            raise Refused("unreadable")
        length += frame.samples / frame.sample_rate
        if length > job.length:
            raise Refused("length")
        yield frame


def _decoded(container: Any, stream: Any) -> Iterator[Any]:
    broken = 0
    for packet in container.demux(stream):
        try:
            yield from packet.decode()
        except av.error.InvalidDataError:  # one frame at fault leaves the others to be heard
            broken += 1
            if broken > _BROKEN:
                raise
