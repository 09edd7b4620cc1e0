"""From a text to its words: lower case, no accents, no stop words, stems. The same for what is stored and what is asked."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import snowballstemmer

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_LONGEST = 64
_STOP = frozenset(
    """a about above after again against all also am an and any are aren't as at be because been before being below between
    both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each either else ever few
    for from further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself
    his how how's i i'd i'll i'm i've if in into is isn't it it's its itself just let's me more most my myself neither no
    nor not of off on once only or other our ours ourselves out over own same shall she she'd she'll she's should
    shouldn't so some such than that that's the their theirs them themselves then there there's these they they'd they'll
    they're they've this those through to too under until up upon very was wasn't we we'd we'll we're we've were weren't
    what what's when when's where where's whether which while who who's whom whose why why's will with won't would
    wouldn't yet you you'd you'll you're you've your yours yourself yourselves""".split()
)


@dataclass(frozen=True)
class Words:
    """The words of one text: how often each stem stands in it, and how many there are."""

    counts: Mapping[str, int]
    length: int


def stems(text: str) -> list[str]:
    """The stems of `text` in order, without stop words."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c)).replace("’", "'")
    return [_stem(word[:_LONGEST]) for word in _WORD.findall(plain) if word not in _STOP]


def stem(word: str) -> str:
    """The stem of one word, a stop word too."""
    return _stem(unicodedata.normalize("NFKC", word.casefold())[:_LONGEST])


def count_words(text: str) -> Words:
    found = Counter(stems(text))
    return Words(dict(found), found.total())


def term_number(tenant: str, owner: str, kind: str, stem: str) -> int:
    """The number that stands for a stem inside one scope: 64 bits, so that two stems practically never share one."""
    digest = blake2b("\x00".join((tenant, owner, kind, stem)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    # A stemmer of its own for each miss: one object is not safe to use from two threads.
    plain = word.removesuffix("'s").replace("'", "")
    return str(snowballstemmer.stemmer("english").stemWord(plain)) or word
