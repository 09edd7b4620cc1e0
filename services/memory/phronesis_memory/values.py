"""The values that the folders share: items, audiences, owners' names, and what can be stored at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import UUID

import numpy as np
import numpy.typing as npt

from phronesis_bus import Call
from phronesis_contracts import UNKNOWN, BadRequest, Forbidden, Label, Message, OriginKind, Principal, formed, untrusted
from phronesis_contracts.memory import SHARED, ItemKind, Scope, scopes_recalled

from .words.analysis import Words

FACTS_PREFIX = "facts:"
"""What the name of every owner of facts begins with."""
DOCUMENTS_PREFIX = "documents:"
"""What the name of every owner of passages begins with."""
SCOPE_PREFIX = "scope:"
"""What the name of every owner of a scope begins with. The policy `of_its_room` of the schema knows it too."""


LIVE = "(expires_at IS NULL OR expires_at > now())"
"""The condition that an item has not expired; every statement that reads what items say has it."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def find_scope(who: Principal, name: str) -> Scope:
    """The scope of this name, which the caller may recall. Raises `Forbidden` (it may not recall it), `BadRequest`."""
    allowed = scopes_recalled(who)
    if name not in set(Scope):
        raise BadRequest(f"there is no such scope; allowed: {', '.join(sorted(allowed))}", field="scope")
    if (scope := Scope(name)) not in allowed:
        raise Forbidden(f"{who.rights} may not recall memories of the scope {scope}")
    return scope


def owner_of_scope(who: Principal, scope: Scope) -> str | None:
    """The owner of the items in this scope of the caller; `None` for one without the department or ministry.

    Names are quoted, so that each is one of a kind whatever characters an index trims or splits at.
    """
    match scope:
        case Scope.PERSONAL:
            name: str | None = who.user
        case Scope.DEPARTMENTAL:
            name = who.department
        case Scope.MINISTRY:
            name = who.ministry
        case _:
            return f"{SCOPE_PREFIX}{scope}"
    return f"{SCOPE_PREFIX}{scope}:{quote(name, safe='', errors='surrogatepass')}" if name and name.strip() else None


def owner_of_facts(user: str) -> str:
    """The owner of the items by which a user's held facts are found."""
    return FACTS_PREFIX + quote(user, safe="", errors="surrogatepass")


def owner_of_documents(user: str, conversation_id: str) -> str:
    """The owner of the passages of the documents of a conversation of the user."""
    return DOCUMENTS_PREFIX + ":".join(quote(one, safe="", errors="surrogatepass") for one in (user, conversation_id))


_ANSWER = 450_000
"""Bytes of texts in one answer; the broker's limit leaves room for the rest."""


def is_storable(value: Any) -> bool:
    """Whether a JSON value holds nothing that the store refuses: NUL, lone surrogates, infinite numbers."""
    match value:
        case str():
            return "\x00" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
        case float():
            return math.isfinite(value)
        case dict():
            return all(is_storable(k) and is_storable(v) for k, v in value.items())
        case list() | tuple():
            return all(is_storable(v) for v in value)
        case _:
            return True


def shorten(text: str, items: int) -> str:
    """`text`, or as much of it as one of `items` texts of an answer may have."""
    limit = _ANSWER // max(1, items)
    data = text.encode()
    return text if len(data) <= limit else data[:limit].decode(errors="ignore") + "…"


Request = TypeVar("Request", bound=Message)


def check_storable(request: Request) -> Request:
    """The request itself. Raises `BadRequest`: a field of it holds what no store takes, such as a NUL character."""
    for name, value in request.model_dump(mode="json").items():
        if not is_storable(value):
            raise BadRequest("no NUL characters", field=name)
    return request


def check_batch(items: Sequence[Message], name: str) -> None:
    """Hold up a batch in which an external id stands twice, or something cannot be stored.

    Args:
        name: the field that holds the items.

    Raises:
        BadRequest: with the item's number, and its field.
    """
    seen: set[str] = set()
    for number, item in enumerate(items):
        id: str | None = getattr(item, "external_id", None)
        if id in seen:
            raise BadRequest("an external id stands twice in one request", field=f"{name}.{number}.external_id")
        if id is not None:
            seen.add(id)
        for said in type(item).model_fields:
            if not is_storable(getattr(item, said)):
                raise BadRequest("no NUL characters and no infinite numbers", field=f"{name}.{number}.{said}")


OWN = (Label(kind=OriginKind.MEMORY),)
"""The labels of the user's own words."""
_AGENTS = "orchestrator"
"""The service whose calls may be an agent's."""


