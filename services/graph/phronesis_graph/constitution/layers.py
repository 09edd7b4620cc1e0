"""Foundation and vision read whole. Their orders, what is told of them, and the answers kept until a write touches them."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from phronesis_contracts import Message, TooLarge
from phronesis_contracts.constitution import lists
from phronesis_contracts.constitution.registry import PARENTS, Layer, types_of_layer
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention
from phronesis_contracts.constitution.writes import ConstitutionChanged
from phronesis_tokens import cut

from .budgets import FittedLayer, allowed_tokens, fit_layer, removal_order
from .pages import (
    FOUNDATION_FIELDS,
    VISION_FIELDS,
    find_kinds,
    list_columns,
    list_stats,
    make_cursor,
    message_tokens,
    read_cursor,
)
from .ports import LINKS_EACH, LayerRow, Layers, Parent
from .records import node_from_row

Answer = TypeVar("Answer", bound=Message)
Touches = Callable[[ConstitutionChanged], bool]
"""Whether a change may make an answer another one."""

CACHE_SECONDS = 600.0
"""How long an answer is kept at most, in case the news of a change is lost."""
CACHE_SIZE = 128
"""How many answers are kept; each is at most as large as an answer may be."""


@dataclass
class _CachedAnswer:
    answer: Any
    touches: Touches
    until: float


@dataclass
class _PendingAnswer:
    tenant: str
    overtaken: bool = False
    """Whether news came while it was made: it may be older than the change."""


class AnswerCache:
    """Answers by tenant and question. `size`: how many are cached; the one unused for longest goes first."""

    def __init__(
        self, seconds: float = CACHE_SECONDS, size: int = CACHE_SIZE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._size, self._clock = seconds, size, clock
        self._cached: OrderedDict[tuple[str, str, str], _CachedAnswer] = OrderedDict()
        self._making: list[_PendingAnswer] = []

    async def of(
        self, tenant: str, question: Message, make: Callable[[], Awaitable[tuple[Answer, Touches]]]
    ) -> tuple[Answer, bool]:
        """The answer, and whether it was cached; `make` makes it where it was not. Raises what `make` raises."""
        key = (tenant, type(question).__name__, question.model_dump_json())
        cached = self._cached.get(key)
        if cached is not None and cached.until > self._clock():
            self._cached.move_to_end(key)
            return cached.answer, True
        making = _PendingAnswer(tenant)
        self._making.append(making)
        try:
            answer, touches = await make()
        finally:
            self._making.remove(making)
        if not making.overtaken:
            self._cached[key] = _CachedAnswer(answer, touches, self._clock() + self._seconds)
            self._cached.move_to_end(key)
            while len(self._cached) > self._size:
                self._cached.popitem(last=False)
        return answer, False

    def changed(self, tenant: str, event: ConstitutionChanged) -> None:
        """Drop what a change of a tenant's graph touches, and keep nothing that is being made for it at this moment."""
        for making in self._making:
            making.overtaken |= making.tenant == tenant
        for key in [key for key, cached in self._cached.items() if key[0] == tenant and cached.touches(event)]:
            del self._cached[key]

    def clear(self) -> None:
        """Drop everything: news may have been missed."""
        for making in self._making:
            making.overtaken = True
        self._cached.clear()


_LONGEST = 64
"""Characters of another text that count for its place."""
_PART = re.compile(r"(\d{4})(?:-(\d{2}))?")
_QUARTER = re.compile(r"(\d{4})[- ]?Q([1-4])", re.IGNORECASE)
_LENGTH = re.compile(
    r"P(?=.)(?:(\d{1,6})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:\d{1,6}[HMS])+)?", re.IGNORECASE
)
_PHRASE = re.compile(r"(\d{1,6})[\s-]*(year|quarter|month|week|day)s?", re.IGNORECASE)
_DAYS = {"year": 365.25, "quarter": 91.3125, "month": 30.4375, "week": 7.0, "day": 1.0}


def horizon_sort_key(given: str | None) -> str:
    """A text whose order is the order of horizons: days and times, then lengths of time, then other texts, then none."""
    text = (given or "").strip()
    if not text:
        return "3"
    if (when := _read_date(text)) is not None:
        return f"0{when}"
    if (days := _read_days(text)) is not None:
        return f"1{days:012.4f}"
    return f"2{text.casefold()[:_LONGEST]}"


def _read_date(text: str) -> str | None:
    if (part := _PART.fullmatch(text)) is not None:
        return text if part[2] is None or 1 <= int(part[2]) <= 12 else None
    if (quarter := _QUARTER.fullmatch(text)) is not None:
        return f"{quarter[1]}-{3 * int(quarter[2]) - 2:02}"
    try:
        if len(text) == 10:
            return date.fromisoformat(text).isoformat()
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat() if "-" in text[:5] else None


