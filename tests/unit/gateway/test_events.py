"""The events of a turn that ends while it is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import cast

import pytest

from phronesis_bus import Listener, ShownMessage, Watch
from phronesis_contracts import Principal
from phronesis_contracts.orchestrator import Turn, TurnProgress, TurnStatus
from phronesis_gateway.turns.events import Events
from phronesis_gateway.turns.submission import TurnService

ANN = Principal(tenant="acme", user="ann")


class Stream:
    """Progress as the broker keeps it."""

    def __init__(self) -> None:
        self.kept: list[TurnProgress] = []

    @contextmanager
    def turn(self, who: Principal, turn: str) -> Iterator[Listener[TurnProgress]]:
        yield Listener()

    async def after(self, who: Principal, turn: str, seen: int) -> ShownMessage[TurnProgress] | None:
        return ShownMessage(self.kept[seen], sequence=seen + 1) if seen < len(self.kept) else None


class EndsWhenAsked:
    """A turn whose last phase is shown, and whose end is committed, while its row is asked for."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    async def state(self, who: Principal, turn: str) -> Turn:
        self.stream.kept.append(TurnProgress(turn_id=turn, kind="phase", phase="answered"))
        now = datetime.now(UTC)
        return Turn(
            turn_id=turn,
            conversation_id="c",
            agent="dialogue",
            status=TurnStatus.CANCELLED,
            sequence=1,
            attempts=1,
            created_at=now,
        )


@pytest.mark.req("D-131")
async def test_what_was_shown_between_the_last_look_and_the_end_is_told_before_the_end() -> None:
    stream = Stream()
    stream.kept.append(TurnProgress(turn_id="t", kind="accepted"))
    events = Events(cast(TurnService, EndsWhenAsked(stream)), cast("Watch[TurnProgress]", stream), ANN, "t", 0)
    lines = [line.decode() async for line in events.stream()]
    kinds = [part.removeprefix("event: ") for line in lines for part in line.split("\n") if part.startswith("event: ")]
    assert kinds == ["accepted", "phase", "ended", "done"]
