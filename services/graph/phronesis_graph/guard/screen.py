"""What is refused before parsing: signs that stores read differently, sheer size, and values that a caller may not give."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping

from .notes import OWN
from .refusals import Rule, refusal
from .tree import Token

MAX_CHARACTERS = 8_000
MAX_TOKENS = 1_500
MAX_NESTING = 16
"""Brackets within brackets."""
MAX_CASES = 4
"""CASE within CASE: each takes the parser about twice as long as the one before."""

_ODD = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN = frozenset({"\n", "\t", " "})
# Neo4j makes a character of \uXXXX before it parses: '\u0027 ends a string.
_ESCAPED = re.compile(r"\\[uU]")
_KNOWN_ESCAPE = re.compile(r"\\[\\'\"nrtbf]")
_NAME = re.compile(r"`[^`\\\n]{1,100}`")
_OPENING = frozenset({"LPAREN", "LBRACKET", "LCURLY"})
_CLOSING = frozenset({"RPAREN", "RBRACKET", "RCURLY"})
_NAMING = frozenset({"DOT", "AS"})
"""After these, a word is a name."""
_STRINGS = frozenset({"STRING_LITERAL1", "STRING_LITERAL2"})


def screen_text(statement: str) -> str:
    """The statement with one kind of line end, or a refusal.

    Raises `QueryRefused`: it is too long, or holds an escape or a sign that stores read in different ways.
    """
    if len(statement) > MAX_CHARACTERS:
        raise refusal(Rule.SIZE, f"a statement has at most {MAX_CHARACTERS} characters; pass long values as parameters")
    if _ESCAPED.search(statement):
        raise refusal(Rule.TEXT, "no \\u escapes; write the character itself, or pass it in a parameter")
    if "```" in statement:
        raise refusal(Rule.SYNTAX, "send the bare statement, without a fence and without words around it")
    text = statement.replace("\r\n", "\n")
    for character in text:
        if character in _PLAIN:
            continue
        category = unicodedata.category(character)
        if category in _ODD or category == "Zs":
            raise refusal(
                Rule.TEXT,
                f"the sign U+{ord(character):04X} is not taken; separate words by plain spaces and pass it in a parameter",
            )
    return text


def screen_tokens(tokens: Iterable[Token]) -> None:
    """Hold a statement's size and nesting. Raises `QueryRefused`: too many words, too deep, or a word that is not plain."""
    nesting = cases = 0
    before = ""
    for number, token in enumerate(tokens, start=1):
        nesting += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if before not in _NAMING:
            cases += (token.kind == "CASE") - (token.kind == "END")
        before = token.kind
        if number > MAX_TOKENS:
            raise refusal(Rule.SIZE, f"a statement has at most {MAX_TOKENS} words and signs; ask in several steps")
        if nesting > MAX_NESTING or cases > MAX_CASES:
            raise refusal(Rule.SIZE, "the statement is nested too deeply; ask in several steps, joined by WITH")
        _screen_token(token)


def _screen_token(token: Token) -> None:
    if token.kind in _STRINGS:
        if "\\" in _KNOWN_ESCAPE.sub("", token.text):
            raise refusal(Rule.TEXT, "a string knows the escapes \\\\ \\' \\\" \\n \\r \\t \\b \\f; pass others in a parameter")
    elif token.text.startswith("`"):
        if not _NAME.fullmatch(token.text):
            raise refusal(Rule.TEXT, "a name in backticks holds no backtick, no backslash and no line end")
    elif not token.text.isascii():
        raise refusal(Rule.TEXT, f"{token.text[:40]!r} is not of plain letters; put such a name into backticks")


MAX_PARAMETERS = 50
MAX_VALUES = 2_000
"""Numbers, strings and keys in all values together."""
MAX_VALUE_CHARACTERS = 100_000
"""Of all strings together."""
MAX_VALUE_NESTING = 4
_BITS = 2**63


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Hold a caller's values against the rules.

    Raises `QueryRefused`: a name is the service's own, or a value is too large, too deep, or not one a store takes.
    """
    if len(parameters) > MAX_PARAMETERS:
        raise refusal(Rule.PARAMETER, f"at most {MAX_PARAMETERS} parameters; pass a list")
    for key in parameters:
        if not isinstance(key, str) or not key.isascii() or not key.isidentifier():
            raise refusal(Rule.PARAMETER, "a parameter's name is letters, digits and underscores")
        if key.lower().startswith(OWN):
            raise refusal(Rule.PARAMETER, f"names that begin with {OWN} are the service's own; choose another")
    values = characters = 0
    waiting: list[tuple[object, int]] = [(value, 0) for value in parameters.values()]
    while waiting:
        value, depth = waiting.pop()
        values += 1
        if values > MAX_VALUES or depth > MAX_VALUE_NESTING:
            raise refusal(Rule.PARAMETER, f"at most {MAX_VALUES} values, nested at most {MAX_VALUE_NESTING} deep; ask in parts")
        match value:
            case None | bool():
                continue
            case int():
                if not -_BITS <= value < _BITS:
                    raise refusal(Rule.PARAMETER, "a whole number has 64 bits")
            case float():
                if not math.isfinite(value):
                    raise refusal(Rule.PARAMETER, "a number is finite")
            case str():
                characters += _characters(value)
            case list() | tuple():
                _room(len(value))
                waiting.extend((part, depth + 1) for part in value)
            case Mapping():
                _room(len(value))
                waiting.extend((part, depth + 1) for part in (*value, *value.values()))
                if not all(isinstance(part, str) for part in value):
                    raise refusal(Rule.PARAMETER, "the keys of a map are strings")
            case _:
                raise refusal(Rule.PARAMETER, "a value is null, true, false, a number, a string, a list or a map")
        if characters > MAX_VALUE_CHARACTERS:
            raise refusal(Rule.PARAMETER, f"strings have at most {MAX_VALUE_CHARACTERS} characters together; ask in parts")


def _room(size: int) -> None:
    if size > MAX_VALUES:
        raise refusal(Rule.PARAMETER, f"at most {MAX_VALUES} values; ask in parts")


def _characters(value: str) -> int:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise refusal(Rule.PARAMETER, "a string holds whole characters and no NUL")
    return len(value)


def check_required(names: Collection[str], limits: Collection[str], parameters: Mapping[str, object], limit: int) -> None:
    """Hold the values used. Raises `QueryRefused`: one is missing, or one behind LIMIT is no whole number up to `limit`."""
    for missing in sorted(set(names) - parameters.keys()):
        raise refusal(Rule.PARAMETER, f"${missing[:60]} has no value; pass it in parameters")
    for name in limits:
        value = parameters[name]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
            raise refusal(Rule.LIMIT, f"${name[:60]} is a whole number from 0 to {limit}")
