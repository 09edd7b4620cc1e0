"""Which pages, sheets and sections a text has, and which limits it says it has reached."""

from __future__ import annotations

import pytest

from phronesis_contracts import UnsupportedMedia
from phronesis_contracts.media import MediaKind, TextPart
from phronesis_media.media import Reading, parts_between
from phronesis_media.reading.readers import limit_text, merge_scans
from phronesis_media.uploads import formats


def read(text: str, type: str, limit: int = 1_000) -> Reading:
    return limit_text(Reading(text=text), MediaKind.DOCUMENT, limit, type)


@pytest.mark.parametrize("type", [formats.PDF, formats.PPTX])
def test_pages_keep_their_numbers_though_one_is_empty(type: str) -> None:
    found = read("\f One\x00 page. \n\f\fThe last.", type)
    assert found.text == "One page.\n\nThe last."
    assert [(part.page, found.text[part.start : part.end]) for part in found.parts] == [(2, "One page."), (4, "The last.")]


def test_sheets_and_sections_begin_with_their_heading() -> None:
    sheets = read("## Costs\n| a |\n\n## Staff ##\n| b |", formats.XLSX)
    assert [(part.sheet, sheets.text[part.start : part.end].split("\n")[0]) for part in sheets.parts] == [
        ("Costs", "## Costs"),
        ("Staff", "## Staff ##"),
    ]
    sections = read("Before.\n# Aims\nText.\n## Scope\nMore.", formats.MARKDOWN)
    assert [part.heading for part in sections.parts] == ["Aims", "Scope"]
    assert read("# no heading", formats.PLAIN).parts == ()


def test_a_text_that_is_cut_says_so_and_its_parts_end_with_it() -> None:
    found = read("a" * 10 + "\f" + "b" * 10, formats.PDF, limit=14)
    assert (found.limits, found.parts) == (("text",), (TextPart(page=1, start=0, end=10), TextPart(page=2, start=12, end=14)))
    assert "only this much of its text is kept" in found.text


def test_pages_that_no_ocr_has_looked_at_are_a_limit() -> None:
    found = Reading(text="One.\f\f", engine="x")
    assert merge_scans(found, (2, 3), ("Two.",), "ocr").limits == ("scans",)
    assert merge_scans(found, (2, 3), ("Two.", "Three."), "ocr").limits == ()


def test_no_text_at_all_is_refused() -> None:
    with pytest.raises(UnsupportedMedia):
        read(" \f\n\f", formats.PDF)


def test_a_reply_tells_of_the_parts_that_stand_in_it() -> None:
    parts = tuple(TextPart(page=n, start=10 * n, end=10 * n + 8) for n in range(5))
    assert [part.page for part in parts_between(parts, 18, 40)] == [2, 3]
