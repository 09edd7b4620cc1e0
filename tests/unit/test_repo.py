"""The repository itself: its lock, its targets, and the programs that keep its documents."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts import citations, decisions, documents, new_service, requirements
from scripts.readmes import packages
from scripts.tree import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
TARGETS = {
    "setup",
    "dist",
    "demo",
    "up",
    "test",
    "verify",
    "test-properties",
    "test-rest",
    "test-stores",
    "unit",
    "check",
    "chaos",
    "bench",
    "evals",
    "docs",
    "requirements",
    "new-service",
}


def test_make_alone_lists_every_target_with_a_line() -> None:
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    told = {line.split()[1] for line in listed.splitlines() if len(line.split()) > 3}
    assert told >= TARGETS


def test_the_lock_names_no_index_and_no_file_of_a_machine() -> None:
    assert re.findall(r"https?:|file:|--index|--find-links|/home/|/opt/", LOCK) == []


@pytest.mark.req("O-408")
def test_no_file_names_the_home_of_anybody() -> None:
    home = r"(/home/|/Users/|[A-Za-z]:\\+Users\\+)[A-Za-z0-9_]"
    made_up = ":!tests/unit/media/test_names_and_texts.py"  # names of files that people upload
    found = subprocess.run(["git", "grep", "-InE", home, "--", ".", made_up], cwd=ROOT, capture_output=True, text=True)
    assert (found.stdout, found.stderr, found.returncode) == ("", "", 1)


@pytest.mark.req("O-409")
@pytest.mark.parametrize(
    "what",
    [
        "images, audio and video",
        "fine-tuned",
        "Node2Vec, GraphSAGE",
        "federated search across agents",
        "streaming",
        "HNSW tuned",
    ],
)
def test_what_the_searches_do_not_do_is_named_as_out_of_scope(what: str) -> None:
    _, _, scope = (ROOT / "docs" / "reference" / "constitution-searches.md").read_text().partition("## Out of scope")
    assert what in scope


def test_every_package_in_the_lock_has_a_version_and_a_hash() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert [entry.splitlines()[0] for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []


def test_every_dependency_of_every_package_is_in_the_lock() -> None:
    locked = set(re.findall(r"^([a-z0-9._-]+)==", LOCK, re.MULTILINE))
    wanted = set()
    for folder in (ROOT, *packages()):
        told = tomllib.loads((folder / "pyproject.toml").read_text())
        wanted |= {*told["project"].get("dependencies", ()), *told.get("dependency-groups", {}).get("dev", ())}
    names = {re.split(r"[\[<>=!~ ;]", line)[0].lower().replace("_", "-") for line in wanted}
    assert {name for name in names if not name.startswith("phronesis")} - locked == set()


def test_nothing_in_the_repository_names_a_folder_of_a_machine() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    pattern = re.compile(rb"/(?:root|home/[a-z]+|work)/(?:shared|main|\.venv|\.cache)")
    found = [name for name in tracked if name and (ROOT / name).is_file() and pattern.search((ROOT / name).read_bytes())]
    assert [name for name in found if name != "tests/unit/test_repo.py"] == []


def test_a_document_that_differs_is_found(tmp_path: Path) -> None:
    same, other, missing = (tmp_path / name for name in ("same", "other", "missing"))
    same.write_text("a")
    other.write_text("b")
    assert documents.differing({same: "a", other: "a", missing: "a"}) == [missing, other]


def test_the_records_of_decisions_are_whole_and_numbered_in_one_series() -> None:
    assert [record.number for record in decisions.records()] == [f"{i + 1:04d}" for i in range(len(decisions.records()))]


def test_a_record_without_a_section_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (decisions.FOLDER / "0001-records.md").read_text()
    (tmp_path / "0001-records.md").write_text(text.replace("## Alternatives", "## Other"))
    monkeypatch.setattr(decisions, "FOLDER", tmp_path)
    with pytest.raises(decisions.Malformed, match="Alternatives"):
        decisions.records()


def test_a_marker_counts_for_its_test_and_a_module_mark_for_its_file(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "pytestmark = pytest.mark.req('A-001')\n"
        "@pytest.mark.req('A-002', 'A-003')\n"
        "async def test_one(): ...\n"
        "class TestMany:\n"
        "    @pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.req('A-002'))])\n"
        "    def test_two(self, x): ...\n"
    )
    assert citations.citations(tmp_path, tmp_path) == {
        "A-001": ["test_x.py"],
        "A-002": ["test_x.py::test_one", "test_x.py::TestMany::test_two"],
        "A-003": ["test_x.py::test_one"],
    }


def test_a_marker_whose_ids_are_computed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("import pytest\n@pytest.mark.req(*IDS)\ndef test_one(): ...\n")
    with pytest.raises(citations.Unreadable):
        citations.citations(tmp_path, tmp_path)


def test_an_unknown_id_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "citations", lambda folder, root: {"D-999": ["tests/test_x.py::test_one"]})
    with pytest.raises(requirements.Wrong, match="D-999 is in no list"):
        requirements.lists()


def test_too_many_exceptions_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "exceptions.yaml"
    told.write_text("superseded:\n" + "".join(f"  D-{i:03d}: a reason\n" for i in range(1, 30)))
    monkeypatch.setattr(requirements, "EXCEPTIONS", told)
    with pytest.raises(requirements.Wrong, match="more than 5%"):
        requirements.lists()


def test_an_open_id_is_told_with_the_work_that_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told_open(monkeypatch, tmp_path, "D-001: some work\n")
    found = requirements.lists()
    assert "  D-001  open: some work" in requirements.printed(found).splitlines()
    assert "| D-001 | open: some work |" in requirements.page(found).splitlines()


@pytest.mark.parametrize(
    ("planned", "cited", "excepted", "told"),
    [
        ("D-999: some work", {}, "", "D-999 is in no list; it is cited by open.yaml"),
        ("D-001: some work", {"D-001": ["tests/test_x.py::test_one"]}, "", "D-001 is open by open.yaml; .*test_x.py::test_one"),
        ("D-001: some work", {}, "superseded:\n  D-001: a reason\n", "D-001 is in open.yaml and in exceptions.yaml"),
    ],
)
def test_an_open_id_is_of_a_list_and_stands_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned: str, cited: dict[str, list[str]], excepted: str, told: str
) -> None:
    told_open(monkeypatch, tmp_path, planned, cited, excepted)
    with pytest.raises(requirements.Wrong, match=told):
        requirements.lists()


def test_a_resolution_is_cited_excepted_or_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [resolution.id for resolution in requirements.lists()["resolutions"]]
    cited = {id: ["tests/test_x.py::test_one"] for id in ids[3:]}
    for planned, lost in ((f"{ids[0]}: some work", ids[2]), (f"{ids[0]}: some work\n{ids[2]}: other work", None)):
        told_open(monkeypatch, tmp_path, planned, cited, f"superseded:\n  {ids[1]}: a reason\n")
        found = requirements.lists()
        if lost is None:
            requirements.check_resolutions(found)
        else:
            with pytest.raises(requirements.Wrong, match=f"no test cites {lost}, "):
                requirements.check_resolutions(found)


def told_open(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    planned: str,
    cited: dict[str, list[str]] | None = None,
    excepted: str = "",
) -> None:
    """The planned work, the citations and the exceptions that the script is to find."""
    for name, file, text in (("OPEN", "open.yaml", planned), ("EXCEPTIONS", "exceptions.yaml", excepted or "superseded:\n")):
        (folder / file).write_text(text)
        monkeypatch.setattr(requirements, name, folder / file)
    monkeypatch.setattr(requirements, "citations", lambda *_: cited or {})


def test_the_lists_hold_every_requirement() -> None:
    assert {name: len(found) for name, found in requirements.lists().items()} == {
        "noor_and_knowledge_graph_mode": 360,
        "nova_and_dialogue_agent": 360,
        "constitutional_graph": 461,
        "resolutions": 311,
    }


def copied(target: Path) -> Path:
    """What a new service is written into."""
    for name in ("pyproject.toml", ".importlinter"):
        shutil.copy(ROOT / name, target / name)
    shutil.copytree(ROOT / "libs/contracts", target / "libs/contracts")
    return target


def test_a_new_service_has_its_files_and_a_passing_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copied(tmp_path)
    new_service.write("billing", root)
    package = root / "services/billing/phronesis_billing"
    assert {path.name for path in package.iterdir()} >= {
        "app.py", "domain.py", "handlers.py", "ports.py", "adapters", "settings.py", "__main__.py",
    }  # fmt: skip
    paths = [root / "libs/contracts", root / "services/billing"]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "pyproject.toml", "--rootdir", ".", "tests/unit/billing"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout


@pytest.mark.parametrize("name", ["", "Billing", "billing-2", "../billing", "media"])
def test_a_name_that_is_no_name_or_is_taken_writes_nothing(tmp_path: Path, name: str) -> None:
    root = copied(tmp_path)
    (root / "services/media").mkdir(parents=True)
    (root / "services/media/pyproject.toml").touch()
    before = sorted(root.rglob("*"))
    with pytest.raises(new_service.Refused):
        new_service.write(name, root)
    assert sorted(root.rglob("*")) == before