def _read_days(text: str) -> float | None:
    if (length := _LENGTH.fullmatch(text)) is not None:
        counts = zip(length.groups(), (_DAYS["year"], _DAYS["month"], _DAYS["week"], _DAYS["day"]), strict=True)
        return sum(int(number or 0) * days for number, days in counts)
    if (said := _PHRASE.fullmatch(text)) is not None:
        return int(said[1]) * _DAYS[said[2].lower()]
    return None


FOUNDATION_KINDS = types_of_layer(Layer.FOUNDATION)
_FOUNDATION_CURSOR = "foundation.v2"
_CLIPPED_TOKENS = 60
"""Tokens of a description that stands in for a summary."""


def foundation_sort_key(row: LayerRow) -> tuple[str, ...]:
    """What a row is sorted by: type and age, and the id, which no two share."""
    return row["type"], row["createdAt"], row["id"]


def read_foundation_cursor(given: str | None) -> tuple[str, ...]:
    """The place that a cursor names; before everything where there is none. Raises `BadRequest`: it is not of this list."""
    return read_cursor(given, {_FOUNDATION_CURSOR: 3})[1:] if given else ()


def shape_foundation_row(row: LayerRow, columns: Sequence[str], described: Collection[str]) -> LayerRow:
    """A row with the columns that are told.

    A description is told of the types in `described` alone. The others have a summary: where theirs is empty, the
    beginning of the description stands there.
    """
    shown = {name: row[name] for name in columns}
    if row["type"] not in described:
        shown.pop("description", None)
        if "summary" in shown and not shown["summary"] and row["description"]:
            shown["summary"] = cut(row["description"], _CLIPPED_TOKENS, "…")
    return shown


def links_by_source(links: Iterable[ConstitutionLink], rows: Sequence[LayerRow]) -> dict[str, list[ConstitutionLink]]:
    """Relationships by the node that they lead from, in the order of these nodes and then of ids."""
    joined: dict[str, list[ConstitutionLink]] = {row["id"]: [] for row in rows}
    for link in sorted(links, key=lambda link: link.id):
        if link.from_id in joined:
            joined[link.from_id].append(link)
    return joined


def build_foundation_list(found: FittedLayer[ConstitutionNode], rows: Sequence[LayerRow]) -> lists.FoundationListed:
    answer = lists.FoundationListed(
        items=found.nodes,
        relationships=found.links,
        stats=list_stats(found.nodes, 0),
        truncated=found.truncated,
        next_cursor=None if found.whole else make_cursor(_FOUNDATION_CURSOR, *foundation_sort_key(rows[len(found.nodes) - 1])),
    )
    return answer.model_copy(update={"stats": list_stats(found.nodes, message_tokens(answer))})


def foundation_touches(relationships: bool) -> Touches:
    """Which writes make the list another one: of its nodes, and, where they are told, of relationships between them."""

    def touches(event: ConstitutionChanged) -> bool:
        return any(node.layer is Layer.FOUNDATION for node in event.nodes) or (
            relationships and any(set(link.layers) == {Layer.FOUNDATION} for link in event.relationships)
        )

    return touches


VISION_KINDS = types_of_layer(Layer.VISION)
_RANK = {kind.name: str(i) for i, kind in enumerate(VISION_KINDS)}
"""Vision, business, goal, season: the registry's order."""
_VISION_CURSOR = "vision.v2"


def vision_sort_key(row: LayerRow) -> tuple[str, ...]:
    """What a row is sorted by: type, horizon and age, and the id, which no two share."""
    return _RANK[row["type"]], horizon_sort_key(row["horizon"]), row["createdAt"], row["id"]


def read_vision_cursor(given: str | None) -> tuple[str, ...]:
    """The place that a cursor names; before everything where there is none. Raises `BadRequest`: it is not of this list."""
    return read_cursor(given, {_VISION_CURSOR: 4})[1:] if given else ()


def parents_by_child(parents: Iterable[Parent]) -> dict[str, tuple[Mention, ...]]:
    """The active parents of each node, by kind of relationship and then by title."""
    found: dict[str, list[Mention]] = {}
    for one in sorted(parents, key=lambda one: (PARENTS.index(one.relationship), one.title, one.id)):
        if one.active:
            mention = Mention(id=one.id, type=one.type, title=one.title, relationship=one.relationship)
            found.setdefault(one.child, []).append(mention)
    return {child: tuple(mentions) for child, mentions in found.items()}


def vision_node_maker(parents: Mapping[str, tuple[Mention, ...]]) -> Callable[[LayerRow], lists.VisionNode]:
    """How a row becomes a node with its parents; one without any has no such field."""

    def make(row: LayerRow) -> lists.VisionNode:
        node = node_from_row(row)
        return lists.VisionNode.model_validate({**dict(node), "parents": parents.get(node.id)})

    return make


