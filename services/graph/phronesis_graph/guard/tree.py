"""A statement's tree as plain values, and the ways to look at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Token:
    """A word or a sign of the statement, with its place in the text."""

    kind: str
    """Its name in the grammar."""
    text: str
    start: int
    stop: int


@dataclass(eq=False)
class Tree:
    """A node of the tree: a rule of the grammar with its parts, or a single token (then `rule` is empty)."""

    rule: str
    first: int
    """Index of its first token."""
    last: int
    """Index of its last token; smaller than `first` where it is empty."""
    parts: list[Tree] = field(default_factory=list)
    token: Token | None = None

    def child(self, rule: str) -> Tree | None:
        return next((part for part in self.parts if part.rule == rule), None)

    def children(self, *rules: str) -> list[Tree]:
        return [part for part in self.parts if part.rule in rules]

    def need(self, rule: str) -> Tree:
        """The part of that rule, which the grammar promises. Raises `LookupError`: it is not there."""
        found = self.child(rule)
        if found is None:
            raise LookupError(f"{self.rule} without {rule}")
        return found

    def kinds(self) -> list[str]:
        """The tokens that stand directly in it, by name."""
        return [part.token.kind for part in self.parts if part.token]

    def has(self, kind: str) -> bool:
        return kind in self.kinds()

    def walk(self) -> Iterator[Tree]:
        waiting = [self]
        while waiting:
            tree = waiting.pop()
            yield tree
            waiting.extend(reversed(tree.parts))

    def find(self, *rules: str) -> Iterator[Tree]:
        return (tree for tree in self.walk() if tree.rule in rules)

    def text(self) -> str:
        return "".join(tree.token.text for tree in self.walk() if tree.token)

    def inner(self) -> Tree:
        """The first tree downwards that is not its parent's only part."""
        tree = self
        while len(tree.parts) == 1 and tree.parts[0].rule:
            tree = tree.parts[0]
        return tree


def name(tree: Tree) -> str:
    text = tree.text()
    return text[1:-1].replace("``", "`") if text.startswith("`") else text
