"""What is kept of parts that were loaded, until a write touches them (O-322 to O-324)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")
Key = tuple[str, ...]
"""The tenant, and whatever else tells two values apart."""


@dataclass
class Load(Generic[Value]):
    """A value on its way. It is kept at the end, unless news came in between that it may not have seen."""

    stale: bool = False
    value: Value | None = None


class Kept(Generic[Value]):
    """Values by key: dropped by news, after a while in case news was lost, and the oldest one for one too many.

    Args:
        most: how many are kept.
        seconds: the safety time (C-83).
        clock: seconds that only grow.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._values: dict[Key, tuple[Value, float]] = {}
        self._loads: dict[str, list[Load[Value]]] = {}

    def get(self, key: Key) -> Value | None:
        """The value of a key, if it is at hand and no older than the safety time."""
        found = self._values.get(key)
        if found is None or self._clock() - found[1] >= self._seconds:
            return None
        return found[0]

    @contextmanager
    def loading(self, key: Key) -> Iterator[Load[Value]]:
        """Load the value of a key in a block, which puts it into what it is given where it is worth keeping."""
        load = Load[Value]()
        loads = self._loads.setdefault(key[0], [])
        loads.append(load)
        try:
            yield load
            if load.value is not None and not load.stale:
                self._values.pop(key, None)
                self._values[key] = (load.value, self._clock())
                if len(self._values) > self._most:
                    del self._values[next(iter(self._values))]
        finally:
            loads.remove(load)
            if not loads:
                self._loads.pop(key[0], None)

    def drop(self, tenant: str, touched: Callable[[Value], bool] = lambda value: True) -> None:
        """Forget a tenant's values that are touched, and keep none that is being loaded."""
        for key in [key for key, (value, _) in self._values.items() if key[0] == tenant and touched(value)]:
            del self._values[key]
        for load in self._loads.get(tenant, ()):
            load.stale = True

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        for loads in self._loads.values():
            for load in loads:
                load.stale = True
