"""Names of formats: media types, file name extensions, and when a claim contradicts what the content is."""

from __future__ import annotations

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


def by_extension(name: str) -> str | None:
    """The media type that a file name claims; `None` where the extension says nothing."""
    return _BY_EXTENSION.get(extension(name))


def claimed(text: str | None) -> str | None:
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
