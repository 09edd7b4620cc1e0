"""The defaults of a tenant's searches: what the product ships with, and what the tenant has changed (O-366)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.retrieval import TUNABLE, RetrievalTuned
from phronesis_contracts.constitution.search import HybridSearch, InsightSearch, PrecedentSearch, SemanticSearch

Request = TypeVar("Request", SemanticSearch, HybridSearch, InsightSearch, PrecedentSearch)
_NAMES: dict[type[object], Mapping[str, str]] = {
    SemanticSearch: {"min_similarity": "semantic.minSimilarity"},
    HybridSearch: {
        "min_similarity": "hybrid.minSimilarity",
        "structural_weight": "hybrid.structuralWeight",
        "semantic_weight": "hybrid.semanticWeight",
    },
    InsightSearch: {"min_similarity": "insight.minSimilarity", "min_confidence": "insight.minConfidence"},
    PrecedentSearch: {"min_similarity": "precedent.minSimilarity"},
}


def tuned(request: Request, changed: Mapping[str, float]) -> Request:
    """The request with the defaults for what its caller left open.

    Args:
        request: what was asked.
        changed: the tenant's own defaults by name.
    """
    names = _NAMES[type(request)]
    filled = {field: value(changed, name) for field, name in names.items() if getattr(request, field) is None}
    return request.model_copy(update=filled)


def value(changed: Mapping[str, float], name: str) -> float:
    """One default."""
    return changed.get(name, TUNABLE[name])


def checked(values: Mapping[str, float | None]) -> None:
    """See that these may become defaults.

    Raises:
        BadRequest: there is no such default, or it cannot have this value.
    """
    for name, given in values.items():
        if name not in TUNABLE:
            raise BadRequest(f"there is no default {name!r}; there are {', '.join(TUNABLE)}", field="values")
        if given is not None and not 0 <= given <= 1:
            raise BadRequest(f"{name} is 0 to 1", field="values")


def told(changed: Mapping[str, float]) -> RetrievalTuned:
    """All defaults as they are now.

    Raises:
        BadRequest: both weights are 0, so that nothing would be ranked.
    """
    values = {name: value(changed, name) for name in TUNABLE}
    if values["hybrid.structuralWeight"] + values["hybrid.semanticWeight"] <= 0:
        raise BadRequest("one of the weights has to be above 0", field="values")
    return RetrievalTuned(values=values, changed=tuple(name for name in TUNABLE if values[name] != TUNABLE[name]))
