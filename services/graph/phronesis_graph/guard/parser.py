"""The parser, generated from Neo4j's own grammar: loaded on first use, never by importing its package."""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .refusals import Rule, refusal
from .tree import Token, Tree

PACKAGE = "neo4j_guard"
"""Importing it patches the driver. Its two parser modules do not import it."""
MODULES = {
    "Cypher25Lexer": "85ca7f9b20fc804db1f2e1ae8d253ad42f6f08ea9af57a8a9a01df39650231bf",
    "Cypher25Parser": "a5b5c0515a1fcaf22224a05cbe5bcda916bb33513875f0f20447e563a8ead371",
}
"""The modules with the SHA-256 of their text; any other text is not run."""


@dataclass(frozen=True)
class Parsed:
    """A statement read whole."""

    tree: Tree
    tokens: Sequence[Token]
    """All but the last, which marks the end; comments and space are not among them."""


class Unreadable(Exception):
    """The text is not a statement of the language."""


class Parser:
    """The parser. Its modules take half a second to load."""

    def __init__(self) -> None:
        self._modules: tuple[Any, Any] | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Load the modules, once. Raises `QueryRefused`: they are not there, or not the ones that were tested."""
        with self._lock:
            if self._modules is None:
                try:
                    lexer, parser = (_module(name, digest) for name, digest in MODULES.items())
                except (ImportError, OSError, ValueError) as error:
                    raise refusal(Rule.UNAVAILABLE, "queries are not taken: the parser is not there") from error
                self._modules = lexer.Cypher25Lexer, parser.Cypher25Parser

    def tokens(self, text: str) -> tuple[Any, list[Token]]:
        """The text as tokens, the library's and as values. Raises `QueryRefused`: no parser, or an unknown sign."""
        self.load()
        assert self._modules is not None
        from antlr4 import CommonTokenStream, InputStream

        lexer = self._modules[0](InputStream(text))
        _listen(lexer)
        stream = CommonTokenStream(lexer)
        try:
            stream.fill()
        except Unreadable as error:
            raise refusal(Rule.SYNTAX, str(error)) from error
        names = lexer.symbolicNames
        return stream, [Token(names[t.type], t.text, t.start, t.stop) for t in stream.tokens if t.channel == 0 and t.type > 0]

    def parse(self, stream: Any, tokens: list[Token]) -> Parsed:
        """The tree of a text that was made tokens. Raises `QueryRefused`: it is no statement, or nested too deeply."""
        # The prediction's memory is one for all parsers and changes while they work.
        with self._lock:
            try:
                root, parser = self._tree(stream, quick=True)
            except Unreadable:
                # The quick prediction gives the tree of the full one or an error, which the full one may not have.
                try:
                    root, parser = self._tree(stream, quick=False)
                except Unreadable as error:
                    raise refusal(Rule.SYNTAX, f"{error}; send one statement of Cypher and nothing else") from error
        places = {token.start: index for index, token in enumerate(tokens)}
        return Parsed(_plain(root, parser.ruleNames, parser.symbolicNames, places, len(tokens)), tokens)

    def _tree(self, stream: Any, quick: bool) -> tuple[Any, Any]:
        from antlr4.atn.PredictionMode import PredictionMode

        assert self._modules is not None
        stream.seek(0)
        parser = self._modules[1](stream)
        _listen(parser)
        parser._interp.predictionMode = PredictionMode.SLL if quick else PredictionMode.LL
        try:
            return parser.statements(), parser
        except RecursionError as error:
            raise refusal(Rule.SIZE, "the statement is nested too deeply; split it in two") from error


def _module(name: str, digest: str) -> Any:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ImportError(f"{PACKAGE} is not installed")
    path = Path(found.origin).parent / "_parser" / f"{name}.py"
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise ValueError(f"{name} is not the text that was tested")
    spec = importlib.util.spec_from_file_location(f"phronesis_graph.guard._{name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _listen(recognizer: Any) -> None:
    from antlr4.error.ErrorListener import ErrorListener

    class Raising(ErrorListener):  # type: ignore[misc]
        def syntaxError(self, _: Any, symbol: Any, line: int, column: int, __: str, ___: Any) -> None:
            near = f" near {symbol.text[:40]!r}" if getattr(symbol, "text", None) else ""
            raise Unreadable(f"syntax error at line {line}, column {column + 1}{near}")

    recognizer.removeErrorListeners()
    recognizer.addErrorListener(Raising())


def _plain(root: Any, rules: Sequence[str], names: Sequence[str], places: dict[int, int], end: int) -> Tree:
    """The library's tree as ours; built with a list of what waits, since a deep tree is no place for recursion."""
    result = Tree("", 0, -1)
    waiting = [(root, result)]
    made = []
    while waiting:
        source, parent = waiting.pop()
        children = getattr(source, "children", None)
        if hasattr(source, "getRuleIndex"):
            tree = Tree(rules[source.getRuleIndex()], end, -1)
            waiting.extend((child, tree) for child in reversed(children or ()))
        else:
            symbol = source.getSymbol()
            place = places.get(symbol.start, end) if symbol.type > 0 else end
            kind = names[symbol.type] if symbol.type > 0 else "EOF"
            tree = Tree("", place, place, token=Token(kind, symbol.text, symbol.start, symbol.stop))
        parent.parts.append(tree)
        made.append((tree, parent))
    for tree, parent in reversed(made):
        parent.first, parent.last = min(parent.first, tree.first), max(parent.last, tree.last)
    return result.parts[0]
