"""Processes that hang: stopped by signal for the length of a block, with everything that they started."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psutil


@contextlib.contextmanager
def frozen(process: psutil.Process) -> Iterator[None]:
    """The process answers nothing inside the block, and goes on behind it."""
    # The parent first, so that it starts no child that is missed.
    process.suspend()
    group = [process, *process.children(recursive=True)]
    try:
        for one in group[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.suspend()
        yield
    finally:
        for one in reversed(group):
            with contextlib.suppress(psutil.NoSuchProcess):
                one.resume()
