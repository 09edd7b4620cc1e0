"""Texts of models and of data as people read them: Markdown and HTML without what runs, loads or styles, and values."""

from __future__ import annotations

import json

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

_TAGS = set(
    "a abbr b blockquote br caption code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i li ol p pre s small span strong sub sup"
    " table tbody td tfoot th thead tr u ul".split()
)
# No image: its address would be asked for, and could carry off what the answer says.
_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    attributes={"a": {"href"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan", "scope"}, "ol": {"start"}},
    url_schemes={"http", "https", "mailto"},
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener noreferrer",
)
_PLAIN = MarkdownIt("commonmark", {"html": False}).enable("table")


def render_markdown(text: str) -> Markup:
    return sanitise(_PLAIN.render(text))


def sanitise(fragment: str) -> Markup:
    """A fragment of HTML without anything that runs, loads or styles."""
    return Markup(_CLEANER.clean(fragment))


_MANY = 10_000
"""From here on a number's thousands are set apart; below it may be a year."""


def format_value(value: object) -> str:
    """A value as people read it; what is not known is a dash, and never zero."""
    match value:
        case None | "":
            return "—"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}" if abs(value) >= _MANY else str(value)
        case float():
            return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) >= 1 else f"{value:.3g}"
        case str():
            return value
        case list() | tuple():
            return ", ".join(format_value(each) for each in value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)
