"""Making the vectors of the constitutional graph whole, step by step, with a backup before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from phronesis_contracts.constitution.maintenance import BACKUP_RESTORE_TOOL, EMBEDDINGS_TOOL, REGENERATE_TOOL
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL

_CHECKED = 10
"""Vectors that are looked at closely."""


class Tools(Protocol):
    """What calls a tool; `Client.tools` is one."""

    def call(self, name: str, arguments: dict[str, Any], /) -> dict[str, Any]:
        """The tool's answer, as JSON."""


@dataclass(frozen=True)
class Step:
    """What one step came to."""

    name: str
    good: bool
    said: str


def repair(tools: Tools, question: str) -> Iterator[Step]:
    """Back up, make the vectors whole, and see that they are; it ends after the first step that is not good.

    Args:
        question: words that the graph should have an answer to.
    """
    for step in (_backup, _regenerate, _verify, _spot_check):
        done = step(tools)
        yield done
        if not done.good:
            return
    yield _search(tools, question)


def _backup(tools: Tools) -> Step:
    [made] = tools.call(BACKUP_RESTORE_TOOL.name, {"operation": "backup"})["backups"]
    found = tools.call(BACKUP_RESTORE_TOOL.name, {"operation": "verify", "backupId": made["id"]})
    back = f"to go back: backup {made['id']}, confirmed by {found['confirmation']}"
    return Step("back up", found["backups"] == [made], f"{made['nodes']} nodes, {made['embeddings']} vectors; {back}")


def _regenerate(tools: Tools) -> Step:
    done = tools.call(REGENERATE_TOOL.name, {})
    said = f"{done['embedded']} made, {done['unchanged']} kept, {done['removed']} removed, {done['failed']} failed"
    return Step("regenerate", not done["failed"], said)


def _verify(tools: Tools) -> Step:
    status = tools.call(EMBEDDINGS_TOOL.name, {})
    filling = [scope["name"] for scope in status["scopes"] if scope["state"] != "ONLINE"]
    sizes = "; ".join(f"{one['type']}: {_sizes(one['dimensions'])}" for one in status["counts"])
    wrong = [*status["findings"], *(f"{name} is being filled" for name in filling)]
    return Step("verify", not wrong, "; ".join(wrong) or sizes or "no nodes")


def _spot_check(tools: Tools) -> Step:
    checks = tools.call(EMBEDDINGS_TOOL.name, {"spotCheck": _CHECKED})["spotChecks"]
    bad = [check["nodeId"] for check in checks if check["norm"] <= 0 or check["rank"] != 1]
    said = f"{', '.join(bad)} not found by their own vectors" if bad else ", ".join(check["nodeId"] for check in checks)
    return Step("check vectors", not bad, said)


def _search(tools: Tools, question: str) -> Step:
    found = tools.call(SEMANTIC_SEARCH_TOOL.name, {"query": question, "topK": 5})["results"]
    said = "; ".join(f"{hit['node']['title']} ({hit['score']:.2f})" for hit in found)
    return Step("search", bool(found), said or "nothing was found")


def _sizes(dimensions: dict[str, int]) -> str:
    return ", ".join(f"{count} of {size} numbers" for size, count in dimensions.items())
