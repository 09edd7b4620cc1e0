"""Answers before display: HTML, charts, business language."""

from __future__ import annotations

import html as entities
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import nh3

from phronesis_contracts.answers import Visualization, VisualizationType

from ..approvals.egress import host_of, hosts_in
from ..models.reasoner import Draft
from ..understanding.finding import Row

_TAGS = {
    *("p", "br", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "strong", "b", "em", "i", "h2", "h3", "h4"),
    *("blockquote", "hr", "caption", "div", "span"),
}
_WITH_CONTENT = {"script", "style", "iframe", "object", "template", "noscript", "svg", "math", "title", "textarea"}
"""Tags that go with what is inside them."""
_TAG = re.compile(r"<[a-z/!?]", re.I)
_IS_HTML = re.compile(r"<(?:p|br|ul|ol|li|table|h[1-6]|div)\b", re.I)
_ENDS = re.compile(r"\s*(?:\r\n?|\n|\\r\\n|\\n)\s*")
_BESIDE_TAG = re.compile(r"(?<=>)(?:<br>)+(?=<)|(?<=>)(?:<br>)+$|^(?:<br>)+(?=<)")
_LINK = re.compile(r"\]\(\s*(?:javascript|vbscript|data):[^)]*\)?", re.I)
"""A Markdown link that would run something."""


def fragment(html: str) -> str:
    """One sanitised HTML fragment, with no line end in it."""
    clean = nh3.clean(html, tags=_TAGS, attributes={}, clean_content_tags=_WITH_CONTENT)
    return _BESIDE_TAG.sub("", _ENDS.sub("<br>", clean.strip()))


def sanitize_answer(text: str) -> str:
    """An answer that may be Markdown or HTML: inert, and where it is HTML, without line ends."""
    if _IS_HTML.search(text):
        return fragment(text)
    if _TAG.search(text):
        text = nh3.clean(text, tags=_TAGS, attributes={}, clean_content_tags=_WITH_CONTENT)
    return _LINK.sub("](#)", text)


def sanitize_text(text: str) -> str:
    """A text that is displayed as text: a title, a label, an insight."""
    return nh3.clean(text, tags=set(), clean_content_tags=_WITH_CONTENT) if _TAG.search(text) else _LINK.sub("](#)", text)


