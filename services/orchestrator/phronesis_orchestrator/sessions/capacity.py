"""Capacity: the working hours of a window, what of them is taken, and the zone that this is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from phronesis_contracts.constitution.session import Capacity

from .windows import Window

YELLOW, RED = 75.0, 85.0
"""Percent: yellow from the first to the second, both included (O-197)."""


def available(window: Window, hours: Sequence[float]) -> float:
    """The working hours of a window (O-194).

    Args:
        window: the days.
        hours: those of Monday to Sunday.
    """
    return round(sum(hours[day.weekday()] for day in window.days()), 2)


def capacity(available_hours: float, scheduled_hours: float) -> Capacity:
    """What a load comes to (O-193 to O-198).

    The percentage has two decimals, and its zone is that of the figure that is told. Where there are no working hours there
    is no percentage: red with work, green without.
    """
    scheduled = round(scheduled_hours, 2)
    if available_hours > 0:
        percent: float | None = round(100 * scheduled / available_hours, 2)
    else:
        percent = None if scheduled > 0 else 0.0
    return Capacity(available_hours=available_hours, scheduled_hours=scheduled, utilization_percent=percent, zone=zone(percent))


def zone(percent: float | None) -> Literal["green", "yellow", "red"]:
    """The zone of a percentage; `None` is work where there are no hours for it."""
    if percent is None or percent > RED:
        return "red"
    return "green" if percent < YELLOW else "yellow"
