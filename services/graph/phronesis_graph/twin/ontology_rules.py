"""An ontology held against itself, and against the names that belong to others."""

from __future__ import annotations

from collections.abc import Iterator

from ..constitution.records import RESERVED_LABELS
from ..links.items import ITEM_LABELS, LINK_TYPES
from .ontology import RESERVED, Chain, Kind, LevelRule, NodeType, Ontology, Property

Path = tuple[str, ...]
"""To a place in the file."""
Fault = tuple[Path, str]
"""What is wrong, and where."""

_HIDDEN = ("memory", "platform")
"""Beginnings of labels that are the platform's own, in small letters."""
_RESERVED_LABELS = RESERVED_LABELS | {label.lower() for label in ITEM_LABELS}
_RESERVED_PROPERTIES = RESERVED | {"node_id", "relationship_id"}
_VECTORS = ("embedding", "embed", "vector")
"""Parts of names that no query may read."""


def find_fault(ontology: Ontology) -> Fault | None:
    """The first thing that does not fit together, or that takes a name of the platform's own."""
    return next(_faults(ontology), None)


def _faults(ontology: Ontology) -> Iterator[Fault]:
    yield from _name_faults(ontology)
    for node in ontology.nodes.values():
        yield from _type_faults(node)
    if ontology.hierarchy is not None and ontology.relationships[ontology.hierarchy].rule is not LevelRule.DOWN:
        yield ("hierarchy",), f"{ontology.hierarchy} is a relationship already; the hierarchy declares one of its own"
    for each in ontology.relationships.values():
        place = ("relationships", each.name)
        if each.rule is LevelRule.DOWN and each.name != ontology.hierarchy:
            yield (*place, "rule"), "`down` is for the hierarchy alone; write `same` or `any`"
        for end, types in (("from", each.sources), ("to", each.targets)):
            for i, name in enumerate(types):
                if name not in ontology.nodes:
                    yield (*place, end, str(i)), f"there is no node type {name[:60]}"
    for chain in ontology.chains.values():
        yield from _chain_faults(ontology, chain)


def _name_faults(ontology: Ontology) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for name in ontology.nodes:
        if name.lower() in _RESERVED_LABELS or name.lower().startswith(_HIDDEN):
            advice = f"call the type {name}Item, say, and give it the word"
            yield ("nodes", name), f"{name} is a name of the platform's own; {advice}"
        if (other := seen.setdefault(name.lower(), name)) != name:
            yield ("nodes", name), f"{name} and {other} differ in case alone"
    for name in ontology.relationships:
        place = ("hierarchy",) if name == ontology.hierarchy else ("relationships", name)
        if name in LINK_TYPES or name.lower().startswith(_HIDDEN):
            yield place, f"{name} is a name of the platform's own; choose another"
        # A store of one namespace for both takes no relationship with the name of a label.
        if name.lower() in seen:
            yield place, f"{name} is the name of a node type too"


def _type_faults(node: NodeType) -> Iterator[Fault]:
    for each in node.properties.values():
        place = ("nodes", node.name, "properties", each.name)
        if each.name in _RESERVED_PROPERTIES:
            yield place, f"every node has {each.name}, so that no type declares it"
        if any(part in each.name for part in _VECTORS):
            yield place, "names with `embed` or `vector` are kept for embeddings; choose another"
        yield from (((*place, setting), detail) for setting, detail in _property_faults(each))


def _property_faults(each: Property) -> Iterator[tuple[str, str]]:
    number = each.kind is Kind.NUMBER
    if each.choices and each.kind is not Kind.STRING:
        yield "enum", "only a string has a closed set of values"
    if len(set(each.choices)) < len(each.choices):
        yield "enum", "a value stands here twice"
    if each.lowest is not None and each.highest is not None and not (number and each.lowest <= each.highest):
        yield "range", "a range is two numbers, the lower one first, of a number"
    if each.high_above is not None and not number:
        yield "high_above", "only a number is high"
    if (each.most or each.least) and each.kind not in (Kind.NUMBER, Kind.DATE) and not each.choices:
        yield "most" if each.most else "least", "only numbers, dates and closed sets have an order"
    for value in each.value_words:
        if each.kind is not Kind.STRING or (each.choices and value not in each.choices):
            yield "values", f"{value[:60]} is none of the property's values"


def _chain_faults(ontology: Ontology, chain: Chain) -> Iterator[Fault]:
    place = ("chains", chain.name, "steps")
    if len(chain.steps) % 2 == 0:
        yield place, "a chain begins and ends at a node type"
    if len(chain.steps[0]) > 1:
        yield (*place, "0"), "a chain begins at one node type"
    for i, step in enumerate(chain.steps):
        known, what = (ontology.relationships, "relationship") if i % 2 else (ontology.nodes, "node type")
        for name in step:
            if name not in known:
                yield (*place, str(i)), f"there is no {what} {name[:60]}"
                return
            if i % 2 and ontology.relationships[name].rule is not LevelRule.SAME:
                yield (*place, str(i)), f"{name} may join levels, and a chain stays within one; give it `rule: same`"
    for i in range(0, len(chain.steps) - 2, 2):
        sources, names, targets = chain.steps[i : i + 3]
        for target in targets:
            if not any(ontology.relationships[name].joins(source, target) for name in names for source in sources):
                yield (*place, str(i + 2)), f"the step before does not lead to {target}"
