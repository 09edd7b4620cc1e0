"""Write a new service: its package, its contract, its test, and its place in the lists that name every service.

python -m scripts.new_service NAME
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from .distribution import version
from .tree import ROOT

TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"^[a-z][a-z0-9]{1,31}$")


class Refused(Exception):
    """A name that cannot be a service's, or a list that is not where it was."""


def write(name: str, root: Path) -> list[Path]:
    """Write the service `name` below `root`.

    Returns:
        The files that were written or changed.

    Raises:
        Refused: the name is no name or is taken, or one of the lists was not found; then nothing is written.
    """
    if not _NAME.match(name):
        raise Refused("a service's name is a lower-case word: make new-service NAME=billing")
    files = _files(name, root)
    if taken := [path for path in files if path.exists()]:
        raise Refused(f"{taken[0].relative_to(root)} exists")
    changed = _lists(name, root)
    for path, text in (files | changed).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for notice in ("LICENSE", "NOTICE"):
        (root / "services" / name / notice).symlink_to(Path("..", "..", notice))
    return [*files, *changed]


def _files(name: str, root: Path) -> dict[Path, str]:
    places = {
        TEMPLATES / "service": root / "services" / name,
        TEMPLATES / "contracts": root / "libs/contracts/phronesis_contracts",
        TEMPLATES / "tests": root / "tests/unit" / name,
    }
    words = {"{{name}}": name, "{{Name}}": name.capitalize(), "{{NAME}}": name.upper(), "{{version}}": version()}
    found = {}
    for folder, target in places.items():
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            relative = path.relative_to(folder).as_posix().replace("_name/", f"_{name}/").removesuffix(".txt")
            text = path.read_text()
            for word, value in words.items():
                text = text.replace(word, value)
            found[target / relative.replace("name.py", f"{name}.py")] = text
    return found


def _lists(name: str, root: Path) -> dict[Path, str]:
    """The lists that name every service, with the new one at their end."""
    contracts = root / "libs/contracts/phronesis_contracts"
    changes: list[tuple[Path, str, Callable[[re.Match[str]], str]]] = [
        (contracts / "service.py", r"^SERVICES = \((.*)\)$", lambda m: f'SERVICES = ({m[1]}, "{name}")'),
        (contracts / "catalog.py", r"^(from \. import \(\n)((?:    \w+,\n)+)", lambda m: m[1] + _sorted(m[2], name)),
        (contracts / "catalog.py", r"^(_MODULES: .* = \()$", lambda m: f"{m[1]}\n    {name},"),
        (contracts / "catalog.py", r'^(    "gateway": \(.*)\),$', lambda m: f'{m[1]}, "{name}"),'),
        (contracts / "catalog.py", r'^(    "media": \(\),)$', lambda m: f'{m[1]}\n    "{name}": (),'),
        (root / "pyproject.toml", r"^(phronesis-media = .*)$", lambda m: f"{m[1]}\nphronesis-{name} = {{ workspace = true }}"),
        (root / ".importlinter", r"^    phronesis_media$", lambda m: f"{m[0]}\n    phronesis_{name}"),
        (root / ".importlinter", r"^(    phronesis_gateway \| .*)$", lambda m: f"{m[1]} | phronesis_{name}"),
    ]
    texts: dict[Path, str] = {}
    for path, pattern, change in changes:
        before = texts.get(path) or path.read_text()
        texts[path], count = re.subn(pattern, change, before, flags=re.MULTILINE)
        if count == 0:
            raise Refused(f"{path.relative_to(root)}: no line like {pattern}")
    return texts


def _sorted(lines: str, name: str) -> str:
    return "".join(sorted([*lines.splitlines(keepends=True), f"    {name},\n"]))


def main() -> None:
    """The command."""
    try:
        written = write(sys.argv[1] if len(sys.argv) == 2 else "", ROOT)
    except Refused as error:
        sys.exit(str(error))
    for path in written:
        print(path.relative_to(ROOT))
    print("\nNext: make docs, make unit, make check. CONTRIBUTING.md says how to add a message to it.")


if __name__ == "__main__":
    main()
