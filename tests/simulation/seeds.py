"""Many seeds, in this process or in several."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterable, Iterator
from multiprocessing import get_context

from .world import Outcome, run_seed

_BATCH = 50


def run_batch(seeds: Iterable[int]) -> list[Outcome]:
    """Run some seeds in this process, without a log."""
    silent = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    # What is left over is collected between two seeds: closed in the middle of one, it would take part in it.
    gc.disable()
    outcomes = []
    try:
        for seed in seeds:
            outcomes.append(run_seed(seed))
            gc.collect(1)
    finally:
        gc.enable()
        logging.disable(silent)
    return outcomes


def run_seeds(first: int, count: int, processes: int) -> Iterator[Outcome]:
    """Run seeds side by side, as they come."""
    batches = [range(at, min(at + _BATCH, first + count)) for at in range(first, first + count, _BATCH)]
    with get_context("spawn").Pool(processes) as pool:
        for outcomes in pool.imap_unordered(run_batch, batches):
            yield from outcomes
