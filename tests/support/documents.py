"""Small documents, written by hand: PDF, DOCX, XLSX, PPTX and HTML that hold given words."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_LEFT, _TOP, _LEADING = 56, 780, 15


def pdf(pages: Sequence[Sequence[str]]) -> bytes:
    """A PDF of A4 pages; each page is a list of lines in Latin-1."""
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for lines in pages:
        content = _content(lines)
        number = len(objects) + 1
        kids.append(number)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (number + 1)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(b"%d 0 R" % kid for kid in kids), len(kids))
    return _file(objects)


def _content(lines: Sequence[str]) -> bytes:
    shown = []
    for line in lines:
        text = line.encode("latin-1").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
        shown.append(b"(%s) Tj T*" % text)
    return b"BT /F1 11 Tf %d TL %d %d Td\n%s\nET" % (_LEADING, _LEFT, _TOP, b"\n".join(shown))


def _file(objects: Sequence[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def archive(members: Mapping[str, bytes | str]) -> bytes:
    """A zip archive of the members given."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, body in members.items():
            file.writestr(name, body)
    return out.getvalue()


def docx(paragraphs: Sequence[str], extra: Mapping[str, bytes | str] | None = None) -> bytes:
    """A DOCX of plain paragraphs, with further members where given."""
    body = "".join(f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>' for text in paragraphs)
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{_OFFICE}.wordprocessingml.document.main+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{_RELATIONS}/officeDocument" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{_MAIN}"><w:body>{body}</w:body></w:document>',
            **(extra or {}),
        }
    )


def xlsx(rows: Sequence[Sequence[str | int]]) -> bytes:
    """An XLSX of one sheet."""
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(list(row))
    out = BytesIO()
    book.save(out)
    return out.getvalue()


def pptx(slides: Sequence[tuple[str, str]]) -> bytes:
    """A PPTX of slides, each with a title and a body."""
    from pptx import Presentation

    show = Presentation()
    for title, body in slides:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    out = BytesIO()
    show.save(out)
    return out.getvalue()


def html(title: str, paragraphs: Sequence[str]) -> bytes:
    """An HTML page."""
    body = "".join(f"<p>{escape(text)}</p>" for text in paragraphs)
    return f"<!DOCTYPE html>\n<html><head><title>{escape(title)}</title></head><body>{body}</body></html>".encode()
