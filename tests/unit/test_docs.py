"""The documentation: its links resolve, the paths it names exist, and the index lists every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.tree import DOCS, GENERATED_DOCS, ROOT
from tests.support.cases import for_each

SECTIONS = ("tutorials", "how-to", "reference", "explanation")
PAGES = [
    *ROOT.glob("*.md"),
    *(page for name in ("docs", "libs", "services", "deploy", "integrations") for page in (ROOT / name).rglob("*.md")),
]
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NAMED = re.compile(r"\bdocs/[\w./-]+\.(?:md|yaml|json)\b")


def _links(page: Path) -> Iterator[str]:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    for match in _LINK.finditer(text):
        target = match[1] or match[2]
        if not re.match(r"[a-z]+:", target):
            yield target


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def _resolves(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return file.exists() and (not anchor or anchor in _anchors(file))


@for_each("page", PAGES)
def test_every_relative_link_of_a_page_resolves(page: Path) -> None:
    assert [target for target in _links(page) if not _resolves(page, target)] == []


def test_every_page_that_is_named_by_its_path_exists() -> None:
    folders = ("bench", "deploy", "docs", "evals", "examples", "integrations", "libs", "scripts", "services", "tests")
    sources = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md", ".txt", ".yml"} and "node_modules" not in path.parts
    ]
    named = {
        (str(path.relative_to(ROOT)), name) for path in [*sources, *PAGES] for name in _NAMED.findall(path.read_text("utf-8"))
    }
    assert sorted((source, name) for source, name in named if not (ROOT / name).exists()) == []


@pytest.mark.parametrize("folder", [*SECTIONS, "generated"])
def test_the_index_lists_every_page_of_a_section(folder: str) -> None:
    pages = {f"{folder}/{path.name}" for path in (DOCS / folder).iterdir()}
    assert pages - set(_links(DOCS / "README.md")) == set()


def test_every_page_stands_in_one_section() -> None:
    others = {"decisions", "generated", "images", "released", "requirements", "README.md"}
    assert {path.name for path in DOCS.iterdir()} == {*SECTIONS, *others}
    assert GENERATED_DOCS.is_dir()