_TARGET = r"<?[^\s<>()\"']*"
_SIMPLE_LINK = re.compile(rf"!?\[([^\[\]]*)\]\(\s*({_TARGET})>?(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)")
_ANY_LINK = re.compile(rf"\]\((\s*)({_TARGET})")
_DEFINITION = re.compile(rf"\]:(\s*)({_TARGET})")
_AUTOLINK = re.compile(r"<([a-z][a-z0-9+.-]{1,31}:[^\s<>]*)>", re.I)
_TAG_WITH_ADDRESS = re.compile(r"<(?=[a-z!/?][^<]*(?:=|url\(|@import))([^<>]*)", re.I)
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
_BARE_URL = re.compile(r"\b(?:(?:https?|ftps?|wss?)://|www\.)[^\s<>`\"'|]+", re.I)
_ENDING = ".,;:!?)]}*_~"
"""What may stand behind an address in a text and is no part of it."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def disarm_links(text: str, allowed: Callable[[str], bool]) -> str:
    """A reply in which nothing can be loaded or clicked that leads to a host other than these: each such link, picture and
    address is shown as text, whole. What leads to a place beside the reply itself stays.

    Args:
        text: Markdown or HTML.
        allowed: says it of a host.
    """

    def leads_out(target: str) -> bool:
        plain = _ESCAPED.sub(r"\1", entities.unescape(target.lstrip("<"))).strip()
        if plain.startswith("//"):
            plain = f"https:{plain}"
        if "\\" not in plain and re.match(r"[a-z][a-z0-9+.-]*:|//|[/\\]{2}", re.sub(r"[\x00-\x20]", "", plain), re.I) is None:
            return False
        host = host_of(plain)
        return host is None or not allowed(host)

    def simple(match: re.Match[str]) -> str:
        return f"{match[1]} ({match[2].lstrip('<')})".strip() if leads_out(match[2]) else match[0]

    def broken(before: str) -> Callable[[re.Match[str]], str]:
        return lambda match: f"{before[:1]} {before[1:]}{match[1]}{match[2]}" if leads_out(match[2]) else match[0]

    def tag(match: re.Match[str]) -> str:
        return f"&lt;{match[1]}" if not all(map(allowed, hosts_in(entities.unescape(match[1])))) else match[0]

    for _ in range(_NESTED):
        if (plain := _SIMPLE_LINK.sub(simple, text)) == text:
            break
        text = plain
    text = _ANY_LINK.sub(broken("]("), text)
    text = _DEFINITION.sub(broken("]:"), text)
    text = _AUTOLINK.sub(lambda match: match[1] if leads_out(match[1]) else match[0], text)
    return _disarm_bare(_TAG_WITH_ADDRESS.sub(tag, text), leads_out)


_NESTED = 4
"""Links inside links that are put as a reader likes them; what is nested deeper is broken all the same."""


def _disarm_bare(text: str, leads_out: Callable[[str], bool]) -> str:
    """Addresses outside code that displays turn into links by themselves: as code in Markdown, in HTML with a broken colon."""
    html = _IS_HTML.search(text) is not None

    def inert(match: re.Match[str]) -> str:
        address = match[0].rstrip(_ENDING)
        rest = match[0][len(address) :]
        if not leads_out(address if "://" in address else f"https://{address}"):
            return match[0]
        if html:
            return f"{address.replace('://', '&#58;//').replace('www.', 'www&#46;', 1)}{rest}"
        return f"`{address}`{rest}"

    kept, end = [], 0
    for code in () if html else _CODE.finditer(text):
        kept += [_BARE_URL.sub(inert, text[end : code.start()]), code[0]]
        end = code.end()
    return "".join((*kept, _BARE_URL.sub(inert, text[end:])))


def visible_words(html: str) -> str:
    """The words of a fragment, without its tags."""
    return re.sub(r"<[^>]*>", " ", html)


MAX_ROWS = 500
"""Rows of one chart."""
_MOST_FIELDS = 30
"""Columns of a table, and dimensions of a radar."""
_LONGEST_TITLE = 200


class BadChart(ValueError):
    """A chart that is not shown; the text says why."""


@dataclass(frozen=True)
class _Fields:
    """The fields that a configuration names, by what stands in them."""

    any: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    many: str | None = None
    """Its one entry that is a list of fields."""


_SCHEMAS: Mapping[VisualizationType, _Fields] = {
    VisualizationType.COLUMN: _Fields(any=("xAxis",), numbers=("yAxis",)),
    VisualizationType.LINE: _Fields(any=("xAxis",), numbers=("yAxis",)),
    VisualizationType.PIE: _Fields(any=("labelField",), numbers=("valueField",)),
    VisualizationType.RADAR: _Fields(many="dimensions"),
    VisualizationType.SCATTER: _Fields(numbers=("xAxis", "yAxis")),
    VisualizationType.BUBBLE: _Fields(numbers=("xAxis", "yAxis", "sizeMetric")),
    VisualizationType.COMBO: _Fields(any=("xAxis",), numbers=("barField", "lineField")),
    VisualizationType.TABLE: _Fields(many="columns"),
}


def build_chart(given: Mapping[str, Any]) -> Visualization:
    """A chart as it may be shown.

    Args:
        given: type, title, config and data as a model wrote them.

    Raises:
        BadChart: it is not of the nine types, or its parts do not fit its type.
    """
    title = given.get("title")
    if not isinstance(title, str) or not title.strip():
        raise BadChart("it has no title")
    title = sanitize_text(title.strip())[:_LONGEST_TITLE]
    try:
        type = VisualizationType(str(given.get("type")))  # lower case alone
    except ValueError as error:
        raise BadChart("its type is not one of the nine") from error
    if type is VisualizationType.HTML:
        return Visualization(type=type, title=title, config={}, data=_html(given.get("data")))
    config, data = given.get("config"), given.get("data")
    if not isinstance(config, dict):
        raise BadChart("it has no config")
    fields, numbers, kept = _fields(_SCHEMAS[type], config)
    if type is VisualizationType.RADAR:
        numbers = fields
    return Visualization(type=type, title=title, config=kept, data=_rows(data, fields, numbers, type))


def _fields(schema: _Fields, config: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, Any]]:
    """The fields that the data needs, those of them that are numbers, and the configuration without anything else."""
    if schema.many:
        named = config.get(schema.many)
        if not isinstance(named, list) or not 0 < len(named) <= _MOST_FIELDS or not all(_is_name(name) for name in named):
            raise BadChart(f"config.{schema.many} is no list of fields")
        return tuple(named), (), {schema.many: named}
    kept = {}
    for key in (*schema.any, *schema.numbers):
        if not _is_name(config.get(key)):
            raise BadChart(f"config.{key} is missing")
        kept[key] = config[key]
    return tuple(kept.values()), tuple(config[key] for key in schema.numbers), kept


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 100


def _rows(data: object, fields: tuple[str, ...], numbers: tuple[str, ...], type: VisualizationType) -> list[dict[str, Any]]:
    if not isinstance(data, list) or not data or not all(isinstance(row, dict) for row in data):
        raise BadChart("its data is no list of records")
    for row in data[:MAX_ROWS]:
        if type is not VisualizationType.TABLE and (missing := [name for name in fields if name not in row]):
            raise BadChart(f"a record lacks {missing[0]}")
        if wrong := [name for name in numbers if not is_number(row.get(name))]:
            raise BadChart(f"{wrong[0]} is not a number in every record")
    if type is VisualizationType.TABLE and not any(name in row for row in data for name in fields):
        raise BadChart("no record has any of its columns")
    return data[:MAX_ROWS]


def is_number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _html(data: object) -> str:
    html = fragment(data) if isinstance(data, str) else ""
    if not html:
        raise BadChart("its data is no HTML")
    return html


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
other languages."""
_CASED = ("ID", "IDs")
_FOLDED = [word for word in _INSTEAD if word not in _CASED]
_BANNED = re.compile(rf"\b(?:(?P<cased>{'|'.join(_CASED)})|(?i:(?P<folded>{'|'.join(_FOLDED)})))\b")
_MOST_NAMES = 200


