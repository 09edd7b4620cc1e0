"""How much a past turn matters, told by its words alone (V-142 to V-150)."""

from __future__ import annotations

import re

_DECISION = re.compile(r"\b(?:let's do|go with|approved|go ahead)\b", re.I)
_CORRECTION = re.compile(r"\bno,|\b(?:wrong|change it|actually|i meant)\b", re.I)
_PREFERENCE = re.compile(r"\b(?:i prefer|always|never|i like)\b", re.I)
_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_ACTION = re.compile(r"\b(?:remind me|don't forget|make sure)\b", re.I)
_RULES = ((_DECISION, 3), (_CORRECTION, 3), (_PREFERENCE, 2), (_NAME, 2), (_ACTION, 2))
_SUBSTANTIVE = 40
"""Characters from which on a reply answers something (V-148)."""
_DOCUMENT = re.compile(r"(?:^|\n\n)\[(?:document|image|audio): [^\n]{1,300}\]\n.*", re.S)


def importance(user: str, reply: str) -> int:
    """From 0 to 13: each kind of sign counts once.

    Args:
        user: what the user said, without the text of attachments.
        reply: what was answered.
    """
    said = user.replace("\u2019", "'")
    score = sum(points for sign, points in _RULES if sign.search(said))
    return score + (1 if "?" in said and len(reply) >= _SUBSTANTIVE else 0)


def own_words(text: str) -> str:
    """A user's message without the text of its attachments, which is another's."""
    return _DOCUMENT.sub("", text)
