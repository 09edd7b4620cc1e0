"""Log files of the parts, bounded in size."""

from __future__ import annotations

import logging
from pathlib import Path

log = logging.getLogger(__name__)

_LARGEST = 8 * 1024 * 1024


def rotated(path: Path) -> None:
    """Make room: a file that has grown large becomes `<name>.1`, in place of the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > _LARGEST:
        path.replace(path.with_name(f"{path.name}.1"))


def trimmed(path: Path) -> None:
    """Bound a file that a running process appends to: its content goes to `<name>.1`, and it starts again at nothing."""
    try:
        if path.exists() and path.stat().st_size > _LARGEST:
            path.with_name(f"{path.name}.1").write_bytes(path.read_bytes())
            with path.open("r+b") as file:
                file.truncate(0)
    except OSError as error:  # a full disk: the parts run on
        log.warning("%s could not be trimmed: %s", path.name, error)


def since(path: Path, offset: int) -> str:
    """What was written to a log after its first `offset` bytes."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read().decode(errors="replace").rstrip()


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a log."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16_384))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
