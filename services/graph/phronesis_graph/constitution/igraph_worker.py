"""The program that computes one algorithm with igraph: the graph on its input, the result on its output, then it ends.

It is a process of its own because igraph holds the interpreter while it computes: in the service nothing else would be
answered for as long. What it takes of memory is free again when it ends, and it can be ended at a deadline.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from typing import Any

import igraph


def compute(job: dict[str, Any]) -> dict[str, Any]:
    """The result of a job: `values`, with `modularity` or `pivots` where they belong to it.

    Args:
        job: `algorithm`, `nodes` (how many), `sources` and `targets` (of the relationships), and the constants of
            `engines`: `seed`, `damping`, `exact` and `most_pivots`.
    """
    graph = igraph.Graph(job["nodes"], list(zip(job["sources"], job["targets"], strict=True)), directed=True)
    graph.simplify()
    if job["algorithm"] == "pagerank":
        return {"values": graph.pagerank(damping=job["damping"])}
    graph.to_undirected()
    if job["algorithm"] == "betweenness":
        return _compute_betweenness(graph, job)
    igraph.set_random_number_generator(random.Random(job["seed"]))
    found = graph.community_multilevel()
    return {"values": found.membership, "modularity": found.modularity if graph.ecount() else 0.0}


def _compute_betweenness(graph: igraph.Graph, job: dict[str, Any]) -> dict[str, Any]:
    nodes, pivots = job["nodes"], job["most_pivots"]
    if nodes <= job["exact"]:
        return {"values": graph.betweenness(directed=False)}
    chosen = random.Random(job["seed"]).sample(range(nodes), pivots)
    scores = graph.betweenness(directed=False, sources=chosen)
    return {"values": [score * nodes / pivots for score in scores], "pivots": pivots}


if __name__ == "__main__":
    result = compute(json.load(sys.stdin.buffer))
    # ru_maxrss is in kilobytes on Linux
    result["kilobytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    json.dump(result, sys.stdout)
