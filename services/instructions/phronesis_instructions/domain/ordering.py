"""Versions, and when what ships replaces what was released before."""

from __future__ import annotations


def replaces(version: str, digest: str, last: tuple[str, str] | None) -> bool:
    """Whether content is to be released over what is there. An older version never is: in a rolling update the old copies
    would otherwise take the new texts back.

    Args:
        version: of what the files hold.
        digest: of the same.
        last: version and digest of what was released last; `None` before the first release.
    """
    if last is None:
        return True
    return digest != last[1] and order(version) >= order(last[0])


def order(version: str) -> tuple[int, ...]:
    """A version as numbers, which compare as versions do."""
    return tuple(int(part) for part in version.split("."))


def next_version(version: str) -> str:
    """The version whose third number is one higher."""
    major, minor, patch = order(version)
    return f"{major}.{minor}.{patch + 1}"
