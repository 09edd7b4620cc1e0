"""Steps in their order, what each found, and the exit status of all of them."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    """What a step found."""

    lines: tuple[str, ...]
    """Its part of the report."""
    breaches: tuple[str, ...] = ()
    """What did not keep to its threshold."""


@dataclass(frozen=True)
class Step:
    """One step."""

    number: int
    name: str
    run: Callable[[], Awaitable[Found]]

    @property
    def title(self) -> str:
        """How it is named in the report, and when it fails."""
        return f"step {self.number}, {self.name}"


async def walk(steps: Sequence[Step], say: Callable[[str], None]) -> int:
    """Run every step, whatever became of those before it, and tell what each found.

    Args:
        steps: in their order.
        say: prints a line.

    Returns:
        0 where all kept to their thresholds, else 1.
    """
    failed: list[str] = []
    for step in steps:
        say(f"# {step.title}")
        try:
            found = await step.run()
        except Exception as error:
            traceback.print_exc()
            found = Found((), (f"it could not be run: {type(error).__name__}: {error}",))
        for line in found.lines:
            say(line)
        for breach in found.breaches:
            say(f"BREACH in {step.title}: {breach}")
        say(f"{step.title}: {'FAILED' if found.breaches else 'ok'}\n")
        failed += [step.title] if found.breaches else []
    say(f"failed: {'; '.join(failed)}" if failed else f"all {len(steps)} steps ok")
    return 1 if failed else 0
