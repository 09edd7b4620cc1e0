"""One test that goes through the cases of a catalogue, and reports every case that fails.

`pytest.mark.parametrize` makes a test of each case, which costs milliseconds to collect, to hand to a worker and to report:
too much for thousands of cases that take microseconds. It stays the right one where a case is slow, needs a fixture for
itself, or is run by its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

Test = Callable[..., None]


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for each of `cases`, whose values it takes under `names`, as `pytest.mark.parametrize` has them.

    A failure names its case; all that failed are raised together.
    """
    named = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    listed = tuple(cases)
    assert listed, "no case, no test"

    def decorate(test: Test) -> Test:
        assert not inspect.iscoroutinefunction(test), "nothing would wait for it"

        @wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for case in listed:
                values = (case,) if len(named) == 1 else case
                try:
                    test(**fixtures, **dict(zip(named, values, strict=True)))
                except Exception as error:
                    error.add_note(f"case: {case!r}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(listed)} cases failed", failures)

        signature = inspect.signature(test)
        taken = [parameter for name, parameter in signature.parameters.items() if name not in named]
        run.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
        return run

    return decorate
