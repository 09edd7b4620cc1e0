"""Pages of the documentation, followed as a reader does: files are written, commands typed, and their output is compared.

A block `console` has commands after `$ ` and below each what it prints. There `...` stands for anything: alone for any number
of lines, in a line for any characters. A block of code is the file whose name stands last in the paragraph before it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w.-]+\.\w+)`")
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_CODE = ("python", "ts")
LONGEST = 600.0
"""Seconds that a command may take: installing everything by pip takes 50 seconds of a processor that other tests share."""


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A line that the reader types, and what the page says that it prints."""

    line: str
    printed: str


def steps(page: str) -> list[File | Command]:
    """What a page has its reader do, in order.

    Raises:
        ValueError: a block is neither commands nor a file with a name.
    """
    return [step for block in _BLOCK.finditer(page) for step in _steps(page, block)]


def _steps(page: str, block: re.Match[str]) -> Iterator[File | Command]:
    language, text = block[1], block[2]
    if language == "console":
        commands = list(_COMMAND.finditer(text))
        if "".join(found[0] for found in commands) != text:
            raise ValueError(f"no command comes before: {text}")
        yield from (Command(found[1], found[2]) for found in commands)
        return
    named = _FILE.findall(page[: block.start()].rstrip().rpartition("\n\n")[2])
    if language not in _CODE or not named:
        raise ValueError(f"nothing says what to do with: {text}")
    yield File(named[-1], text)


def agrees(printed: str, shown: str) -> bool:
    """Whether what was printed is what a page shows."""
    return (
        re.fullmatch("".join(map(_pattern, shown.splitlines())), "".join(f"{line}\n" for line in printed.splitlines()))
        is not None
    )


def _pattern(line: str) -> str:
    return r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"


class Shell:
    """One shell, in which commands are typed one after the other.

    Args:
        folder: where it starts.
        environment: all of its variables.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Shell:
        self._process = await asyncio.create_subprocess_exec(
            "bash",
            "--norc",
            cwd=self._folder,
            env=dict(self._environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=2**24,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def run(self, line: str, within: float = LONGEST) -> tuple[int, str]:
        """The exit code of a command and what it prints.

        Raises:
            TimeoutError: it took more seconds than `within`.
        """
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f'{{ {line}\n}} < /dev/null\nprintf "\\0%d\\0\\n" $?\n'.encode())
        async with asyncio.timeout(within):
            told = await process.stdout.readuntil(b"\0\n")
        printed, code, _ = told.decode().rsplit("\0", 2)
        return int(code), printed


async def follow(page: str, shell: Shell, folder: Path) -> None:
    """Do what a page says, in a shell that works in `folder`.

    Raises:
        AssertionError: a command failed or printed something else than the page shows.
    """
    for step in steps(page):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, "utf-8")
            continue
        code, printed = await shell.run(step.line)
        assert code == 0, f"$ {step.line}\n{printed}"
        assert agrees(printed, step.printed), f"$ {step.line}\n{printed}\nthe page shows:\n{step.printed}"
