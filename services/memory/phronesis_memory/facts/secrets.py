"""What looks like a secret: a key, a named password, the number of a card."""

from __future__ import annotations

import re

_SHAPES = re.compile(
    r"""
      -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY
    | \b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{16,} | \bgsk_[A-Za-z0-9]{20,}
    | \bphr_[A-Za-z0-9_-]{16,} | \bxox[abprs]-[\w-]{10,} | \bAKIA[0-9A-Z]{12,} | \bAIza[\w-]{30,}
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*
    | \b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    r"\b(?:pass(?:word|phrase|code|wd)|pin(?:\s+(?:code|number))?|secret(?:\s+key)?|api[\s_-]?key|access[\s_-]?(?:key|token)"
    r"|private[\s_-]?key|bearer|credentials?|cvv|cvc|otp|seed\s+phrase|security\s+(?:code|answer)|log[\s-]?in|passwort|kennwort|geheimzahl|zugangs(?:code|daten))\b"
    r"\s*(?:(?:is|are|ist|lautet)\b|[:=]|(?=\S*\d\S*\d))\s*\S",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")


def has_secret(text: str) -> bool:
    """Whether a text holds what looks like a key, a named password, or a card number."""
    return any(one.search(text) for one in (_SHAPES, _NAMED)) or any(_luhn(found[0]) for found in _DIGITS.finditer(text))


def _luhn(number: str) -> bool:
    digits = [int(one) for one in number if one.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
