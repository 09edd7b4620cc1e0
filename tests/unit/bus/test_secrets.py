"""The secrets of a deployment."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import bcrypt

from phronesis_bus import Signer, Verifier
from phronesis_bus.admission import Issuer
from phronesis_bus.secrets import SIGNERS, make
from phronesis_contracts import Principal
from phronesis_contracts.service import SERVICES
from phronesis_gateway.auth.keys import is_secret

NAMES = {
    *(f"nats-{user}.password" for user in (*SERVICES, "declare", "operator")),
    *(f"postgres-{service}.password" for service in ("gateway", "orchestrator", "memory", "instructions")),
    *(f"signing-{service}.key" for service in SIGNERS),
    *(f"trust/{service}.pem" for service in SIGNERS),
    *("nats-users.conf", "admission.pem", "postgres.password", "neo4j.password", "weaviate.key", "gateway.key"),
    *("calendar.key", "grafana.password", "groq.key", "model.key"),
}


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def hashes(folder: Path) -> dict[str, str]:
    pairs = (line.split(": ", 1) for line in (folder / "nats-users.conf").read_text().splitlines())
    return {name: value.strip('"') for name, value in pairs}


def test_every_secret_is_made_and_is_its_owners_alone(tmp_path: Path) -> None:
    make(tmp_path / "secrets")
    assert set(contents(tmp_path / "secrets")) == NAMES
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "secrets").rglob("*") if path.is_file()}
    assert (modes, stat.S_IMODE((tmp_path / "secrets").stat().st_mode)) == ({0o644}, 0o700)


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "neo4j.password").write_text("chosen by hand")
    before = contents(tmp_path)
    make(tmp_path)
    assert contents(tmp_path) == before


def test_the_server_is_given_hashes_of_the_passwords_and_no_password(tmp_path: Path) -> None:
    make(tmp_path)
    known = hashes(tmp_path)
    passwords = {user: (tmp_path / f"nats-{user}.password").read_bytes() for user in (*SERVICES, "declare", "operator")}
    assert all(bcrypt.checkpw(password, known.pop(f"password_{user}").encode()) for user, password in passwords.items())
    assert known == {"admission": Issuer.load(tmp_path / "admission.pem").name}
    assert not any(password.decode() in (tmp_path / "nats-users.conf").read_text() for password in passwords.values())


def test_a_password_that_is_deleted_is_made_anew_and_no_other_ones_hash_changes(tmp_path: Path) -> None:
    make(tmp_path)
    before = hashes(tmp_path)
    (tmp_path / "nats-graph.password").unlink()
    make(tmp_path)
    after = hashes(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"password_graph"}
    assert bcrypt.checkpw((tmp_path / "nats-graph.password").read_bytes(), after["password_graph"].encode())


def test_what_a_signing_key_signs_the_folder_of_trust_believes_also_after_a_change(tmp_path: Path) -> None:
    who = Principal(tenant="acme", user="ann")
    for _ in range(2):
        make(tmp_path)
        token = Signer.load("memory", tmp_path / "signing-memory.key").token(who)
        assert Verifier.load(tmp_path / "trust").principal(token) == who
        (tmp_path / "signing-memory.key").unlink()


def test_the_first_key_is_one_that_the_gateway_takes(tmp_path: Path) -> None:
    make(tmp_path)
    assert is_secret((tmp_path / "gateway.key").read_text())


def test_the_program_shows_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "phronesis_bus.secrets", str(tmp_path / "secrets")]
    ended = subprocess.run(command, capture_output=True, check=True, timeout=50)
    assert (ended.stdout, ended.stderr) == (b"", b"")
    assert (tmp_path / "secrets" / "nats-users.conf").exists()
