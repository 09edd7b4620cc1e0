"""Clusters of vectors: groups of nodes that speak of the same. scikit-learn does it, and is loaded when it is first needed.

K-means, and not HDBSCAN: on 50 sentences of five subjects with the local model (`test_meaning_quality.py`) what is here puts 43
into five groups, all pure; HDBSCAN puts 26 to 37 into groups of purity 0.58 to 0.76, and 40 to 46 of 0.80 to 0.98 after a
reduction to eight directions, depending on its least size, which nobody knows beforehand.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

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
OUTSIDE = -1
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
    """Which group each vector is in."""

    labels: Labels
    silhouette: float
    """Mean of those that are in a group, by cosine distance; 0 where there are fewer than two groups."""


async def load() -> None:
    """Load what groups, once, in a thread and step by step: so a service that stops waits for one step at most.

    Whoever is about to group awaits it; the event loop goes on meanwhile. A service that groups nothing never pays for it.
    """
    for library in LIBRARIES:
        await asyncio.to_thread(import_module, library)


def unit(vectors: Matrix) -> Matrix:
    """The vectors with a length of 1; one without a direction stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return made


def clustered(vectors: Matrix) -> Clustering:
    """Group vectors by k-means on the sphere, with the number of groups whose silhouette is best.

    The same vectors in the same order give the same groups. What is nearer to another group than to the rest of its own, and
    what is in a group below the smallest, is in none.

    Args:
        vectors: one a row.
    """
    points = unit(vectors)
    if len(points) < 2 * SMALLEST:
        return Clustering(np.full(len(points), OUTSIDE, np.int64), 0.0)
    import sklearn.cluster  # noqa: F401  # a limit holds for what is loaded
    from threadpoolctl import threadpool_limits

    # One thread: the others of this process answer questions meanwhile.
    with threadpool_limits(limits=1):
        labels = _settled(points, _best(points))
        return Clustering(labels, silhouette(points, labels))


def silhouette(points: Matrix, labels: Labels) -> float:
    """The mean silhouette of what is in a group (O-415), of a sample where there is much.

    Args:
        points: one a row, of length 1.
        labels: the group of each.
    """
    inside = np.flatnonzero(labels != OUTSIDE)
    if len(set(labels[inside].tolist())) < 2:
        return 0.0
    from sklearn.metrics import silhouette_score

    sample = _some(inside, 2 * _JUDGED)
    if not 2 <= len(set(labels[sample].tolist())) < len(sample):
        return 0.0
    return float(silhouette_score(points[sample], labels[sample], metric="cosine"))


def alike(vectors: Matrix, floor: float) -> Labels:
    """Small groups whose members are alike on average: for patterns among a few nodes, where a number of groups says nothing.

    Args:
        vectors: one a row; some thousands at most.
        floor: the cosine that two groups have on average where they are still one.
    """
    points = unit(vectors)
    if len(points) < SMALLEST:
        return np.full(len(points), OUTSIDE, np.int64)
    # From SciPy, which is loaded much sooner than scikit-learn.
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(points.astype(np.float64), method="average", metric="cosine")
    labels: Labels = np.asarray(fcluster(np.maximum(tree, 0), t=1 - floor, criterion="distance"), np.int64)
    return _large(labels)


def _best(points: Matrix) -> Labels:
    """The grouping of the number of groups that is judged best."""
    fitted = _some(np.arange(len(points)), FITTED)
    plain = _plain(points, fitted)
    judged = _some(fitted, _JUDGED)
    best: tuple[float, Labels] | None = None
    for k in numbers(len(np.unique(plain[fitted].round(4), axis=0))):
        centres = _centres(plain[fitted], k)
        labels: Labels = np.argmax(plain @ centres.T, axis=1)
        score = silhouette(points[judged], labels[judged])
        if best is None or score > best[0]:
            best = (score, labels)
    return np.zeros(len(points), np.int64) if best is None else best[1]


def _plain(points: Matrix, fitted: npt.NDArray[np.intp]) -> Matrix:
    """The vectors in the directions in which they differ most."""
    from sklearn.utils.extmath import randomized_svd

    middle = points[fitted].mean(axis=0)
    most = min(_PLAIN, len(fitted), points.shape[1])
    _, _, directions = randomized_svd(points[fitted] - middle, n_components=most, random_state=0)
    return unit(np.asarray((points - middle) @ directions.T, np.float32))


def numbers(size: int) -> list[int]:
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
    return unit(np.asarray(fitted.cluster_centers_, np.float32))


def _settled(points: Matrix, labels: Labels) -> Labels:
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
    kept[own < means.max(axis=1, initial=-np.inf)] = OUTSIDE
    return _large(kept)


def _large(labels: Labels) -> Labels:
    names, sizes = np.unique(labels, return_counts=True)
    small = names[sizes < SMALLEST]
    return np.where(np.isin(labels, small), OUTSIDE, labels)


def _some(places: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """Evenly spread ones where there are more than `most`."""
    return places if len(places) <= most else places[np.linspace(0, len(places) - 1, most).astype(np.intp)]
