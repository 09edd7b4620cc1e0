"""Readers by type; loaded in the child process alone. Parsers are imported where they are used: most take long to load."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from io import BytesIO, StringIO
from itertools import islice

from . import formats

_PICTURE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->")


class Refused(Exception):
    """A document that is not read; its one argument says why: `encrypted`, `pages` or `unreadable`."""


def read(data: bytes, type: str, page_limit: int, character_limit: int) -> tuple[str, str, int | None]:
    """The text of a document, the name and version of what read it, and its pages where it has any.

    Raises:
        Refused: it is protected, damaged, or has too many pages.
    """
    if type == formats.PDF:
        text, pages = _pdf(data, page_limit, character_limit)
        return text, f"pdfminer.six {version('pdfminer.six')}", pages
    text, slides = _by_markitdown(data, type, page_limit)
    return text, f"markitdown {version('markitdown')}", slides


def _pdf(data: bytes, page_limit: int, character_limit: int) -> tuple[str, int]:
    from pdfminer.converter import TextConverter
    from pdfminer.layout import LAParams
    from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError, PDFPasswordIncorrect
    from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
    from pdfminer.pdfpage import PDFPage
    from pdfminer.pdfparser import PDFParser

    try:
        pages = list(islice(PDFPage.create_pages(PDFDocument(PDFParser(BytesIO(data)))), page_limit + 1))
    except (PDFPasswordIncorrect, PDFEncryptionError) as error:
        raise Refused("encrypted") from error
    if len(pages) > page_limit:
        raise Refused("pages")
    manager = PDFResourceManager()
    out = StringIO()
    interpreter = PDFPageInterpreter(manager, TextConverter(manager, out, laparams=LAParams()))
    broken = 0
    for number, page in enumerate(pages, 1):
        try:
            interpreter.process_page(page)
        except MemoryError:
            raise
        except Exception:  # one page at fault leaves the others to be read, and the text says so
            broken += 1
            out.write(f"\n[Page {number} could not be read.]\n\f")
        if out.tell() > character_limit:
            break
    if broken == len(pages):
        raise Refused("unreadable")
    return out.getvalue(), len(pages)


def _by_markitdown(data: bytes, type: str, page_limit: int) -> tuple[str, int | None]:
    if type != formats.XLSX:
        # Sheets alone need it, and loading it takes longer than all the rest; markitdown does without.
        sys.modules["pandas"] = None  # type: ignore[assignment]
    from markitdown import DocumentConverter, StreamInfo
    from markitdown.converters import DocxConverter, HtmlConverter, PptxConverter, XlsxConverter

    converters: dict[str, Callable[[], DocumentConverter]] = {
        formats.DOCX: DocxConverter,
        formats.XLSX: XlsxConverter,
        formats.PPTX: PptxConverter,
        formats.HTML: HtmlConverter,
    }
    text = converters[type]().convert(BytesIO(data), StreamInfo(mimetype=type)).markdown
    slides = len(_SLIDE.findall(text)) if type == formats.PPTX else None
    if slides is not None and slides > page_limit:
        raise Refused("pages")
    # A picture leaves its words behind, and a document of pictures alone has no text.
    return _COMMENT.sub("", _PICTURE.sub(r"\1", text)), slides
