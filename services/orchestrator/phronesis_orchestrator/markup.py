"""HTML that a model made, before anyone displays it: a few tags without attributes, and no line ends (N-056 to N-058)."""

from __future__ import annotations

import re

import nh3

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


def shown(text: str) -> str:
    """An answer that may be Markdown or HTML: inert, and where it is HTML, without line ends (NC-026)."""
    if _IS_HTML.search(text):
        return fragment(text)
    if _TAG.search(text):
        text = nh3.clean(text, tags=_TAGS, attributes={}, clean_content_tags=_WITH_CONTENT)
    return _LINK.sub("](#)", text)


def plain(text: str) -> str:
    """A text that is displayed as text: a title, a label, an insight."""
    return nh3.clean(text, tags=set(), clean_content_tags=_WITH_CONTENT) if _TAG.search(text) else _LINK.sub("](#)", text)


def visible(html: str) -> str:
    """The words of a fragment, without its tags."""
    return re.sub(r"<[^>]*>", " ", html)
