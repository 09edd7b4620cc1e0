"""The size and shape of the product's code: files, lines, folders of the constitution, import cycles.

python -m scripts.figures [COMMIT]    the working tree; with a commit, that one beside it
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .tree import ROOT

PRODUCT = ("libs", "services", "deploy")
CONSTITUTION = "constitution"


def figures(root: Path) -> dict[str, str]:
    """Each figure by its name, for the tree below `root`."""
    files = [path for folder in PRODUCT for path in sorted((root / folder).rglob("*.py")) if "__pycache__" not in path.parts]
    orchestrator = [path for path in files if root / "services" / "orchestrator" in path.parents]
    folders = {
        str(folder.relative_to(root))
        for path in files
        for folder in path.parents
        if folder.name == CONSTITUTION and folder != root
    }
    return {
        "product files": f"{len(files)}",
        "product lines": f"{sum(len(path.read_bytes().splitlines()) for path in files)}",
        "longest file": f"{max(len(path.read_bytes().splitlines()) for path in files)} lines",
        "orchestrator files": f"{len(orchestrator)}",
        "constitution folders": ", ".join(sorted(folders)),
        "import cycles": "; ".join(" ".join(cycle) for cycle in cycles(files)) or "none",
    }


def cycles(files: list[Path]) -> list[list[str]]:
    """Groups of modules that import each other, imports for types and inside functions included."""
    modules = {_dotted(path): path for path in files}
    imports = {name: set(_imports(name, path, modules)) - {name} for name, path in modules.items()}
    reached = {name: _reached(name, imports) for name in imports}
    groups = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in imports}
    return [list(group) for group in sorted(groups) if group]


def _dotted(path: Path) -> str:
    parts = [path.stem] if path.stem != "__init__" else []
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _imports(name: str, path: Path, modules: dict[str, Path]) -> Iterator[str]:
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                found = f"{source}.{alias.name}"
                yield found if found in modules else source if source in modules else name


def _reached(name: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = imports[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _of_commit(commit: str) -> dict[str, str]:
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit, *PRODUCT], capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
        return figures(Path(folder))


def main() -> None:
    """The command."""
    before = _of_commit(sys.argv[1]) if len(sys.argv) > 1 else {}
    for name, value in figures(ROOT).items():
        print(f"{name:22}{value}" + (f"    ({sys.argv[1]}: {before[name]})" if before else ""))


if __name__ == "__main__":
    main()
