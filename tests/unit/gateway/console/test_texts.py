"""Texts and tables: what a model wrote is shown, and does nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_gateway.console.answer import MAX_ROWS, format_value, render_markdown, render_rich_text, render_table, sanitise
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
    for shown in (render_markdown(text), render_rich_text(text), sanitise(text)):
        tags = re.findall(r"<[^>]*>", shown)
        assert not [
            tag for tag in tags if re.search(r"(?i)<(script|img|svg|iframe|style|math)|\son\w+=|javascript:|style=", tag)
        ]


@pytest.mark.req("N-062")
def test_markdown_and_html_are_both_rendered() -> None:
    assert render_rich_text("**a** <i>b</i>") == "<p><strong>a</strong> <i>b</i></p>\n"


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


def test_a_table_has_the_columns_it_is_told_to_have_and_escapes_what_is_in_them() -> None:
    assert str(render_table("T", [{"b_c": "<i>", "a": 1}, {"a": None}], ["a", "b_c"])) == (
        '<div class="rows" tabindex="0" role="region" aria-label="T"><table><caption>T</caption>'
        '<thead><tr><th scope="col">a</th><th scope="col">b c</th></tr></thead>'
        '<tbody><tr><td class="number">1</td><td>&lt;i&gt;</td></tr><tr><td>—</td><td>—</td></tr></tbody></table></div>'
    )


def test_a_long_table_is_cut_and_says_so() -> None:
    shown = str(render_table("T", [{"a": n} for n in range(MAX_ROWS + 1)]))
    assert (shown.count("<tr>"), f"the first {MAX_ROWS} of {MAX_ROWS + 1} rows" in shown) == (MAX_ROWS + 1, True)
