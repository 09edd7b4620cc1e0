"""The sample recording of the examples, in any format; `python -m tests.support.speech` speaks it anew.

That needs `espeakng-loader`, which brings eSpeak NG with its voices, and which nothing else here needs:
`uv run --with espeakng-loader python -m tests.support.speech`.
"""

from __future__ import annotations

import ctypes
import importlib
import struct
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import numpy

PATH = Path(__file__).parents[2] / "examples" / "portfolio_voice.ogg"
TEXT = (
    "This is a sample recording. The drilling for the geological disposal facility begins in September. "
    "Twelve engineers are working at the site."
)
RATE = 16_000
_VOICE, _WORDS_A_MINUTE = b"en-gb", 140
_CODECS = {"wav": "pcm_s16le", "mp3": "libmp3lame", "flac": "flac", "ogg": "libopus", "ipod": "aac"}
_RETRIEVAL, _RATE_PARAMETER, _UTF8 = 2, 1, 1


@cache
def samples() -> Any:
    """The sample recording as 16-bit numbers."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    with av.open(str(PATH)) as container:
        frames = [piece for frame in container.decode(audio=0) for piece in resampler.resample(frame)]
    return numpy.concatenate([frame.to_ndarray()[0] for frame in frames])


def recorded(sound: Any, format: str = "wav", bit_rate: int = 48_000) -> bytes:
    """16-bit numbers as a file: `wav`, `mp3`, `flac`, `ogg` (Opus) or `ipod` (M4A)."""
    out = BytesIO()
    with av.open(out, "w", format=format) as container:
        stream: Any = container.add_stream(_CODECS[format], rate=48_000 if format == "ogg" else RATE)
        stream.layout = "mono"
        if format in ("ogg", "mp3", "ipod"):
            stream.bit_rate = bit_rate
        frame = av.AudioFrame.from_ndarray(numpy.asarray(sound, dtype=numpy.int16).reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        resampler = av.AudioResampler(format=stream.format.name, layout="mono", rate=stream.rate, frame_size=stream.frame_size)
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return out.getvalue()


def silence(seconds: float) -> Any:
    """Nothing, for so long."""
    return numpy.zeros(int(seconds * RATE), dtype=numpy.int16)


def film() -> bytes:
    """A second of video without sound, in the container that recordings use too."""
    out = BytesIO()
    with av.open(out, "w", format="mp4") as container:
        stream: Any = container.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 64
        for _ in range(5):
            container.mux(stream.encode(av.VideoFrame(64, 64, "yuv420p")))
        container.mux(stream.encode(None))
    return out.getvalue()


def wav_claiming(size: int, rate: int, sound: bytes) -> bytes:
    """A WAV whose header tells of `size` bytes at `rate` samples a second, and that holds what it holds."""
    return (
        struct.pack("<4sI4s", b"RIFF", min(size + 36, 2**32 - 1), b"WAVE")
        + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, (rate * 2) % 2**32, 2, 16)
        + struct.pack("<4sI", b"data", size)
        + sound
    )


def _spoken(words: str) -> tuple[int, bytes]:
    """Samples a second, and the samples."""
    loader = importlib.import_module("espeakng_loader")
    library = ctypes.CDLL(loader.get_library_path())
    sound = bytearray()

    def heard(wave: Any, count: int, _: Any) -> int:
        if wave and count > 0:
            sound.extend(ctypes.string_at(wave, 2 * count))
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)(heard)
    rate = library.espeak_Initialize(_RETRIEVAL, 0, loader.get_data_path().encode(), 0)
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(_VOICE)
    library.espeak_SetParameter(_RATE_PARAMETER, _WORDS_A_MINUTE, 0)
    text = words.encode()
    library.espeak_Synth(text, len(text) + 1, 0, 1, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return rate, bytes(sound)


def _write() -> None:
    rate, sound = _spoken(TEXT)
    frame = av.AudioFrame.from_ndarray(numpy.frombuffer(sound, dtype=numpy.int16).reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = rate
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    pieces = [piece.to_ndarray()[0] for piece in (*resampler.resample(frame), *resampler.resample(None))]
    PATH.write_bytes(recorded(numpy.concatenate(pieces), "ogg"))


if __name__ == "__main__":
    _write()
