"""Which fields of a node a list tells, and what types it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from phronesis_contracts import BadRequest
from phronesis_contracts.constitution.kinds import Layer, NodeType
from phronesis_contracts.constitution.registry import TYPES, node_type

from ..checks import nearest
from .records import BAGS, COMMON, column, columns

IDENTITY = ("id", "type", "layer", "title")
"""Fields that no caller can leave out (O-129)."""
FOUNDATION = ("id", "type", "layer", "title", "summary", "description", "status", "createdAt", "updatedAt")
"""Fields of the foundation's list (O-126)."""
VISION = ("id", "type", "layer", "title", "summary", "description", "horizon", "deadline", "target", "status")
"""Fields of the vision's list (O-141), and the description for who asks for it."""


def full(kinds: Iterable[NodeType]) -> tuple[str, ...]:
    """Columns of the store from which nodes of these types are told in full."""
    return tuple(dict.fromkeys(name for kind in kinds for name in columns(kind)))


def told(kinds: Sequence[NodeType], excluded: Collection[str], base: Sequence[str] = COMMON) -> tuple[str, ...]:
    """Columns of the store from which nodes are told in part.

    Args:
        kinds: their types.
        excluded: fields to leave out, as messages name them; `properties` stands for all typed properties that are not
            in `base`. A name that there is not leaves nothing out.
        base: fields to tell beside the bags and the typed properties.
    """
    typed = {one.name: column(one) for kind in kinds for one in kind.properties}
    names = (*base, *BAGS, *(() if "properties" in excluded else typed))
    return tuple(dict.fromkeys(typed.get(name, name) for name in names if name in IDENTITY or name not in excluded))


def kinds_of(given: Iterable[str], field: str, layer: Layer | None = None) -> tuple[NodeType, ...]:
    """The types that a caller names, in whatever case; all of the layer where none is named.

    Raises:
        BadRequest: there is no such type, or it is of another layer.
    """
    among = tuple(kind for kind in TYPES.values() if layer is None or kind.layer is layer)
    named = []
    for i, name in enumerate(given):
        kind = node_type(name)
        if kind is None or kind not in among:
            what = "no such node type" if kind is None else f"{kind.name} is of the {kind.layer} layer"
            raise BadRequest(f"{what}{nearest(name, (one.name for one in among))}", field=f"{field}.{i}")
        named.append(kind)
    return tuple(named) or among
