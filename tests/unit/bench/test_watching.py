"""When a stream of events is whole, and how many were open at once."""

from __future__ import annotations

import json
from typing import Any

from bench.watching import Watched, most_open, whole

ACCEPTED = ("accepted", {"turn_id": "t"})
TEXT = [("text", {"k": 1, "n": 2, "text": "Two pumps "}), ("text", {"k": 2, "n": 2, "text": "drain it."})]
DONE = ("done", {"status": "completed", "reply": {"user_response": "Two pumps drain it."}})


def sent(*events: tuple[str, Any]) -> bytes:
    """A body in chunks, one for each event, as the gateway sends it."""
    lines = ["retry: 1000\n\n", *(f"id: 7\nevent: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)]
    return b"".join(b"%x\r\n%s\r\n" % (len(line), line.encode()) for line in lines) + b"0\r\n\r\n"


def stream(first_byte: float, ended: float) -> Watched:
    """A stream that was open for a time."""
    return Watched(0.0, first_byte, first_byte, ended, True)


def test_a_stream_is_whole_with_its_acceptance_its_reply_and_its_end() -> None:
    assert whole(sent(ACCEPTED, *TEXT, DONE))


def test_a_stream_without_its_acceptance_is_not_whole() -> None:
    assert not whole(sent(*TEXT, DONE))


def test_a_stream_without_a_part_of_its_text_is_not_whole() -> None:
    assert not whole(sent(ACCEPTED, TEXT[0], DONE))


def test_a_stream_without_its_end_is_not_whole() -> None:
    assert not whole(sent(ACCEPTED, *TEXT))


def test_a_stream_cut_in_an_event_is_not_whole() -> None:
    assert not whole(sent(ACCEPTED, *TEXT, DONE)[:-30])


def test_a_stream_of_nothing_is_not_whole() -> None:
    assert not whole(b"")


def test_streams_are_open_at_once_when_their_times_overlap() -> None:
    assert most_open([stream(1, 4), stream(2, 3), stream(3.5, 5), stream(6, 7)]) == 2
