"""The type of content, found in the content. Names and claims only tell texts apart, and can be caught lying."""

from __future__ import annotations

import codecs
import re

from phronesis_contracts import BadRequest, UnsupportedMedia

from . import formats
from .archive import members

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"ID3", "audio/mpeg"),
    *((0, bytes((0xFF, byte)), "audio/mpeg") for byte in (0xFA, 0xFB, 0xF2, 0xF3, 0xE2, 0xE3)),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"MZ", "application/x-msdownload"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    # all of these hold bytes that no text holds, so that words which begin like one are not taken for one
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    b"M4A ": formats.M4A,
    b"M4B ": formats.M4A,
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heic",
    b"msf1": "image/heic",
}
_UNKNOWN = "application/octet-stream"
_OFFICE_PARTS = (
    ("word/document.xml", formats.DOCX),
    ("xl/workbook.xml", formats.XLSX),
    ("ppt/presentation.xml", formats.PPTX),
)
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).){0,512}-->\s*)*<(?:!doctype\s+html|html)[\s>]", re.I | re.S)
_SVG = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).){0,512}-->\s*)*(?:<!doctype\s+svg[^>]*>\s*)?<svg[\s>]", re.I | re.S
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_HEAD = 4096


def medium_type(data: bytes, name: str, claim: str | None) -> str:
    """The media type of a medium that can be read.

    Args:
        data: the content.
        name: the file's name; its extension may not contradict the content (D-031).
        claim: the `Content-Type` that came with it, if any; the same holds for it.

    Raises:
        BadRequest: the content is empty.
        TooLarge: an archive over its limits.
        UnsupportedMedia: the content is of no supported type, or is not what it claims to be.
    """
    if not data:
        raise BadRequest("the file is empty")
    claims = {"name": formats.by_extension(name), "claimed_type": formats.claimed(claim)}
    if claims["name"] == formats.CSV and claims["claimed_type"] == "application/vnd.ms-excel":
        claims["claimed_type"] = None  # what browsers say of a CSV file where Excel is installed
    found = _found(data, {type for type in claims.values() if type})
    for field, type in claims.items():
        if type is not None and formats.contradicts(type, found):
            raise UnsupportedMedia("the content is not what it claims to be", field=field)
    if found not in formats.KINDS:
        raise UnsupportedMedia(_why_not(found))
    return found


def decode(data: bytes) -> str | None:
    """The characters of a text in UTF-8, or in UTF-16 with its mark; `None` where it is no text."""
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _found(data: bytes, claims: set[str]) -> str:
    head = data[:_HEAD]
    if head.lstrip(codecs.BOM_UTF8 + b" \t\r\n").startswith(b"%PDF-"):
        return formats.PDF
    if head.startswith(b"PK\x03\x04"):
        return _archive_type(data)
    text = decode(data)
    if text is not None:
        return _text_type(text, claims)
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], _UNKNOWN)
    if head[4:8] == b"ftyp":
        return _brand_type(head, claims)
    for at, signature, type in _SIGNATURES:
        if head[at:].startswith(signature):
            return type
    if b"\x00" not in data and _HTML.match(head):
        return formats.HTML  # in an older encoding, which it names itself
    return _UNKNOWN


def _brand_type(head: bytes, claims: set[str]) -> str:
    """Of the family of MP4. Its general brands hold video as well as sound; which one shows when it is decoded."""
    size = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, size - 3, 4))]
    known = [_BRANDS[brand] for brand in brands if brand in _BRANDS]
    if known:
        return known[0]
    return formats.M4A if any(claim.startswith("audio/") for claim in claims) else "video/mp4"


def _archive_type(data: bytes) -> str:
    names = members(data)
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        raise UnsupportedMedia("documents with macros are not accepted")
    if "[Content_Types].xml" in names:
        for part, type in _OFFICE_PARTS:
            if part in names:
                return type
    return formats.ZIP


def _text_type(text: str, claims: set[str]) -> str:
    if _SVG.match(text[:_HEAD]):
        return "image/svg+xml"
    if text.startswith("{\\rtf"):
        return "application/rtf"
    for type in (formats.HTML, formats.MARKDOWN, formats.CSV):
        if type in claims:
            return type
    if formats.PLAIN not in claims and _HTML.match(text[:_HEAD].encode()):
        return formats.HTML
    return formats.PLAIN


def _why_not(found: str) -> str:
    match found.split("/", 1)[0]:
        case "image":
            return "this type of image is not readable; save it as PNG, JPEG, WebP, GIF, BMP or TIFF"
        case "audio":
            return "this type of audio is not readable; save it as WAV, MP3, FLAC, Ogg or M4A"
        case "video":
            return "video is not readable"
    if found == "application/x-ole-storage":
        return "this is an older or an encrypted Office file; save it as DOCX, XLSX, PPTX or PDF"
    return "this type of file is not supported"
