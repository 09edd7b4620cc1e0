"""Tokens, counted with the vocabulary that GPT-4o, GPT-5 and gpt-oss share: what is handed back goes to such a model."""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

_LONGEST = 128
"""Characters of the longest token of the vocabulary, a run of spaces."""
_CUT = "…"


@cache
def _vocabulary() -> Any:
    # Only the part of the package that counts: the rest loads the vocabularies a second time, in Python (0.6 s and 64 MB).
    package = find_spec("bpe_openai")
    spec = PathFinder.find_spec("bpe_openai._bindings", package.submodule_search_locations if package else None)
    if spec is None or spec.loader is None:
        raise ImportError("bpe-openai is not installed as it was")
    bindings = module_from_spec(spec)
    spec.loader.exec_module(bindings)
    return bindings.tokenizer_for_encoding("o200k_base")


def load() -> None:
    """Make the vocabulary ready, which takes a tenth of a second, before the first count needs it."""
    _vocabulary()


def count(text: str, limit: int) -> int:
    """How many tokens a text has; `limit + 1` where it has more: counting stops there, so that it never takes long."""
    if limit < 0 or len(text) > limit * _LONGEST:
        return limit + 1
    found: int | None = _vocabulary().count_till_limit(text, limit)
    return limit + 1 if found is None else found


def cut(text: str, limit: int) -> str:
    """A text, or its beginning with a mark, in at most `limit` tokens; empty where not even the mark fits."""
    if count(text, limit) <= limit:
        return text
    low, high = 0, min(len(text), limit * _LONGEST)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle] + _CUT, limit) <= limit else (low, middle - 1)
    return text[:low] + _CUT if count(text[:low] + _CUT, limit) <= limit else ""
