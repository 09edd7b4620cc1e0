"""Statements from a user's own sentences by rules, and from the lines of an import; secrets are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field, ValidationError

from phronesis_contracts import BadRequest, Message
from phronesis_contracts.facts import MAX_IMPORT_LINES, FactKind, Origin, Statement

from ..values import is_storable

_SHAPES = re.compile(
    r"""
      -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY
    | \b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{16,} | \bgsk_[A-Za-z0-9]{20,}
    | \bphr_[A-Za-z0-9_-]{16,} | \bxox[abprs]-[\w-]{10,} | \bAKIA[0-9A-Z]{12,} | \bAIza[\w-]{30,}
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*
    | \b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)|pin(?:\s+(?:code|number))?|secret(?:\s+key)?|api[\s_-]?key|access[\s_-]?(?:key|token)"
    r"|private[\s_-]?key|bearer|credentials?|cvv|cvc|otp|seed\s+phrase|security\s+(?:code|answer))\b\s*(?:is\b|are\b|[:=])\s*\S",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")


def has_secret(text: str) -> bool:
    """Whether a text holds what looks like a key, a named password, or a card number."""
    return bool(_SHAPES.search(text) or _NAMED.search(text) or any(_luhn(found[0]) for found in _DIGITS.finditer(text)))


