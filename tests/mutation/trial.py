"""Trying a mutant: a child of this process takes the changed module in, and holds all corpora against the true guard."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from phronesis_contracts.twin import QueryRefused
from phronesis_graph import guard as package
from phronesis_graph.guard import Guard, Rules, parser
from phronesis_graph.twin.ontology_file import load
from tests.guard.corpus import VALUES, honest, hostile, knowledge
from tests.guard.values import LIMITS, NAMES_REFUSED, REFUSED, TAKEN

from .mutants import Mutant

FOLDER = Path(package.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "parser", "tree"))
"""All but the one that loads the parser, whose tests are its own, and the one that says what a tree is."""
NAME = "phronesis_graph.guard"
SECONDS = 60

_VALUE = "MATCH (n:EntityProject) WHERE n.id = $value RETURN n.id"
_LIMIT = "MATCH (n:EntityProject) RETURN n.id LIMIT $value"
_LEVEL = "MATCH (a:EntityProject)-[:CLOSE_GAPS]->(b:EntityOrgUnit {level: $b}) WHERE a.level IN $a RETURN a.id"


def cases() -> list[tuple[str, Any, str]]:
    """Every call that is tried: statement, parameters, rule set; the hostile ones first."""
    found: list[tuple[str, Any, str]] = [(each.text, VALUES, each.rules) for each in (*hostile(), *knowledge())]
    found += [(each.text, VALUES, "reading") for each in honest()]
    found += [(_VALUE, {"value": value}, "reading") for value in (*TAKEN, *REFUSED)]
    found += [(_VALUE, {"value": 1, name: 1}, "reading") for name in NAMES_REFUSED]
    found += [(_LIMIT, {"value": value}, "reading") for value, _ in LIMITS]
    found += [(_LEVEL, {"a": a, "b": b}, "reading") for a in (["L3"], ["L2", "L3"], "l2") for b in ("L3", " l2")]
    found += [(_VALUE, {"value": 1} | {f"p{i}": 1 for i in range(count)}, "reading") for count in (49, 50)]
    return [*found, *((text, VALUES, "reading") for text in sizes())]


def sizes() -> Iterator[str]:
    """Statements at a bound and one beyond it."""
    head, node = "MATCH (n:EntityProject) WHERE n.id = 'x' ", "(:EntityProject)-[:PARENT_OF]->"
    for count in (0, 1):
        yield head + "RETURN n.id //" + "x" * (8_000 - len(head) - 14 + count)
        yield head + "AND true " * (742 + count) + "RETURN n.id"
        yield "RETURN " + "(" * (16 + count) + "1" + ")" * (16 + count) + " AS x"
        yield "RETURN " + "{a: " * (16 + count) + "1" + "}" * (16 + count) + " AS x"
        yield "RETURN " + "CASE WHEN a.end THEN " * (4 + count) + "1" + " END" * (4 + count) + " AS x"
        yield "WITH 1 AS end RETURN " + "CASE WHEN true THEN " * (4 + count) + "1" + " END" * (4 + count) + " AS x"
        yield "RETURN [" + ", ".join(["{a: 1}"] * (20 + count)) + "] AS x"
        yield "RETURN " + "CASE WHEN true THEN " * (4 + count) + "1" + " END" * (4 + count) + " AS x"
        yield "MATCH " + node * (39 + count) + "(:EntityProject) RETURN count(*) AS n"
        yield "MATCH (n:EntityProject) " + "WITH n " * (38 + count) + "RETURN n.id"
        yield "MATCH " + ", ".join(f"(n{i}:EntityRisk)" for i in range(5 + count)) + " RETURN count(*) AS n"
        yield f"MATCH (n:EntityRisk) RETURN range(1, {200 + count}) AS x"
        yield "MATCH (n:EntityRisk) WITH n.id AS a RETURN " + " + ".join(["a"] * (400 + count)) + " AS x"
        yield "MATCH (a:EntityOrgUnit)-[:APPLY*1..5]->(b:EntityProcess)-[:AUTOMATION*1..5]->(c:EntityITSystem)" + (
            f"-[:DEPENDS_ON*1..{2 + count}]->(d:EntityVendor) RETURN a.id"
        )
        inside = "MATCH (n:EntityRisk) WHERE EXISTS { " * (4 + count) + "MATCH (n) WHERE n.id = 'x'" + " }" * (4 + count)
        yield inside + " RETURN count(*) AS n"


class Trial:
    """All cases with what the true guard says of them."""

    def __init__(self) -> None:
        self._cases = cases()
        self._parsed: dict[str, Any] = {}
        self._remember(parser.Parser)
        self._ontology = load()
        guard = Guard(self._ontology)
        self._told = [_say(guard, Rules, case) for case in self._cases]

    def survives(self, mutant: Mutant) -> bool:
        """Whether no case tells the mutant from the true guard."""
        gc.freeze()  # a child that collects would copy all of the parsed statements
        child = os.fork()
        if child == 0:
            gc.disable()
            os._exit(self._child(mutant))
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) == 0

    def _child(self, mutant: Mutant) -> int:
        """0 where every case says what it said before; the alarm ends a mutant that does not end."""
        import signal

        signal.alarm(SECONDS)
        try:
            guard = self._changed(mutant)
            rules = sys.modules[NAME].Rules
            # From both ends: most changes show early in one of the corpora.
            order = sorted(range(len(self._cases)), key=lambda place: place % 7)
            return int(any(_say(guard, rules, self._cases[place]) != self._told[place] for place in order))
        except BaseException:
            return 1

    def _changed(self, mutant: Mutant) -> Any:
        for name in [
            name for name in sys.modules if name.startswith(NAME) and not name.endswith((".parser", ".tree", ".refusals"))
        ]:
            del sys.modules[name]
        module = types.ModuleType(f"{NAME}.{mutant.module}")
        module.__package__, module.__file__ = NAME, str(FOLDER / f"{mutant.module}.py")
        fresh = types.ModuleType(NAME)
        fresh.__path__ = [str(FOLDER)]
        fresh.__package__ = NAME
        sys.modules[NAME], sys.modules[module.__name__] = fresh, module
        exec(compile(mutant.source, module.__file__, "exec"), module.__dict__)
        made = importlib.import_module(f"{NAME}.guard") if mutant.module != "guard" else module
        fresh.Rules = sys.modules[f"{NAME}.grammar"].Rules  # type: ignore[attr-defined]
        return made.Guard(self._ontology)

    def _remember(self, parsers: type[Any]) -> None:
        """Parse each statement once: the parser is not what is changed."""
        tokens, parse = parsers.tokens, parsers.parse

        def remembered_tokens(this: Any, text: str) -> Any:
            key = f"tokens {text}"
            if key not in self._parsed:
                self._parsed[key] = _kept(lambda: tokens(this, text))
            return _given(self._parsed[key])

        def remembered_parse(this: Any, stream: Any, words: Any) -> Any:
            key = f"tree {id(stream)}"
            if key not in self._parsed:
                self._parsed[key] = _kept(lambda: parse(this, stream, words))
            return _given(self._parsed[key])

        parsers.tokens, parsers.parse = remembered_tokens, remembered_parse


def _kept(work: Callable[[], Any]) -> tuple[Any, str]:
    try:
        return work(), ""
    except QueryRefused as error:
        return None, error.detail


def _given(kept: tuple[Any, str]) -> Any:
    if kept[1]:
        raise QueryRefused(kept[1])
    return kept[0]


def _say(guard: Any, rules: Any, case: tuple[str, Any, str]) -> str:
    text, parameters, name = case
    try:
        allowed = guard.check(text, parameters, "acme", rules(name))
    except QueryRefused as error:
        return f"{error.detail.split(': ')[1]} {error.field}"
    return f"{allowed.statement}\n{sorted(allowed.parameters)}\n{allowed.warnings}\n{bool(allowed.dangerous)}"
