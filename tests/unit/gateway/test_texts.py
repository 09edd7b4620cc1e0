"""Texts: what a model wrote is shown, and does nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_gateway.turns.texts import format_value, render_markdown, sanitise
from tests.support.cases import for_each

PARTS = st.sampled_from(
    (
        "<script>",
        "</script>",
        "<img src=x onerror=f()>",
        "<svg/onload=f()>",
        "[x](javascript:f())",
        '<a href="javascript:f()">',
        "<iframe srcdoc=x>",
        "<style>*{}</style>",
        "<math><mi//xlink:href=x>",
        "<p style='x'>",
        "| a |\n|--|\n",
        "**b**",
        "&lt;",
        "\n\n",
    )
)
FORBIDDEN = re.compile(r"(?i)<(script|img|svg|iframe|style|math)|\son\w+=|javascript:|style=")


@pytest.mark.req("N-058")
@given(st.lists(PARTS | st.text(max_size=5)).map("".join))
def test_no_text_runs_loads_or_styles_anything(text: str) -> None:
    for shown in (render_markdown(text), sanitise(text)):
        tags = re.findall(r"<[^>]*>", shown)
        assert not [
            tag for tag in tags if re.search(r"(?i)<(script|img|svg|iframe|style|math)|\son\w+=|javascript:|style=", tag)
        ]


def test_tags_in_plain_markdown_are_shown_as_they_were_written() -> None:
    assert render_markdown("a List<String>") == "<p>a List&lt;String&gt;</p>\n"


def test_a_link_leaves_the_page_alone() -> None:
    link = '<p><a href="https://gov.example" target="_blank" rel="noopener noreferrer">x</a></p>\n'
    assert render_markdown("[x](https://gov.example)") == link


@for_each(
    ("value", "shown"),
    [
        (None, "—"),
        ("", "—"),
        (0, "0"),
        (2022, "2022"),
        (1_250_000, "1,250,000"),
        (0.5, "0.5"),
        (0.00123, "0.00123"),
        (1234.5, "1,234.5"),
        (100.0, "100"),
        (True, "yes"),
        (["a", 1], "a, 1"),
        ({"a": "ü"}, '{"a": "ü"}'),
    ],
)
def test_a_value_is_written_for_people(value: object, shown: str) -> None:
    assert format_value(value) == shown