def _luhn(number: str) -> bool:
    digits = [int(one) for one in number if one.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


MAX_STATEMENTS = 20
"""Statements of one message."""
_LOOK_AT = 8_000
"""Characters of a message that are looked at."""
_LONGEST = 200
"""Characters of an object; a longer one is a story, and no fact."""
_BY_RULE = 0.9
"""How sure a rule is: it takes the words as they stand."""
_END = re.compile(r"(?<=[.!?])\s+|\n+|;\s+")
_TAIL = re.compile(
    r"\s*(?:,\s*|\s+)(?:please|now|from now on|again|too|as well|by the way|thanks|thank you|though|because .*|since .*|so .*"
    r"|but .*|and (?:i|my|please) .*)\s*$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:and|also|so|well|ok|okay|yes|no|oh|hi|hello|hey|actually|by the way|fyi|please|note that|just so you know"
    r"|from now on|remember(?: that)?|correction)\b[,:]?\s+)+",
    re.IGNORECASE,
)
_REPORTED_SPEECH = re.compile(r"^(?:please\s+)?(?:remember|note|keep in mind)\s+that\s+(?P<what>.+)$", re.IGNORECASE)
_PEOPLE = frozenset(
    "assistant aunt boss brother child colleague cousin daughter deputy director father friend husband manager mentor mother"
    " neighbour neighbor parent partner sister son supervisor teacher team uncle wife".split()
)
_IDLE = frozenset(
    "aim answer argument bad concern fault feeling guess hope idea intention issue message mistake opinion plan point problem"
    " question reason request suggestion task thing thought turn understanding view way word worry".split()
)
_NAME = r"[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,3}"
_NO_NAMES = r"(?:This|That|It|There|What|Which|Who|The|He|She|They|We|You|Here|Today|Tomorrow|My)\b"
Make = Callable[[re.Match[str]], Statement | None]


def extract_statements(text: str) -> tuple[Statement, ...]:
    """What a user states in a message about themselves and those around them, in the order of the message."""
    found: list[Statement] = []
    for sentence in _sentences(text[:_LOOK_AT]):
        found.extend(_of_sentence(sentence))
    return tuple(found[:MAX_STATEMENTS])


def _sentences(text: str) -> Iterator[str]:
    straight = text.replace("’", "'").replace("‘", "'").replace("\x00", " ")
    for sentence in _END.split(straight):
        one = sentence.strip().lstrip("-*>• ")
        # A question states nothing, and a quotation is somebody else's.
        if one and not one.endswith("?") and not one.startswith(('"', "“", "if ", "If ")):
            yield one.rstrip(".! ")


def _of_sentence(sentence: str) -> list[Statement]:
    bare = _LEAD.sub("", sentence)
    for pattern, make in _RULES:
        if match := pattern.match(bare):
            made = make(match)
            return [made] if made else []
    if told := _REPORTED_SPEECH.match(sentence):
        return [made] if (made := _statement("noted", told["what"], "The user said: {}")) else []
    return []


def _statement(
    predicate: str, thing: str, text: str, *, kind: FactKind = FactKind.FACT, subject: str = "user", negated: bool = False
) -> Statement | None:
    what = _TAIL.sub("", " ".join(thing.split())).strip(" ,.:;\"'“”")
    if not what or len(what) > _LONGEST:
        return None
    return Statement(
        kind=kind,
        subject=subject,
        predicate=predicate,
        object=what,
        text=f"{text.format(what)}."[:2_000],
        negated=negated,
        confidence=_BY_RULE,
    )


def _preference(predicate: str, text: str, *, negated: bool = False) -> Make:
    return lambda match: _statement(predicate, match["what"], text, kind=FactKind.PREFERENCE, negated=negated)


def _fact(predicate: str, text: str, *, negated: bool = False) -> Make:
    return lambda match: _statement(predicate, match["what"], text, negated=negated)


def _own(match: re.Match[str]) -> Statement | None:
    """`my X is Y`."""
    noun, last = match["noun"].lower(), match["noun"].lower().split()[-1]
    if last in _IDLE or noun == "name":
        return _statement("called", match["what"], "The user is called {}") if noun == "name" else None
    kind = FactKind.RELATION if last in _PEOPLE else FactKind.FACT
    negated = bool(match["no"])
    text = f"The user's {match['noun']} is {'not ' if negated else ''}{{}}"
    return _statement(f"{noun} is", match["what"], text, kind=kind, negated=negated)


def _is_mine(match: re.Match[str]) -> Statement | None:
    """`Fatima is my manager`."""
    noun = match["noun"].lower()
    if noun.split()[-1] in _IDLE:
        return None
    return _statement(f"{noun} is", match["what"], f"The user's {match['noun']} is {{}}", kind=FactKind.RELATION)


def _of_other(match: re.Match[str]) -> Statement | None:
    """`Fatima leads the audit`."""
    who, verb = match["who"], match["verb"]
    return _statement(verb, match["what"], f"{who} {verb} {{}}", kind=FactKind.RELATION, subject=who)


def _is_a(match: re.Match[str]) -> Statement | None:
    """`Atlas is the payroll project`."""
    who = match["who"]
    return _statement("is", match["what"], f"{who} is {{}}", kind=FactKind.ENTITY, subject=who)


def _rule(pattern: str, make: Make, *, names: bool = False) -> tuple[re.Pattern[str], Make]:
    return re.compile(f"^{pattern}$", re.NOFLAG if names else re.IGNORECASE), make


_WHAT = r"(?P<what>.+)"
_RULES: tuple[tuple[re.Pattern[str], Make], ...] = (
    _rule(rf"(?:you can |please )?call me {_WHAT}", _fact("called", "The user is called {}")),
    _rule(rf"i(?:'d| would)?(?: really| much)? prefer (?!not\b){_WHAT}", _preference("prefers", "The user prefers {}")),
    _rule(
        rf"i (?:(?:really )?(?:don't|do not)|no longer|never) (?:like|love|enjoy|want) {_WHAT}",
        _preference("likes", "The user does not like {}", negated=True),
    ),
    _rule(rf"i (?:hate|dislike|can't stand) {_WHAT}", _preference("likes", "The user does not like {}", negated=True)),
    _rule(rf"i(?: really)? (?:like|love|enjoy) {_WHAT}", _preference("likes", "The user likes {}")),
    _rule(rf"i never {_WHAT}", _preference("always", "The user never does this: {}", negated=True)),
    _rule(rf"i always {_WHAT}", _preference("always", "The user always does this: {}")),
    _rule(
        rf"i (?:no longer|don't|do not) work (?:at|for) {_WHAT}",
        _fact("works at", "The user does not work at {}", negated=True),
    ),
    _rule(rf"i(?: now)? work (?:at|for) {_WHAT}", _fact("works at", "The user works at {}")),
    _rule(rf"i(?: now)? work in {_WHAT}", _fact("works in", "The user works in {}")),
    _rule(rf"i(?: now)? work as (?:an? |the )?{_WHAT}", _fact("works as", "The user works as {}")),
    _rule(rf"i(?: now)? live in {_WHAT}|i(?:'ve| have)? moved to (?P<moved>.+)", lambda match: _lives(match)),
    _rule(rf"i(?:'m| am) (?:originally )?from {_WHAT}", _fact("is from", "The user is from {}")),
    _rule(rf"i speak {_WHAT}", _fact("speaks", "The user speaks {}")),
    _rule(rf"i report to {_WHAT}", _fact("reports to", "The user reports to {}")),
    _rule(rf"my (?P<noun>[a-z][a-z' -]{{1,40}}?) (?:is|are) (?P<no>not )?(?!to\b|that\b|whether\b|how\b|why\b){_WHAT}", _own),
    _rule(rf"(?P<what>{_NAME}) is my (?P<noun>[a-z][a-z -]{{1,40}})", _is_mine, names=True),
    _rule(
        rf"(?P<who>{_NAME}) (?P<verb>leads|manages|heads|owns|works at|works for|works in|lives in|reports to) {_WHAT}",
        _of_other,
        names=True,
    ),
    _rule(rf"(?P<who>(?!{_NO_NAMES}){_NAME}) is (?P<what>(?:a|an|the|our) .+)", _is_a, names=True),
)


def _lives(match: re.Match[str]) -> Statement | None:
    return _statement("lives in", match["what"] or match["moved"], "The user lives in {}")


class _LineContent(Message):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=2_000)
    kind: FactKind = FactKind.FACT
    subject: str = Field(default="user", min_length=1, max_length=200)
    predicate: str | None = Field(default=None, min_length=1, max_length=100)
    object: str | None = Field(default=None, min_length=1, max_length=1_000)
    negated: bool = False
    confidence: float = Field(default=0.8, ge=0.0, le=1.0)
    at: AwareDatetime | None = None


