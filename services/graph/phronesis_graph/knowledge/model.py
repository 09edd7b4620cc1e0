"""Knowledge of the agents' own: which names it may have, which values it may hold, and how its keys are made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from phronesis_contracts import BadRequest
from phronesis_contracts.knowledge_graph import NAME, Form, Given

from ..constitution.records import RESERVED_LABELS
from ..links.items import LINK_TYPES
from ..twin.ontology import Ontology

F = TypeVar("F", bound=Form)
PropertyValue = str | int | float | bool | list[str] | list[int] | list[float] | list[bool]

KNOWLEDGE = "PlatformKnowledge"
"""The label that every node of the agents has beside its own."""
ID = "node_id"
RELATIONSHIP_ID = "relationship_id"
HIDDEN = frozenset({"tenant", "key"})
"""Properties of knowledge nodes that are the service's own."""
MOST_PROPERTIES = 100
LONGEST_TEXT = 20_000
"""Characters of one text, or of all texts of a list."""
LONGEST_LIST = 1_000
_SIZE = 100_000
"""Characters of all values of one node or relationship, so that a search has room for several."""
_INT64 = 2**63
_NAME = re.compile(NAME)
_VECTOR = re.compile(r"embedding|^embed$|^vector$|_vector$", re.IGNORECASE)
_HIDDEN = ("memory", "platform")
"""Beginnings of labels that no tool of the graph reaches: users' memories, and the service's own nodes. `Concept` is
free, though users' items have it too: a node of the agents is told from them by its second label."""


@dataclass(frozen=True)
class KnowledgeNames:
    """Which labels and relationship types agents may give."""

    labels: frozenset[str]
    """Labels of the twin, whose nodes agents may only read."""
    types: frozenset[str]
    """Relationship types that are somebody else's."""

    @property
    def everything(self) -> frozenset[str]:
        return self.labels | self.types

    def label(self, name: str, field: str = "label") -> str:
        """A label for the agents' nodes. Raises `BadRequest`: it is the ontology's or the platform's own."""
        # A store of one namespace for both takes no label with the name of a relationship type, nor the other way round.
        if name in self.labels or name in self.types or name.lower().startswith(_HIDDEN) or name.lower() in RESERVED_LABELS:
            raise BadRequest(f"{name} is a name of the platform's own; choose another", field=field)
        return name

    def searched(self, name: str) -> str:
        """A label whose nodes may be read; raises as `label` does."""
        return name if name in self.labels else self.label(name)

    def type(self, name: str, field: str = "type") -> str:
        """A type for a relationship of the agents; raises as `label` does."""
        return self.label(name, field)


def allowed_names(ontology: Ontology) -> KnowledgeNames:
    """The names that agents may not take."""
    return KnowledgeNames(frozenset(ontology.nodes), frozenset({*ontology.relationships, *LINK_TYPES}))


def check_form(given: Given, form: type[F]) -> F:
    """The arguments of a call in their form. Raises `BadRequest`: they do not fit; `field` names the argument at fault."""
    try:
        return form.model_validate(given.model_extra or {})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part)[:60] for part in fault["loc"])
        raise BadRequest(_FORM_ADVICE.get(fault["type"], str(fault["msg"])), field=place or None) from error


_FORM_ADVICE = {
    "missing": "this argument is required",
    "extra_forbidden": "there is no such argument",
    "string_pattern_mismatch": "a name begins with a letter or _, and has up to 64 letters, digits and _",
}


def check_properties(given: Mapping[str, object], field: str = "properties") -> dict[str, PropertyValue]:
    """Properties as a store keeps them, each with its type.

    Raises `BadRequest`: a name that is none or is the platform's, or a value that no store keeps; `field` names it.
    """
    if len(given) > MOST_PROPERTIES:
        raise BadRequest(f"there are over {MOST_PROPERTIES} properties", field=field)
    result = {check_property_name(name, field): _check_value(value, f"{field}.{name}") for name, value in given.items()}
    if sum(map(_size, result.values())) > _SIZE:
        raise BadRequest(f"the values have over {_SIZE} characters in all", field=field)
    return result


def check_property_name(name: str, field: str) -> str:
    """The name of a property of the agents. Raises `BadRequest`: it is none, or the platform's own, or that of an embedding."""
    path = f"{field}.{name[:60]}"
    if not _NAME.fullmatch(name):
        raise BadRequest(_FORM_ADVICE["string_pattern_mismatch"], field=path)
    if name in HIDDEN or name in (ID, RELATIONSHIP_ID):
        raise BadRequest("this property is the platform's own", field=path)
    if is_vector_name(name):
        raise BadRequest("embeddings are the memory service's to keep", field=path)
    return name


def is_vector_name(name: str) -> bool:
    """Whether a property of that name holds an embedding, which no tool of the graph gives or takes."""
    return _VECTOR.search(name) is not None


def knowledge_key(tenant: str, node_id: str) -> str:
    """The key of a knowledge node. It has one slash; the keys of the twin and of users' items have more."""
    return f"{tenant}/{node_id}"


def _check_value(value: object, path: str) -> PropertyValue:
    match value:
        case None:
            raise BadRequest("null is no value; leave the property out", field=path)
        case list():
            return _check_list(value, path)
        case _:
            return _check_scalar(value, path)


def _check_scalar(value: object, path: str) -> str | int | float | bool:
    match value:
        case bool():
            return value
        case str():
            if len(value) > LONGEST_TEXT:
                raise BadRequest(f"the text is over {LONGEST_TEXT} characters", field=path)
            return value
        case int():
            if not -_INT64 <= value < _INT64:
                raise BadRequest("the number is too great; pass it as text", field=path)
            return value
        case float() if math.isfinite(value):
            return value
    raise BadRequest("a text, a number, a boolean, or a list of one of these is needed", field=path)


def _check_list(value: list[object], path: str) -> PropertyValue:
    if len(value) > LONGEST_LIST:
        raise BadRequest(f"the list is over {LONGEST_LIST} members", field=path)
    members = [_check_scalar(member, path) for member in value]
    if len({type(member) for member in members}) > 1:
        raise BadRequest("a list holds values of one type", field=path)
    if _size(members) > LONGEST_TEXT:
        raise BadRequest(f"the list is over {LONGEST_TEXT} characters", field=path)
    return members  # type: ignore[return-value]


def _size(value: object) -> int:
    return sum(map(_size, value)) if isinstance(value, list) else len(str(value))
