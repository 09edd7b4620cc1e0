"""Keys of outside systems whose tokens are refused although they have not expired."""

from __future__ import annotations

from collections.abc import Callable

from phronesis_contracts import Principal, Unauthorized, Unavailable


class Revoked:
    """The keys, as far as this process knows them. Until they were read once, no outside system is believed."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._hearers: list[Callable[[], None]] = []
        self.known = False
        """Whether they were read."""

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, key: str) -> None:
        """Refuse the tokens of this key from now on."""
        if key not in self._keys:
            self._keys.add(key)
            for hear in self._hearers:
                hear()

    def on_change(self, hear: Callable[[], None]) -> None:
        """Call `hear` when a key is added."""
        self._hearers.append(hear)

    def check(self, who: Principal) -> None:
        """Let an outside system's principal pass.

        Raises:
            Unauthorized: its key was revoked, or it has none that could be.
            Unavailable: it is not known yet which keys were.
        """
        if not self.known:
            raise Unavailable("which keys are revoked is not known yet", retry_after=1)
        if who.key is None or who.key in self._keys:
            raise Unauthorized("the key is revoked")
