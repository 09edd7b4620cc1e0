"""Which requirement is covered by which test.

python -m scripts.requirements            print every id, covered or not, with totals for each list
python -m scripts.requirements --write    write docs/requirements/coverage.md
python -m scripts.requirements --check    fail where that page differs, an id is unknown, or a resolution stands nowhere
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from .citations import citations
from .tree import DOCS, GENERATED, ROOT

FOLDER = DOCS / "requirements"
COVERAGE = FOLDER / "coverage.md"
EXCEPTIONS = FOLDER / "exceptions.yaml"
OPEN = FOLDER / "open.yaml"
LISTS = ("noor_and_knowledge_graph_mode", "nova_and_dialogue_agent", "constitutional_graph", "resolutions")
_LINE = re.compile(r"^- \*\*([A-Z]+-[A-Z]?\d+)\*\* (.+)$", re.MULTILINE)
_SHARE = 0.05


class Wrong(Exception):
    """An id that is in no list, or open and cited, or nowhere; or more exceptions than a list may have."""


@dataclass(frozen=True)
class Requirement:
    """One line of a list."""

    id: str
    text: str
    tests: tuple[str, ...]
    exception: str | None
    """`superseded: …` or `not applicable: …`, with what settles it."""
    planned: str | None
    """The planned work that brings it."""


def lists() -> dict[str, list[Requirement]]:
    """The requirements of every list, with the tests that cite them.

    Raises:
        Wrong: something names an id that is in no list, an open one is cited or excepted, or a list has too many exceptions.
    """
    cited = citations(ROOT / "tests", ROOT)
    excepted = _exceptions()
    planned: dict[str, str] = yaml.safe_load(OPEN.read_text()) or {}
    found = {
        name: [
            Requirement(id, text, tuple(cited.get(id, ())), excepted.get(id), planned.get(id))
            for id, text in _lines(FOLDER / f"{name}.md")
        ]
        for name in LISTS
    }
    known = {requirement.id for requirements in found.values() for requirement in requirements}
    for id in sorted(cited.keys() - known):
        raise Wrong(f"{id} is in no list; it is cited by {', '.join(cited[id])}")
    for path, ids in ((EXCEPTIONS, excepted.keys()), (OPEN, planned.keys())):
        for id in sorted(ids - known):
            raise Wrong(f"{id} is in no list; it is cited by {path.name}")
    for id in sorted(planned.keys() & cited.keys()):
        raise Wrong(f"{id} is open by {OPEN.name}; it is cited by {', '.join(cited[id])}")
    for id in sorted(planned.keys() & excepted.keys()):
        raise Wrong(f"{id} is in {OPEN.name} and in {EXCEPTIONS.name}")
    for name, requirements in found.items():
        if sum(1 for r in requirements if r.exception) > _SHARE * len(requirements):
            raise Wrong(f"{name} has exceptions for more than {_SHARE:.0%} of its requirements")
    return found


def _lines(path: Path) -> list[tuple[str, str]]:
    return _LINE.findall(path.read_text())


def _exceptions() -> dict[str, str]:
    told = yaml.safe_load(EXCEPTIONS.read_text())
    return {id: f"{kind.replace('_', ' ')}: {why}" for kind, entries in told.items() for id, why in (entries or {}).items()}


def check_resolutions(found: dict[str, list[Requirement]]) -> None:
    """Each resolution is cited, excepted or open.

    Raises:
        Wrong: some are none of these.
    """
    lost = [r.id for r in found["resolutions"] if not (r.tests or r.exception or r.planned)]
    if lost:
        raise Wrong(f"no test cites {_ranges(lost)}, and neither {EXCEPTIONS.name} nor {OPEN.name} says why")


def totals(requirements: list[Requirement]) -> str:
    """How much of a list is covered."""
    covered = sum(1 for r in requirements if r.tests)
    excepted = sum(1 for r in requirements if r.exception and not r.tests)
    return f"{covered} of {len(requirements)} covered, {excepted} excepted, {len(requirements) - covered - excepted} open"


def printed(found: dict[str, list[Requirement]]) -> str:
    """Every id with its tests."""
    lines = []
    for name, requirements in found.items():
        lines.append(f"{name}: {totals(requirements)}")
        lines += [f"  {r.id}  {', '.join(r.tests) or r.exception or _planned(r) or 'not covered'}" for r in requirements]
    return "\n".join(lines)


def _planned(requirement: Requirement) -> str | None:
    return requirement.planned and f"open: {requirement.planned}"


def page(found: dict[str, list[Requirement]]) -> str:
    """The table of what is covered, and the ids that are not."""
    lines = ["# Coverage of the requirements", "", f"<!-- {GENERATED} -->", "| list | |", "| --- | --- |"]
    lines += [f"| {name} | {totals(requirements)} |" for name, requirements in found.items()]
    for name, requirements in found.items():
        lines += ["", f"## {name}", "", "| id | tests |", "| --- | --- |"]
        told = [(r.id, "<br>".join(r.tests) or r.exception or _planned(r)) for r in requirements]
        lines += [f"| {id} | {how} |" for id, how in told if how]
        lines += ["", f"Open: {_ranges([r.id for r in requirements if not r.tests and not r.exception])}."]
    return "\n".join([*lines, ""])


def _ranges(ids: list[str]) -> str:
    """`A-001, A-002, A-003, A-007` as `A-001 to A-003, A-007`."""
    runs: list[list[str]] = []
    for id in ids:
        if runs and _next(runs[-1][-1]) == id:
            runs[-1].append(id)
        else:
            runs.append([id])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs) or "none"


def _next(id: str) -> str:
    digits = re.sub(r"^.*\D", "", id)
    return f"{id.removesuffix(digits)}{int(digits) + 1:0{len(digits)}d}"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--check", action="store_true", help="fail where the page differs")
    asked = parser.parse_args()
    try:
        found = lists()
        if asked.check:
            check_resolutions(found)
    except Wrong as error:
        sys.exit(str(error))
    if asked.write:
        COVERAGE.write_text(page(found))
    elif asked.check:
        if not COVERAGE.exists() or COVERAGE.read_text() != page(found):
            sys.exit(f"{COVERAGE.relative_to(ROOT)} differs; run `make docs`")
        print("the table of the requirements is up to date")
    else:
        print(printed(found))


if __name__ == "__main__":
    main()
