"""Groups of nodes that speak of the same: their matrix, its clusters, and their words. scikit-learn is loaded when needed."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from phronesis_embedding.wordnet import load_wordnet

from ..words import analysis
from ..words.analysis import stems
from .ports import NodeFilter, NodeVector, NodeVectors

Matrix: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int64]

SMALLEST = 3
"""Nodes of the smallest group: two that are alike are a pair, and no topic."""
LARGEST_K = 60
"""Groups at most."""
FITTED = 4_000
"""Vectors from which the groups are made; the others are put to the nearest group."""
_JUDGED = 1_500
"""Vectors by which a number of groups is judged."""
_PLAIN = 48
"""Directions that the vectors are reduced to before they are grouped; more of them hold noise."""
_GROWTH = 1.25
"""From one number of groups that is tried to the next."""
UNASSIGNED = -1
"""Label of what is in no group."""
LIBRARIES = (
    "threadpoolctl",
    "scipy.cluster.hierarchy",
    "scipy.stats",
    "sklearn.utils.extmath",
    "sklearn.metrics",
    "sklearn.cluster",
)
"""What groups, in the order in which it is loaded: in all some four seconds of a core, of which no step takes two."""


@dataclass(frozen=True)
class Clustering:
    labels: Labels
    silhouette: float
    """Mean of those that are in a group, by cosine distance; 0 where there are fewer than two groups."""


async def load_libraries() -> None:
    """Load what groups, once, in a thread and step by step: so a service that stops waits for one step at most.

    Whoever is about to group awaits it; the event loop goes on meanwhile. A service that groups nothing never pays for it.
    """
    for library in LIBRARIES:
        await asyncio.to_thread(import_module, library)


def normalize_rows(vectors: Matrix) -> Matrix:
    """The vectors with a length of 1; one without a direction stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return made


def cluster(vectors: Matrix) -> Clustering:
    """Group vectors by k-means on the sphere, with the number of groups whose silhouette is best.

    The same vectors in the same order give the same groups. What is nearer to another group than to the rest of its own, and
    what is in a group below the smallest, is in none.
    """
    points = normalize_rows(vectors)
    if len(points) < 2 * SMALLEST:
        return Clustering(np.full(len(points), UNASSIGNED, np.int64), 0.0)
    import sklearn.cluster  # noqa: F401  # a limit holds for what is loaded
    from threadpoolctl import threadpool_limits

    # One thread: the others of this process answer questions meanwhile.
    with threadpool_limits(limits=1):
        labels = _drop_misplaced(points, _best_grouping(points))
        return Clustering(labels, silhouette(points, labels))


def silhouette(points: Matrix, labels: Labels) -> float:
    """The mean silhouette of what is in a group, of a sample where there is much. `points`: one a row, of length 1."""
    inside = np.flatnonzero(labels != UNASSIGNED)
    if len(set(labels[inside].tolist())) < 2:
        return 0.0
    from sklearn.metrics import silhouette_score

    sample = _sample(inside, 2 * _JUDGED)
    if not 2 <= len(set(labels[sample].tolist())) < len(sample):
        return 0.0
    return float(silhouette_score(points[sample], labels[sample], metric="cosine"))


def group_alike(vectors: Matrix, floor: float) -> Labels:
    """Small groups whose members are alike on average: for patterns among a few nodes, where a number of groups says nothing.

    Args:
        vectors: one a row; some thousands at most.
        floor: the cosine that two groups have on average where they are still one.
    """
    points = normalize_rows(vectors)
    if len(points) < SMALLEST:
        return np.full(len(points), UNASSIGNED, np.int64)
    # From SciPy, which is loaded much sooner than scikit-learn.
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(points.astype(np.float64), method="average", metric="cosine")
    labels: Labels = np.asarray(fcluster(np.maximum(tree, 0), t=1 - floor, criterion="distance"), np.int64)
    return _drop_small(labels)


def _best_grouping(points: Matrix) -> Labels:
    fitted = _sample(np.arange(len(points)), FITTED)
    plain = _reduce_dimensions(points, fitted)
    judged = _sample(fitted, _JUDGED)
    best: tuple[float, Labels] | None = None
    for k in group_numbers(len(np.unique(plain[fitted].round(4), axis=0))):
        centres = _centres(plain[fitted], k)
        labels: Labels = np.argmax(plain @ centres.T, axis=1)
        score = silhouette(points[judged], labels[judged])
        if best is None or score > best[0]:
            best = (score, labels)
    return np.zeros(len(points), np.int64) if best is None else best[1]


def _reduce_dimensions(points: Matrix, fitted: npt.NDArray[np.intp]) -> Matrix:
    from sklearn.utils.extmath import randomized_svd

    middle = points[fitted].mean(axis=0)
    most = min(_PLAIN, len(fitted), points.shape[1])
    _, _, directions = randomized_svd(points[fitted] - middle, n_components=most, random_state=0)
    return normalize_rows(np.asarray((points - middle) @ directions.T, np.float32))


