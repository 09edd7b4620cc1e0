"""The regression: each step fails on what breaks it, is named, and decides how the whole ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.regression.__main__ import NAMES
from tests.regression.graphs import AGENTS, Begun, Checked, complete, kept, sound
from tests.regression.steps import Found, Step, walk
from tests.regression.suites import Counted, all_pass, counted, most_pass

FINE = Found(("all is well",))


def step(number: int, found: Found | Exception) -> Step:
    """A step that finds this."""

    async def run() -> Found:
        if isinstance(found, Exception):
            raise found
        return found

    return Step(number, NAMES[number - 1], run)


@pytest.mark.req("O-449")
@pytest.mark.parametrize("broken", range(1, 8))
async def test_any_step_that_breaks_fails_the_whole_and_is_named(broken: int) -> None:
    said: list[str] = []
    steps = [step(n, Found((), ("too slow",)) if n == broken else FINE) for n in range(1, 8)]
    assert await walk(steps, said.append) == 1
    assert said[-1] == f"failed: step {broken}, {NAMES[broken - 1]}"
    assert f"BREACH in step {broken}, {NAMES[broken - 1]}: too slow" in said


@pytest.mark.req("O-449")
async def test_seven_steps_that_keep_to_their_thresholds_end_well() -> None:
    said: list[str] = []
    assert await walk([step(n, FINE) for n in range(1, 8)], said.append) == 0
    assert said[-1] == "all 7 steps ok"


async def test_a_step_that_cannot_be_run_fails_and_those_after_it_are_run() -> None:
    said: list[str] = []
    assert await walk([step(1, OSError("no server")), step(2, Found((), ("late",)))], said.append) == 1
    assert said[-1] == "failed: step 1, unit tests; step 2, integration tests"


@pytest.mark.req("O-450", "O-451")
@pytest.mark.parametrize(
    ("judge", "run", "failed", "ok"),
    [
        (all_pass, 200, 0, True),
        (all_pass, 200, 1, False),
        (all_pass, 0, 0, False),
        (most_pass, 100, 4, True),
        (most_pass, 100, 5, False),
        (most_pass, 0, 0, False),
    ],
)
def test_all_unit_tests_pass_and_over_95_of_100_integration_tests(
    judge: Callable[[Counted], Found], run: int, failed: int, ok: bool
) -> None:
    found = judge(Counted(run, tuple(f"tests.test_{number}" for number in range(failed))))
    assert (found.breaches == ()) is ok
    assert found.lines[0] == f"{run} tests, {failed} failed"


def test_a_report_tells_which_tests_failed_and_counts_no_skipped_ones(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase classname='a' name='one'/><testcase classname='a' name='two'><failure/></testcase>"
        "<testcase classname='a' name='three'><error/></testcase><testcase classname='a' name='four'><skipped/></testcase>"
        "</testsuite></testsuites>"
    )
    assert counted(report) == Counted(3, ("a.two", "a.three"))


@pytest.mark.req("O-452", "O-453", "O-456")
def test_a_row_that_does_not_keep_to_its_number_is_a_breach() -> None:
    found = kept(["| a | 1 | yes |", "| b | 2 | **no** |"])
    assert (len(found.lines), found.breaches) == (2, ("| b | 2 | **no** |",))


@pytest.mark.req("O-454")
@pytest.mark.parametrize(
    "bad", [Checked("n", 0, 1.0, 1), Checked("n", 384, 0.0, 1), Checked("n", 384, 1.0, 2), Checked("n", 384, float("nan"), 1)]
)
def test_a_vector_without_dimension_or_length_or_that_its_own_text_does_not_find_first_is_a_breach(bad: Checked) -> None:
    fine = [Checked(f"n{number}", 384, 1.0, 1) for number in range(9)]
    assert sound(fine) == Found(tuple(f"n{n}: dimension 384, norm 1.000, rank 1" for n in range(9)))
    assert sound([*fine, bad]).breaches == ("the vector of n is not sound",)
    assert sound([]).breaches == ("there are no vectors",)


@pytest.mark.req("O-455")
def test_an_agent_whose_session_lacks_something_is_a_breach() -> None:
    whole = [Begun(agent, (), True, ()) for agent in AGENTS]
    assert complete(whole).breaches == ()
    assert len(complete(whole).lines) == 4
    assert complete([Begun("mind", ("value-1",), True, ("slow",))]).breaches == ("the session of mind lacks value-1 (slow)",)
    assert complete([Begun("execute", (), False, ())]).breaches == ("the session of execute lacks its workload",)
