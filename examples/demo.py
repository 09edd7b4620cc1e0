"""The main job, from nothing to an answer: start a stack, load the portfolio, talk, show the messages, stop.

`make demo` runs it. Every step is a command that can be typed by hand; it is printed before it runs. The messages behind an
answer are shown once, or for every answer with `--trace`. The exit code is 0 only when every answer is what it should be.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phronesis import Client
from phronesis_contracts.memory import ItemKind

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(".data/demo")
NOTE = Path("examples/portfolio_note.pdf")
PICTURE = Path("examples/portfolio_picture.png")
VOICE = Path("examples/portfolio_voice.ogg")
PROGRAMME = "Geological Disposal Facility"
RUNS_ALREADY = 2
"""Exit code of `phronesis up` where a stack runs already."""
EMBEDDED = 300.0
"""Seconds within which memory has to find the programme."""
LONGEST = 1500.0
"""Seconds that one command may take."""


@dataclass(frozen=True)
class Question:
    """A turn of the conversation, and what its answer must have."""

    text: str
    source: str | None = None
    """Words of the title of a source; the first source of the first answer, any of a later one."""
    words: tuple[str, ...] = ()
    """Words, one of which must stand in the answer."""
    media: Path | None = None


CONVERSATION = (
    Question(f"What is the {PROGRAMME} programme for?", source=PROGRAMME),
    Question("What is its first key decision point, and is it on schedule?", source=PROGRAMME, words=("site down selection",)),
    Question("When and in which room is the budget review meeting?", words=("14 May 2024",), media=NOTE),
    Question("When is the community open day in the picture?", words=("8 June 2024",), media=PICTURE),
    Question("When does the drilling begin in the recording?", words=("September",), media=VOICE),
)


def phronesis(*arguments: str, capture: bool = False) -> str:
    """Run the command as one would type it, with its progress on this terminal.

    Raises:
        subprocess.CalledProcessError: it failed, and has said why.
    """
    words = [*arguments, "--data", str(DATA)]
    print(f"\n$ phronesis {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "phronesis", *words]
    stdout = subprocess.PIPE if capture else None
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=stdout, timeout=LONGEST).stdout or ""


def settle() -> None:
    """Wait until memory finds the programme that is asked about; the texts of the other projects follow meanwhile.

    Raises:
        TimeoutError: it is not found in time.
    """
    print(f"\nmemory embeds the texts, newest year first; waiting for the {PROGRAMME} programme …", flush=True)
    start = time.monotonic()
    with Client(data=ROOT / DATA) as client:
        while time.monotonic() - start < EMBEDDED:
            found = client.memory.recall(f"{PROGRAMME} programme", limit=1, kinds=[ItemKind.NODE]).items
            if found and PROGRAMME in (found[0].title or ""):
                print(f"found after {time.monotonic() - start:.0f} s", flush=True)
                return
            time.sleep(1)
    raise TimeoutError(f"memory has not found the {PROGRAMME} programme within {EMBEDDED:.0f} s")


def ask(question: Question, conversation: str | None, *, trace: bool) -> dict[str, Any]:
    """One turn: the reply as the API has it, printed with its sources and, if wanted, the trace of its messages."""
    options = ["--json"]
    if conversation is not None:
        options += ["--conversation", conversation]
    if question.media is not None:
        options += ["--media", str(question.media)]
    reply: dict[str, Any] = json.loads(phronesis("ask", question.text, *options, capture=True))
    print(f"\n{reply['user_response']}\n")
    for source in reply["sources"]:
        print(f"  source: {source['title']} ({source['type']}, score {source['score']:.2f})")
    marks = f"; degraded: {', '.join(reply['degraded'])}" if reply["degraded"] else ""
    print(f"  reasoner: {reply['reasoner']}; {reply['usage']['ms']} ms{marks}", flush=True)
    if trace:
        phronesis("trace", reply["turn_id"])
    return reply


def missing(question: Question, reply: dict[str, Any], first: bool) -> list[str]:
    """What the answer should have and has not."""
    titles = [source["title"] for source in reply["sources"]]
    answer = reply["user_response"]
    found = []
    if not answer.strip():
        found.append("the answer is empty")
    if question.source and not any(question.source in title for title in (titles[:1] if first else titles)):
        found.append(f"no source names {question.source!r}: {titles}")
    if question.words and not any(word in answer for word in question.words):
        found.append(f"the answer has none of {question.words}")
    return found


def converse(*, trace_all: bool) -> list[str]:
    """Hold the conversation. Returns what is wrong with its answers."""
    wrong: list[str] = []
    conversation: str | None = None
    for number, question in enumerate(CONVERSATION, 1):
        reply = ask(question, conversation, trace=trace_all or number == 1)
        conversation = reply["conversation_id"]
        wrong += [f"answer {number}: {fault}" for fault in missing(question, reply, first=number == 1)]
    return wrong


def start() -> None:
    """Start the stack, or use the one that a killed demonstration has left."""
    try:
        phronesis("up", "--detach")
    except subprocess.CalledProcessError as error:
        if error.returncode != RUNS_ALREADY:
            raise


def stop() -> None:
    """Stop the stack; a second Ctrl-C does not keep this from its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    phronesis("down")


def main() -> int:
    """Run the demonstration. Returns the exit code."""
    options = argparse.ArgumentParser(description="Start a stack, load the portfolio, hold a conversation, stop.")
    options.add_argument("--trace", action="store_true", help="show the messages behind every answer, not only the first")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        start()
        phronesis("load", "portfolio", "--no-wait")
        settle()
        wrong = converse(trace_all=chosen.trace)
    except TimeoutError as error:
        print(f"\nthe demonstration failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"\nthe demonstration failed: {shlex.join(map(str, error.cmd[3:]))}: {_why(error)}", file=sys.stderr)
        return 1
    finally:
        stop()
    for fault in wrong:
        print(fault, file=sys.stderr)
    print("\nthe demonstration failed" if wrong else "\nevery answer is what it should be")
    return 1 if wrong else 0


def _why(error: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> str:
    return f"exit code {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else "no end in sight"


if __name__ == "__main__":
    sys.exit(main())
