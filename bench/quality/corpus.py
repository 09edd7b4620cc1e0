"""What is searched: the sample portfolio, long conversations and documents, put into memory by the ways they always take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

from phronesis_bus import Call, News
from phronesis_contracts import Principal
from phronesis_contracts.memory import ItemKind, Remember, RememberItem
from phronesis_contracts.orchestrator import TurnEndedNews, TurnStatus
from phronesis_contracts.twin import ChangedNode, Neighbour, Node, NodeChanged, NodeText, UpsertNode
from phronesis_memory.items.drafts import draft_from_item, draft_from_turn, drafts_from_node
from phronesis_memory.items.handlers import ItemHandlers
from phronesis_memory.values import Draft
from phronesis_samples.portfolio.reports import batches

from . import routine
from .labels import rows

USER = "office"
"""The one user whose memory holds all conversations and documents, so that all of them compete."""
_TEXTS = ("aims", "facts", "rating_comment", "schedule_comment", "budget_comment")
"""The texts of a project, in the ontology's order."""
_NODES = 20
"""Nodes of one event, as the graph announces them."""


class Corpus:
    """Everything that is stored; as the memory service's graph it hands out the portfolio's nodes."""

    def __init__(self) -> None:
        found = (_node(given) for batch in batches() for given in batch.nodes)
        self.projects = {node.key: node for node in found if node.texts}
        self.turns = list(_turns())
        self.documents = [
            RememberItem(kind=ItemKind.NOTE, external_id=row["id"], title=row["title"], text=row["text"])
            for row in rows("documents")
        ]

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        """Nothing: none of these items is linked to another."""
        return ()

    async def nodes(self, tenant: str, keys: Sequence[str]) -> tuple[Node, ...]:
        """Those of the nodes that exist."""
        return tuple(self.projects[key] for key in keys if key in self.projects)

    def drafts(self) -> Iterator[Draft]:
        """All items as they are stored, without words and vectors."""
        for node in self.projects.values():
            yield from drafts_from_node(node)
        yield from map(draft_from_turn, self.turns)
        yield from map(draft_from_item, self.documents)

    async def store(self, handlers: ItemHandlers, who: Principal, say: Callable[[str], None]) -> None:
        """Put everything into memory: nodes by the graph's news, turns by the orchestrator's, documents by `remember`."""
        keys = list(self.projects)
        for start in range(0, len(keys), _NODES):
            some = tuple(ChangedNode(key=key, version=1) for key in keys[start : start + _NODES])
            await handlers.on_node_changed(News(who.tenant, uuid4().hex, 1), NodeChanged(nodes=some))
            say(f"projects {min(start + _NODES, len(keys))} of {len(keys)}")
        for number, turn in enumerate(self.turns, 1):
            await handlers.on_turn_ended(News(who.tenant, uuid4().hex, 1), turn)
            say(f"turns {number} of {len(self.turns)}")
        await handlers.remember(Call(who, "orchestrator", uuid4().hex), Remember(items=tuple(self.documents)))
        say(f"sections of documents {len(self.documents)}")


def _node(given: UpsertNode) -> Node:
    return Node(
        key=f"{given.type}/{given.id}/{given.year}",
        type=given.type,
        id=given.id,
        year=given.year,
        name=given.name,
        level=given.level,
        version=1,
        texts=tuple(NodeText(field=name, text=str(given.properties[name])) for name in _TEXTS if given.properties.get(name)),
    )


def _turns() -> Iterator[TurnEndedNews]:
    told = ((row["id"], row["user"], row["assistant"]) for row in rows("conversations"))
    for id, said, answered in (*told, *routine.turns()):
        yield TurnEndedNews(
            turn_id=id,
            conversation_id=id.rpartition("-")[0],
            user=USER,
            agent="dialogue",
            status=TurnStatus.COMPLETED,
            user_text=said,
            reply_text=answered,
        )
