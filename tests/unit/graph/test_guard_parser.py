from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from phronesis_contracts.twin import QueryRefused
from phronesis_graph.guard import Guard, parser
from phronesis_graph.twin.ontology_file import load

HONEST = "MATCH (n:EntityProject) RETURN n.id"


def test_the_installed_parser_is_the_one_that_was_tested() -> None:
    found = importlib.util.find_spec(parser.PACKAGE)
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "_parser"
    assert {name: hashlib.sha256((folder / f"{name}.py").read_bytes()).hexdigest() for name in parser.MODULES} == parser.MODULES


def test_the_package_of_the_parser_is_never_imported() -> None:
    """It would patch the driver."""
    code = (
        "import sys; from phronesis_graph.guard import Guard; from phronesis_graph.twin.ontology_file import load; "
        f"guard = Guard(load()); assert 'antlr4' not in sys.modules; guard.check({HONEST!r}, {{}}, 'acme'); "
        "import neo4j; assert neo4j.Result.__iter__.__module__.startswith('neo4j.'); sys.exit('neo4j_guard' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=50, check=False).returncode == 0


@pytest.mark.parametrize(
    ("package", "modules"),
    [
        ("a_package_that_is_not_there", parser.MODULES),
        (parser.PACKAGE, {**parser.MODULES, "Cypher25Parser": "0" * 64}),
        ("json", parser.MODULES),
    ],
)
def test_without_the_tested_parser_every_query_is_refused(
    monkeypatch: pytest.MonkeyPatch, package: str, modules: dict[str, str]
) -> None:
    monkeypatch.setattr(parser, "PACKAGE", package)
    monkeypatch.setattr(parser, "MODULES", modules)
    blind = Guard(load())
    for _ in range(2):
        with pytest.raises(QueryRefused, match="unavailable: queries are not taken"):
            blind.check(HONEST, {}, "acme")
    with pytest.raises(QueryRefused, match="unavailable"):
        blind.load()


def test_a_guard_that_found_its_parser_later_decides_again(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Guard(load())
    with monkeypatch.context() as patched:
        patched.setattr(parser, "PACKAGE", "a_package_that_is_not_there")
        with pytest.raises(QueryRefused, match="unavailable"):
            late.check(HONEST, {}, "acme")
    assert late.check(HONEST, {}, "acme").statement.startswith("MATCH")


def test_verdicts_are_kept_up_to_a_bound(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phronesis_graph.guard.guard.MAX_VERDICTS", 3)
    few = Guard(load())
    for number in range(6):
        few.check(f"MATCH (n:EntityProject) RETURN n.id LIMIT {number}", {}, "acme")
    assert [text for _, text in few._verdicts] == [
        f"MATCH (n:EntityProject) RETURN n.id LIMIT {number}" for number in (3, 4, 5)
    ]
