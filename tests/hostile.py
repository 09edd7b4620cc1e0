"""The table of hostile inputs: `python -m tests.hostile` writes `docs/generated/hostile-inputs.md` anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.hostile_files import HostileFile, hostile_files
from tests.support.hostile_urls import HostileUrl, hostile_urls

PATH = Path(__file__).parents[1] / "docs" / "generated" / "hostile-inputs.md"
_TOP = """# Hostile inputs

Written by `python -m tests.hostile` from the tests' inputs. Each file is uploaded to the media service and read
(`tests/integration/test_hostile_files.py`), each address is fetched (`tests/integration/test_hostile_urls.py`), and some of
both are part of turns of a whole stack (`tests/e2e/test_hostile_turns.py`). Meanwhile a canary listens on every address of the
machine and receives no connection, a file with a secret beside the uploads is not read, the service and its processes stay
within their memory limits, and a harmless file is read right after. If a row lists several outcomes, time, load or the version
of a parser decides.
"""


def table() -> str:
    """The whole document."""
    files, urls = list(hostile_files()), list(hostile_urls())
    parts = [_TOP, f"\n## Files: {len(files)}\n", *_files(files), f"\n## Addresses: {len(urls)}\n", *_urls(urls)]
    return "\n".join(parts) + "\n"


def _files(files: Iterable[HostileFile]) -> Iterator[str]:
    yield "| family | file | may end with |\n| --- | --- | --- |"
    for file in files:
        yield f"| {file.family} | {file.id} | {', '.join(dict.fromkeys(file.ends))} |"


def _urls(urls: Iterable[HostileUrl]) -> Iterator[str]:
    yield "| family | code | addresses |\n| --- | --- | --- |"
    grouped: dict[tuple[str, str], list[str]] = defaultdict(list)
    for url in urls:
        grouped[url.family, url.code].append(f"`{_cell(url.id.removeprefix(f'{url.family}-'))}`")
    for (family, code), ids in grouped.items():
        yield f"| {family}: {len(ids)} | {code} | {' '.join(ids)} |"


def _cell(text: str) -> str:
    """The text as it may stand in a cell of a table."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text).replace("|", "\\|").replace("`", "'")


if __name__ == "__main__":
    PATH.write_text(table(), encoding="utf-8")
