"""Which tests a run takes, in which order, and which of them have to run in one process.

**Two speeds.** `make test` runs what has no mark `verify`, within eight minutes on two processors: unit tests, contracts, the
suite of each store, a path that goes well and one that fails for each message, some stories on one whole stack, and a short
run of kills. `make verify` runs the rest. A test that belongs to the rest says so where it stands:

    pytestmark = pytest.mark.verify                      # a whole module
    @pytest.mark.verify                                  # one test
    pytest.param(..., marks=pytest.mark.verify)          # one case of a table

and every test of a folder in `VERIFIED` belongs to it. What makes a test one of the rest: it starts a whole stack of its own,
or it goes through a catalogue case by case (every tool, every role, every hostile file) where a sample of the cases is in
`make test`. A module of which a run takes no test is not even imported.

**Groups.** A module's tests run in one process, one after the other, for they share its fixtures; so do the modules of
`tests/e2e` that use the package's stack. Those of `make verify`, which load it with thousands, are as many groups as there are
processes; the others are one, for a second stack costs more than it gives. So are those that use the package's desk, whose
stack has a scripted model. The stories of the console are one group for each window in which they are walked. Groups that take
long begin first.

**Stores.** Where `PHRONESIS_STORES=production`, what touches neither a graph store nor a vector store is left out: it ran on
the embedded ones, and would do the same. Of `tests/e2e`, what belongs to `make verify` is left out too: the adapters are shown
on the production stores by `tests/stores`, the services by `tests/integration`, whole stacks by the stories of `make test`.
Two marks say otherwise where a test stands. `stores`: it touches a store by a way that neither a fixture nor a helper shows, or
it is a story of `make verify` that a store decides about (forgetting, faults, tenants). `any_store`: no store decides about it,
or what it does with the stores is shown on the production ones by a test that costs less. Backups are: `test_backup_stores`
writes one on either kind of store and restores it on the other, while `test_backup` asks what a command refuses and what a
restored stack still knows.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from phronesis_local.settings import Stores

TESTS = Path(__file__).parents[1]
VERIFIED = ("questions", "console")
"""Folders of `tests` that belong to `make verify` as a whole."""
SPEEDS = ("not verify", "verify")
"""What `-m` says of the two."""
PROPERTIES = "hypothesis"
"""What `-m` says of the properties, each of which names the library that makes its examples."""
_ORDER = ("chaos", "e2e", "console", "integration", "kubernetes", "stores", "questions", "contract", "unit")
_IN_WINDOWS = "tests/console/test_stories.py"
_AFTER_ALL_STORIES = "test_what_the_logs_hold"
_WHOLE_MODULE = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.verify\b", re.MULTILINE)
_ANY_STORE = re.compile(r"^pytestmark = (\[[^\]]*)?pytest\.mark\.any_store\b", re.MULTILINE)
_BY_STORES = re.compile(r"\bmark\.stores\b")
_SOME = re.compile(r"\bmark\.verify\b")
_SHARED_STACK = re.compile(r"\b(stack: RunningStack|everybody: Town|analyst: Person|somebody: Person)\b")
_SHARED_DESK = re.compile(r"\bdesk: Desk\b")
_OWN_STACK = re.compile(r"tmp_path_factory")
_STORES = {"graph_server", "weaviate", "stack"}
"""Fixtures that are stores or have them, by whatever command they start them."""
_STARTS = ("tests.support.stack", "tests.support.production", "tests.support.production_servers")
"""Modules of what starts stores; who names a thing of theirs, directly or by a helper, touches stores."""
_ONLY_NAMES = {"prepare", "graph_login"}
"""What of these starts nothing."""


def is_left_out(path: Path, expression: str, stores: Stores) -> bool:
    """Whether a run that `expression` describes, on these stores, takes no test of a file, as its text shows.

    Such a module is not imported: to import one and make its items takes up to 15 seconds in each process.
    """
    if not path.name.startswith("test_") or TESTS not in path.parents:
        return False
    text = path.read_text(encoding="utf-8")
    folder = path.relative_to(TESTS).parts[0]
    if expression in SPEEDS:
        return _of_the_other_speed(folder, text, expression)
    if expression == PROPERTIES:
        return PROPERTIES not in text
    return stores is Stores.PRODUCTION and _of_no_store(folder, text)


def _of_the_other_speed(folder: str, text: str, expression: str) -> bool:
    whole = folder in VERIFIED or _WHOLE_MODULE.search(text) is not None
    return whole if expression == "not verify" else not whole and _SOME.search(text) is None


def _of_no_store(folder: str, text: str) -> bool:
    rest_of_stories = folder == "e2e" and _WHOLE_MODULE.search(text) is not None and _BY_STORES.search(text) is None
    return rest_of_stories or _ANY_STORE.search(text) is not None


def mark_folders(items: list[pytest.Item]) -> None:
    """Mark what is of a folder in `VERIFIED`."""
    for item in items:
        if _folder(item) in VERIFIED:
            item.add_marker(pytest.mark.verify)


def long_ones_first(items: list[pytest.Item]) -> None:
    """Let what takes long begin first, so that no process is left alone with it at the end."""

    def place(item: pytest.Item) -> tuple[int, bool]:
        folder = _folder(item)
        return _ORDER.index(folder) if folder in _ORDER else len(_ORDER), item.path.stem == _AFTER_ALL_STORIES

    items.sort(key=place)


def group(test: str, workers: int, expression: str) -> str:
    """The name of the group of a test, by its id: the tests of a group run in one process.

    Args:
        test: the id.
        workers: how many processes run tests.
        expression: what `-m` says of the run.
    """
    module = test.partition("::")[0]
    if module == _IN_WINDOWS:
        return f"{module} {test.rpartition('[')[2]}"
    if not module.startswith("tests/e2e/"):
        return module
    if _shares(module, _SHARED_DESK):
        return "desk"
    if _shares(module, _SHARED_STACK):
        stacks = workers if expression == "verify" else 1
        return f"stories {zlib.crc32(module.encode()) % stacks}"
    return module


def without_stores(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that a run on other stores is about, and those that it leaves out."""
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        (kept if _runs_on_other_stores(item) else left).append(item)
    return kept, left


