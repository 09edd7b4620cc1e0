"""Formats.

Media types and extensions, and the type of content as it is found in the content; names and claims only tell texts apart,
and can be caught lying. Archives are checked against bombs without unpacking them.
"""

from __future__ import annotations

import codecs
import re
import struct
import zipfile
from io import BytesIO

from phronesis_contracts import BadRequest, TooLarge, UnsupportedMedia
from phronesis_contracts.media import MediaKind

PDF = "application/pdf"
_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = f"{_OFFICE}wordprocessingml.document"
XLSX = f"{_OFFICE}spreadsheetml.sheet"
PPTX = f"{_OFFICE}presentationml.presentation"
HTML = "text/html"
MARKDOWN = "text/markdown"
CSV = "text/csv"
PLAIN = "text/plain"
ZIP = "application/zip"

OFFICE = frozenset({DOCX, XLSX, PPTX})
TEXT = frozenset({MARKDOWN, CSV, PLAIN})
DOCUMENTS = OFFICE | TEXT | {PDF, HTML}
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff"})
M4A = "audio/mp4"
AUDIO = frozenset({"audio/wav", "audio/mpeg", "audio/flac", "audio/ogg", M4A})
KINDS = (
    dict.fromkeys(DOCUMENTS, MediaKind.DOCUMENT)
    | dict.fromkeys(IMAGES, MediaKind.IMAGE)
    | dict.fromkeys(AUDIO, MediaKind.AUDIO)
)
"""What can be read, and what kind of medium it is (D-021, D-024)."""

_NO_CLAIM = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download", "application/unknown"})
_ZIP_CLAIMS = frozenset({ZIP, "application/x-zip-compressed"})
_TEXT_CLAIMS = frozenset(
    {
        "application/csv",
        "application/javascript",
        "application/json",
        "application/x-markdown",
        "application/x-yaml",
        "application/xhtml+xml",
        "application/xml",
        "application/yaml",
    }
)
_BY_EXTENSION = {
    "pdf": PDF,
    "docx": DOCX,
    "xlsx": XLSX,
    "pptx": PPTX,
    "html": HTML,
    "htm": HTML,
    "xhtml": HTML,
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "csv": CSV,
    "txt": PLAIN,
    "text": PLAIN,
    "log": PLAIN,
    "json": "application/json",
    "xml": "application/xml",
    "zip": ZIP,
    "gz": "application/gzip",
    "7z": "application/x-7z-compressed",
    "rar": "application/vnd.rar",
    "tar": "application/x-tar",
    "exe": "application/x-msdownload",
    "dll": "application/x-msdownload",
    "so": "application/x-elf",
    "jar": "application/java-archive",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "docm": f"{_OFFICE}macro",
    "xlsm": f"{_OFFICE}macro",
    "pptm": f"{_OFFICE}macro",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "epub": "application/epub+zip",
    "rtf": "application/rtf",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "svg": "image/svg+xml",
    "heic": "image/heic",
    "heif": "image/heic",
    "avif": "image/avif",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "oga": "audio/ogg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
    "m4a": M4A,
    "m4b": M4A,
    "m3u": "audio/x-mpegurl",
    "m3u8": "application/vnd.apple.mpegurl",
    "aac": "audio/aac",
    "webm": "video/webm",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "avi": "video/x-msvideo",
    "mkv": "video/x-matroska",
}
_KNOWN = frozenset(_BY_EXTENSION.values())


def extension(name: str) -> str:
    """The extension of a file name in lower case and without its dot; empty where there is none."""
    stem, dot, last = name.rpartition(".")
    return last.lower() if dot and stem else ""


def type_by_extension(name: str) -> str | None:
    """The media type that a file name claims; `None` where the extension says nothing."""
    return _BY_EXTENSION.get(extension(name))


def parse_content_type(text: str | None) -> str | None:
    """The media type in a `Content-Type`, without parameters; `None` where it claims nothing."""
    bare = (text or "").split(";", 1)[0].strip().lower()
    return None if bare in _NO_CLAIM else bare


def is_text(type: str) -> bool:
    """Whether content of this type is readable characters."""
    return type.startswith("text/") or type in _TEXT_CLAIMS


def contradicts(claim: str, found: str) -> bool:
    """Whether content of type `found` cannot honestly be called `claim`. A claim that is not known says nothing."""
    if claim == found or (is_text(claim) and is_text(found)):
        return False
    if found in OFFICE and claim in _ZIP_CLAIMS:
        return False
    family = claim.split("/", 1)[0]
    if family in ("image", "audio", "video") and family == found.split("/", 1)[0]:
        return False  # several names are in use for most of these
    return claim in _KNOWN or is_text(claim) or family in ("image", "audio", "video", "font")


_MEMBERS = 10_000
_DIRECTORY = 1024 * 1024
"""Bytes of the central directory; it is parsed in this process, so its size is looked at first."""
_UNPACKED = 256 * 1024 * 1024
"""Bytes of all members together, unpacked."""
_RATIO = 200
_RATIO_FROM = 16 * 1024 * 1024
"""Unpacked bytes below which the ratio says nothing: a small sheet of equal rows packs very well."""
_END = b"PK\x05\x06"
_LOCATOR_64 = b"PK\x06\x07"
_END_SIZE = 22


