"""An archive is whole or is refused, whatever its bytes are."""

from __future__ import annotations

import gzip
import io
import json
import resource
import subprocess
import sys
import tarfile
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phronesis_operations.archive import Archive, write_archive
from phronesis_operations.format import FORMAT, PRODUCT, About, Manifest, pack, unpack
from phronesis_operations.reporting import Damaged, Refused

MEMBERS = {"postgres/memory/items": 3, "vectors": 2, "events": 0}


def write(path: Path, *, force: bool = False, **about: Any) -> None:
    """A small archive."""
    stated = About(**({"format": FORMAT, "product": PRODUCT, "kind": "backup"} | about))
    with write_archive(path, force=force) as writer:
        writer.about(stated)
        for name, count in MEMBERS.items():
            with writer.member(name) as member:
                for n in range(count):
                    member.add({"n": n}, b"body")
        now = datetime(2026, 1, 2, tzinfo=UTC)
        manifest = Manifest(
            about=stated,
            point=now,
            migrations={},
            sequences={},
            model=None,
            dimension=None,
            members=tuple(writer.members),
        )
        writer.manifest(manifest)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole"
    write(path)
    return path


def tar_of(*entries: tuple[str, bytes], **header: Any) -> bytes:
    """A compressed tar file as any program writes it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for field, value in header.items():
                setattr(info, field, value)
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def refused(path: Path, data: bytes) -> None:
    """Check that `data` is refused, by a message of our own."""
    path.write_bytes(data)
    with pytest.raises(Refused):
        Archive.checked(path, "backup")


def test_what_was_written_is_read_again(whole: Path) -> None:
    archive = Archive.checked(whole, "backup")
    assert {member.name: member.count for member in archive.manifest.members} == MEMBERS
    read = {name: [(frame.header, frame.body) for frame in frames] for name, frames in archive.members()}
    assert read == {name: [({"n": n}, b"body") for n in range(count)] for name, count in MEMBERS.items() if count}


def test_nobody_else_may_read_an_archive(whole: Path) -> None:
    assert whole.stat().st_mode & 0o777 == 0o600


def test_any_tar_program_lists_it(whole: Path) -> None:
    with tarfile.open(whole) as tar:
        parts = [f"{name}/000000" for name in MEMBERS]
        assert tar.getnames() == ["about.json", *parts, "manifest.json"]


def test_an_archive_is_not_written_over(whole: Path) -> None:
    before = whole.read_bytes()
    with pytest.raises(Refused, match="--force"):
        write(whole)
    assert whole.read_bytes() == before


def test_force_replaces_an_archive(whole: Path) -> None:
    write(whole, force=True, product="0.0.1")
    assert Archive.checked(whole, "backup").manifest.about.product == "0.0.1"


def test_a_failure_leaves_what_was_there_and_no_half_file(whole: Path) -> None:
    before = whole.read_bytes()
    with pytest.raises(ZeroDivisionError), write_archive(whole, force=True):
        raise ZeroDivisionError
    assert {path.name: path.read_bytes() for path in whole.parent.iterdir()} == {"whole": before}


def test_a_disk_that_takes_no_more_is_a_clear_error(tmp_path: Path) -> None:
    program = f"""
import os, resource
from pathlib import Path
from phronesis_operations.reporting import Failed
from phronesis_operations.format import About
from phronesis_operations.archive import write_archive
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, {resource.RLIM_INFINITY}))
try:
    with write_archive(Path({str(tmp_path / "big")!r}), force=False) as writer:
        with writer.member("events") as member:
            for _ in range(12):
                member.add({{}}, os.urandom(1_000_000))
except Failed as error:
    print("failed:", error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert done.stdout.startswith("failed: "), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_flipped_bit_is_found(whole: Path) -> None:
    data, plain = whole.read_bytes(), gzip.decompress(whole.read_bytes())
    for place in range(10, len(data)):  # the ten bytes before say which program packed it, and when
        changed = data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]
        if not _unpacks_to(changed, plain):  # the last bits of the packing say nothing
            refused(whole, changed)


def _unpacks_to(data: bytes, plain: bytes) -> bool:
    try:
        return gzip.decompress(data) == plain
    except (OSError, EOFError, zlib.error):
        return False