def build_vision_list(found: FittedLayer[lists.VisionNode], rows: Sequence[LayerRow]) -> lists.VisionListed:
    answer = lists.VisionListed(
        items=found.nodes,
        stats=list_stats(found.nodes, 0),
        truncated=found.truncated,
        next_cursor=None if found.whole else make_cursor(_VISION_CURSOR, *vision_sort_key(rows[len(found.nodes) - 1])),
    )
    return answer.model_copy(update={"stats": list_stats(found.nodes, message_tokens(answer))})


def vision_touches(parents: Iterable[Parent], hierarchy: bool) -> Touches:
    """Which writes make the list another one: of its nodes, and, where parents are told, of them and of what leads to them.

    Args:
        parents: all of them, active or not: an archived one may become active.
        hierarchy: whether parents are told.
    """
    ids = frozenset(parent.id for parent in parents)

    def touches(event: ConstitutionChanged) -> bool:
        return any(node.layer is Layer.VISION or node.id in ids for node in event.nodes) or (
            hierarchy and any(Layer.VISION in link.layers and link.type in PARENTS for link in event.relationships)
        )

    return touches


_NOBODY = "-"


class WholeLayers:
    """The two lists as they are in the store at this moment, each with what would make it another one."""

    def __init__(self, store: Layers) -> None:
        self._store = store

    async def warm(self) -> None:
        """Let the store plan what every session begins with. Raises `Unavailable` (the store is down), `TimedOut`."""
        await self.foundation(_NOBODY, lists.ListFoundation())
        await self.vision(_NOBODY, lists.ListVision())

    async def foundation(self, tenant: str, request: lists.ListFoundation) -> tuple[lists.FoundationListed, Touches]:
        """The foundation, within its budget. Raises `BadRequest` (a type, or the cursor), `TooLarge` (to be listed whole)."""
        types = request.description_types
        described = {kind.name for kind in find_kinds(types, "descriptionTypes")} if types else set()
        columns, after = (
            list_columns(FOUNDATION_KINDS, request.exclude_fields, FOUNDATION_FIELDS),
            read_foundation_cursor(request.cursor),
        )
        fetched = tuple(dict.fromkeys((*columns, "description", "createdAt")))
        rows, links = await self._store.foundation(
            tenant, request.status, fetched, request.include_relationships, lists.WHOLE + 1
        )
        _check_size(rows, links, Layer.FOUNDATION)
        rows = sorted((row for row in rows if foundation_sort_key(row) > after), key=foundation_sort_key)
        shown = [shape_foundation_row(row, columns, described) for row in rows]
        joined = links_by_source(links, shown)
        everything = tuple(link for of in joined.values() for link in of)
        listed = build_foundation_list(FittedLayer(tuple(node_from_row(row) for row in shown), everything, False, True), rows)
        if listed.stats.token_estimate > lists.FOUNDATION_BUDGET[0][1]:
            most = allowed_tokens(lists.FOUNDATION_BUDGET, await self._store.size(tenant))
            listed = build_foundation_list(
                fit_layer(shown, node_from_row, joined, removal_order(columns, FOUNDATION_FIELDS), most), rows
            )
        return listed, foundation_touches(request.include_relationships)

    async def vision(self, tenant: str, request: lists.ListVision) -> tuple[lists.VisionListed, Touches]:
        """The vision with its parents, within its budget; raises as `foundation` does."""
        columns, after = list_columns(VISION_KINDS, request.exclude_fields, VISION_FIELDS), read_vision_cursor(request.cursor)
        fetched = tuple(dict.fromkeys((*columns, "horizon", "createdAt")))
        rows, parents = await self._store.vision(tenant, request.status, fetched, request.include_hierarchy, lists.WHOLE + 1)
        _check_size(rows, parents, Layer.VISION)
        rows = sorted((row for row in rows if vision_sort_key(row) > after), key=vision_sort_key)
        shown = [{name: row[name] for name in columns} for row in rows]
        make = vision_node_maker(parents_by_child(parents))
        listed = build_vision_list(FittedLayer(tuple(make(row) for row in shown), (), False, True), rows)
        if listed.stats.token_estimate > lists.VISION_BUDGET[0][1]:
            most = allowed_tokens(lists.VISION_BUDGET, await self._store.size(tenant))
            listed = build_vision_list(fit_layer(shown, make, {}, removal_order(columns, VISION_FIELDS), most), rows)
        return listed, vision_touches(parents, request.include_hierarchy)


def _check_size(rows: Sequence[LayerRow], links: Sequence[object], layer: Layer) -> None:
    if len(rows) > lists.WHOLE or len(links) > LINKS_EACH * lists.WHOLE:
        raise TooLarge(
            f"the layer has too many nodes in this status to be listed whole; {lists.LISTS[layer].name} gives pages of it"
        )
