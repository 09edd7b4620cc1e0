"""A made-up twin as files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from .making import Twin

TWIN, TRUTH = "twin.jsonl", "truth.jsonl"


def write(twin: Twin, folder: Path) -> None:
    """Write `twin.jsonl`, a batch for the graph in each line, and `truth.jsonl`, an answered gap question in each line.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TWIN).write_text("".join(f"{batch.model_dump_json()}\n" for batch in twin.batches()), encoding="utf-8")
    (folder / TRUTH).write_text("".join(f"{json.dumps(asdict(one))}\n" for one in twin.questions), encoding="utf-8")
