"""`phronesis ask` and `phronesis chat`: a message, and waiting for its turn's end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from phronesis_contracts import ServiceError, TimedOut, TurnEnded
from phronesis_contracts.orchestrator import Problem, Reply, Turn

from ..models import TurnEvent
from ..sync import Client
from . import output

LONGEST_TURN = 16 * 60.0
"""Seconds to wait for an end: a turn expires after 15 minutes."""
_LOOK_AGAIN = 1.0


def await_reply(client: Client, turn_id: str, progress: Callable[[str], None]) -> Reply:
    """The reply of a turn, once it has ended.

    Args:
        progress: told of each phase as the turn reaches it.

    Raises:
        ServiceError: the turn ended without a reply: the problem it ended with.
    """
    try:
        for event in client.turns.events(turn_id):
            if waiting_for := describe_wait(event):
                progress(waiting_for)
            elif event.kind in ("accepted", "phase"):
                progress(str(event.data.get("phase") or event.kind))
            elif event.kind == "waiting":
                detail = event.data.get("detail", {})
                progress(f"waiting for you ({detail.get('reason')}): phronesis approvals show {detail.get('approval_id')}")
    except ServiceError as exc:
        if 400 <= exc.status < 500:
            raise
        progress(f"events are lost ({exc.code}), looking for the end")
    return _reply_or_error(_await_end(client, turn_id))


def describe_wait(event: TurnEvent) -> str:
    """What an event says of a service or store that does not answer; empty for every other event."""
    if event.data.get("phase") != "waiting_for":
        return ""
    return f"waiting for {event.data.get('detail', {}).get('waiting_for')}, which does not answer; it goes on by itself"


def _await_end(client: Client, turn_id: str) -> Turn:
    deadline = time.monotonic() + LONGEST_TURN
    while not (turn := client.turns.get(turn_id)).status.ended:
        if time.monotonic() > deadline:
            raise TimedOut(f"turn {turn_id} has not ended; look again with `phronesis turns show {turn_id}`")
        time.sleep(_LOOK_AGAIN)
    return turn


def _reply_or_error(turn: Turn) -> Reply:
    if turn.reply is not None:
        return turn.reply
    problem = turn.problem or Problem(code=TurnEnded.code, status=TurnEnded.status, detail="it ended without a reply")
    error = ServiceError.from_body(problem.model_dump())
    error.detail = f"turn {turn.turn_id} {turn.status}: {error.detail}"
    raise error


class ChatSession:
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
                answer = await_reply(self._client, turn.turn_id, progress.phase)
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
        if name == self._last:
            return
        self._last = name
        text = output.clean(f"… {name}")
        typer.echo(f"\r\x1b[K{text}" if self._live else text, err=True, nl=not self._live)

    def stop(self) -> None:
        if self._live and self._last:
            typer.echo("\r\x1b[K", err=True, nl=False)
        self._last = ""


def converse(talk: ChatSession) -> int:
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


def _add_file(talk: ChatSession, path: Path) -> int:
    if not path.is_file():
        output.note(f"error: bad_request: {path} is no file")
        return output.REFUSED
    talk.files.append(path)
    return 0


def _exchange(talk: ChatSession, text: str) -> int:
    files, talk.files = talk.files, []
    try:
        output.reply(talk.say(text, files))
    except ServiceError as error:
        return output.fail(error)
    except OSError as error:
        output.note(f"error: bad_request: cannot read {error.filename}")
        return output.REFUSED
    return 0
