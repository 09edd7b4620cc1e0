"""Contracts of documents that stay in their conversation: kept in passages, found in every later turn, cited by page."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from .media import MediaKind, TextPart
from .messages import Message, Rpc

MAX_SLICE = 400_000
"""Characters of a text that are kept by one request."""
MAX_PARTS = 1_000
"""Pages, sheets or sections that one request tells of."""


class KeepDocument(Message):
    """The text of an attachment, or the next slice of a longer one, to keep in a conversation of the caller."""

    model_config = ConfigDict(extra="forbid")

    conversation_id: str = Field(min_length=1, max_length=64)
    media_id: str = Field(min_length=1, max_length=64)
    name: str = Field(max_length=255)
    kind: MediaKind = MediaKind.DOCUMENT
    text: str = Field(max_length=MAX_SLICE)
    offset: int = Field(default=0, ge=0)
    """Where in the whole text the slice begins, in characters; that of one that is kept already changes nothing."""
    length: int = Field(ge=0)
    """Characters of the whole text."""
    parts: tuple[TextPart, ...] = Field(default=(), max_length=MAX_PARTS)
    """Pages, sheets or sections of the slice, in order, by their places in the whole text."""
    pages: int | None = None
    limits: tuple[str, ...] = Field(default=(), max_length=10)
    """Limits that were reached when the text was read, so that it is not all there is."""


class KeptDocument(Message):
    """What is kept of a document."""

    media_id: str
    name: str = ""
    kind: MediaKind = MediaKind.DOCUMENT
    passages: int
    characters: int
    """Characters that are kept, from the beginning."""
    length: int
    """Characters of the whole text."""
    complete: bool
    """Whether all of the text is kept, and was read."""
    searched_by_meaning: bool = False
    """Whether every passage is found by its meaning too; by its words it is found at once."""
    pages: int | None = None
    limits: tuple[str, ...] = ()
    """Limits that were reached, in reading or in keeping."""


class SearchDocuments(Message):
    """A question to the documents of a conversation of the caller."""

    model_config = ConfigDict(extra="forbid")

    conversation_id: str = Field(min_length=1, max_length=64)
    query: str = Field(min_length=1, max_length=4_000)
    media_id: str | None = Field(default=None, min_length=1, max_length=64)
    """The one document to look in; all of them without it."""
    limit: int = Field(default=8, ge=1, le=20)


class FoundPassage(Message):
    """One passage, with where it stands."""

    media_id: str
    name: str
    """The file's name."""
    kind: MediaKind
    page: int | None = None
    sheet: str | None = None
    heading: str | None = None
    position: int
    """Its number in the document, from 0."""
    start: int
    """Where in the whole text it begins, in characters."""
    end: int
    text: str
    score: float
    """0 to 1."""
    vector: float | None = None
    """Cosine of the two meanings; absent where it is not known (yet)."""
    bm25: float | None = None
    """BM25 of the shared words; absent where none is shared."""
    coverage: float = 0.0
    """0 to 1: how much of the weight of the question's words stands in it."""


class FoundPassages(Message):
    """Passages, best first."""

    passages: tuple[FoundPassage, ...] = ()
    documents: int = 0
    """Documents that were looked in."""
    degraded: tuple[str, ...] = ()
    """Searches that failed (`vector`, `text`); `pending` where some passages cannot be found by their meaning yet."""


MAX_COMPARED = 64
"""Texts that are compared at once."""


class CompareTexts(Message):
    """A question, and texts that may answer it, such as the sentences of passages that were found."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, max_length=1_000)
    texts: tuple[Annotated[str, StringConstraints(min_length=1, max_length=1_000)], ...] = Field(
        min_length=1, max_length=MAX_COMPARED
    )


class ComparedTexts(Message):
    """How near each text is to the question in meaning."""

    cosines: tuple[float, ...]
    """In the order of the texts, -1 to 1."""


MAX_EMBEDDED = 16
"""Texts that one question asks vectors for."""
MAX_EMBEDDED_TEXT = 16_000
"""Characters of one of them."""


class EmbedTexts(Message):
    """Texts to turn into vectors. Nothing is stored."""

    model_config = ConfigDict(extra="forbid")

    texts: tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_EMBEDDED_TEXT)], ...] = Field(
        min_length=1, max_length=MAX_EMBEDDED
    )
    model: str | None = Field(default=None, max_length=200)
    """The model that the vectors have to be of; whichever there is where it is left out."""
    dimensions: int | None = None
    """The numbers that a vector has to have."""


class EmbeddedTexts(Message):
    """The vectors, in the order of the texts, of length 1."""

    model: str
    dimensions: int
    vectors: tuple[str, ...]
    """Each as its numbers of four bytes, the least first, in base64."""
    tokens: int
    """Tokens of all texts together."""


class ListDocuments(Message):
    """The documents of a conversation of the caller."""

    model_config = ConfigDict(extra="forbid")

    conversation_id: str = Field(min_length=1, max_length=64)


class DocumentList(Message):
    """Documents, in the order in which they were attached."""

    documents: tuple[KeptDocument, ...] = ()


KEEP_DOCUMENT = Rpc("memory.v1.documents.keep", KeepDocument, KeptDocument, timeout=20.0, max_bytes=1_000_000)
SEARCH_DOCUMENTS = Rpc("memory.v1.documents.search", SearchDocuments, FoundPassages)
LIST_DOCUMENTS = Rpc("memory.v1.documents.list", ListDocuments, DocumentList)
COMPARE_TEXTS = Rpc("memory.v1.texts.compare", CompareTexts, ComparedTexts)
EMBED_TEXTS = Rpc("memory.v1.texts.embed", EmbedTexts, EmbeddedTexts, timeout=30.0, max_bytes=1_000_000)
