"""Where the stack under test is: one that runs, or one of its own in a temporary directory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .client import StackError

_ENVIRONMENT = {"GATEWAY_REQUESTS_PER_SECOND": "100000", "GATEWAY_BURST": "100000"}
"""An examiner asks faster than a person; every other setting is the installation's own."""


@dataclass(frozen=True)
class Stack:
    """A gateway and a key that may make keys."""

    url: str
    key: str = field(repr=False)


def find(url: str | None, key: str | None, data: Path | None) -> Stack:
    """The stack that is named, or the local one.

    Raises:
        StackError: an address without a key, or no local stack.
    """
    if url and not key:
        raise StackError("--url needs --key")
    if url and key:
        return Stack(url.rstrip("/"), key)
    folder = (data or Path("~/.phronesis")).expanduser()
    try:
        return Stack((folder / "url").read_text().strip(), key or (folder / "key").read_text().strip())
    except OSError as exc:
        raise StackError(f"no local stack in {folder}; start one with `phronesis up`, or use --own") from exc


@contextmanager
def running(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Stack]:
    """A stack of its own, until the block ends.

    Args:
        folder: for its data.
        settings: environment variables of it, over the caller's own.
    """
    data = folder / "data"
    environment = os.environ | _ENVIRONMENT | dict(settings or {})  # noqa: TID251 - a child process gets the caller's environment
    _command(["up", "--detach", "--data", str(data), "--port", "0"], environment)
    try:
        yield find(None, None, data)
    finally:
        _command(["down", "--data", str(data)])


def load(where: Stack, arguments: Sequence[str], key: str | None = None) -> None:
    """Run `phronesis load`.

    Args:
        where: the stack.
        arguments: what to load.
        key: a key of the tenant that it is loaded for; the stack's own by default.

    Raises:
        StackError: it failed; the text has the end of what it said.
    """
    _command(["load", *arguments, "--url", where.url, "--key", key or where.key])


def load_portfolio(where: Stack) -> None:
    """Load the sample portfolio. A busy machine may need two attempts: the second goes on where the first gave up waiting.

    Raises:
        StackError: both failed.
    """
    try:
        load(where, ["portfolio"])
    except StackError as exc:
        print(f"{exc}; trying once more", file=sys.stderr)
        load(where, ["portfolio"])


def publish(where: Stack, folder: Path, key: str) -> None:
    """Publish the texts of a folder as a tenant's own instructions. Raises `StackError`: they were refused."""
    _command(["instructions", "publish", str(folder), "--yes", "--url", where.url, "--key", key])


def make_key(where: Stack, tenant: str) -> str:
    """A key for a tenant, which may load data and make keys.

    Raises:
        StackError: the stack's key may not make it.
    """
    arguments = [
        "keys",
        "create",
        "--tenant",
        tenant,
        "--user",
        "examiner",
        "--role",
        "admin",
        "--url",
        where.url,
        "--key",
        where.key,
    ]
    return _command(arguments).strip().splitlines()[-1].strip()


def _command(arguments: Sequence[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "phronesis", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise StackError(f"phronesis {arguments[0]}: {' '.join(said)}")
    return done.stdout
