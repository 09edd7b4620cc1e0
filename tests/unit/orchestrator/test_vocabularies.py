"""The lexicons of tenants: read once, in pages, dropped when nodes change, and given to readers of the twin alone."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_bus import News
from phronesis_contracts import Principal, Role, Unavailable
from phronesis_contracts.ontology import AskVocabulary, EntityName, OntologyView, TypeView, Vocabulary
from phronesis_contracts.twin import Level, NodeChanged
from phronesis_orchestrator.understanding import vocabularies as module
from phronesis_orchestrator.understanding.language import languages
from phronesis_orchestrator.understanding.vocabularies import Vocabularies

ANN = Principal(tenant="acme", user="ann", role=Role.NOOR)
BEN = ANN.model_copy(update={"tenant": "other"})
ENGLISH = languages()["en"]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_MOST_EVERY", 0.0)


class Graph:
    """A twin of as many pages as `versions`, each answered with its version of the ontology."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions
        self.asked = 0
        self.away = False

    async def ask(self, who: Principal, rpc: Any, request: AskVocabulary, *, key: str | None = None) -> Vocabulary:
        if self.away:
            raise Unavailable("the graph is away")
        self.asked += 1
        number = int(request.after or 0)
        name = EntityName(type="Vessel", id=f"{who.tenant}-{number}", name=f"Heron {number}", level=Level.L3, years=(2023,))
        more = str(number + 1) if number + 1 < len(self.versions) else None
        ontology = OntologyView(name="shipyard", version=self.versions[number], types=(TypeView(name="Vessel"),))
        return Vocabulary(version=self.versions[number], ontology=ontology, names=(name,), next=more)


async def ids(of: Vocabularies, who: Principal) -> list[str]:
    lexicon = await of.lexicon(who, ENGLISH)
    assert lexicon is not None
    return [name.id for name in lexicon.view.names]


async def test_all_pages_are_one_vocabulary_and_are_asked_for_once() -> None:
    graph = Graph("1", "1", "1")
    of = Vocabularies(graph)  # type: ignore[arg-type]
    assert await ids(of, ANN) == await ids(of, ANN) == ["acme-0", "acme-1", "acme-2"]
    assert graph.asked == 3


async def test_another_language_is_built_of_the_same_reading() -> None:
    graph = Graph("1")
    of = Vocabularies(graph)  # type: ignore[arg-type]
    assert await of.lexicon(ANN, ENGLISH) is not await of.lexicon(ANN, languages()["de"])
    assert graph.asked == 1


async def test_a_changed_node_drops_the_vocabulary_of_its_tenant_alone() -> None:
    graph = Graph("1")
    of = Vocabularies(graph)  # type: ignore[arg-type]
    for who in (ANN, BEN):
        await of.lexicon(who, ENGLISH)
    await of.on_node_changed(News("acme", "1", 1), NodeChanged(nodes=()))
    assert await ids(of, BEN) == ["other-0"]
    assert graph.asked == 2
    await of.lexicon(ANN, ENGLISH)
    assert graph.asked == 3


async def test_who_may_not_read_the_twin_gets_no_words_that_another_asked_for() -> None:
    graph = Graph("1")
    of = Vocabularies(graph)  # type: ignore[arg-type]
    await of.lexicon(ANN, ENGLISH)
    assert await of.lexicon(ANN.model_copy(update={"role": Role.EDITOR}), ENGLISH) is None


async def test_one_tenants_names_are_not_those_of_another() -> None:
    of = Vocabularies(Graph("1"))  # type: ignore[arg-type]
    assert (await ids(of, ANN), await ids(of, BEN)) == (["acme-0"], ["other-0"])


async def test_an_older_reading_is_used_while_the_graph_is_away_and_without_one_it_is_an_error() -> None:
    graph = Graph("1")
    of = Vocabularies(graph)  # type: ignore[arg-type]
    await of.lexicon(ANN, ENGLISH)
    graph.away = True
    of.drop("acme")
    assert await ids(of, ANN) == ["acme-0"]
    with pytest.raises(Unavailable):
        await of.lexicon(BEN, ENGLISH)


async def test_pages_of_two_ontologies_are_read_again() -> None:
    graph = Graph("1", "2")
    await Vocabularies(graph).lexicon(ANN, ENGLISH)  # type: ignore[arg-type]
    assert graph.asked == 6