def archive_members(data: bytes) -> frozenset[str]:
    """Names of the members of the archive in `data`.

    Raises:
        TooLarge: too many members, or too much to unpack (TRAPS 63).
        UnsupportedMedia: damaged, encrypted, or with names that lead out of the archive.
    """
    _check_directory(data)
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            found = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OverflowError, UnicodeError) as error:
        raise UnsupportedMedia("the archive is damaged") from error
    if len(found) > _MEMBERS:
        raise TooLarge(f"the archive has over {_MEMBERS} members")
    unpacked = sum(member.file_size for member in found)
    if unpacked > _UNPACKED or (unpacked > _RATIO_FROM and unpacked > _RATIO * len(data)):
        raise TooLarge("the archive unpacks to more than is allowed")
    if any(member.flag_bits & 0x1 for member in found):
        raise UnsupportedMedia("the archive is encrypted")
    names = [member.filename for member in found]
    if len(set(names)) != len(names) or any(_escapes_folder(name) for name in names):
        raise UnsupportedMedia("the archive has member names that are not allowed")
    return frozenset(names)


def _check_directory(data: bytes) -> None:
    tail = data[-(_END_SIZE + 0xFFFF) :]
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        raise UnsupportedMedia("the archive is damaged")
    (size,) = struct.unpack_from("<L", tail, at + 12)
    start = len(data) - len(tail) + at
    if _LOCATOR_64 in data[max(0, start - 20) : start] or size > _DIRECTORY:
        raise TooLarge("the archive has too large a directory")


def _escapes_folder(name: str) -> bool:
    return name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or "\x00" in name


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
    b"M4A ": M4A,
    b"M4B ": M4A,
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heic",
    b"msf1": "image/heic",
}
_UNKNOWN = "application/octet-stream"
_OFFICE_PARTS = (
    ("word/document.xml", DOCX),
    ("xl/workbook.xml", XLSX),
    ("ppt/presentation.xml", PPTX),
)
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).){0,512}-->\s*)*<(?:!doctype\s+html|html)[\s>]", re.I | re.S
)
_SVG = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).){0,512}-->\s*)*(?:<!doctype\s+svg[^>]*>\s*)?<svg[\s>]", re.I | re.S
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_HEAD = 4096


def detect_type(data: bytes, name: str, claim: str | None) -> str:
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
    claims = {"name": type_by_extension(name), "claimed_type": parse_content_type(claim)}
    if claims["name"] == CSV and claims["claimed_type"] == "application/vnd.ms-excel":
        claims["claimed_type"] = None  # what browsers say of a CSV file where Excel is installed
    found = _binary_type(data, {type for type in claims.values() if type})
    for field, type in claims.items():
        if type is not None and contradicts(type, found):
            raise UnsupportedMedia("the content is not what it claims to be", field=field)
    if found not in KINDS:
        raise UnsupportedMedia(_refusal_reason(found))
    return found


def decode_text(data: bytes) -> str | None:
    """The characters of a text in UTF-8, or in UTF-16 with its mark; `None` where it is no text."""
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _binary_type(data: bytes, claims: set[str]) -> str:
    head = data[:_HEAD]
    if head.lstrip(codecs.BOM_UTF8 + b" \t\r\n").startswith(b"%PDF-"):
        return PDF
    if head.startswith(b"PK\x03\x04"):
        return _archive_type(data)
    text = decode_text(data)
    if text is not None:
        return _text_type(text, claims)
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12], _UNKNOWN)
    if head[4:8] == b"ftyp":
        return _brand_type(head, claims)
    for at, signature, type in _SIGNATURES:
        if head[at:].startswith(signature):
            return type
    if b"\x00" not in data and _HTML_START.match(head):
        return HTML  # in an older encoding, which it names itself
    return _UNKNOWN


def _brand_type(head: bytes, claims: set[str]) -> str:
    """Of the family of MP4. Its general brands hold video as well as sound; which one shows when it is decoded."""
    size = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, size - 3, 4))]
    known = [_BRANDS[brand] for brand in brands if brand in _BRANDS]
    if known:
        return known[0]
    return M4A if any(claim.startswith("audio/") for claim in claims) else "video/mp4"


def _archive_type(data: bytes) -> str:
    names = archive_members(data)
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        raise UnsupportedMedia("documents with macros are not accepted")
    if "[Content_Types].xml" in names:
        for part, type in _OFFICE_PARTS:
            if part in names:
                return type
    return ZIP


def _text_type(text: str, claims: set[str]) -> str:
    if _SVG.match(text[:_HEAD]):
        return "image/svg+xml"
    if text.startswith("{\\rtf"):
        return "application/rtf"
    for type in (HTML, MARKDOWN, CSV):
        if type in claims:
            return type
    if PLAIN not in claims and _HTML_START.match(text[:_HEAD].encode()):
        return HTML
    return PLAIN


def _refusal_reason(found: str) -> str:
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