def group_numbers(size: int) -> list[int]:
    """The numbers of groups that are tried for so many different vectors: all small ones, and then ever fewer."""
    most = min(LARGEST_K, size // SMALLEST)
    found, k = [], 2
    while k <= most:
        found.append(k)
        k = max(k + 1, int(k * _GROWTH))
    return found


def _centres(points: Matrix, k: int) -> Matrix:
    from sklearn.cluster import KMeans

    fitted: Any = KMeans(n_clusters=k, n_init=3, random_state=0, max_iter=60).fit(points)
    return normalize_rows(np.asarray(fitted.cluster_centers_, np.float32))


def _drop_misplaced(points: Matrix, labels: Labels) -> Labels:
    """The groups without those that stand nearer to another one, and without groups that are too small then."""
    names = np.unique(labels)
    sums = np.stack([points[labels == name].sum(axis=0) for name in names])
    sizes = np.array([np.count_nonzero(labels == name) for name in names], np.float32)
    place = np.searchsorted(names, labels)
    # The mean cosine to each group; to one's own without oneself.
    means = points @ sums.T / sizes
    rows = np.arange(len(points))
    own = (means[rows, place] * sizes[place] - 1) / np.maximum(sizes[place] - 1, 1)
    means[rows, place] = -np.inf
    kept = labels.copy()
    kept[own < means.max(axis=1, initial=-np.inf)] = UNASSIGNED
    return _drop_small(kept)


def _drop_small(labels: Labels) -> Labels:
    names, sizes = np.unique(labels, return_counts=True)
    small = names[sizes < SMALLEST]
    return np.where(np.isin(labels, small), UNASSIGNED, labels)


def _sample(places: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    return places if len(places) <= most else places[np.linspace(0, len(places) - 1, most).astype(np.intp)]


log = logging.getLogger(__name__)

MAX_NODES = 20_000
"""Nodes that are looked at together."""
_NUMBERS = 30_000_000
"""Numbers of all their vectors: 120 MB."""
_ROWS = 1_000
"""Rows that are compared with all others at once."""


@dataclass(frozen=True)
class NodeMatrix:
    """Nodes in the order of ids, and their vectors with a length of 1."""

    ids: tuple[str, ...]
    types: tuple[str, ...]
    layers: tuple[str, ...]
    points: Matrix
    whole: bool
    """Whether these are all that were chosen."""


async def gather_vectors(vectors: NodeVectors, tenant: str, chosen: NodeFilter, most: int = MAX_NODES) -> NodeMatrix:
    """The chosen nodes with their vectors, the first `most` of them by id. Raises `Unavailable`."""
    found: list[NodeVector] = []
    whole = True
    async for one in vectors.scan(tenant, chosen):
        if len(found) >= min(most, _NUMBERS // max(1, len(one.vector))):
            log.warning("of the tenant's nodes the first %d are looked at together", len(found))
            whole = False
            break
        found.append(one)
    points = (
        normalize_rows(np.stack([one.vector for one in found]).astype(np.float32)) if found else np.zeros((0, 1), np.float32)
    )
    return NodeMatrix(
        tuple(one.id for one in found), tuple(one.type for one in found), tuple(one.layer for one in found), points, whole
    )


def pairs_above(points: Matrix, floor: float, most: int) -> list[tuple[int, int, float]]:
    """The pairs of rows whose cosine is `floor` or more, the most alike first. `points`: one a row, of length 1."""
    found: list[tuple[int, int, float]] = []
    for begin in range(0, len(points), _ROWS):
        cosines = points[begin : begin + _ROWS] @ points[begin:].T
        rows, columns = np.nonzero(np.triu(cosines >= floor, k=1))
        values = cosines[rows, columns]
        best = np.argsort(-values, kind="stable")[:most]
        found += [(begin + int(rows[i]), begin + int(columns[i]), min(1.0, float(values[i]))) for i in best]
        found = sorted(found, key=lambda one: (-one[2], one[0], one[1]))[:most]
    return found


def without_types(those: NodeMatrix) -> Matrix:
    """The vectors without what the nodes of one type have in common: a topic is a subject, and a text names its type.

    What few nodes have in common may as well be their subject, so the fewer they are, the less of it is taken away.
    """
    if not those.ids:
        return those.points
    types = np.asarray(those.types)
    middle = those.points.mean(axis=0)
    points: Matrix = those.points.copy()
    for name in np.unique(types):
        own = types == name
        size = int(np.count_nonzero(own))
        points[own] -= np.float32(size / (size + _FEW)) * (those.points[own].mean(axis=0) - middle)
    return normalize_rows(points)


_FEW = 6
"""Nodes of a type of which half of what they have in common is taken away."""

KEYWORDS = 8
"""Words of one topic."""
_WORD = re.compile(r"[^\W\d_]{3,}(?:['’-](?!s\b)[^\W\d_]+)*")
_SPREAD = 2
"""Texts of a group in which a word has to stand: what one text alone says is no topic."""
_TITLE = 2
"""How often a word of the first line, the title, counts."""
_OF_VERB = 0.5
"""Weight of a verb: what is spoken of is named by nouns."""
_SHARE = 0.6
"""Share of a word's texts in which it stands beside another, where the two are shown as one phrase."""
_PLAIN_WORDS = frozenset(
    map(
        analysis.stem,
        (
            "one two three four five six seven eight nine ten twelve twenty thirty forty fifty sixty seventy eighty ninety "
            "hundred first second last next new old every all any more less "
            "most many much few year month week day today now always never often soon early late make made take keep get "
            "give use need want plan like good better best well back still also just even per within without since until "
            "instead because however must may might can will shall would could should let put set run come goes way thing lot "
            "something nothing everything someone everyone nobody people part half whole least once twice already again yet "
            "whether across along among around behind beside beyond toward via etc ein eine einen einem einer der die das den "
            "dem des und oder nicht mit für von vom zum zur auf aus bei nach vor über unter wir uns unser unsere ist sind "
            "wird werden haben hat sich als auch nur noch mehr jede jeder jedes alle wenn dass "
            "durch sowie bis pro beim kann soll"
        ).split(),
    )
)
"""Words that name no subject, whatever they stand beside."""


def find_keywords(groups: Mapping[str, Sequence[str]], most: int = KEYWORDS) -> dict[str, tuple[str, ...]]:
    """For each group the words of its own, the most telling first.

    A word counts in its stem, shown as most often written; two words that stand together whenever they are said are one phrase.

    Args:
        groups: the texts of each group; the first line of a text is its title.
        most: keywords of a group.
    """
    counted = {name: [_count_stems(text) for text in texts] for name, texts in groups.items()}
    totals = {name: sum((Counter(_stem_counts(text)) for text in texts), Counter()) for name, texts in counted.items()}
    everywhere = sum(totals.values(), Counter[str]())
    average = everywhere.total() / max(1, len(totals))
    found = {}
    for name, texts in groups.items():
        ranked = _best_keywords(counted[name], totals[name], everywhere, average, 2 * most)
        found[name] = _join_phrases(ranked, texts)[:most]
    return found


def _best_keywords(
    texts: Sequence[Counter[tuple[str, str]]], own: Counter[str], everywhere: Counter[str], average: float, most: int
) -> list[tuple[str, str]]:
    """Stems with the word that each is shown as."""
    spread = Counter(stem for text in texts for stem in {stem for stem, _ in text})
    written: dict[str, Counter[str]] = {}
    for text in texts:
        for (stem, word), count in text.items():
            written.setdefault(stem, Counter())[word] += count
    verbs = load_wordnet()
    weights = {
        stem: count
        / own.total()
        * math.log(1 + average / everywhere[stem])
        * math.sqrt(spread[stem])
        * (_OF_VERB if verbs.is_verb(_shown(written[stem])) else 1)
        for stem, count in own.items()
        if spread[stem] >= min(_SPREAD, len(texts))
    }
    ranked = sorted(weights, key=lambda stem: (-weights[stem], stem))[:most]
    return [(stem, _shown(written[stem])) for stem in ranked]


def _shown(written: Counter[str]) -> str:
    return min(written.items(), key=lambda item: (-item[1], len(item[0]), item[0]))[0]


def _join_phrases(ranked: Sequence[tuple[str, str]], texts: Sequence[str]) -> tuple[str, ...]:
    shown = dict(ranked)
    alone: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for text in texts:
        for line in text.casefold().split("\n"):
            said = [(found[0], (stems(found[0]) or [""])[0], found.span()) for found in _WORD.finditer(line)]
            alone.update({one for _, one, _ in said} & set(shown))
            together.update(
                {
                    (x, y)
                    for (_, x, (_, end)), (_, y, (start, _)) in pairwise(said)
                    if x in shown and y in shown and x != y and line[end:start] == " "
                }
            )
    found: list[str] = []
    used: set[str] = set()
    for stem, word in ranked:
        if stem in used:
            continue
        pairs = [
            (count, pair)
            for pair, count in together.items()
            if stem in pair and not used & set(pair) and count >= _SPREAD and count >= _SHARE * max(alone[one] for one in pair)
        ]
        if pairs:
            _, pair = max(pairs, key=lambda one: (one[0], one[1]))
            used.update(pair)
            found.append(" ".join(shown[one] for one in pair))
        else:
            used.add(stem)
            found.append(word)
    return tuple(found)


def _count_stems(text: str) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for number, line in enumerate(text.casefold().split("\n")):
        for word in _WORD.findall(line):
            for one in stems(word):
                if one not in _PLAIN_WORDS:
                    found[one, word] += 1 if number else _TITLE
    return found


def _stem_counts(text: Counter[tuple[str, str]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (stem, _), count in text.items():
        found[stem] += count
    return dict(found)
