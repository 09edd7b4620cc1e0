from __future__ import annotations

import pytest

from phronesis_bus import News
from phronesis_contracts import Forbidden, Principal, Role, Unavailable
from phronesis_contracts.ontology import AskVocabulary, EntityName, OntologyView, Vocabulary
from phronesis_contracts.twin import Level, NodeChanged
from phronesis_orchestrator.agents.vocabularies import Vocabularies

ANN = Principal(tenant="acme", user="ann", role=Role.NOOR)


class Graph:
    """A twin of as many pages as `versions`, each answered with its version of the ontology."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions
        self.asked = 0

    async def page(self, who: Principal, request: AskVocabulary) -> Vocabulary:
        self.asked += 1
        number = int(request.after or 0)
        name = EntityName(type="Vessel", id=f"{who.tenant}-{number}", name="A vessel", level=Level.L3, years=(2023,))
        version = self.versions[number]
        more = str(number + 1) if number + 1 < len(self.versions) else None
        ontology = OntologyView(name="shipyard", version=version, types=())
        return Vocabulary(version=version, ontology=ontology, names=(name,), next=more)


async def ids(vocabularies: Vocabularies, who: Principal) -> list[str]:
    return [name.id for name in (await vocabularies.of(who)).names]


async def test_all_pages_are_one_vocabulary_and_are_asked_for_once() -> None:
    graph = Graph("1", "1", "1")
    vocabularies = Vocabularies(graph.page)
    assert await ids(vocabularies, ANN) == await ids(vocabularies, ANN) == ["acme-0", "acme-1", "acme-2"]
    assert graph.asked == 3


async def test_a_changed_node_drops_the_vocabulary_of_its_tenant_alone() -> None:
    graph = Graph("1")
    vocabularies = Vocabularies(graph.page)
    for who in (ANN, ANN.model_copy(update={"tenant": "other"})):
        await vocabularies.of(who)
    await vocabularies.on_node_changed(News("acme", "1", 1), NodeChanged(nodes=()))
    assert await ids(vocabularies, ANN.model_copy(update={"tenant": "other"})) == ["other-0"]
    assert graph.asked == 2
    await vocabularies.of(ANN)
    assert graph.asked == 3


async def test_who_may_not_read_the_twin_gets_none_that_another_asked_for() -> None:
    vocabularies = Vocabularies(Graph("1").page)
    await vocabularies.of(ANN)
    with pytest.raises(Forbidden):
        await vocabularies.of(ANN.model_copy(update={"role": Role.EDITOR}))


async def test_pages_of_two_ontologies_are_no_vocabulary() -> None:
    with pytest.raises(Unavailable):
        await Vocabularies(Graph("1", "2").page).of(ANN)
