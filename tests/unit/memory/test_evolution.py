"""How a node changed, and how far, over versions that are written down."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from phronesis_contracts import NotFound
from phronesis_contracts.constitution.registry import Layer
from phronesis_memory.constitution.evolution import Drift, Evolution
from phronesis_memory.constitution.ports import Version
from tests.unit.memory.fakes_constitution import Ground, ScriptedEmbedder, ScriptedHistory, at_cosine, calling

WHO = calling().who


def version(number: int, operation: str = "update", drift: float | None = None, **fields: tuple[object, object]) -> Version:
    """A version of the value `v`, in its month."""
    values = {name: {"old": old, "new": new} for name, (old, new) in fields.items()}
    at = datetime(2026, number, 10, 9, tzinfo=UTC)
    return Version("v", "value", Layer.FOUNDATION, number, operation, at, "ann", tuple(fields), values, drift)


CREATED = version(1, "create", title=(None, "Honesty"), priority=(None, 3))
EDITS = [
    version(2, title=("Honesty", "Honesty first"), drift=0.05),
    version(3, summary=(None, "Say what is")),
    version(4, priority=(3, 5), summary=("Say what is", None), drift=0.2),
]


@pytest.mark.req("O-387")
async def test_three_edits_are_three_versions_with_their_times_and_fields() -> None:
    told = await Evolution(ScriptedHistory([CREATED, *EDITS])).of("acme", "v", 100)
    assert [(one.version, one.at.month, one.actor, one.changed) for one in told.versions[1:]] == [
        (2, 2, "ann", {"title": ("Honesty", "Honesty first")}),
        (3, 3, "ann", {"summary": (None, "Say what is")}),
        (4, 4, "ann", {"priority": (3, 5), "summary": ("Say what is", None)}),
    ]
    assert ([one.drift for one in told.versions], told.drifted) == ([None, 0.05, None, 0.2], True)


@pytest.mark.req("O-389")
async def test_the_narrative_names_the_dated_changes_in_order_and_nothing_else() -> None:
    gone = version(5, "delete")
    told = await Evolution(ScriptedHistory([CREATED, *EDITS, gone])).of("acme", "v", 100)
    assert told.narrative.split("\n") == [
        "2026-01-10: made, with title “Honesty”; priority “3”.",
        "2026-02-10: title changed from “Honesty” to “Honesty first”.",
        "2026-03-10: summary “Say what is”.",
        "2026-04-10: priority changed from “3” to “5”; summary removed, which was “Say what is”.",
        "2026-05-10: removed for good.",
    ]


async def test_a_change_whose_value_was_not_seen_is_named_without_it() -> None:
    seen = Version("v", "value", Layer.FOUNDATION, 2, "update", datetime(2026, 2, 1, tzinfo=UTC), "ann", ("title",), {}, None)
    told = await Evolution(ScriptedHistory([seen])).of("acme", "v", 100)
    assert (told.narrative, told.versions[0].changed) == ("2026-02-01: title changed.", {"title": (None, None)})


async def test_a_node_that_there_was_never_has_no_evolution() -> None:
    with pytest.raises(NotFound):
        await Evolution(ScriptedHistory()).of("acme", "v", 100)


def drift(ground: Ground, history: ScriptedHistory, embedder: ScriptedEmbedder | None = None) -> Drift:
    return Drift(history, ground.vectors, ground.graph, embedder or ScriptedEmbedder())


@pytest.mark.req("O-388", "O-320")
async def test_one_change_beyond_the_rule_is_one_finding() -> None:
    ground = Ground()
    ground.add("v", "value", 1.0, title="Honesty")
    for moved, found in ((0.11, [("v", 0.11, 1)]), (0.09, [])):
        report = await drift(ground, ScriptedHistory([version(2, drift=moved)])).report(WHO, None, frozenset(), 0.1, 50)
        assert [(one.node.id, one.drift, one.versions) for one in report] == found


@pytest.mark.req("O-388")
async def test_small_steps_that_add_up_are_one_finding_by_where_they_began() -> None:
    ground = Ground()
    ground.add("v", "value", 1.0, title="Speed")
    edits = [version(2, title=("Honesty", "Candour"), drift=0.08), version(3, title=("Candour", "Speed"), drift=0.08)]
    began = ScriptedEmbedder({"Honesty.": at_cosine(0.7)})
    [finding] = await drift(ground, ScriptedHistory(edits), began).report(WHO, None, frozenset(), 0.1, 50)
    assert (finding.node.id, finding.versions, finding.at.month) == ("v", 2, 3)
    assert finding.drift == pytest.approx(0.3, abs=1e-5)


@pytest.mark.req("O-388")
async def test_steps_that_lead_back_are_no_drift_but_for_the_largest_of_them() -> None:
    ground = Ground()
    ground.add("v", "value", 1.0, title="Honesty")
    edits = [version(2, title=("Honesty", "Candour"), drift=0.08), version(3, title=("Candour", "Honesty"), drift=0.08)]
    began = ScriptedEmbedder({"Honesty.": at_cosine(1.0)})
    assert await drift(ground, ScriptedHistory(edits), began).report(WHO, None, frozenset(), 0.1, 50) == []


async def test_a_report_may_begin_at_a_time_and_be_of_some_layers() -> None:
    ground = Ground()
    ground.add("v", "value", 1.0)
    history = ScriptedHistory([version(2, drift=0.5)])
    since = datetime(2026, 3, 1, tzinfo=UTC)
    assert await drift(ground, history).report(WHO, since, frozenset(), 0.1, 50) == []
    assert await drift(ground, history).report(WHO, None, frozenset({Layer.MIND}), 0.1, 50) == []
    assert len(await drift(ground, history).report(WHO, None, frozenset({Layer.FOUNDATION}), 0.1, 50)) == 1


async def test_drift_is_told_from_single_changes_where_the_model_is_down() -> None:
    ground = Ground()
    ground.add("v", "value", 1.0)
    edits = [version(2, title=("a", "b"), drift=0.2), version(3, title=("b", "v"), drift=0.2)]
    [finding] = await drift(ground, ScriptedHistory(edits), ScriptedEmbedder(down=True)).report(WHO, None, frozenset(), 0.1, 50)
    assert finding.drift == 0.2
