from __future__ import annotations

from typing import Any

import pytest

from phronesis_bus import News
from phronesis_contracts import Principal, Unavailable
from phronesis_contracts.ontology import AskVocabulary, EntityName, OntologyView, Vocabulary
from phronesis_contracts.twin import Level, NodeChanged
from phronesis_orchestrator.understanding import reader as module
from phronesis_orchestrator.understanding.language import languages
from phronesis_orchestrator.understanding.reader import Vocabularies
from tests.support.personas import Persona

ANN = Principal(tenant="acme", user="ann", **Persona.NOOR.rights)
OTHER = ANN.model_copy(update={"tenant": "other"})


class Graph:
    """A twin of as many pages as `versions`, each answered with its version of the ontology."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions
        self.asked = 0
        self.away = False

    async def ask(self, who: Principal, rpc: Any, request: AskVocabulary, **_: Any) -> Vocabulary:
        if self.away:
            raise Unavailable("the graph is away")
        self.asked += 1
        number = int(request.after or 0)
        name = EntityName(type="Vessel", id=f"{who.tenant}-{number}", name="A vessel", level=Level.L3, years=(2023,))
        version = self.versions[number]
        more = str(number + 1) if number + 1 < len(self.versions) else None
        ontology = OntologyView(name="shipyard", version=version, types=())
        return Vocabulary(version=version, ontology=ontology, names=(name,), next=more)


async def ids(vocabularies: Vocabularies, who: Principal) -> list[str]:
    lexicon = await vocabularies.lexicon(who, languages()["en"])
    assert lexicon is not None
    return [name.id for name in lexicon.view.names]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is read at once, however soon after the reading before."""
    monkeypatch.setattr(module, "_AT_MOST_EVERY", 0.0)


async def test_all_pages_are_one_vocabulary_and_are_asked_for_once() -> None:
    graph = Graph("1", "1", "1")
    vocabularies = Vocabularies(graph)
    assert await ids(vocabularies, ANN) == await ids(vocabularies, ANN) == ["acme-0", "acme-1", "acme-2"]
    assert graph.asked == 3


@pytest.mark.usefixtures("patient")
async def test_a_changed_node_drops_the_vocabulary_of_its_tenant_alone() -> None:
    graph = Graph("1")
    vocabularies = Vocabularies(graph)
    for who in (ANN, OTHER):
        await ids(vocabularies, who)
    await vocabularies.on_node_changed(News("acme", "1", 1), NodeChanged(nodes=()))
    assert await ids(vocabularies, OTHER) == ["other-0"]
    assert graph.asked == 2
    await ids(vocabularies, ANN)
    assert graph.asked == 3


async def test_a_load_of_thousands_of_nodes_does_not_read_the_vocabulary_for_each() -> None:
    graph = Graph("1")
    vocabularies = Vocabularies(graph)
    for _ in range(100):
        await vocabularies.on_node_changed(News("acme", "1", 1), NodeChanged(nodes=()))
        await ids(vocabularies, ANN)
    assert graph.asked == 1


@pytest.mark.usefixtures("patient")
async def test_an_older_vocabulary_serves_while_the_graph_is_away_and_without_one_the_reason_is_told() -> None:
    graph = Graph("1")
    vocabularies = Vocabularies(graph)
    await ids(vocabularies, ANN)
    vocabularies.drop("acme")
    graph.away = True
    assert await ids(vocabularies, ANN) == ["acme-0"]
    with pytest.raises(Unavailable):
        await ids(vocabularies, OTHER)


async def test_who_may_not_read_the_twin_gets_none_that_another_asked_for() -> None:
    vocabularies = Vocabularies(Graph("1"))
    await ids(vocabularies, ANN)
    assert await vocabularies.lexicon(ANN.model_copy(update=Persona.EDITOR.rights), languages()["en"]) is None


async def test_pages_between_which_the_ontology_changed_are_read_again() -> None:
    graph = Graph("1", "2")
    vocabularies = Vocabularies(graph)
    assert await ids(vocabularies, ANN) == ["acme-0", "acme-1"]
    assert graph.asked == 6
