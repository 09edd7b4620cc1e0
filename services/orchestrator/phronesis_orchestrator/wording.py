"""Business language: words that a reader shall not meet, found as whole words, and what is said in their place (N-055)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .inquiry import Draft

_INSTEAD: Mapping[str, str] = {
    "node": "record",
    "nodes": "records",
    "cypher": "lookup",
    "neo4j": "records",
    "query": "question",
    "queries": "questions",
    "embedding": "outline",
    "embeddings": "outlines",
    "l1": "top level",
    "l2": "middle level",
    "l3": "detailed level",
    "ID": "identifier",
    "IDs": "identifiers",
}
"""What is said instead, with the same article before it; `ID` alone is matched with its case, since `id` is also a word of
other languages (NC-024)."""
_CASED = ("ID", "IDs")
_FOLDED = [word for word in _INSTEAD if word not in _CASED]
_BANNED = re.compile(rf"\b(?:(?P<cased>{'|'.join(_CASED)})|(?i:(?P<folded>{'|'.join(_FOLDED)})))\b")
_MOST_NAMES = 200


class Wording:
    """Looks for words, except inside names that stand in the data: a project may be called as it likes.

    Args:
        rows: what was read.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        texts = {value for row in rows for value in row.values() if isinstance(value, str) and 2 < len(value) <= 300}
        names = sorted((text for text in texts if _BANNED.search(text) and _BANNED.fullmatch(text) is None), key=len)
        protected = "|".join(re.escape(name) for name in reversed(names[:_MOST_NAMES]))
        self._pattern = re.compile(f"(?P<name>{protected})|{_BANNED.pattern}") if protected else _BANNED

    def found(self, texts: Iterable[str]) -> tuple[str, ...]:
        """The words that stand in texts for readers, once each."""
        hits = (match[0] for text in texts for match in self._pattern.finditer(text) if self._is_hit(match))
        return tuple(dict.fromkeys(hits))

    def mended(self, text: str) -> str:
        """The text with each such word replaced."""
        return self._pattern.sub(self._replacement, text)

    def _is_hit(self, match: re.Match[str]) -> bool:
        return match.groupdict().get("name") is None

    def _replacement(self, match: re.Match[str]) -> str:
        if not self._is_hit(match):
            return match[0]
        word = match["cased"]
        instead = _INSTEAD[word] if word else _INSTEAD[match[0].lower()]
        return instead.capitalize() if not word and match[0][0].isupper() and not match[0][1:2].isdigit() else instead


def read_by_people(draft: Draft) -> list[str]:
    """The texts of a draft that a reader sees: the answer, the insights, and the titles and labels of charts (NC-023)."""
    found = [draft.answer, *draft.analysis]
    for chart in draft.visualizations:
        found += [text for text in (chart.get("title"), *labels(chart.get("config"))) if isinstance(text, str)]
        if isinstance(data := chart.get("data"), str):
            found.append(data)
    return found


def mended(draft: Draft, wording: Wording) -> Draft:
    """A draft whose readers meet none of those words. A field that is a label is renamed in the data too."""
    return draft.model_copy(
        update={
            "answer": wording.mended(draft.answer),
            "analysis": tuple(wording.mended(text) for text in draft.analysis),
            "visualizations": tuple(_chart(chart, wording) for chart in draft.visualizations),
        }
    )


def labels(config: object) -> list[str]:
    """The labels that a chart's configuration names: its fields."""
    values = config.values() if isinstance(config, dict) else ()
    return [text for value in values for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _chart(chart: dict[str, Any], wording: Wording) -> dict[str, Any]:
    named = {label: wording.mended(label) for label in labels(chart.get("config"))}
    found = {**chart, "config": _renamed(chart.get("config"), named)}
    if isinstance(title := chart.get("title"), str):
        found["title"] = wording.mended(title)
    match chart.get("data"):
        case str() as html:
            found["data"] = wording.mended(html)
        case list() as rows:
            found["data"] = [
                {named.get(key, key): value for key, value in row.items()} if isinstance(row, dict) else row for row in rows
            ]
    return found


def _renamed(config: object, named: Mapping[str, str]) -> object:
    match config:
        case dict():
            return {key: _renamed(value, named) for key, value in config.items()}
        case list():
            return [_renamed(value, named) for value in config]
        case str():
            return named.get(config, config)
    return config
