"""How replies say that they do not know, ask back, agree, or leave something open, in English and German."""

from __future__ import annotations

import re

FIRST = 260
"""Characters in which a reply has to say that it does not know; what follows may be what it does have."""
DECLINES = re.compile(
    r"\b(?:i|we)(?:'m| am| have| do| can| could| was| did|'ve)?\s*(?:not|n't|nothing|no|unable|sorry|only)\b"
    r"|\b(?:don't|do not|doesn't|does not|can't|cannot|can not|couldn't|could not|didn't|did not|wouldn't|won't)\s+"
    r"(?:\w+\s+)?(?:know|understand|have|hold|find|found|see|say|tell|answer|contain|cover|help|read|make|give|work|write|"
    r"translate|do|follow|recall|remember|include|share|access|reach|store|change)\b"
    r"|\b(?:no|without|needs?|requires?) (?:a |an |any |the )?(?:language model|data|information|answer|source|sources|"
    r"document|model|entry|facts?|memory|memories|mention)\b"
    r"|\bnothing (?:\w+ ){0,3}(?:about|on|of|for|says|answers|found|told|stored|known|that|here)\b"
    r"|\b(?:not|never) (?:\w+ ){0,2}(?:know|known|told|mention|mentioned|stated|find|found|"
    r"covered|stored|able|sure|something|part of|available|say|said|given)\b"
    r"|^\W*I can (?:only |just )?(?:look|count|answer|read|tell|help)\b"
    r"|\bis not on record\b|\bnicht (?:gesagt|verzeichnet)\b|\bsagt das nicht\b"
    r"|\b(?:out of|outside|beyond) (?:\w+ ){0,3}(?:scope|data|what|of)\b|\bsorry\b|\bunable to\b"
    r"|\bmodel (?:is|would be) (?:needed|required|missing)\b"
    r"|\b(?:is|are) only (?:\w+ ){0,2}(?:data|reports?|figures)\b"
    r"|\b(?:weiß|kenne|kann|habe|verstehe|finde) ich\b[^.]*\b(?:nicht|keine?n?|nichts)\b"
    r"|\bich (?:weiß|kenne|kann|habe|verstehe|finde|konnte)\b[^.]*\b(?:nicht|keine?n?|nichts)\b"
    r"|\bdazu\b[^.]*\b(?:nichts|keine)\b"
    r"|\bnicht (?:gesagt|erwähnt|erzählt|genannt|mitgeteilt)\b|\bsprachmodell\b"
    r"|\bliegen\b[^.]*\bkeine\b|\bnichts\b[^.]*\bgefunden\b",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"\b(?:which|what|who|whose|where|when|do you mean|did you mean|could you|can you|please|welche[rsn]?|was|wen|"
    r"meinst du|meinen sie|bitte)\b[^?]{0,160}\?|\bplease (?:ask|say|name|tell|specify|state|choose)\b"
    r"|\bbitte\b[^.]*\b(?:nennen|sagen)\b",
    re.IGNORECASE,
)
UNPUBLISHED = re.compile(
    r"\b(?:not|never|n't)\s+(?:\w+\s+){0,3}"
    r"(?:published|known|recorded|stated|given|available|reported|there|on record|listed|filled)\b"
    r"|\b(?:unknown|unpublished|missing|withheld|exempt|blank|empty|no (?:value|rating|figure|date|data|cost|entry|record))\b"
    r"|\bno\b[^.]{0,40}\b(?:published|recorded|known|on record|stated)\b"
    r"|\b(?:unbekannt|nicht (?:bekannt|veröffentlicht|angegeben|erfasst|hinterlegt)|fehlt|keine? (?:angabe|wert|daten))\b",
    re.IGNORECASE,
)
YES = re.compile(
    r"\b(?:yes|yep|correct|indeed|true|it is|it does|it was|it did|they are|they do|ja|stimmt|doch)\b", re.IGNORECASE
)
NO = re.compile(
    r"\b(?:no|nope|false|incorrect|not|never|none|nein|nicht|kein\w*|isn't|wasn't|doesn't|didn't|aren't|neither)\b",
    re.IGNORECASE,
)
WAS = re.compile(
    r"\b(?:not|no longer|before|earlier|formerly|previously|instead of|until|was|used to|rather than|corrected|nicht|früher|"
    r"statt|vorher|bis)\b",
    re.IGNORECASE,
)
"""Marks something as superseded."""
ABSENT = re.compile(
    r"\bthere (?:is|are|was|were) (?:no|none|nothing)\b|\b(?:is|are|was|were)(?: not|n't) (?:in|among|part of|one of)\b"
    r"|\bno such\b|\b(?:es )?gibt (?:es )?(?:kein|nichts)|\bist nicht (?:in|unter|dabei)\b"
    r"|\bnot on record\b|\bnicht (?:verzeichnet|erfasst)\b|\bI (?:keep|stick|hold) to my\b|\bIch (?:halte|bleibe)\b",
    re.IGNORECASE,
)
"""Says of something that it is not in the data: an answer to what is not there, and none to what is."""
MARK = "no language model was used"
"""Says who wrote a reply; it is no refusal."""
QUOTES = re.compile(r"quoted from|^\*\*[^*]+\*\*:", re.MULTILINE | re.IGNORECASE)
"""Texts of sources; small talk needs none."""


def declines(text: str) -> bool:
    """Whether a reply says at its beginning that it does not know or cannot."""
    return DECLINES.search(opening(text)) is not None


def asks_back(text: str) -> bool:
    """Whether a reply is a question to the user."""
    return ASKS.search(text[:FIRST]) is not None


def opening(text: str) -> str:
    """The beginning of a reply, where it has to say what it is."""
    return re.sub(r"[*_`]", "", text.replace("’", "'").replace(MARK, ""))[:FIRST]
