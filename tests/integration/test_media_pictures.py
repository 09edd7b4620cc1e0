"""Images read by the local OCR: what comes out, and what a hostile image can do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO

import pytest
from PIL import Image

from phronesis_contracts import TooLarge, Unavailable, UnsupportedMedia
from phronesis_media.reading.readers import LocalReader
from tests.support import documents, pictures
from tests.support.readers import reader as started
from tests.support.readers import text_of

pytestmark = pytest.mark.verify

LINES = ["Project Alpha status report 2024", "The budget is 4,500,000 GBP", "Delivery date: 12 March 2025"]
SAID = "The text above was read by OCR; no vision model has described what the picture shows."


@pytest.fixture(scope="module")
async def reader() -> AsyncIterator[LocalReader]:
    """One reader for the module, with its models warm."""
    async with started(scan_limit=2) as made:
        yield made


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.req("D-022", "D-025")
async def test_the_text_of_an_image_is_read_line_by_line(reader: LocalReader, format: str) -> None:
    text = await text_of(reader, pictures.encoded(pictures.drawn(LINES), format))
    read, _, about = text.partition("\n\n")
    assert read.split("\n") == LINES
    assert about.startswith(f"About the picture: {format}, 1000 by 320 pixels, mostly white")
    assert about.endswith(SAID)


async def test_the_engine_is_named_with_its_version(reader: LocalReader) -> None:
    reading = await reader.read(pictures.encoded(pictures.drawn(LINES[:1])), "image/png")
    assert reading.engine.startswith("rapidocr 3.")


async def test_an_image_without_text_is_still_described(reader: LocalReader) -> None:
    text = await text_of(reader, pictures.encoded(Image.new("RGB", (64, 48), (200, 30, 30))))
    assert text == (
        "No text was found in the picture.\n\nAbout the picture: PNG, 64 by 48 pixels, all red. "
        "No vision model has described what the picture shows."
    )


async def test_a_qr_code_is_told_as_text(reader: LocalReader) -> None:
    text = await text_of(reader, pictures.encoded(pictures.qr_code("https://example.com/a?b=1")))
    assert "A QR code in the picture says: https://example.com/a?b=1" in text


async def test_a_transparent_picture_is_read_on_white(reader: LocalReader) -> None:
    words = pictures.drawn(LINES[:1], ink="black", paper="white").convert("RGBA")
    words.putdata([(0, 0, 0, 255 - red) for red, *_ in words.get_flattened_data()])
    assert (await text_of(reader, pictures.encoded(words))).startswith(LINES[0])


async def test_a_photo_that_lies_on_its_side_is_turned_as_it_says(reader: LocalReader) -> None:
    turned = pictures.drawn(LINES[:2]).rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    assert (await text_of(reader, pictures.encoded(turned, "JPEG", exif=exif))).split("\n")[:2] == LINES[:2]


@pytest.mark.req("D-032")
async def test_of_an_animation_only_the_first_frame_is_read(reader: LocalReader) -> None:
    others = [Image.new("RGB", (1000, 160), (n % 250, 0, 0)) for n in range(500)]
    data = pictures.encoded(pictures.drawn(LINES[:1]), "GIF", save_all=True, append_images=others)
    assert (await text_of(reader, data)).startswith(LINES[0])


@pytest.mark.req("D-032")
async def test_of_a_tiff_only_the_first_pages_are_read(reader: LocalReader) -> None:
    pages = [pictures.drawn([f"This is page {n}"]) for n in (1, 2, 3)]
    text = await text_of(reader, pictures.encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:]))
    assert [f"page {n}" in text for n in (1, 2, 3)] == [True, True, False]
    assert "Its first 2 pages were looked at." in text


@pytest.mark.parametrize(("width", "height"), [(60_000, 60_000), (6_400, 6_400), (2**31 - 1, 1), (1, 2**31 - 1)])
@pytest.mark.req("D-032")
async def test_an_image_of_too_many_pixels_is_refused_unopened(reader: LocalReader, width: int, height: int) -> None:
    with pytest.raises(TooLarge, match="the image has too many pixels"):
        await text_of(reader, pictures.png_of(width, height))


@pytest.mark.parametrize("size", [(20_000, 1), (1, 20_000), (1, 1)])
async def test_an_image_of_a_strange_shape_is_read_within_the_limits(reader: LocalReader, size: tuple[int, int]) -> None:
    noise = Image.effect_noise(size, 50)
    assert f"PNG, {size[0]} by {size[1]} pixels" in await text_of(reader, pictures.encoded(noise))


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
async def test_half_an_image_is_damaged(reader: LocalReader, format: str) -> None:
    data = pictures.encoded(Image.effect_noise((300, 300), 50).convert("RGB"), format)
    with pytest.raises(UnsupportedMedia, match="the image is damaged"):
        await text_of(reader, data[: len(data) // 2])


async def test_an_installation_without_the_extra_says_which_is_missing(
    reader: LocalReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phronesis_media.reading.readers.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"the extra phronesis-media\[ocr\] is missing"):
        await text_of(reader, pictures.encoded(pictures.drawn(LINES)))


@pytest.mark.req("D-024")
async def test_a_scanned_document_is_read_by_ocr_and_says_what_was_left_out(reader: LocalReader) -> None:
    reading = await reader.read(pictures.scan([[f"This is page {n}"] for n in (1, 2, 3)]), "application/pdf")
    assert reading.text == (
        "[Page 1, by OCR]\nThis is page 1\n\n[Page 2, by OCR]\nThis is page 2\n\n"
        "[Page 3 is without text of its own; OCR has not looked there.]"
    )
    assert (reading.pages, reading.engine.split()[0], "rapidocr" in reading.engine) == (3, "pdfminer.six", True)


@pytest.mark.req("D-034")
async def test_a_scan_of_blank_pages_has_no_text(reader: LocalReader) -> None:
    with pytest.raises(UnsupportedMedia, match="no text was found in the document"):
        await text_of(reader, pictures.scan([[], []]))


async def test_a_blank_page_among_others_costs_them_nothing(reader: LocalReader) -> None:
    text = await text_of(reader, documents.pdf([["The first page"], [], ["The last page"]]))
    assert text.split() == "The first page The last page".split()


async def test_the_sample_picture_of_the_examples_is_read_word_for_word(reader: LocalReader) -> None:
    data = pictures.PATH.read_bytes()
    assert Image.open(BytesIO(data)).size == (1000, 400)
    assert (await text_of(reader, data, pictures.PATH.name)).split("\n")[: len(pictures.LINES)] == pictures.LINES
