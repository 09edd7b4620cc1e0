"""What runs by the clock: the batches of the lower tiers, and the look for drift (O-318, O-319)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from phronesis_contracts.constitution.kinds import Tier

_SUNDAY = 6


@dataclass(frozen=True)
class Run:
    """One run that comes again and again."""

    name: str
    tiers: tuple[Tier, ...]
    text: str
    """When, in words; the times are UTC."""
    hour: int
    on: Callable[[datetime], bool]
    """Whether it is on a day."""
    again: bool = False
    """Whether also nodes whose vectors fit are embedded, to see whether they drifted."""

    def after(self, now: datetime) -> datetime:
        """Its next time."""
        at = now.astimezone(UTC).replace(hour=self.hour, minute=0, second=0, microsecond=0)
        while at <= now or not self.on(at):
            at += timedelta(days=1)
        return at


def _daily(at: datetime) -> bool:
    return True


def _weekly(at: datetime) -> bool:
    return at.weekday() == _SUNDAY


def _monthly(at: datetime) -> bool:
    return at.day == 1


NIGHTLY = Run("nightly", (Tier.P3,), "every day at 02:00", 2, _daily)
WEEKLY = Run("weekly", (Tier.P4,), "on Sundays at 03:00", 3, _weekly)
DRIFT_WEEKLY = Run("drift weekly", (Tier.P0, Tier.P1), "on Sundays at 04:00", 4, _weekly, again=True)
DRIFT_MONTHLY = Run("drift monthly", (Tier.P2, Tier.P3, Tier.P4), "on the first at 05:00", 5, _monthly, again=True)


def runs(*, drift: bool) -> tuple[Run, ...]:
    """The runs that are wanted: the batches, and where `drift` says so, those that look for it."""
    return (NIGHTLY, WEEKLY, *((DRIFT_WEEKLY, DRIFT_MONTHLY) if drift else ()))
