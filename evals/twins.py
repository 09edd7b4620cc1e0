"""Generated twins on a stack: each seed in a tenant of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from . import stack
from .client import StackError
from .generator import generate
from .items import Item


class NotLoadedError(Exception):
    """The stack cannot load an ontology of a tenant's own; the text says why."""


@dataclass(frozen=True)
class Twin:
    """A loaded twin.

    Args:
        key: a key of its tenant that may make keys.
        items: questions about it.
        names: names in it.
    """

    key: str = field(repr=False)
    items: list[Item] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def load(where: stack.Stack, seed: int, folder: Path) -> Twin:
    """Generate the twin of a seed, load it for a new tenant, and return its questions.

    Raises:
        NotLoadedError: `phronesis load` refused it.
    """
    made = generate(seed)
    files = made.write(folder / f"twin-{seed}")
    try:
        key = stack.make_key(where, f"eval-{seed}-{uuid4().hex[:8]}")
        stack.load(where, [str(file) for file in files], key)
    except StackError as exc:
        raise NotLoadedError(str(exc)) from exc
    return Twin(key, made.items, made.names)
