"""Documents read in a child process: what comes out, and what hostile content can do."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phronesis_contracts import ServiceError, TimedOut, TooLarge, UnsupportedMedia
from phronesis_media.reading.readers import LocalReader
from phronesis_media.uploads import formats
from phronesis_media.uploads.formats import detect_type
from tests.support import documents
from tests.support.bus import eventually
from tests.support.readers import processes
from tests.support.readers import reader as started

PAGES = [[f"Page {number}: the review of programme {number}."] for number in range(1, 4)]


@pytest.fixture(scope="module")
async def reader() -> AsyncIterator[LocalReader]:
    """One reader for the module, with its processes warm."""
    async with started() as made:
        yield made


@pytest.mark.parametrize(
    ("data", "name", "words", "pages", "engine"),
    [
        (documents.pdf(PAGES), "a.pdf", ["programme 1", "programme 3"], 3, "pdfminer.six"),
        (documents.docx(["First & last", "second"]), "a.docx", ["First & last", "second"], None, "markitdown"),
        (
            documents.xlsx([["Project", "Cost"], ["Dam", 17]]),
            "a.xlsx",
            ["| Project | Cost |", "| Dam | 17 |"],
            None,
            "markitdown",
        ),
        (documents.pptx([("One", "alpha"), ("Two", "omega")]), "a.pptx", ["# One", "omega"], 2, "markitdown"),
        (documents.html("T", ["a < b", "c"]), "a.html", ["a < b", "c"], None, "markitdown"),
        (b"# Title\n\nwords", "a.md", ["# Title\n\nwords"], None, "utf-8"),
        ("Größe,1".encode("utf-16"), "a.csv", ["Größe,1"], None, "utf-8"),
    ],
)
@pytest.mark.req("D-024")
async def test_every_supported_type_gives_its_text(
    data: bytes, name: str, words: list[str], pages: int | None, engine: str, reader: LocalReader
) -> None:
    reading = await reader.read(data, detect_type(data, name, None))
    assert ([word in reading.text for word in words], reading.pages) == ([True] * len(words), pages)
    assert reading.engine.split()[0] == engine


@pytest.mark.parametrize(
    "data",
    [
        documents.pdf([[], []]),
        documents.docx([""]),
        b" \n\t\n",
        b"<html><body><img alt='' src='x.png'></body></html>",
    ],
)
@pytest.mark.req("D-034")
async def test_a_document_without_text_is_refused(data: bytes, reader: LocalReader) -> None:
    with pytest.raises(UnsupportedMedia, match="no text was found"):
        await reader.read(data, detect_type(data, "a", None))


@pytest.mark.req("D-032")
async def test_a_document_with_too_many_pages_is_refused() -> None:
    async with started(page_limit=2) as reader:
        with pytest.raises(TooLarge, match="the document has too many pages"):
            await reader.read(documents.pdf(PAGES), formats.PDF)


async def test_a_page_at_fault_leaves_the_others_to_be_read(reader: LocalReader) -> None:
    data = documents.pdf(PAGES).replace(
        b"(Page 2: the review of programme 2.) Tj", b"(Page 2) " + b"0 0 0 /F1 Tf )))) ] ".ljust(30)
    )
    reading = await reader.read(data, formats.PDF)
    assert ("programme 1" in reading.text, "programme 3" in reading.text) == (True, True)


async def test_a_text_over_its_limit_ends_with_a_mark() -> None:
    async with started(text_limit=20) as reader:
        reading = await reader.read(documents.pdf(PAGES), formats.PDF)
    assert reading.text == "Page 1: the review o\n\n[This goes on; only this much of its text is kept.]"


async def test_a_pdf_under_a_password_is_refused(reader: LocalReader) -> None:
    encryption = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00><00>]" % (b"41" * 32, b"42" * 32)
    data = documents.pdf(PAGES).replace(b"/Root 1 0 R", b"/Root 1 0 R " + encryption)
    with pytest.raises(UnsupportedMedia, match="protected by a password"):
        await reader.read(data, formats.PDF)


def bomb() -> bytes:
    """A PDF whose one page unpacks to 768 MiB."""
    packer = zlib.compressobj(9)
    block = bytes(16 * 1024 * 1024)
    packed = b"".join(packer.compress(block) for _ in range(48)) + packer.flush()
    once = zlib.compress(packed, 9)
    plain = documents.pdf([["x"]])
    at, end = plain.find(b"<< /Length"), plain.find(b"endstream")
    head = b"<< /Filter [/FlateDecode /FlateDecode] /Length %d >>\nstream\n" % len(once)
    return plain[:at] + head + once + b"\n" + plain[end:]


@pytest.mark.verify
@pytest.mark.req("D-032")
async def test_a_bomb_meets_the_limit_of_memory_and_the_service_does_not() -> None:
    data = bomb()
    before = psutil.Process().memory_info().rss
    async with started(parse_memory=512 * 1024 * 1024) as reader:
        with pytest.raises(TooLarge):
            await reader.read(data, formats.PDF)
    assert psutil.Process().memory_info().rss - before < 64 * 1024 * 1024


async def test_a_reader_that_takes_too_long_is_ended_and_the_content_is_not_at_fault() -> None:
    slow = documents.pdf([[f"line {line}" for line in range(4000)] for _ in range(20)])
    before = processes()
    async with started(parse_seconds=0.3) as reader:
        with pytest.raises(TimedOut):
            await reader.read(slow, formats.PDF)
        assert processes() == before


async def test_a_caller_that_goes_away_leaves_no_process_behind(reader: LocalReader) -> None:
    slow = documents.pdf([[f"line {line}" for line in range(4000)] for _ in range(20)])
    await reader.close()
    before = len(processes())
    task = asyncio.create_task(reader.read(slow, formats.PDF))
    await eventually(lambda: len(processes()) == before + 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await reader.close()
    assert len(processes()) == before


async def test_a_picture_that_is_linked_from_a_file_is_not_opened(tmp_path: Path, reader: LocalReader) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    body = (
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        f'xmlns:r="{relations}" xmlns:a="{drawing}/main" xmlns:wp="{drawing}/wordprocessingDrawing" '
        f'xmlns:pic="{drawing}/picture"><w:body><w:p><w:r><w:t>words</w:t></w:r><w:r><w:drawing><wp:inline><a:graphic>'
        '<a:graphicData><pic:pic><pic:blipFill><a:blip r:link="rId9"/></pic:blipFill></pic:pic></a:graphicData></a:graphic>'
        "</wp:inline></w:drawing></w:r></w:p></w:body></w:document>"
    )
    link = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId9" '
        f'Type="{relations}/image" Target="{(tmp_path / "secret.txt").as_uri()}" TargetMode="External"/></Relationships>'
    )
    data = documents.docx([], {"word/document.xml": body, "word/_rels/document.xml.rels": link})
    try:
        text = (await reader.read(data, formats.DOCX)).text
    except UnsupportedMedia:
        text = ""
    assert ("secret" in text, "dGhlIHNlY3JldA" in text) == (False, False)


async def test_entities_that_multiply_do_not_unfold(reader: LocalReader) -> None:
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    body = (
        f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e0 "ha">{entities}]>'
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r>'
        "<w:t>&e9;</w:t></w:r></w:p></w:body></w:document>"
    )
    with pytest.raises((UnsupportedMedia, TooLarge)):
        await reader.read(documents.docx([], {"word/document.xml": body}), formats.DOCX)


@given(
    st.binary(max_size=300) | st.binary(max_size=60).map(lambda noise: noise.join([documents.pdf(PAGES)[:400]] * 2)),
    st.sampled_from([formats.PDF, formats.HTML, formats.DOCX]),
)
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_bytes_there_is_a_text_or_a_typed_error(data: bytes, type: str) -> None:
    async def read() -> str:
        async with started() as reader:
            try:
                return (await reader.read(data, type)).text
            except ServiceError:
                return "refused"

    assert asyncio.run(read())
