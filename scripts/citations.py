"""Which tests cite which requirement, read from the source of the tests: no test is imported for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Unreadable(Exception):
    """A marker whose ids are not plain strings."""


@cache
def _citations_of(path: Path, where: str) -> tuple[tuple[str, str], ...]:
    return tuple(_cited(ast.parse(path.read_text(), where), where))


def citations(folder: Path, root: Path) -> dict[str, list[str]]:
    """The tests of each cited id, as `path::name`."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        where = path.relative_to(root).as_posix()
        for id, test in _citations_of(path, where):
            tests = found.setdefault(id, [])
            if test not in tests:
                tests.append(test)
    return found


def _cited(scope: _Scope, where: str) -> Iterator[tuple[str, str]]:
    """Ids with their tests: a marker inside a function or class is its own, `pytestmark` is its module's or class's."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _cited(node, f"{where}::{node.name}")
        else:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and _is_marker(inner.func):
                    yield from ((id, where) for id in _ids(inner, where))


def _is_marker(func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and func.attr == "req" and ast.unparse(func.value) in ("pytest.mark", "mark")


def _ids(call: ast.Call, where: str) -> list[str]:
    ids = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    if len(ids) != len(call.args) or call.keywords or not ids:
        raise Unreadable(f"{where}:{call.lineno}: the ids of a `req` marker are plain strings")
    return ids