def _runs_on_other_stores(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("stores") is not None
    rest_of_stories = _folder(item) == "e2e" and item.get_closest_marker("verify") is not None
    return touches_stores(item) and item.get_closest_marker("any_store") is None and (marked or not rest_of_stories)


def touches_stores(item: pytest.Item) -> bool:
    """Whether a test, or a fixture that it uses, starts a graph store or a vector store or asks the run's."""
    if not isinstance(item, pytest.Function):
        return True
    if _STORES & set(item.fixturenames) or item.get_closest_marker("stores") is not None:
        return True
    fixtures = [fixture.func for found in item._fixtureinfo.name2fixturedefs.values() for fixture in found]
    return any(starts_stores(function) for function in (item.obj, *fixtures))


@cache
def starts_stores(function: Callable[..., Any]) -> bool:
    """Whether a function of the tests, a test or a fixture, names what starts a store, or what names that."""
    return _reaches(function, set())


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0] if TESTS in item.path.parents else ""


@cache
def _shares(module: str, fixture: re.Pattern[str]) -> bool:
    """Whether a module uses one of the package's fixtures, and makes none of its own in their place."""
    text = (TESTS.parent / module).read_text(encoding="utf-8")
    return fixture.search(text) is not None and _OWN_STACK.search(text) is None


def _plain(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return getattr(function, "__func__", function)


def _reaches(thing: Any, seen: set[int]) -> bool:
    """Whether a function or a class of the tests names something that starts a store, itself or by what it names."""
    thing = _plain(thing)
    if id(thing) in seen:
        return False
    seen.add(id(thing))
    if isinstance(thing, type):
        members = [_plain(member) for member in vars(thing).values()]
        return any(_reaches(member, seen) for member in members if hasattr(member, "__code__"))
    code, known = getattr(thing, "__code__", None), getattr(thing, "__globals__", {})
    if code is None:
        return False
    names = _names(code)
    named = [(name, known[name]) for name in names if name in known]
    of_modules = [(name, getattr(one, name)) for _, one in named if _is_of_tests(one) for name in names if hasattr(one, name)]
    for name, one in (*named, *of_modules):
        module = getattr(one, "__module__", None)
        if callable(one) and isinstance(module, str) and module.startswith("tests."):
            if module in _STARTS and name not in _ONLY_NAMES:
                return True
            if _reaches(one, seen):
                return True
    return False


def _is_of_tests(thing: Any) -> bool:
    return isinstance(thing, ModuleType) and thing.__name__.startswith("tests.")


def _names(code: CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)
