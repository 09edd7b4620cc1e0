"""The repair of the vectors: in its order, each step told, and nothing after one that is not good."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis.constitution.loading import Step, repair

BACKUP = {"id": "b1", "nodes": 3, "embeddings": 2}
WELL: dict[str, Any] = {
    "backup": {"backups": [BACKUP]},
    "verify": {"backups": [BACKUP], "confirmation": "restore-1"},
    "embeddings.regenerate.v1": {"embedded": 1, "unchanged": 1, "removed": 0, "failed": 0},
    "embeddings.status.v1": {
        "findings": [],
        "scopes": [{"name": "vision_embeddings", "state": "ONLINE"}],
        "counts": [{"type": "goal", "dimensions": {"3072": 2}}],
        "spotChecks": [{"nodeId": "a", "norm": 1.0, "rank": 1}, {"nodeId": "b", "norm": 1.0, "rank": 1}],
    },
    "semantic.search.v1": {"results": [{"node": {"title": "Harvest"}, "score": 0.8}]},
}


class Answers:
    """Tools that answer as they are told."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def call(self, name: str, arguments: dict[str, Any], /) -> dict[str, Any]:
        found: dict[str, Any] = self.answers[arguments.get("operation", name)]
        return found


def steps(**changed: Any) -> list[Step]:
    return list(repair(Answers(WELL | changed), "the harvest"))


@pytest.mark.req("O-400", "O-401", "O-448", "O-454", "O-371")
def test_a_backup_comes_first_then_vectors_sizes_checks_and_a_search() -> None:
    assert steps() == [
        Step("back up", True, "3 nodes, 2 vectors; to go back: backup b1, confirmed by restore-1"),
        Step("regenerate", True, "1 made, 1 kept, 0 removed, 0 failed"),
        Step("verify", True, "goal: 2 of 3072 numbers"),
        Step("check vectors", True, "a, b"),
        Step("search", True, "Harvest (0.80)"),
    ]


@pytest.mark.req("O-368", "O-401", "O-402")
@pytest.mark.parametrize(
    ("changed", "last"),
    [
        ({"verify": {"backups": [], "confirmation": None}}, "back up"),
        ({"embeddings.regenerate.v1": {"embedded": 0, "unchanged": 1, "removed": 0, "failed": 1}}, "regenerate"),
        ({"embeddings.status.v1": WELL["embeddings.status.v1"] | {"findings": ["2 have no vector"]}}, "verify"),
        ({"embeddings.status.v1": WELL["embeddings.status.v1"] | {"scopes": [{"name": "x", "state": "POPULATING"}]}}, "verify"),
        (
            {"embeddings.status.v1": WELL["embeddings.status.v1"] | {"spotChecks": [{"nodeId": "a", "norm": 0.0, "rank": 0}]}},
            "check vectors",
        ),
        ({"semantic.search.v1": {"results": []}}, "search"),
    ],
)  # fmt: skip
def test_it_ends_after_the_first_step_that_is_not_good(changed: dict[str, Any], last: str) -> None:
    done = steps(**changed)
    assert [step.good for step in done] == [True] * (len(done) - 1) + [False]
    assert done[-1].name == last
