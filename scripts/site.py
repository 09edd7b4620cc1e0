"""Build the documentation's site, llms.txt and llms-full.txt from the Markdown of the repository.

python -m scripts.site [FOLDER]    into `site/`, or into FOLDER

The site is laid out as the repository is, so that every relative link means the same in both. `docs/README.md` says which pages
there are and in which order.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from . import decisions
from .tree import DOCS, ROOT

INDEX = DOCS / "README.md"
HOME = ROOT / "README.md"
CONFIG = Path(__file__).with_name("templates") / "site.yml"
OPTIONAL = ("Decisions", "Measurements", "Project")
"""Sections that llms.txt marks as optional and llms-full.txt leaves out: no one needs them to use the product."""
_SECTION = re.compile(r"^## ([^:\n]+)(?::.*)?$", re.MULTILINE)
_ROW = re.compile(r"^\| (\[.+?) \| (.+) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)\)")
_ANY_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_SUMMARY = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE | re.DOTALL)


class Incomplete(Exception):
    """Pages, files and the index of the documentation do not agree."""


@dataclass(frozen=True)
class Page:
    """A page: its title in the navigation, its file, and what the index says of it."""

    title: str
    path: Path
    text: str

    @property
    def place(self) -> str:
        """Where it stands, from the root of the repository and of the site."""
        return self.path.relative_to(ROOT).as_posix()


def navigation(index: str | None = None) -> dict[str, list[Page]]:
    """The pages of each section, as the index lists them; the decisions are added from their own index.

    Args:
        index: text of the index; that of `docs/README.md` when absent.

    Raises:
        Incomplete: a page below `docs/` is not in the index, a file that it names is missing, or one is named twice.
    """
    parts = _SECTION.split(INDEX.read_text(encoding="utf-8") if index is None else index)
    found = {title: list(_pages(text)) for title, text in zip(parts[1::2], parts[2::2], strict=True)}
    records = [Page(f"{record.number} {record.title}", record.path, record.area) for record in decisions.records()]
    found["Decisions"] += records
    listed = [page.path for pages in found.values() for page in pages]
    there = {path for path in DOCS.rglob("*.md") if path != INDEX}
    wrong = {
        "not in docs/README.md": there - set(listed),
        "in docs/README.md, and no file": {path for path in listed if not path.is_file()},
        "in docs/README.md twice": {path for path in listed if listed.count(path) > 1},
    }
    problems = [f"{path.relative_to(ROOT)} is {what}" for what, paths in wrong.items() for path in sorted(paths)]
    if problems:
        raise Incomplete("\n".join(problems))
    return found


def _pages(text: str) -> Iterator[Page]:
    for first, second in _ROW.findall(text):
        said = _LINK.sub("", first).strip(" ,:") or second
        for title, target in _LINK.findall(first):
            path = (INDEX.parent / target).resolve()
            if path.suffix == ".md":
                yield Page(title, path, said)


def llms(sections: dict[str, list[Page]]) -> str:
    """llms.txt: the project in a sentence, and a line for each page with a link to its Markdown."""
    lines = ["# Phronesis", "", f"> {_summary()}", ""]
    lines += [
        "The links lead to the pages' Markdown. All but the optional ones, joined, are in [llms-full.txt](llms-full.txt).",
        "",
    ]
    for title in (*(title for title in sections if title not in OPTIONAL), None):
        pages = sections[title] if title else [page for name in OPTIONAL for page in sections[name]]
        lines += [
            f"## {title or 'Optional'}",
            "",
            *(f"- [{page.title}]({page.place}): {_plain(page.text)}" for page in pages),
            "",
        ]
    return "\n".join(lines)


def llms_full(sections: dict[str, list[Page]]) -> str:
    """llms-full.txt: every page that is not optional, one after the other, each with its place."""
    pages = [page for title, found in sections.items() if title not in OPTIONAL for page in found]
    texts = [f"<!-- {page.place} -->\n\n{page.path.read_text(encoding='utf-8').strip()}\n" for page in pages]
    return "\n".join([f"# Phronesis\n\n> {_summary()}\n", *texts])


def _summary() -> str:
    bold = _SUMMARY.search(HOME.read_text(encoding="utf-8"))
    if bold is None:
        raise Incomplete("README.md does not begin with a sentence in bold that says what this is")
    return " ".join(bold[1].split())


def _plain(text: str) -> str:
    return _LINK.sub(lambda link: link[1], text)


def files(pages: Iterable[Path]) -> list[Path]:
    """The files that are no pages, and that pages link to or show.

    Raises:
        Incomplete: a link leads to a folder, or to a page that the site does not have.
    """
    known = set(pages)
    found, problems = set(), []
    for page in known:
        for target in _ANY_LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
            path = (page.parent / target).resolve()
            if re.match(r"[a-z]+:", target) or path in known:
                continue
            if path.suffix == ".md" or not path.is_file():
                problems.append(f"{page.relative_to(ROOT)} links to {target}, which the site does not have")
            found.add(path)
    if problems:
        raise Incomplete("\n".join(sorted(problems)))
    return sorted(found)


def config(sections: dict[str, list[Page]]) -> dict[str, Any]:
    """The generator's configuration, with the navigation."""
    settings: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    menu: list[Any] = [{"Home": HOME.name}]
    for title, pages in sections.items():
        menu.append({title: [{page.title: page.place} for page in pages]})
    menu[1:1] = [{"Documentation": INDEX.relative_to(ROOT).as_posix()}]
    return settings | {"nav": menu}


def build(target: Path) -> None:
    """Write the site to `target`, whose old content goes.

    Raises:
        Incomplete: pages, links and index do not agree, or the generator found a broken link or anchor.
    """
    sections = navigation()
    pages = [HOME, INDEX, *(page.path for found in sections.values() for page in found)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _copy([*pages, *files(pages)], folder / "pages")
        (folder / "mkdocs.yml").write_text(yaml.safe_dump(config(sections), sort_keys=False), encoding="utf-8")
        run = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if run.returncode:
            raise Incomplete(_COLOUR.sub("", run.stdout).partition("Traceback")[0].strip())
        site = folder / "site"
        _copy(pages, site)
        (site / "llms.txt").write_text(llms(sections), encoding="utf-8")
        (site / "llms-full.txt").write_text(llms_full(sections), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(site, target)


def _copy(paths: Iterable[Path], folder: Path) -> None:
    for path in paths:
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def main() -> None:
    """The command."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    try:
        build(target)
    except Incomplete as error:
        sys.exit(f"The site was not built:\n{error}")
    print(f"{sum(1 for _ in target.rglob('*.html'))} pages are in {target}")


if __name__ == "__main__":
    main()
