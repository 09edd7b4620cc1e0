"""Keys and passwords in a data directory: nobody else's to read, and in no log."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from phronesis_local.layout import DataDir, inherited_environment
from phronesis_local.up import Progress

PRIVATE = (
    "key",
    "operator.json",
    "secrets/gateway.key",
    "secrets/gateway.password",
    "roles/memory.password",
    "nats/nats.conf",
    "arcadedb/server-users.jsonl",
    "neo4j/conf/neo4j.conf",
    "neo4j/data/dbms/auth.ini",
)
SECRET = "phr_" + "k" * 43


@pytest.fixture
def opened(tmp_path: Path) -> DataDir:
    """A data directory that everybody may read, as a careless copy leaves it."""
    data = DataDir(tmp_path / "data")
    for name in (*PRIVATE, "logs/up.log", "trust/gateway.pem"):
        path = data.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    for path in (data.root, *data.root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return data


def test_a_directory_from_before_is_shut_to_others(opened: DataDir) -> None:
    opened.create()
    assert {str(path.relative_to(opened.root)) for path in opened.private_files()} == set(PRIVATE)
    assert {stat.S_IMODE(path.stat().st_mode) for path in opened.private_files()} == {0o600}
    folders = {opened.root, opened.logs, opened.trust, *(path.parent for path in opened.private_files())}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


@pytest.mark.parametrize("name", ["up.log", "up.log.1"])
def test_the_owners_key_is_struck_from_a_log_of_the_version_before(opened: DataDir, name: str) -> None:
    log = opened.logs / name
    log.write_text(f"ready\nyour key (kept in the data directory, file `key`): {SECRET}\nstopped\n")
    before = log.open()
    opened.strike_keys()
    assert log.read_text() == "ready\nyour key (kept in the data directory, file `key`): (struck)\nstopped\n"
    with before:
        assert SECRET in before.read()  # the new text stands in a file of its own: a kill leaves one of both whole


def test_a_private_file_that_goes_meanwhile_holds_up_nothing(opened: DataDir) -> None:
    (opened.secrets / "gone").symlink_to("nowhere")
    opened.create()
    assert stat.S_IMODE((opened.root / "key").stat().st_mode) == 0o600


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A program that tells the key as `up` does, and with one more argument as `up --detach` does."""
    data = DataDir(tmp_path)
    data.create()
    data.key.write_text(SECRET)
    return [sys.executable, "-c", _TELL, str(tmp_path)]


@pytest.mark.parametrize("detached", [True, False])
def test_the_key_is_told_to_no_file(command: list[str], tmp_path: Path, detached: bool) -> None:
    with (tmp_path / "kept").open("w") as kept:
        subprocess.run([*command, *["detached"] * detached], stdout=kept, timeout=60, env=_PLAIN | {"TERM": "dumb"}, check=True)
    assert (tmp_path / "kept").read_text() == "your key (kept in the data directory, file `key`)\n"


@pytest.mark.parametrize("detached", [True, False])
def test_through_a_pipe_the_key_is_told_by_a_start_that_does_not_stay(command: list[str], detached: bool) -> None:
    piped = subprocess.run([*command, *["detached"] * detached], capture_output=True, text=True, timeout=60, env=_PLAIN)
    assert (piped.returncode, SECRET in piped.stdout) == (0, detached), piped.stderr


def test_the_key_is_told_to_a_terminal(command: list[str]) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdout=theirs, env=_PLAIN | {"TERM": "xterm"}) as told:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the terminal is gone with its last writer
            while piece := os.read(ours, 4_096):
                shown += piece
    os.close(ours)
    assert (told.returncode, SECRET in shown.decode()) == (0, True)


_TELL = f"""
import sys
from pathlib import Path
from {DataDir.__module__} import DataDir
from {Progress.__module__} import Progress
progress = Progress()
progress.done()
progress.tell_key(DataDir(Path(sys.argv[1])), piped=len(sys.argv) > 2)
"""
_PLAIN = {name: value for name, value in inherited_environment().items() if name not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
