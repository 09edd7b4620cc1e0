"""What is refused before a statement is parsed: signs that read one way here and another way in a store, and sheer size."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from .refusals import Rule, refused
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

    Raises:
        QueryRefused: it is too long, or holds an escape or a sign that stores read in different ways.
    """
    if len(statement) > MAX_CHARACTERS:
        raise refused(Rule.SIZE, f"a statement has at most {MAX_CHARACTERS} characters; pass long values as parameters")
    if _ESCAPED.search(statement):
        raise refused(Rule.TEXT, "no \\u escapes; write the character itself, or pass it in a parameter")
    if "```" in statement:
        raise refused(Rule.SYNTAX, "send the bare statement, without a fence and without words around it")
    text = statement.replace("\r\n", "\n")
    for character in text:
        if character in _PLAIN:
            continue
        category = unicodedata.category(character)
        if category in _ODD or category == "Zs":
            raise refused(
                Rule.TEXT,
                f"the sign U+{ord(character):04X} is not taken; separate words by plain spaces and pass it in a parameter",
            )
    return text


def screen_tokens(tokens: Iterable[Token]) -> None:
    """Hold the size and the nesting of a statement, and the letters of its names.

    Raises:
        QueryRefused: it has too many words, is nested too deeply, or a word of it is not plain.
    """
    nesting = cases = 0
    before = ""
    for number, token in enumerate(tokens, start=1):
        nesting += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if before not in _NAMING:
            cases += (token.kind == "CASE") - (token.kind == "END")
        before = token.kind
        if number > MAX_TOKENS:
            raise refused(Rule.SIZE, f"a statement has at most {MAX_TOKENS} words and signs; ask in several steps")
        if nesting > MAX_NESTING or cases > MAX_CASES:
            raise refused(Rule.SIZE, "the statement is nested too deeply; ask in several steps, joined by WITH")
        _screen_token(token)


def _screen_token(token: Token) -> None:
    if token.kind in _STRINGS:
        if "\\" in _KNOWN_ESCAPE.sub("", token.text):
            raise refused(Rule.TEXT, "a string knows the escapes \\\\ \\' \\\" \\n \\r \\t \\b \\f; pass others in a parameter")
    elif token.text.startswith("`"):
        if not _NAME.fullmatch(token.text):
            raise refused(Rule.TEXT, "a name in backticks holds no backtick, no backslash and no line end")
    elif not token.text.isascii():
        raise refused(Rule.TEXT, f"{token.text[:40]!r} is not of plain letters; put such a name into backticks")