class BannedWords:
    """Looks for words, except inside names that stand in the data: a project may be called as it likes."""

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


def reader_texts(draft: Draft) -> list[str]:
    """The texts of a draft that a reader sees: the answer, the insights, and the titles and labels of charts."""
    found = [draft.answer, *draft.analysis]
    for chart in draft.visualizations:
        found += [text for text in (chart.get("title"), *labels(chart.get("config"))) if isinstance(text, str)]
        if isinstance(data := chart.get("data"), str):
            found.append(data)
    return found


def replace_words(draft: Draft, wording: BannedWords) -> Draft:
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


def _chart(chart: dict[str, Any], wording: BannedWords) -> dict[str, Any]:
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


MOST_PARTS = 8
"""Parts of a pie."""


def draw_table(title: str, rows: Sequence[Row]) -> Visualization:
    """Rows with the columns that any of them has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return _drawn(VisualizationType.TABLE, title, {"columns": columns}, rows)


def draw_column(title: str, x: str, y: str, rows: Sequence[Row]) -> Visualization:
    """Discrete things side by side."""
    return _drawn(VisualizationType.COLUMN, title, {"xAxis": x, "yAxis": y}, _figures(rows, y))


def draw_line(title: str, x: str, y: str, rows: Sequence[Row]) -> Visualization:
    """A course over years."""
    return _drawn(VisualizationType.LINE, title, {"xAxis": x, "yAxis": y}, _figures(rows, y))


def draw_pie(title: str, label: str, value: str, rows: Sequence[Row]) -> Visualization:
    """Parts of a whole."""
    return _drawn(VisualizationType.PIE, title, {"labelField": label, "valueField": value}, _figures(rows, value))


def _figures(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if isinstance(row.get(name), int | float)]


def _drawn(type: VisualizationType, title: str, config: Row, rows: Sequence[Row]) -> Visualization:
    return Visualization(type=type, title=title[:200], config=config, data=list(rows)[:MAX_ROWS])
