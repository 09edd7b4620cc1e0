"""`phronesis ask` and `phronesis chat`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import typer

from phronesis.sync import Client
from phronesis_contracts import ServiceError
from phronesis_contracts.orchestrator import Reply

from . import output
from .watch import reply_of


class Talk:
    """A conversation at the terminal."""

    def __init__(self, client: Client, agent: str, conversation_id: str | None = None) -> None:
        self._client = client
        self._agent = agent
        self.conversation_id = conversation_id
        self.files: list[Path] = []

    def say(self, text: str, files: Iterable[Path]) -> Reply:
        """Send a message with files and wait for the reply, telling the phases on stderr."""
        media = [self._client.media.upload(file).id for file in files]
        turn = self._client.turns.submit(text, self.conversation_id, media, self._agent)
        with Progress() as progress:
            try:
                answer = reply_of(self._client, turn.turn_id, progress.phase)
            except KeyboardInterrupt:
                progress.stop()
                again = f"phronesis turns show {turn.turn_id}"
                output.note(f"stopped waiting; turn {turn.turn_id} goes on: {again}")
                raise
        self.conversation_id = answer.conversation_id
        return answer


class Progress:
    """One line on stderr that names the phase: rewritten on a terminal, a line each elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def phase(self, name: str) -> None:
        """Show the phase that the turn has reached."""
        if name == self._last:
            return
        self._last = name
        text = output.clean(f"… {name}")
        typer.echo(f"\r\x1b[K{text}" if self._live else text, err=True, nl=not self._live)

    def stop(self) -> None:
        """Clear the line."""
        if self._live and self._last:
            typer.echo("\r\x1b[K", err=True, nl=False)
        self._last = ""


def converse(talk: Talk) -> int:
    """Read messages from stdin until it ends. Returns the exit code: on a terminal 0, else the last failure's."""
    interactive = sys.stdin.isatty()
    if interactive:
        output.note("/file PATH adds a file, /new begins a new conversation, /quit leaves")
    worst = 0
    while (line := _read(interactive)) is not None:
        match line.strip().split(maxsplit=1):
            case []:
                continue
            case ["/quit"]:
                break
            case ["/new"]:
                talk.conversation_id = None
            case ["/file", path]:
                worst = _add_file(talk, Path(path).expanduser()) or worst
            case _:
                worst = _exchange(talk, line.strip()) or worst
    return 0 if interactive else worst


def _read(interactive: bool) -> str | None:
    if not interactive:
        return sys.stdin.readline() or None
    import readline  # noqa: F401  # gives the prompt its editing and history

    try:
        return input("> ")
    except EOFError:
        return None


def _add_file(talk: Talk, path: Path) -> int:
    if not path.is_file():
        output.note(f"error: bad_request: {path} is no file")
        return output.REFUSED
    talk.files.append(path)
    return 0


def _exchange(talk: Talk, text: str) -> int:
    files, talk.files = talk.files, []
    try:
        output.reply(talk.say(text, files))
    except ServiceError as error:
        return output.fail(error)
    except OSError as error:
        output.note(f"error: bad_request: cannot read {error.filename}")
        return output.REFUSED
    return 0