def test_every_cut_is_found(whole: Path) -> None:
    data = whole.read_bytes()
    for length in range(len(data)):
        refused(whole, data[:length])


def test_something_behind_the_end_is_found(whole: Path) -> None:
    refused(whole, whole.read_bytes() + gzip.compress(b"more"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=2_000), st.integers(0, 6_000), st.integers(0, 60))
def test_no_bytes_inside_the_packing_do_harm(whole: Path, noise: bytes, place: int, cut: int) -> None:
    plain = gzip.decompress(whole.read_bytes())
    changed = plain[:place] + noise + plain[place + cut :]
    path = whole.with_name("changed")
    path.write_bytes(gzip.compress(changed, 1))
    try:
        Archive.checked(path, "backup")
    except Refused:
        return
    assert changed == plain


@given(st.binary(max_size=300))
def test_records_of_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        frames = list(unpack(data))
    except Damaged:
        return
    assert sum(len(frame.body) for frame in frames) <= len(data)


@given(st.lists(st.tuples(st.dictionaries(st.text(), st.integers()), st.binary())))
def test_records_come_back_as_they_were(records: list[tuple[dict[str, int], bytes]]) -> None:
    stated = [({f"_{name}": value for name, value in header.items()}, body) for header, body in records]
    data = b"".join(pack(header, body) for header, body in stated)
    assert [(frame.header, frame.body) for frame in unpack(data)] == stated


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "about.json/../x", "a\\b", "x" * 99, "-rf"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    refused(tmp_path / "foreign", tar_of((name, b"{}")))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE, tarfile.XHDTYPE, b"L"])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    refused(tmp_path / "foreign", tar_of(("about.json", b"{}"), type=kind))


@pytest.mark.parametrize("size", [96 * 1024 * 1024 + 1, 8 * 1024**3 - 1])
def test_a_length_is_not_believed(tmp_path: Path, size: int) -> None:
    header = tarfile.TarInfo("about.json")
    header.size = size
    refused(tmp_path / "foreign", gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + bytes(10_000)))


def test_a_bomb_is_refused_in_little_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("events/000000")
    header.size = 64 * 1024 * 1024
    path = tmp_path / "bomb"
    path.write_bytes(tar_of(("about.json", About(format=FORMAT, product=PRODUCT, kind="backup").model_dump_json().encode())))
    about = gzip.decompress(path.read_bytes())[:1024]
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(about)
        for _ in range(12):
            file.write(header.tobuf(tarfile.USTAR_FORMAT))
            file.write(bytes(header.size))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Damaged):
        Archive.checked(path, "backup")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 * 1024


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"format": 1}', b"[" * 50_000, b"\xff", b'{"format": "1e999"}'])
def test_a_manifest_that_says_nothing_is_refused(tmp_path: Path, text: bytes) -> None:
    refused(tmp_path / "foreign", tar_of(("about.json", text)))


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "newer", product="999.0.0")
    with pytest.raises(Refused, match="newer"):
        Archive.checked(tmp_path / "newer", "backup")


def test_another_format_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "other", format=FORMAT + 1)
    with pytest.raises(Refused, match="format"):
        Archive.checked(tmp_path / "other", "backup")


def test_a_tenants_archive_is_no_backup(tmp_path: Path) -> None:
    write(tmp_path / "tenant", kind="tenant", tenant="acme")
    with pytest.raises(Refused, match="phronesis import"):
        Archive.checked(tmp_path / "tenant", "backup")


def test_a_count_that_is_not_true_is_refused(whole: Path) -> None:
    entries = []
    with tarfile.open(whole) as tar:
        for info in tar:
            file = tar.extractfile(info)
            assert file is not None
            entries.append((info.name, file.read()))
    manifest = json.loads(entries[-1][1])
    manifest["members"][0]["count"] += 1
    refused(whole, tar_of(*entries[:-1], ("manifest.json", json.dumps(manifest).encode())))


def test_a_member_that_comes_twice_is_refused(whole: Path) -> None:
    part = ("events/000000", b"")
    about = ("about.json", About(format=FORMAT, product=PRODUCT, kind="backup").model_dump_json().encode())
    refused(whole, tar_of(about, part, ("vectors/000000", b""), part))