def labels_of_call(call: Call, stated: Sequence[Label]) -> tuple[Label, ...]:
    """The labels of what a call keeps: what an agent's call states, or nobody knows; anybody else's call is their own word."""
    if call.service != _AGENTS:
        return OWN
    return formed(stated) if stated else UNKNOWN


CLAIM, NOBODY = "According to {source}: {text}", "a source that is not known"
"""How a fact is told that others say, and who says it where that has no name; in languages that do not say how."""


def tell_claim(text: str, labels: Sequence[Label], words: str = CLAIM, nobody: str = NOBODY) -> str:
    """A fact as what its source says, where that is not the user; as it stands where it is.

    Args:
        words: the sentence, with `{source}` and `{text}`.
        nobody: who says it where that has no name.
    """
    others = untrusted(labels)
    named = ", ".join(dict.fromkeys(label.name for label in others if label.name))
    return words.replace("{source}", named or nobody).replace("{text}", text) if others else text


Vector: TypeAlias = npt.NDArray[np.float32]

EXPERIENCE_KINDS = frozenset({ItemKind.EPISODE, ItemKind.MESSAGE, ItemKind.STYLE, ItemKind.STRATEGY, ItemKind.PASSAGE})
"""The kinds that are searched where they are named alone, and that the graph does not know."""
ORDINARY_KINDS = tuple(kind for kind in ItemKind if kind not in EXPERIENCE_KINDS)
"""The kinds that are searched unless the caller names some."""
MEMORY_KIND = ItemKind.FACT
"""The kind of what is kept in a scope; what tells it from a fact of a user is its owner, a scope."""


@dataclass(frozen=True)
class Audience:
    """What a search may see: items of `tenant` that belong to one of `owners` and are of one of `kinds`."""

    tenant: str
    owners: tuple[str, ...]
    kinds: tuple[ItemKind, ...] = ORDINARY_KINDS

    @classmethod
    def of(cls, who: Principal, kinds: Sequence[ItemKind] = ()) -> Audience:
        """The caller's own items and facts, and the tenant's shared items; the ordinary kinds unless some are named."""
        return cls(who.tenant, (who.user, SHARED, owner_of_facts(who.user)), tuple(dict.fromkeys(kinds)) or ORDINARY_KINDS)


@dataclass(frozen=True)
class Said:
    """Where and when something was said."""

    conversation_id: str | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    """When it is to be forgotten."""


@dataclass(frozen=True)
class Draft:
    """An item as it is about to be stored."""

    kind: ItemKind
    text: str
    digest: bytes
    """Hash of everything that the item says; an equal one means that nothing is to be done."""
    external_id: str | None = None
    part: str = ""
    """Tells apart several items with one external id (the chunks of a node)."""
    family: str = ""
    """What the item is a version of (`type/id` of a node, whatever its year); empty for an item of its own."""
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    """Conversations that it was learnt from."""
    said: Said = Said()
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from."""
    words: Words | None = None
    vector: Vector | None = None
    passages: tuple[Vector, ...] = ()
    """The vectors of its passages, where it has several."""

    @property
    def whole(self) -> str:
        return f"{self.title}. {self.text}" if self.title else self.text


@dataclass(frozen=True)
class Item:
    id: str
    kind: ItemKind
    title: str | None
    text: str
    external_id: str | None
    family: str
    created_at: datetime
    updated_at: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[Label, ...] = UNKNOWN

    @property
    def told(self) -> str:
        """What it says; a fact that others say, as what they say."""
        return tell_claim(self.text, self.labels) if self.family.startswith("fact/") else self.text


@dataclass(frozen=True)
class NodeState:
    """A graph node as it was when it was asked for."""

    key: str
    version: int
    gone: bool = False


@dataclass(frozen=True)
class VectorEntry:
    id: str
    tenant: str
    owner: str
    kind: ItemKind
    vector: Vector
    family: str = ""
    passages: tuple[Vector, ...] = ()


@dataclass(frozen=True)
class VectorHit:
    id: str
    kind: ItemKind
    cosine: float
    """Of the item's own vector, by which hits are chosen."""
    nearest: float
    """Of its own vector, or of its nearest passage where that is nearer."""
    family: str = ""


@dataclass(frozen=True)
class TextHit:
    """An item with words of a query."""

    id: str
    kind: ItemKind
    bm25: float
    coverage: float
    """0 to 1: how much of the query's weight stands in the item."""
    family: str = ""


def parse_ids(ids: Iterable[str]) -> list[UUID]:
    """Those of `ids` that are UUIDs, as all ids of items are."""
    found = []
    for id in ids:
        with suppress(ValueError):
            found.append(UUID(id))
    return found


class VectorMissing(Exception):
    """A draft that turned out to be new or changed carries no vector; the caller makes it and tries again."""
