"""Relationships held against the registry: their names, the ends that each may have, and chains that come back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from phronesis_contracts import Forbidden, Role
from phronesis_contracts.constitution.kinds import Layer, NodeType
from phronesis_contracts.constitution.relationships import NAME, RELATIONSHIPS, choices
from phronesis_contracts.constitution.values import WRITERS
from phronesis_contracts.constitution.writes import RegistryRefused

_PLAIN = re.compile(NAME)
_LONGEST = 64
_MISSPELT = 0.8
"""How alike an undeclared name and a declared one are when the one is taken for a misspelling of the other."""


def check_name(name: str) -> None:
    """Hold the name of a relationship type against the declared ones; nothing but a plain name may reach a statement (O-351).

    Raises:
        RegistryRefused: it is no name in capitals, or not declared and nearly one that is.
    """
    if not _PLAIN.fullmatch(name) or len(name) > _LONGEST:
        raise RegistryRefused("a relationship type is a name in capitals, such as SUPPORTED_BY", field="type")
    if name not in RELATIONSHIPS and (close := get_close_matches(name, RELATIONSHIPS, n=1, cutoff=_MISSPELT)):
        raise RegistryRefused(f"there is no relationship type {name}; did you mean {close[0]}?", field="type")


def check_ends(name: str, source: NodeType, target: NodeType) -> None:
    """Hold the ends of a relationship against the registry; a type that it does not declare joins any two (O-074).

    Raises:
        RegistryRefused: the type does not lead from the one to the other; what does is named.
    """
    kind = RELATIONSHIPS.get(name)
    if kind is None or kind.joins(source, target):
        return
    there = ", ".join(choices(source, target))
    back = ", ".join(choices(target, source))
    hint = f"{there} does" if there else f"{back} leads the other way" if back else _targets(name, source)
    raise RegistryRefused(f"{name} does not lead from a {source.name} to a {target.name}; {hint}", field="type")


def check_writer(role: Role, layer: Layer) -> None:
    """Hold a caller's role against a layer.

    Raises:
        Forbidden: it may not write that layer.
    """
    if role not in WRITERS[layer]:
        raise Forbidden(f"role {role} may not write the {layer} layer")


def check_cycle(name: str, cycle: Sequence[str]) -> None:
    """Refuse a relationship that would close a chain.

    Args:
        name: its type.
        cycle: titles along the chain, from the node that it leads from back to it; nothing where there is no such chain.

    Raises:
        RegistryRefused: there is one.
    """
    if cycle:
        chain = f" -{name}-> ".join(title[:60] for title in cycle)
        raise RegistryRefused(f"a chain of {name} may not come back to where it began: {chain}", field="toId")


def _targets(name: str, source: NodeType) -> str:
    ends = sorted({target for ends in RELATIONSHIPS[name].ends if source.name in ends.source for target in ends.target})
    return f"from a {source.name} it leads to {', '.join(ends)}" if ends else f"it never leads from a {source.name}"
