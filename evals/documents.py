"""Files that people attach, written from their content: texts, tables, and small PDF, Word and Excel files."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from xml.sax.saxutils import escape

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
TYPES = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".pdf": "application/pdf",
    ".docx": WORD,
    ".xlsx": EXCEL,
}
_LINE = 92
"""Characters of a line in a PDF."""


def make(name: str, content: Any) -> tuple[bytes, str]:
    """A file by its name's ending.

    Args:
        name: `minutes.txt`, `plan.pdf`, ...
        content: a text; for `.csv` rows; for `.pdf` a text for each page; for `.docx` paragraphs; for `.xlsx` rows by sheet. A
            mapping with `filler` (a sentence), `characters` and `end` is a long text that ends with `end`.

    Returns:
        Its bytes and its media type.

    Raises:
        KeyError: the ending is not known.
    """
    ending = PurePath(name).suffix
    kind = TYPES[ending]
    if ending == ".csv":
        return _csv(content).encode(), kind
    if ending == ".pdf":
        return _pdf(content), kind
    if ending == ".docx":
        return _docx(content), kind
    if ending == ".xlsx":
        return _xlsx(content), kind
    return (_long(content) if isinstance(content, Mapping) else str(content)).encode(), kind


def _long(content: Mapping[str, Any]) -> str:
    lines: list[str] = []
    size = 0
    while size < int(content["characters"]):
        lines.append(str(content["filler"]).format(n=len(lines) + 1))
        size += len(lines[-1]) + 2
    middle = len(lines) // 2
    return "\n\n".join([*lines[:middle], *content.get("middle", ()), *lines[middle:], *content["end"]])


def _csv(rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _xlsx(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    numbered = list(enumerate(sheets.items(), start=1))
    book = f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}"><sheets>' + "".join(
        f'<sheet name="{escape(title)}" sheetId="{n}" r:id="rId{n}"/>' for n, (title, _) in numbered
    )
    relations = "".join(
        f'<Relationship Id="rId{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>' for n, _ in numbered
    )
    overrides = {f"xl/worksheets/sheet{n}.xml": f"{_SHEET}.worksheet+xml" for n, _ in numbered}
    return _package(
        {"xl/workbook.xml": f"{EXCEL}.main+xml", **overrides},
        "xl/workbook.xml",
        {
            "xl/workbook.xml": f"{book}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">{relations}</Relationships>',
            **{f"xl/worksheets/sheet{n}.xml": _sheet(rows) for n, (_, rows) in numbered},
        },
    )


def _sheet(rows: Sequence[Sequence[Any]]) -> str:
    return f'<worksheet xmlns="{_SHEETS}"><sheetData>{"".join(map(_row, rows))}</sheetData></worksheet>'


def _row(cells: Sequence[Any]) -> str:
    shown = (
        f"<c><v>{cell}</v></c>"
        if isinstance(cell, int | float)
        else f'<c t="inlineStr"><is><t>{escape(str(cell))}</t></is></c>'
        for cell in cells
    )
    return f"<row>{''.join(shown)}</row>"


_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def _docx(paragraphs: Sequence[str]) -> bytes:
    body = "".join(f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>' for text in paragraphs)
    document = f'<w:document xmlns:w="{_WORDS}"><w:body>{body}</w:body></w:document>'
    return _package({"word/document.xml": f"{WORD}.main+xml"}, "word/document.xml", {"word/document.xml": document})


def _package(types: Mapping[str, str], main: str, parts: Mapping[str, str]) -> bytes:
    """An Office file: its parts, their types, and which is the main one."""
    overrides = "".join(f'<Override PartName="/{part}" ContentType="{kind}"/>' for part, kind in types.items())
    head = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
        f'Target="{main}"/></Relationships>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for path, text in {**head, **parts}.items():
            file.writestr(path, f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>{text}')
    return out.getvalue()


def _pdf(pages: Sequence[str]) -> bytes:
    """A PDF with one text on each page, in Helvetica; Latin letters only."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    kids = []
    for text in pages:
        stream = _stream(text)
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))


def _stream(text: str) -> bytes:
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            if len(line) + len(word) >= _LINE:
                lines.append(line)
                line = ""
            line = f"{line} {word}".strip()
        lines.append(line)
    shown = [line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in lines]
    return "\n".join(["BT /F1 11 Tf 50 790 Td 15 TL", *(f"({line}) Tj T*" for line in shown), "ET"]).encode("cp1252", "replace")
