"""What the events of a turn are: its progress as the broker's stream holds it, and its end as its row has it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from phronesis_bus import Bus
from phronesis_bus.connection import read_message
from phronesis_contracts.orchestrator import PROGRESS, TurnProgress

from .reading import LIVE, Event, Reading


@dataclass(frozen=True)
class Differences:
    """How what was read differs from the truth."""

    events: int
    """Events that there are."""
    missing: int
    repeated: int
    """Events that came twice, or that there are not."""
    unlike: int
    """Events, a text or an end that say something else."""


def without(value: Any, names: frozenset[str]) -> Any:
    """A document without the members of these names, at whatever depth."""
    match value:
        case dict():
            return {name: without(member, names) for name, member in value.items() if name not in names}
        case list():
            return [without(member, names) for member in value]
    return value


async def progress_of(bus: Bus, turn: str) -> list[Event]:
    """The progress of a turn of the stack's owner, up to its end, read from the stream without the gateway."""
    subject, events, place = PROGRESS.on("local", "owner", turn), list[Event](), 0
    while (found := await read_message(bus, "OUT", subject, place)) is not None:
        place = int(found["seq"])
        said = TurnProgress.model_validate_json(base64.b64decode(found["data"]))
        if said.kind == "ended":
            break
        if said.kind == "accepted" and events:
            continue  # said again, to a repeated submission
        if said.kind in LIVE:
            continue  # provisional: who comes late need not see it
        events.append(Event(place, said.kind, said.model_dump(mode="json", exclude_none=True)))
    return events


def compared(read: Reading, progress: list[Event], row: dict[str, Any]) -> Differences:
    """Hold what was read against the turn's progress and its row."""
    true, got = {event.id: event for event in progress}, {event.id: event for event in read.progress}
    parts = read.text[-1].data["n"] if read.text else 1
    text = "".join(event.data["text"] for event in read.text)
    done = read.done.data if read.done else None
    return Differences(
        events=len(true) + parts + 2,
        missing=len(true.keys() - got.keys()) + parts - len(read.text) + (done is None),
        repeated=len(read.progress) - len(got) + len(got.keys() - true.keys()),
        unlike=sum(got[id] != true[id] for id in got.keys() & true.keys())
        + (text != row["reply"]["user_response"])
        + (done != row),
    )
