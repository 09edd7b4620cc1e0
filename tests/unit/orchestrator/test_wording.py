"""Business language, and HTML that does nothing."""

from __future__ import annotations

import pytest

from phronesis_orchestrator.agents.presentation import (
    BannedWords,
    fragment,
    reader_texts,
    replace_words,
    sanitize_answer,
    sanitize_text,
)
from phronesis_orchestrator.models.reasoner import Draft


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Node and the nodes", ("Node", "nodes")),
        ("CYPHER, cypher", ("CYPHER", "cypher")),
        ("at L1, l2 and L3", ("L1", "l2", "L3")),
        ("its ID, their IDs", ("ID", "IDs")),
        ("a Query, embeddings", ("Query", "embeddings")),
        ("We provide validated, valid ideas. An id (est) in Florid prose; nodes_x, 10L3", ()),
    ],
)
@pytest.mark.req("N-055", "NC-024")
def test_words_are_found_whole_and_id_with_its_case(text: str, words: tuple[str, ...]) -> None:
    assert BannedWords(()).found([text]) == words


@pytest.mark.req("N-055")
def test_a_name_that_stands_in_the_data_keeps_its_words() -> None:
    wording = BannedWords([{"name": "Digital ID Programme"}, {"name": "ID"}])
    assert wording.found(["The Digital ID Programme has no ID."]) == ("ID",)
    assert wording.mended("The Digital ID Programme has no ID.") == "The Digital ID Programme has no identifier."


@pytest.mark.req("N-055", "NC-023")
def test_titles_labels_and_the_fields_they_name_are_mended_and_rows_are_not() -> None:
    chart = {
        "type": "table",
        "title": "Nodes",
        "config": {"columns": ["ID", "name"]},
        "data": [{"ID": 7, "name": "a node"}],
    }
    draft = replace_words(Draft(answer="x", visualizations=(chart,)), BannedWords(()))
    assert reader_texts(draft) == ["x", "Records", "identifier", "name"]
    assert draft.visualizations[0]["data"] == [{"identifier": 7, "name": "a node"}]


@pytest.mark.parametrize(
    ("html", "clean"),
    [
        ("<p>a</p>\r\n<p>b</p>\n", "<p>a</p><p>b</p>"),
        ("<p>a\nb\\nc</p>", "<p>a<br>b<br>c</p>"),
        ("<p onmouseover=x()>a<script>b</script></p>", "<p>a</p>"),
        ('<a href="javascript:x()">a</a><img src=x onerror=y()>', "a"),
        ("<table><tr><td style='x'>1</td></tr></table>", "<table><tbody><tr><td>1</td></tr></tbody></table>"),
        ("<svg><script>x()</script></svg><iframe src=x></iframe>ok", "ok"),
        ("<p>open", "<p>open</p>"),
    ],
)
@pytest.mark.req("N-056", "N-057", "N-058")
def test_a_fragment_is_inert_well_formed_and_on_one_line(html: str, clean: str) -> None:
    assert fragment(html) == clean


@pytest.mark.req("N-062", "N-057", "NC-026")
def test_markdown_keeps_its_line_ends_and_runs_nothing() -> None:
    assert sanitize_answer("# A\n\n- a < b & c") == "# A\n\n- a < b & c"
    assert sanitize_answer("A <script>x()</script>\nB") == "A \nB"
    assert sanitize_answer("[x](javascript:alert(1)) and [y](https://example.org)").startswith("[x](#)")
    assert sanitize_answer("<p>a</p>\n<p>b</p>") == "<p>a</p><p>b</p>"


def test_a_plain_text_has_no_tags() -> None:
    assert sanitize_text("<b>Good</b> <img src=x onerror=y()>news") == "Good news"
