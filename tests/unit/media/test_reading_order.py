"""What is said of a picture: the order of its lines, its colours; and pages of a scan in their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from phronesis_media.media import Reading
from phronesis_media.reading.ocr import Line, describe_colours, reading_order
from phronesis_media.reading.readers import merge_scans


def line(text: str, left: float, top: float, width: float, height: float = 20) -> Line:
    return Line(text, left, top, left + width, top + height)


def test_a_column_of_prose_is_read_before_the_one_beside_it() -> None:
    title = line("A title over both columns", 10, 0, 800)
    left = [line(f"left {n}", 10, 60 + 30 * n, 380) for n in range(3)]
    right = [line(f"right {n}", 430, 65 + 30 * n, 380) for n in range(3)]
    mixed = [right[1], left[0], title, right[0], left[2], left[1], right[2]]
    assert reading_order(mixed) == "A title over both columns\nleft 0\nleft 1\nleft 2\n\nright 0\nright 1\nright 2"


def test_a_table_is_read_row_by_row() -> None:
    cells = [
        line(f"{name}{n}", left, 30 * n + wobble, 60) for n in range(3) for name, left, wobble in (("b", 300, 3), ("a", 10, 0))
    ]
    assert reading_order(cells) == "a0  b0\na1  b1\na2  b2"


@given(st.lists(st.tuples(*[st.integers(0, 500)] * 3, st.integers(0, 90)), max_size=40))
def test_no_line_is_lost_or_doubled(places: list[tuple[int, int, int, int]]) -> None:
    lines = [line(f"w{n}", left, top, width, height) for n, (left, top, width, height) in enumerate(places)]
    assert sorted(reading_order(lines).split()) == sorted(one.text for one in lines)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([("white", 1.0)], "all white"),
        ([((10, 10, 10), 0.6), ((200, 30, 30), 0.4)], "mostly black, some red"),
        ([((30, 60, 200), 0.4), ((40, 160, 60), 0.35), ("yellow", 0.25)], "blue, some green and yellow"),
        ([((128, 128, 128), 0.96), ("orange", 0.04)], "mostly grey"),
        ([((130, 80, 30), 1.0)], "all brown"),
        ([((255, 190, 200), 1.0)], "all pink"),
    ],
)
def test_the_colours_that_cover_most_are_named(parts: list[tuple[str | tuple[int, int, int], float]], words: str) -> None:
    picture = Image.new("RGB", (480, 480))
    top = 0
    for colour, share in parts:
        height = round(480 * share)
        picture.paste(Image.new("RGB", (480, height), colour), (0, top))
        top += height
    assert describe_colours(picture) == words


def test_scanned_pages_stand_in_their_place_and_those_not_looked_at_are_named() -> None:
    found = Reading(text="one\f \fthree\f\f\f", engine="parser 1", pages=5)
    reading = merge_scans(found, [2, 4, 5], ["two", ""], "ocr 1")
    assert (
        reading.text
        == "one\f[Page 2, by OCR]\ntwo\fthree\f\f\f\f[Page 5 is without text of its own; OCR has not looked there.]"
    )
    assert (reading.engine, reading.pages) == ("parser 1, ocr 1", 5)


def test_a_document_of_nothing_stays_without_text() -> None:
    assert merge_scans(Reading(text="\f\f", engine="p"), [1, 2, 3], ["", " "], "o").text.strip() == ""