@dataclass(frozen=True)
class ImportLine:
    """One line: its number from 1, what it states, and since when; nothing where it is skipped."""

    number: int
    statements: tuple[Statement, ...]
    at: datetime | None


def read_import(lines: str) -> list[ImportLine]:
    """The lines of an import, without empty ones. Raises `BadRequest`: one does not parse (`field` names it), or too many."""
    found = [(number, line) for number, line in enumerate(lines.splitlines(), 1) if line.strip()]
    if len(found) > MAX_IMPORT_LINES:
        raise BadRequest(f"at most {MAX_IMPORT_LINES} lines at once, not {len(found)}", field="lines")
    if not found:
        raise BadRequest("there is no line", field="lines")
    return [_read_line(number, line) for number, line in found]


def _read_line(number: int, text: str) -> ImportLine:
    try:
        value: Any = json.loads(text)
        if not is_storable(value):
            raise BadRequest(f"line {number}: no NUL characters and no infinite numbers", field=f"lines.{number}")
        line = _LineContent.model_validate(value)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadRequest(f"line {number} is not JSON", field=f"lines.{number}") from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        wrong = f"{where}: {first['msg']}" if where else first["msg"]
        raise BadRequest(f"line {number}: {wrong}"[:300], field=f"lines.{number}") from error
    if (line.predicate is None) != (line.object is None):
        raise BadRequest(f"line {number}: predicate and object come together", field=f"lines.{number}")
    return ImportLine(number, () if has_secret(text) else _statements_of_line(line), line.at)


def _statements_of_line(line: _LineContent) -> tuple[Statement, ...]:
    if line.predicate is not None and line.object is not None:
        fields = line.model_dump(exclude={"at"})
        return (Statement(**fields, origin=Origin.IMPORT),)
    drawn = extract_statements(line.text)
    if drawn:
        return tuple(one.model_copy(update={"origin": Origin.IMPORT, "confidence": line.confidence}) for one in drawn)
    note = {"kind": line.kind, "subject": line.subject, "predicate": "noted", "object": line.text[:1_000]}
    return (Statement.model_validate({**note, "text": line.text, "confidence": line.confidence, "origin": Origin.IMPORT}),)
