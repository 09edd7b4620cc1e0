"""What the searches reach with the local model on a small labelled graph: five subjects, and nodes around each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from statistics import fmean

import numpy as np
import pytest

from phronesis_contracts.constitution.search import HybridSearch, SemanticSearch
from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.constitution.clusters import UNASSIGNED, cluster
from phronesis_memory.constitution.contradictions import Contradictions
from tests.unit.memory.fakes_constitution import Ground, calling, ids
from tests.unit.memory.test_topics import purity

SUBJECTS = {
    "garden": (
        "Sow tomatoes under glass in March",
        "Water the seedlings before the sun is high",
        "Compost kitchen waste for the raised beds",
        "Prune the apple trees in late winter",
        "Rotate beans and cabbages between the beds",
        "Keep slugs away from young lettuce",
        "Save seeds from the best pumpkins",
        "Mulch the soil against the summer heat",
        "Graft the old pear onto new roots",
        "Harvest potatoes once the leaves turn yellow",
    ),
    "money": (
        "Pay every invoice within two weeks",
        "Keep a reserve of six months of spending",
        "Close the books by the fifth of each month",
        "Review the budget each quarter with the treasurer",
        "Put tax aside from every grant",
        "Ask two people to sign large payments",
        "Compare the ledger with the bank statement",
        "Never borrow to cover salaries",
        "Publish the annual accounts in full",
        "Negotiate lower fees with the bank",
    ),
    "music": (
        "Rehearse the quartet on Tuesday evenings",
        "Tune the piano before each concert",
        "Learn the second movement by heart",
        "Record the choir in the old church",
        "Invite a violin teacher for young players",
        "Transcribe folk songs from the valley",
        "Plan the programme of the winter concert",
        "Practise scales slowly with a metronome",
        "Lend instruments to beginners",
        "Write a score for strings and flute",
    ),
    "research": (
        "Preregister each study before data are collected",
        "Share raw data with the paper",
        "Let two people code the interviews independently",
        "Repeat surprising results before they are published",
        "Describe the sample and how it was drawn",
        "Ask participants for consent in plain words",
        "Report null results as well",
        "Archive the analysis scripts with a version",
        "Have a statistician read the design",
        "Thank participants with a summary of findings",
    ),
    "health": (
        "Walk half an hour before breakfast",
        "Sleep eight hours on weekdays",
        "See the dentist twice a year",
        "Stretch the back after long sitting",
        "Drink water with every meal",
        "Take a rest day after a long run",
        "Keep screens out of the bedroom",
        "Measure blood pressure each month",
        "Cook vegetables most evenings",
        "Breathe slowly when stress rises",
    ),
}
QUESTIONS = {
    "garden": ("growing vegetables and fruit in the garden", "care of plants, soil and seeds"),
    "money": ("managing money, payments and the bank", "bookkeeping, budget and taxes"),
    "music": ("playing music and giving concerts", "rehearsals, instruments and songs"),
    "research": ("doing scientific studies with participants and data", "publishing honest research results"),
    "health": ("healthy habits of body and sleep", "staying fit and well every day"),
}


@pytest.fixture(scope="module")
async def ground() -> AsyncIterator[Ground]:
    """A goal for each subject, and a strategy for each text, of which the first seven serve the goal."""
    made = Ground()
    async with LocalEmbedder.open(1) as embedder:
        for subject, texts in SUBJECTS.items():
            made.add(f"goal-{subject}", "goal")
            for place, (text, vector) in enumerate(zip(texts, await embedder.embed_texts(texts), strict=True)):
                made.add(f"{subject}{place}", "strategy", np.asarray(vector, np.float32), title=text)
                if place < 7:
                    made.link((f"{subject}{place}", "SERVES", f"goal-{subject}"))
        questions = [question for some in QUESTIONS.values() for question in some]
        vectors = await embedder.embed_queries(questions)
        made.embedder.known = dict(zip(questions, vectors, strict=True))
        yield made


def right(found: list[str], subject: str) -> float:
    """Share of ten that are of the subject."""
    return sum(id.startswith(subject) for id in found) / 10


async def precision(ground: Ground, hybrid: bool) -> float:
    """Precision@10 over all questions."""
    shares = []
    for subject, questions in QUESTIONS.items():
        for question in questions:
            if hybrid:
                asked = HybridSearch(query=question, anchor_node_id=f"goal-{subject}", min_similarity=0, types=("strategy",))
                found = ids((await ground.searching.hybrid_search(calling(), asked)).results)
            else:
                plain = SemanticSearch(query=question, min_similarity=0, types=("strategy",))
                found = ids((await ground.searching.semantic_search(calling(), plain)).results)
            shares.append(right(found, subject))
    return fmean(shares)


@pytest.mark.req("O-410", "O-411", "O-412", "O-381", "C-92", "C-96")
async def test_searches_are_precise_and_structure_makes_them_more_so(ground: Ground) -> None:
    semantic, hybrid = await precision(ground, hybrid=False), await precision(ground, hybrid=True)
    assert semantic > 0.8
    assert hybrid > max(0.85, semantic)
    # Wrong ones of ten, of the forty that are wrong for a question.
    assert 10 * (1 - semantic) / 40 < 0.1


@pytest.mark.req("O-414")
async def test_texts_of_different_subjects_are_unrelated(ground: Ground) -> None:
    points = np.stack([ground.vectors.kept[f"{subject}{place}"] for subject in SUBJECTS for place in range(10)])
    cosines = points @ points.T
    subject = np.repeat(np.arange(5), 10)
    apart = cosines[subject[:, None] != subject[None, :]]
    assert float(apart.mean()) < 0.4
    assert float(np.percentile(apart, 95)) < 0.4


@pytest.mark.req("O-384", "O-399", "O-415", "C-97")
async def test_subjects_are_found_as_topics(ground: Ground) -> None:
    names = [subject for subject in SUBJECTS for _ in range(10)]
    points = np.stack([ground.vectors.kept[f"{subject}{place}"] for subject in SUBJECTS for place in range(10)])
    found = cluster(points)
    assert len(set(found.labels.tolist()) - {UNASSIGNED}) >= 4
    assert purity(names, found.labels.tolist()) >= 0.9
    assert np.count_nonzero(found.labels == UNASSIGNED) <= 12


@pytest.mark.req("O-398")
async def test_fifty_texts_that_agree_hold_no_contradiction(ground: Ground) -> None:
    pairs, compared = await Contradictions(ground.vectors, ground.graph).find(calling().who, frozenset({"strategy"}), 20)
    assert ([pair.because for pair in pairs], compared) == ([], 50)
