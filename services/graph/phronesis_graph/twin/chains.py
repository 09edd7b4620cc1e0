"""The ontology's chains as walks: from a node of a given type, hop by hop, to the chain's end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from phronesis_contracts import BadRequest

from .ontology import Chain, LevelRule, Ontology, suggest_nearest


@dataclass(frozen=True)
class Hop:
    """One step: from any of the source types by any of the relationships to any of the target types."""

    sources: tuple[str, ...]
    names: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{' | '.join(self.names)} -> {' | '.join(self.targets)}"


@dataclass(frozen=True)
class Walk:
    """A chain from the first place where nodes of one type stand in it."""

    chain: str
    begin: str
    hops: tuple[Hop, ...]

    @property
    def types(self) -> tuple[tuple[str, ...], ...]:
        return ((self.begin,), *(hop.targets for hop in self.hops))


Walks = Mapping[str, Mapping[str, Walk]]
"""By chain, then by the type of the node to begin at; a chain's own beginning comes first."""


def build_walks(ontology: Ontology) -> Walks:
    """Every walk that can be asked for.

    Raises `ValueError`: a chain has a place that no walk could pass within one level, or more than one beginning.
    """
    made = {}
    for chain in ontology.chains.values():
        if len(chain.steps[0]) > 1:
            raise ValueError(f"{chain.name} begins at more than one node type")
        made[chain.name] = dict(_walks_of_chain(ontology, chain))
    return made


def choose_walk(walks: Walks, chain: str, begin: str | None, field: str, begin_field: str) -> Walk:
    """The walk of a chain from a node type, its own beginning where none is stated. Raises `BadRequest`."""
    if chain not in walks:
        raise BadRequest(f"no such chain{suggest_nearest(chain, walks)}", field=field)
    of_chain = walks[chain]
    if begin is None:
        return next(iter(of_chain.values()))
    if begin not in of_chain:
        raise BadRequest(f"{chain} leads on from no {begin[:60]}{suggest_nearest(begin, of_chain)}", field=begin_field)
    return of_chain[begin]


def _walks_of_chain(ontology: Ontology, chain: Chain) -> Iterator[tuple[str, Walk]]:
    hops = tuple(Hop(*chain.steps[at : at + 3]) for at in range(0, len(chain.steps) - 2, 2))
    for hop in hops:
        if any(ontology.relationships[name].rule is not LevelRule.SAME for name in hop.names):
            raise ValueError(f"{chain.name} walks a relationship that may join levels")
    seen: set[str] = set()
    for at, hop in enumerate(hops):
        for begin in hop.sources:
            if begin not in seen:
                seen.add(begin)
                yield begin, Walk(chain.name, begin, (_narrow_hop(ontology, begin, hop), *hops[at + 1 :]))


def _narrow_hop(ontology: Ontology, begin: str, hop: Hop) -> Hop:
    joins = {name: [t for t in hop.targets if ontology.relationships[name].joins(begin, t)] for name in hop.names}
    reached = {target for targets in joins.values() for target in targets}
    return replace(
        hop,
        sources=(begin,),
        names=tuple(name for name in hop.names if joins[name]),
        targets=tuple(target for target in hop.targets if target in reached),
    )
