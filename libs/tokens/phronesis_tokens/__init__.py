"""Tokens, counted with the vocabulary of the models that are asked: `o200k`, which GPT-4o, GPT-5 and gpt-oss share.

Counting reads about 25 MB/s and holds the interpreter while it does, so nothing longer is counted than what can matter:
every count has a limit, and a text is cut to the characters that the limit can hold before it is looked at.
"""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

CUT = "\n[cut]"
"""Stands where a text was cut."""
MOST = 1_000_000
"""Where counting stops by itself: more than any message holds."""
_LONGEST = 128
"""Characters of the longest token of the vocabulary, a run of spaces."""
_USUAL = 8
"""Characters that a token rarely exceeds: how far a text is looked at first when it is cut."""
_SPLIT = 4
"""Tokens that one character can be spread over, since it has at most four bytes."""


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


def clean(text: str) -> str:
    """`text` as it can be sent: half surrogates, which no encoding takes, become `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def count(text: str, limit: int = MOST) -> int:
    """How many tokens a clean text has; `limit + 1` where it has more than `limit`."""
    if limit < 0 or len(text) > limit * _LONGEST:
        return limit + 1
    found: int | None = _vocabulary().count_till_limit(text, limit)
    return limit + 1 if found is None else found


def fits(text: str, limit: int) -> bool:
    """Whether a clean text has at most `limit` tokens."""
    return count(text, limit) <= limit


def cut(text: str, limit: int, mark: str = CUT) -> str:
    """A clean text, or its beginning with a mark, in at most `limit` tokens; empty where not even the mark fits."""
    if fits(text, limit):
        return text
    room = limit - count(mark, limit)
    while room > 0:
        head = _beginning(text, room)
        over = count(head + mark, 2 * limit) - limit
        if over <= 0:
            return head + mark if head else ""
        room -= over
    return ""


def _beginning(text: str, limit: int) -> str:
    size = _USUAL * limit
    while size < min(len(text), _LONGEST * limit) and fits(text[:size], limit):
        size *= 2
    tokens = _vocabulary().encode(text[:size])
    for end in range(min(limit, len(tokens)), max(0, limit - _SPLIT), -1):
        try:
            return str(_vocabulary().decode(tokens[:end]))
        except ValueError:  # the last token ends inside a character
            continue
    return ""
