"""Documents. Parsers are imported where they are used: most take long to load."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from io import BytesIO, StringIO
from itertools import islice

from ..uploads import formats
from .jobs import Answer, Job, Refused, encode_text

_PICTURE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->")


def read(data: bytes, job: Job) -> Answer:
    """The text of a document; of a PDF or a presentation with a form feed between pages.

    Raises:
        Refused: it is protected, damaged, or has too many pages.
    """
    if job.type == formats.PDF:
        pages, total, broken = _read_pdf(data, job)
        bare = [number for number, page in enumerate(pages, 1) if not page.strip()]
        return Answer(
            encode_text("\f".join(pages), job),
            f"pdfminer.six {version('pdfminer.six')}",
            {"pages": total, "bare": bare, "broken": broken},
        )
    words, slides = _read_with_markitdown(data, job)
    return Answer(encode_text(words, job), f"markitdown {version('markitdown')}", {"pages": slides})


def _read_pdf(data: bytes, job: Job) -> tuple[list[str], int, int]:
    """The text of each page, how many there are, and how many of them could not be read."""
    from pdfminer.converter import TextConverter
    from pdfminer.layout import LAParams
    from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError, PDFPasswordIncorrect
    from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
    from pdfminer.pdfpage import PDFPage
    from pdfminer.pdfparser import PDFParser

    try:
        pages = list(islice(PDFPage.create_pages(PDFDocument(PDFParser(BytesIO(data)))), job.pages + 1))
    except (PDFPasswordIncorrect, PDFEncryptionError) as error:
        raise Refused("encrypted") from error
    if len(pages) > job.pages:
        raise Refused("pages")
    manager = PDFResourceManager()
    out = StringIO()
    interpreter = PDFPageInterpreter(manager, TextConverter(manager, out, laparams=LAParams()))
    read: list[str] = []
    broken = length = 0
    for number, page in enumerate(pages, 1):
        try:
            interpreter.process_page(page)
        except MemoryError:
            raise
        except Exception:  # one page at fault leaves the others to be read, and the text says so
            broken += 1
            out.write(f"\n[Page {number} could not be read.]\n")
        read.append(out.getvalue().replace("\f", ""))
        out.seek(0)
        out.truncate()
        length += len(read[-1])
        if length > job.characters:
            break
    if broken == len(pages):
        raise Refused("unreadable")
    return read, len(pages), broken


def _read_with_markitdown(data: bytes, job: Job) -> tuple[str, int | None]:
    if job.type != formats.XLSX:
        # Sheets alone need it, and have a process of their own; loading it takes longer than all the rest.
        sys.modules["pandas"] = None  # type: ignore[assignment]
    from markitdown import DocumentConverter, StreamInfo
    from markitdown.converters import DocxConverter, HtmlConverter, PptxConverter, XlsxConverter

    converters: dict[str, Callable[[], DocumentConverter]] = {
        formats.DOCX: DocxConverter,
        formats.XLSX: XlsxConverter,
        formats.PPTX: PptxConverter,
        formats.HTML: HtmlConverter,
    }
    words = converters[job.type]().convert(BytesIO(data), StreamInfo(mimetype=job.type)).markdown
    slides = len(_SLIDE.findall(words)) if job.type == formats.PPTX else None
    if slides is not None and slides > job.pages:
        raise Refused("pages")
    # A picture leaves its words behind, and a document of pictures alone has no text.
    return _COMMENT.sub("", _PICTURE.sub(r"\1", _SLIDE.sub("\f", words).lstrip().removeprefix("\f"))), slides
