"""The process that takes foreign calendars apart: a question a line, an answer a line, as JSON."""

from __future__ import annotations

import base64
import json
import resource
import sys
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from .ical import NoCalendar, TooMuch, happenings

_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space."""
_FILES = 32


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What a calendar has, or `failed` with the reason.

    Args:
        question: `form`, `data` in base64, `start` and `stop` as ISO 8601, and `zone`.
    """
    zone = ZoneInfo(question["zone"])
    start, stop = (datetime.fromisoformat(question[name]).astimezone(zone) for name in ("start", "stop"))
    try:
        found, unreadable = happenings(question["form"], base64.b64decode(question["data"]), start, stop)
    except NoCalendar:
        return {"failed": "no_calendar"}
    except (TooMuch, MemoryError, RecursionError):
        return {"failed": "too_much"}
    told = [[one.title, one.start.isoformat(), one.end.isoformat(), one.whole_day] for one in found]
    return {"found": told, "unreadable": unreadable}


def main() -> None:
    """Answer until nobody asks."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    _say({"ready": True})
    for line in sys.stdin.buffer:
        _say(answer(json.loads(line)))


def _say(told: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
