"""Office files: entities, relationships that lead outside, sheets without end (TRAPS 68)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support import documents
from tests.support.hostile_files.form import DAMAGED, LARGE, LATE, TEXT, HostileFile, Lure, fixed

_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORDS = "the honest words"
_COMMAND = "=cmd|'/c calc'!A1"
_LIMITED = (LARGE, LATE, DAMAGED)


def laughs(levels: int = 9) -> str:
    """Declarations of entities that multiply."""
    more = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, levels + 1))
    return f'<!ENTITY e0 "ha">{more}'


def _body(inner: str, declared: str = "") -> bytes:
    kind = f"<!DOCTYPE d [{declared}]>" if declared else ""
    text = (
        f'<?xml version="1.0"?>{kind}<w:document xmlns:w="{_MAIN}" xmlns:r="{_RELATIONS}"><w:body>{inner}</w:body></w:document>'
    )
    return documents.docx([], {"word/document.xml": text})


def _said(words: str) -> str:
    return f"<w:p><w:r><w:t>{words}</w:t></w:r></w:p>"


def _related(kind: str, target: str, inner: str = "", where: str = "word/_rels/document.xml.rels") -> bytes:
    link = (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId9" Type="{_RELATIONS}/{kind}" '
        f'Target="{target}" TargetMode="External"/></Relationships>'
    )
    body = f'<w:document xmlns:w="{_MAIN}" xmlns:r="{_RELATIONS}"><w:body>{_said(_WORDS)}{inner}</w:body></w:document>'
    return documents.docx([], {"word/document.xml": body, where: link})


def _sheet(rows: str, strings: str = "", declared: str = "", dimension: str = "A1") -> bytes:
    kind = f"<!DOCTYPE d [{declared}]>" if declared else ""
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    return documents.archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>'
            f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{types}.worksheet+xml"/>'
            f'<Override PartName="/xl/sharedStrings.xml" ContentType="{types}.sharedStrings+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATIONS}"><sheets><sheet name="S" sheetId="1" '
            'r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{_RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" '
            f'Type="{_RELATIONS}/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f'<?xml version="1.0"?>{kind}<worksheet xmlns="{_SHEET}"><dimension ref="{dimension}"/>'
            f"<sheetData>{rows}</sheetData></worksheet>",
            "xl/sharedStrings.xml": f'<?xml version="1.0"?>{kind}<sst xmlns="{_SHEET}">{strings}</sst>',
        }
    )


def _cell(place: str, value: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def _many_cells() -> bytes:
    row = "<row>" + "<c><v>1</v></c>" * 1_000 + "</row>"
    return _sheet(row * 10_000)


def _groups() -> bytes:
    """A slide of groups in groups."""
    from io import BytesIO
    from zipfile import ZipFile

    plain = documents.pptx([("Title", _WORDS)])
    with ZipFile(BytesIO(plain)) as file:
        parts: dict[str, bytes | str] = {name: file.read(name) for name in file.namelist()}
    slide = str(parts["ppt/slides/slide1.xml"], "utf-8")  # type: ignore[arg-type]
    group = "<p:grpSp><p:nvGrpSpPr><p:cNvPr id='9' name='g'/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>"
    deep = group * 3_000 + "</p:grpSp>" * 3_000
    parts["ppt/slides/slide1.xml"] = slide.replace("</p:spTree>", f"{deep}</p:spTree>")
    return documents.archive(parts)


def _entities() -> Iterator[HostileFile]:
    def outside(lure: Lure) -> bytes:
        return _body(_said("&x;" + _WORDS), f'<!ENTITY x SYSTEM "{lure.secret.as_uri()}">')

    def by_http(lure: Lure) -> bytes:
        return _body(_said("&x;"), f'<!ENTITY x SYSTEM "{lure.url}"><!ENTITY % y SYSTEM "{lure.url}y.dtd"> %y;')

    def sheet(lure: Lure) -> bytes:
        return _sheet('<row r="1"><c r="A1" t="s"><v>0</v></c></row>', "<si><t>&e9;</t></si>", laughs())

    yield HostileFile("docx-entity-bomb", "a.docx", fixed(lambda: _body(_said("&e9;"), laughs())), _LIMITED)
    yield HostileFile(
        "docx-quadratic-entities",
        "a.docx",
        fixed(lambda: _body(_said("&x;" * 50_000), f'<!ENTITY x "{"a" * 50_000}">')),
        _LIMITED,
    )
    yield HostileFile("docx-entity-of-a-file", "a.docx", outside, (DAMAGED, TEXT))
    yield HostileFile("docx-entity-by-http", "a.docx", by_http, (DAMAGED,))
    yield HostileFile("xlsx-entity-bomb", "a.xlsx", sheet, _LIMITED)


def _relationships() -> Iterator[HostileFile]:
    def template(lure: Lure) -> bytes:
        return _related("attachedTemplate", f"{lure.url}evil.dotm", where="word/_rels/settings.xml.rels")

    yield HostileFile("docx-picture-by-http", "a.docx", lambda lure: _related("image", f"{lure.url}a.png"), (TEXT, DAMAGED))
    yield HostileFile(
        "docx-chunk-from-a-file",
        "a.docx",
        lambda lure: _related("aFChunk", lure.secret.as_uri(), '<w:altChunk r:id="rId9"/>'),
        (TEXT, DAMAGED),
    )
    yield HostileFile("docx-template-by-http", "a.docx", template, (TEXT,))
    yield HostileFile("docx-frame-by-http", "a.docx", lambda lure: _related("frame", lure.url), (TEXT, DAMAGED))
    yield HostileFile(
        "docx-document-outside",
        "a.docx",
        lambda lure: documents.docx(
            [_WORDS],
            {
                "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
                f'Type="{_RELATIONS}/officeDocument" Target="../../../..{lure.secret}"/></Relationships>'
            },
        ),
        (TEXT, DAMAGED),
    )


def office() -> Iterator[HostileFile]:
    """All of them."""
    yield from _entities()
    yield from _relationships()
    deep = "<w:tbl><w:tr><w:tc>" * 20_000
    yield HostileFile("docx-deep", "a.docx", fixed(lambda: _body(deep + "</w:tc></w:tr></w:tbl>" * 20_000)), _LIMITED)
    yield HostileFile(
        "docx-in-docx", "a.docx", fixed(lambda: documents.docx([_WORDS], {"word/a.docx": documents.docx(["x"])})), (TEXT,)
    )
    yield HostileFile(
        "docx-no-xml", "a.docx", fixed(lambda: documents.docx([], {"word/document.xml": b"\x00\xff"})), (DAMAGED,)
    )
    yield HostileFile(
        "docx-utf-7",
        "a.docx",
        fixed(lambda: documents.docx([], {"word/document.xml": b"<?xml version='1.0' encoding='UTF-7'?>+ADw-a/>"})),
        (DAMAGED,),
    )
    yield HostileFile("docx-many-paragraphs", "a.docx", fixed(lambda: _body(_said("a") * 400_000)), _LIMITED)
    yield HostileFile("docx-called-xlsx", "a.xlsx", fixed(lambda: documents.docx([_WORDS])), (DAMAGED,))
    yield HostileFile(
        "xlsx-one-cell-in-the-last-corner",
        "a.xlsx",
        fixed(lambda: _sheet(f'<row r="1">{_cell("A1", "a")}</row><row r="1048576">{_cell("XFD1048576", "z")}</row>')),
        _LIMITED,
    )
    yield HostileFile(
        "xlsx-claims-all-cells",
        "a.xlsx",
        fixed(lambda: _sheet(f'<row r="1">{_cell("A1", _WORDS)}</row>', dimension="A1:XFD1048576")),
        (TEXT,),
    )
    yield HostileFile("xlsx-ten-million-cells", "a.xlsx", fixed(_many_cells), _LIMITED)
    strings = "<si><t>" + "a" * 1_000 + "</t></si>"
    yield HostileFile("xlsx-many-strings", "a.xlsx", fixed(lambda: _sheet("<row/>", strings * 200_000)), _LIMITED)
    yield HostileFile(
        "xlsx-formula",
        "a.xlsx",
        fixed(lambda: _sheet(f'<row r="1">{_cell("A1", _COMMAND)}<c r="B1"><f>1+1</f></c></row>')),
        (TEXT,),
        "=cmd",
    )
    yield HostileFile("pptx-groups-in-groups", "a.pptx", fixed(_groups), (TEXT, *_LIMITED))
    yield HostileFile("ole", "a.doc", fixed(lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2_000)), (DAMAGED,))
    yield HostileFile("rtf-object", "a.rtf", fixed(lambda: rb"{\rtf1{\object\objdata 01050000}}"), (DAMAGED,))
