from __future__ import annotations

import pytest

from phronesis_bus import Call, News
from phronesis_contracts import BadRequest, Principal, TooLarge
from phronesis_contracts.memory import KnowledgeLink, KnowledgeStored
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.twin import Expand, Level, Neighbour, Node, NodeKeys, NodeText, Upsert, Upserted
from phronesis_graph.links.items import LinkHandlers, order_by_distance
from phronesis_graph.twin.handlers import TwinHandlers
from phronesis_graph.twin.upserts import Plan
from tests.support.graph import joined, node, ref
from tests.support.ontologies import OneOntology

ANN = Call(Principal(tenant="acme", user="ann"), "gateway")


class Store:
    """Both ports over lists: keeps what it is given, and answers with what it was made with."""

    def __init__(self, *nodes: Node) -> None:
        self.found = nodes
        self.batches: list[Plan] = []
        self.audits: list[Audited] = []
        self.news: list[KnowledgeStored] = []

    async def upsert(self, call: Call, arguments: str, batch: Plan, audit: Audited) -> Upserted:
        self.batches.append(batch)
        self.audits.append(audit)
        return Upserted(nodes_created=len(batch.nodes))

    async def nodes(self, tenant: str, refs: tuple[str, ...]) -> list[Node]:
        return [node for node in self.found if node.key in refs]

    async def store(self, tenant: str, news: KnowledgeStored) -> None:
        self.news.append(news)

    async def expand(self, tenant: str, user: str, question: Expand) -> list[Neighbour]:
        return [Neighbour(id=f"{tenant}/{user}/{id}", type="Concept", hop=0) for id in question.ids]


def handlers(store: Store, woken: list[bool]) -> TwinHandlers:
    return TwinHandlers(OneOntology(), store, lambda: woken.append(True))


def link_handlers(store: Store) -> LinkHandlers:
    return LinkHandlers(store, lambda: None)


async def test_a_written_batch_wakes_the_relay_and_is_audited_by_its_names() -> None:
    store, woken = Store(), list[bool]()
    batch = Upsert(
        nodes=(node("a"), node("r", type="EntityRisk")), relationships=(joined("RATED", ref("a"), ref("r", "EntityRisk")),)
    )
    assert await handlers(store, woken).upsert(ANN, batch) == Upserted(nodes_created=2)
    assert woken == [True]
    assert store.audits == [
        Audited(
            who="ann",
            role=ANN.who.rights,
            action="graph_upsert",
            outcome="done",
            arguments={
                "nodes": ["EntityProject/a/2023", "EntityRisk/r/2023"],
                "nodes_total": 2,
                "relationships": ["EntityProject/a/2023 RATED EntityRisk/r/2023"],
                "relationships_total": 1,
            },
        )
    ]


async def test_a_batch_that_breaks_the_ontology_reaches_no_store() -> None:
    store, woken = Store(), list[bool]()
    with pytest.raises(BadRequest):
        await handlers(store, woken).upsert(ANN, Upsert(nodes=(node("a", type="Nothing"),)))
    assert (store.batches, woken) == ([], [])


async def test_texts_that_fit_into_no_answer_are_refused() -> None:
    big = Node(
        key="EntityProject/a/2023",
        type="EntityProject",
        id="a",
        year=2023,
        name="a",
        level=Level.L3,
        version=1,
        texts=(NodeText(field="aims", text="x" * 1_500_001),),
    )
    with pytest.raises(TooLarge) as caught:
        await handlers(Store(big), []).nodes(ANN, NodeKeys(keys=(big.key,)))
    assert caught.value.field == "keys"


@pytest.mark.req("D-151")
async def test_a_walk_is_made_for_the_caller() -> None:
    expanded = await link_handlers(Store()).expand(ANN, Expand(ids=("x",)))
    assert [item.id for item in expanded.items] == ["acme/ann/x"]


async def test_a_link_of_an_unknown_type_is_refused_whole() -> None:
    store = Store()
    event = KnowledgeStored(owner="ann", version=1, nodes=(), links=(KnowledgeLink(source="a", target="b", type="OWNS"),))
    with pytest.raises(BadRequest) as caught:
        await link_handlers(store).on_item_stored(News("acme", "1", 1), event)
    assert (caught.value.field, store.news) == ("links.0.type", [])


@pytest.mark.req("D-085", "D-089")
def test_the_limit_takes_the_farthest_and_never_a_seed() -> None:
    def item(id: str, hop: int) -> Neighbour:
        return Neighbour(id=id, type="Concept", hop=hop)

    seeds = [item("a", 0), item("b", 0)]
    found = [item("d", 2), item("c", 1), item("a", 1)]
    assert order_by_distance(seeds, found, 3) == [item("a", 0), item("b", 0), item("c", 1)]
    assert order_by_distance(seeds, found, 1) == seeds
