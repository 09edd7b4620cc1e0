"""The program that computes one algorithm: the graph on its input, the result on its output, then it ends.

It is a process of its own because a computation may hold the interpreter for as long as it takes: in the service nothing else
would be answered meanwhile. What it takes of memory is free again when it ends, and it can be ended at a deadline.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import graspologic_native
import numpy as np
import rustworkx as rx
from numpy.typing import NDArray

_TOLERANCE = 1e-12
"""Of PageRank: the sum of all changes in the last step."""
_MAX_STEPS = 1_000
_ITERATIONS, _TRIALS = 3, 5
"""Of Leiden: passes over the whole graph, and runs of which the best is kept."""


def compute(job: dict[str, Any]) -> dict[str, Any]:
    """The result of a job: `values`, with `modularity` or `pivots` where they belong to it.

    Args:
        job: `algorithm`, `nodes` (how many), `sources` and `targets` (of the relationships), and the constants of
            `engine`: `seed`, `damping`, `exact` and `most_pivots`.
    """
    nodes, links = job["nodes"], {(a, b) for a, b in zip(job["sources"], job["targets"], strict=True) if a != b}
    if job["algorithm"] == "pagerank":
        return {"values": _rank(nodes, sorted(links), job["damping"])}
    edges = sorted({(min(link), max(link)) for link in links})
    if job["algorithm"] == "communities":
        return _find_communities(nodes, edges, job["seed"])
    if nodes <= job["exact"]:
        return {"values": _compute_betweenness(nodes, edges)}
    pivots = job["most_pivots"]
    chosen = random.Random(job["seed"]).sample(range(nodes), pivots)
    # each path is met from both of its ends
    scores = _sum_dependencies(*_list_neighbours(nodes, edges), chosen) * (nodes / pivots / 2)
    return {"values": scores.tolist(), "pivots": pivots}


def _rank(nodes: int, links: Sequence[tuple[int, int]], damping: float) -> list[float]:
    graph = rx.PyDiGraph[None, None]()
    graph.add_nodes_from([None] * nodes)
    graph.add_edges_from_no_data(links)
    # rustworkx multiplies its tolerance by the number of nodes, which would let large graphs stop at the first step
    scores = rx.pagerank(graph, alpha=damping, tol=_TOLERANCE / nodes, max_iter=_MAX_STEPS)
    return [scores[node] for node in range(nodes)]


def _find_communities(nodes: int, edges: Sequence[tuple[int, int]], seed: int) -> dict[str, Any]:
    if not edges:
        return {"values": list(range(nodes)), "modularity": 0.0}
    starts, neighbours = _list_neighbours(nodes, edges)
    modularity, community = graspologic_native.leiden_csr(
        starts, neighbours, np.ones(len(neighbours)), nodes, seed=seed, iterations=_ITERATIONS, trials=_TRIALS
    )
    return {"values": [community[node] for node in range(nodes)], "modularity": modularity}


def _compute_betweenness(nodes: int, edges: Sequence[tuple[int, int]]) -> list[float]:
    graph = rx.PyGraph[None, None]()
    graph.add_nodes_from([None] * nodes)
    graph.add_edges_from_no_data(edges)
    # in one thread: several would add up in another order each time
    scores = rx.graph_betweenness_centrality(graph, normalized=False, parallel_threshold=nodes + 1)
    return [scores[node] for node in range(nodes)]


def _list_neighbours(nodes: int, edges: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The neighbours of node `n` are those from place `starts[n]` to place `starts[n + 1]` of the second array."""
    one_way = np.array(edges, dtype=np.int32).reshape(-1, 2)
    ends = np.concatenate([one_way, one_way[:, ::-1]])
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    starts = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends[:, 0], minlength=nodes), out=starts[1:])
    return starts, np.ascontiguousarray(ends[:, 1])


def _sum_dependencies(starts: NDArray[np.int64], neighbours: NDArray[np.int32], sources: Sequence[int]) -> NDArray[np.float64]:
    """By node the share of shortest paths from the sources that pass it (Brandes 2001).

    rustworkx computes it from all nodes or none. From each source the graph is walked a whole level at a time: forwards to
    count paths, backwards to sum the shares.
    """
    nodes, degrees = len(starts) - 1, np.diff(starts)
    latest = np.zeros(nodes, dtype=np.int64)
    total = np.zeros(nodes)
    for source in sources:
        paths = np.zeros(nodes)
        paths[source] = 1
        level = np.array([source])
        steps = []
        while True:
            count = degrees[level]
            before = np.repeat(level, count)
            places = np.arange(len(before)) + np.repeat(starts[level] - np.cumsum(count) + count, count)
            after = neighbours[places]
            new = paths[after] == 0
            before, after = before[new], after[new]
            if not len(after):
                break
            np.add.at(paths, after, paths[before])
            # each node once: the last of its places stays written
            order = np.arange(len(after))
            latest[after] = order
            level = after[latest[after] == order]
            steps.append((before, after))
        shares = np.zeros(nodes)
        for before, after in reversed(steps):
            np.add.at(shares, before, paths[before] / paths[after] * (1 + shares[after]))
        shares[source] = 0
        total += shares
    return total


def _read_peak_kilobytes() -> int:
    """The most memory this program took, 0 where the system does not tell.

    `ru_maxrss` would begin at what the process that started it took.
    """
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE) if status.exists() else None
    return int(found[1]) if found else 0


if __name__ == "__main__":
    result = compute(json.load(sys.stdin.buffer))
    result["kilobytes"] = _read_peak_kilobytes()
    json.dump(result, sys.stdout)
