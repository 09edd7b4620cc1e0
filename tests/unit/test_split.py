"""Which tests a run takes: by speed, and by the stores that they touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from phronesis_local.settings import Stores
from tests.support import split

MODULE = "import pytest\n\npytestmark = pytest.mark.verify\n"
LISTED = "import pytest\n\npytestmark = [\n    pytest.mark.verify,\n    pytest.mark.timeout(9),\n]\n"
SOME = "import pytest\n\n@pytest.mark.verify\ndef test_one() -> None: ...\n"
NONE = "def test_one() -> None: ...\n"


@pytest.mark.parametrize(
    ("text", "quick", "rest"),
    [(MODULE, False, True), (LISTED, False, True), (SOME, True, True), (NONE, True, False)],
    ids=["a module", "a list of marks", "one test", "no mark"],
)
def test_a_module_is_read_where_a_test_of_the_speed_may_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, quick: bool, rest: bool
) -> None:
    monkeypatch.setattr(split, "TESTS", tmp_path)
    path = tmp_path / "unit" / "test_it.py"
    path.parent.mkdir()
    path.write_text(text)
    assert split.is_left_out(path, "not verify", Stores.EMBEDDED) is not quick
    assert split.is_left_out(path, "verify", Stores.EMBEDDED) is not rest
    assert not split.is_left_out(path, "", Stores.EMBEDDED)


def test_a_folder_of_the_rest_is_of_the_rest_whatever_its_modules_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "TESTS", tmp_path)
    path = tmp_path / split.VERIFIED[0] / "test_it.py"
    path.parent.mkdir()
    path.write_text(NONE)
    assert [split.is_left_out(path, speed, Stores.EMBEDDED) for speed in split.SPEEDS] == [True, False]


@pytest.mark.parametrize(
    ("folder", "text", "left"),
    [
        ("e2e", MODULE, True),
        ("e2e", MODULE + "\n@pytest.mark.stores\ndef test_one() -> None: ...\n", False),
        ("e2e", "import pytest\n\npytestmark = [pytest.mark.verify, pytest.mark.stores]\n", False),
        ("e2e", SOME, False),
        ("e2e", NONE, False),
        ("integration", MODULE, False),
        ("integration", "import pytest\n\npytestmark = pytest.mark.any_store\n", True),
        ("integration", "import pytest\n\npytestmark = [\n    pytest.mark.verify,\n    pytest.mark.any_store,\n]\n", True),
        ("integration", "import pytest\n\n@pytest.mark.any_store\ndef test_one() -> None: ...\n", False),
    ],
)
def test_on_the_production_stores_a_module_is_read_where_one_may_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, text: str, left: bool
) -> None:
    monkeypatch.setattr(split, "TESTS", tmp_path)
    path = tmp_path / folder / "test_it.py"
    path.parent.mkdir()
    path.write_text(text)
    assert split.is_left_out(path, "", Stores.PRODUCTION) is left
    assert not split.is_left_out(path, "", Stores.EMBEDDED)


@pytest.mark.parametrize(("text", "left"), [("from hypothesis import given\n", False), (NONE, True)])
def test_a_run_of_the_properties_reads_what_names_their_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, left: bool
) -> None:
    monkeypatch.setattr(split, "TESTS", tmp_path)
    path = tmp_path / "unit" / "test_it.py"
    path.parent.mkdir()
    path.write_text(text)
    assert split.is_left_out(path, split.PROPERTIES, Stores.EMBEDDED) is left


def test_what_names_a_stack_or_a_server_by_whatever_way_touches_stores() -> None:
    from tests.e2e import test_rolling_restart, test_tenants
    from tests.e2e.conftest import everybody, stack
    from tests.integration import test_backup, test_bus_rpc, test_stack

    starts = [
        stack,
        test_stack.servers,
        test_backup.before,
        test_rolling_restart.test_a_rolling_restart_between_two_versions_loses_nothing_and_doubles_nothing,
    ]
    assert [split.starts_stores(one) for one in starts] == [True] * len(starts)
    assert [split.starts_stores(one) for one in (everybody, test_bus_rpc.server, test_tenants)] == [False] * 3


def test_the_stories_of_a_run_share_one_stack_unless_they_are_the_long_ones() -> None:
    stories = [f"tests/e2e/{path.name}::test_one" for path in sorted((split.TESTS / "e2e").glob("test_*.py"))]
    grouped = {speed: {split.group(story, 2, speed) for story in stories} for speed in ("", *split.SPEEDS)}
    shared = {speed: sorted(name for name in names if name.startswith("stories")) for speed, names in grouped.items()}
    assert shared == {"": ["stories 0"], "not verify": ["stories 0"], "verify": ["stories 0", "stories 1"]}


def test_the_stories_of_the_desk_run_in_one_process() -> None:
    stories = [f"tests/e2e/{path.name}::test_one" for path in sorted((split.TESTS / "e2e").glob("test_*.py"))]
    shared = [story.split("/")[2].partition(".")[0] for story in stories if split.group(story, 2, "verify") == "desk"]
    assert shared == ["test_approvals", "test_approvals_outlive", "test_live_text", "test_nova", "test_openai_models"]
