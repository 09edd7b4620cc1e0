"""Questions that lean on the one before: what is new in them replaces its like, the rest stays (mode C)."""

from __future__ import annotations

from dataclasses import replace

from .reading import Item, Reading
from .vocabulary import FOLLOWS_UP

_FAMILIES = (
    frozenset({"year", "relative", "since", "after", "before", "until", "between", "trend", "annual", "year_word"}),
    frozenset({"count", "list", "share", "top", "number", "aggregate", "howmuch", "joined", "left"}),
    frozenset({"dimension", "by"}),
)
_OF_ONE_THING = frozenset(
    {"history", "detail", "missing", "impact", "why", "measure", "dimension", "date", "text", "who", "change", "trend"}
)
"""What is asked about one thing: a new question about it replaces the old one whole."""
_STANDS_ALONE = frozenset({"type", "entity", "history", "detail", "impact"})


def leans(reading: Reading) -> bool:
    """Whether a question cannot be understood without the one before."""
    if reading.has("pronoun"):
        return not reading.has("entity")
    if not reading.pieces or reading.has("value", *_STANDS_ALONE - {"entity"}):
        return False
    opening = reading.pieces[0].folded in FOLLOWS_UP or any(item.at == 0 for item in reading.of("followup"))
    if reading.has("entity"):
        return opening and not reading.has(*_OF_ONE_THING)
    if reading.has("compare") and len(reading.of("department", "category", "year")) > 1:
        return opening
    return opening or not reading.has("dimension", "measure", "missing", "joined", "left", "change") or _bare(reading)


def _bare(reading: Reading) -> bool:
    """“By category?”, “the forecast?”: nothing but what replaces a part."""
    rest = [item for item in reading.items if item.kind not in ("small", "followup", "by", "dimension")]
    return not rest


def together(before: Reading, new: Reading) -> Reading:
    """The question before with what is new in place of its like."""
    gone: set[str] = set()
    kinds = {item.kind for item in new.items if item.kind not in ("small", "followup", "pronoun")}
    for kind in kinds:
        gone |= next((family for family in _FAMILIES if kind in family), frozenset({kind}))
    if before.has("entity") and kinds & _OF_ONE_THING:
        gone |= _OF_ONE_THING
    if "department" in kinds and before.has("entity") and not before.has("department"):
        gone |= {"entity"}
    kept = [item for item in before.items if item.kind not in gone]
    shift = len(before.pieces)
    moved = [Item(item.kind, item.value, item.at + shift, item.end + shift) for item in new.items if item.kind != "pronoun"]
    pieces = (*before.pieces, *new.pieces)
    return replace(new, pieces=pieces, items=tuple([*kept, *moved]), left=tuple(at + shift for at in new.left))
