"""Texts of answers as HTML: Markdown is rendered, and all of it is sanitised here, whoever did so before."""

from __future__ import annotations

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
_MIXED = MarkdownIt("commonmark", {"html": True}).enable("table")


def markdown(text: str) -> Markup:
    """Markdown as HTML; tags in it are shown as they were written."""
    return clean(_PLAIN.render(text))


def rich(text: str) -> Markup:
    """Markdown that may hold HTML, or HTML alone, as harmless HTML."""
    return clean(_MIXED.render(text))


def clean(fragment: str) -> Markup:
    """A fragment of HTML without anything that runs, loads or styles."""
    return Markup(_CLEANER.clean(fragment))
