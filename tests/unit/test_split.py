"""Which tests a run takes: by speed, and by the stores that they touch."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert split.of_the_other_speed(path, "not verify") is not quick
    assert split.of_the_other_speed(path, "verify") is not rest
    assert not split.of_the_other_speed(path, "")


def test_a_folder_of_the_rest_is_of_the_rest_whatever_its_modules_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "TESTS", tmp_path)
    path = tmp_path / split.VERIFIED[0] / "test_it.py"
    path.parent.mkdir()
    path.write_text(NONE)
    assert (split.of_the_other_speed(path, "not verify"), split.of_the_other_speed(path, "verify")) == (True, False)


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
