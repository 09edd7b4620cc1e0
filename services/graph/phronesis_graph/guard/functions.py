"""Which functions are taken, and what becomes of a value that goes through them."""

from __future__ import annotations

from .allowed import Rules

AGGREGATES = frozenset("count sum avg min max collect stdev stdevp percentilecont percentiledisc".split())
_VALUES = frozenset(
    "coalesce head last tail reverse size length isempty nullif range"
    " tointeger tofloat toboolean tostring tointegerornull tofloatornull tobooleanornull tostringornull"
    " abs ceil floor round sign sqrt exp log log10"
    " tolower toupper lower upper ltrim rtrim btrim substring left right split"
    " labels type startnode endnode nodes relationships exists timestamp".split()
)
_TIMES = frozenset(
    "date datetime localdatetime time localtime duration"
    " date.truncate datetime.truncate localdatetime.truncate time.truncate localtime.truncate"
    " duration.between duration.inmonths duration.indays duration.inseconds".split()
)
_KNOWLEDGE = frozenset({"elementid", "id", "keys"})

_READING = AGGREGATES | _VALUES | _TIMES
FUNCTIONS = {
    Rules.READING: _READING,
    Rules.KNOWLEDGE: _READING | _KNOWLEDGE,
    Rules.KNOWLEDGE_WRITING: _READING | _KNOWLEDGE,
}

OF_ENTITIES = frozenset(
    "count collect coalesce head last tail reverse size length isempty"
    " labels type startnode endnode nodes relationships exists".split()
)
"""What may be done with a node, a relationship or a path, or a list of them."""
KEEPING_LEVELS = frozenset("coalesce head last collect min max tolower toupper lower upper ltrim rtrim btrim tostring".split())
"""A level that goes through these is still a level; what comes out of others is compared with nothing."""
COUNTING = frozenset({"count", "exists"})
