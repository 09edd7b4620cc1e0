"""What tests of chains and gaps share: a made-up twin in a store, its questions as the contract has them, and the handlers."""

from __future__ import annotations

from collections.abc import Iterable

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.twin import Diagnosed, DiagnoseGaps, Gap, GapQuestion, NodeRef, Upsert
from phronesis_graph.twin.chains import build_walks
from phronesis_graph.twin.handlers import ReasoningHandlers, VocabularyHandlers
from phronesis_graph.twin.reasoning_store import BoltReasoning
from phronesis_graph.twin.vocabulary import to_view
from phronesis_graph.twin.vocabulary_store import BoltVocabulary
from phronesis_samples.twin.gaps import Question
from phronesis_samples.twin.generator import Twin
from tests.support.graph import Stores

AT_ONCE = 200
Answer = tuple[str, str, int, str, str | None, str]
"""Question, type, year, level, last node, missing step."""


def reasoning(stores: Stores) -> ReasoningHandlers:
    """The handlers over a real store."""
    chains = build_walks(stores.ontology)
    return ReasoningHandlers(stores.ontology, chains, BoltReasoning(stores.bolt, stores.ontology, chains))


def telling(stores: Stores) -> VocabularyHandlers:
    """The handler of the vocabulary over a real store."""
    return VocabularyHandlers(stores.ontology, to_view(stores.ontology, "1"), BoltVocabulary(stores.bolt))


def call(who: Principal) -> Call:
    """How a question of somebody comes."""
    return Call(who, "orchestrator")


async def load(stores: Stores, who: Principal, batches: Iterable[Upsert]) -> None:
    """Write batches for somebody's tenant."""
    for batch in batches:
        await stores.upsert(who, batch)


def ref(key: str) -> NodeRef:
    """A node by its key."""
    type, rest = key.split("/", 1)
    id, year = rest.rsplit("/", 1)
    return NodeRef(type=type, id=id, year=int(year))


def asked(question: Question) -> GapQuestion:
    """A question of a truth file, without its answer."""
    return GapQuestion(
        id=question.question,
        node=ref(question.node),
        level=question.level,
        other=ref(question.other) if question.other else None,
        chain=question.chain,
        relationship=question.relationship,
    )


async def diagnosed(handlers: ReasoningHandlers, who: Principal, twin: Twin) -> list[Diagnosed]:
    """The answers to all questions about a twin."""
    parts = [twin.questions[at : at + AT_ONCE] for at in range(0, len(twin.questions), AT_ONCE)]
    return [await handlers.diagnose_gaps(call(who), DiagnoseGaps(questions=tuple(map(asked, part)))) for part in parts]


def planted(twin: Twin) -> set[Answer]:
    """What has to be found."""
    return {
        (one.question, one.type, one.year, one.level, one.last_node, one.missing_step)
        for one in twin.questions
        if one.type is not None and one.missing_step is not None
    }


def found(gaps: Iterable[Gap]) -> set[Answer]:
    """What was found."""
    return {(gap.question, gap.type, gap.year, gap.level, gap.last_node, gap.missing_step) for gap in gaps}
