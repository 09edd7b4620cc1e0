"""How the pages name fields and where they lead."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlencode

from phronesis_contracts import Principal
from phronesis_contracts.constitution.kinds import Layer
from phronesis_contracts.constitution.values import LINKERS, WRITERS

PATH = "/console/constitution"


def address(*parts: str, **query: str | None) -> str:
    """The address of a page."""
    given = {name: value for name, value in query.items() if value is not None}
    return "/".join((PATH, *(quote(part, safe="") for part in parts))) + (f"?{urlencode(given)}" if given else "")


def spaced(name: str) -> str:
    """`successCriteria` as people write it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def spaced_type(name: str) -> str:
    """`SUPPORTED_BY` as people write it."""
    return name.replace("_", " ").lower()


def may_write(who: Principal, layer: Layer) -> bool:
    """Whether somebody's role may change nodes of a layer."""
    return who.role in WRITERS[layer]


def may_join(who: Principal) -> bool:
    """Whether somebody's role may make relationships."""
    return who.role in LINKERS


def shown(value: Any) -> str:
    """A value of a node as people read it."""
    match value:
        case None | "":
            return "—"
        case list() | tuple():
            return "; ".join(shown(each) for each in value)
        case dict():
            return ", ".join(f"{spaced(str(name))}: {shown(each)}" for name, each in value.items())
        case float():
            return f"{value:g}"
        case _:
            return str(value)
