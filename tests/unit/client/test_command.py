"""The command as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys

from phronesis.cli.app import SECTIONS
from tests.support.fake_gateway import KEY, FakeGateway

COMMAND = [sys.executable, "-m", "phronesis"]


def _started(gateway: FakeGateway, *arguments: str) -> subprocess.Popen[str]:
    command = [*COMMAND, *arguments, "--url", gateway.url, "--key", KEY]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_an_error_is_one_line_without_a_traceback(gateway: FakeGateway) -> None:
    with _started(gateway, "turns", "show", "unknown") as process:
        assert process.communicate(timeout=30) == ("", "error: not_found: no such turn\n")
    assert process.returncode == 3


def test_ctrl_c_stops_the_waiting_and_names_the_turn(gateway: FakeGateway) -> None:
    gateway.silent = True
    with _started(gateway, "ask", "slow") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "swered" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    [turn] = gateway.turns
    assert (process.returncode, out) == (130, "")
    assert err == f"stopped waiting; turn {turn} goes on: phronesis turns show {turn}\n"


def test_a_reader_that_leaves_is_no_traceback(gateway: FakeGateway) -> None:
    with _started(gateway, "ask", "x" * 120_000) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()


def test_help_does_not_import_what_only_other_commands_need() -> None:
    code = "import sys, phronesis.cli; print([m for m in ('httpx', 'rich.console', 'phronesis_local') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "[]\n"


def test_the_help_lists_every_command_once_by_what_it_is_for() -> None:
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, timeout=30, check=True)
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line[2:3].isalpha()]
    named = [name for names in SECTIONS.values() for name in names]
    assert [name for name in listed if name in named] == named
    assert "Others" not in done.stdout


def test_the_version_is_an_option_and_a_command() -> None:
    told = [
        subprocess.run([*COMMAND, word], capture_output=True, text=True, timeout=30, check=True).stdout
        for word in ("--version", "version")
    ]
    assert told[0] == told[1]
    assert told[0].strip()
