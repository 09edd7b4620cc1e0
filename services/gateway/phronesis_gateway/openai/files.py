"""Files, and the vectors of texts."""

from __future__ import annotations

import base64
import struct
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints
from starlette.responses import Response as Answer

from phronesis_bus import Bus, ask
from phronesis_contracts import NotFound, Principal
from phronesis_contracts.documents import EMBED_TEXTS, MAX_EMBEDDED, MAX_EMBEDDED_TEXT, EmbedTexts
from phronesis_contracts.media import FILE_LIST, MEDIA_DELETE, MEDIA_GET, FilePurpose, ListFiles, Media, MediaRef

from ..auth.authentication import Authenticator, Caller, IdempotencyKey, scope_idempotency_key
from ..http.responses import ID_FORM, json_response, refusals, route_responses
from ..http.uploads import FILE_TYPES, UploadReceiver
from .questions import ModelNotFound

FILES, EMBEDDINGS = "/v1/files", "/v1/embeddings"
MAX_INPUTS = 256
"""Texts of one request for vectors."""
MAX_EMBEDDINGS = 8 * 1024 * 1024
"""Bytes of such a request."""
ANY_MODEL = "default"
"""Stands for whichever model of vectors there is."""
FileId = Annotated[str, Path(description="The file's id."), ID_FORM]


class FileObject(BaseModel):
    """A file."""

    id: str
    """Its id, to name it in a message by."""
    object: Literal["file"] = "file"
    """Always `file`."""
    bytes: int
    """Its size."""
    created_at: int
    """When it was uploaded, in seconds since the epoch."""
    filename: str
    """Its name, without folders."""
    purpose: FilePurpose
    """What it is for; `user_data` where it was uploaded elsewhere."""
    status: Literal["processed"] = "processed"
    """Always `processed`: a file that cannot be used is refused at once."""


class FileObjects(BaseModel):
    """A page of files."""

    object: Literal["list"] = "list"
    """Always `list`."""
    data: tuple[FileObject, ...]
    """The files of the page."""
    first_id: str | None
    """Id of its first file."""
    last_id: str | None
    """Id of its last file, to give as `after` for the next page."""
    has_more: bool
    """Whether another page comes behind it."""


class FileDeleted(BaseModel):
    """A file that is gone."""

    id: str
    """The file's id."""
    object: Literal["file"] = "file"
    """Always `file`."""
    deleted: Literal[True] = True
    """Always true."""


def _file(media: Media) -> FileObject:
    return FileObject(
        id=media.id,
        bytes=media.size,
        created_at=int(media.created_at.timestamp()) if media.created_at else 0,
        filename=media.name,
        purpose=media.purpose or "user_data",
    )


def _refuse_tokens(value: Any) -> Any:
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, int) or (isinstance(first, list) and all(isinstance(one, int) for one in first)):
        raise ValueError("lists of tokens are not taken, since each model has tokens of its own; send texts")
    return [value] if isinstance(value, str) else value


_Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_EMBEDDED_TEXT)]
_Texts = Annotated[list[_Text], Field(min_length=1, max_length=MAX_INPUTS)]


class EmbeddingAsked(BaseModel):
    """Texts to turn into vectors."""

    model: str = Field(min_length=1, max_length=200)
    """The name of the model of vectors that is set up here, or `default` for whichever it is."""
    input: Annotated[
        Annotated[tuple[_Text, ...], Field(min_length=1, max_length=MAX_INPUTS)],
        BeforeValidator(_refuse_tokens, json_schema_input_type=_Text | _Texts),
    ]
    """A text, or up to 256 of them, of 16,000 characters each. How much of a text counts is up to the model: the one that
    is built in reads 256 tokens."""
    encoding_format: Literal["float", "base64"] | None = None
    """`float` for numbers, `base64` for their bytes, four for each with the least first; numbers where it is left out."""
    dimensions: int | None = Field(default=None, ge=1)
    """The numbers of a vector; no others than the model's own are to be had."""
    user: str | None = None
    """Whom a key with the scope `act_for_users` acts for; ignored with any other."""


class Embedding(BaseModel):
    """The vector of a text."""

    object: Literal["embedding"] = "embedding"
    """Always `embedding`."""
    index: int
    """The place of its text in the request."""
    embedding: tuple[float, ...] | str
    """The vector, of length 1, in the encoding that was asked for."""


class EmbeddingUsage(BaseModel):
    """What was used."""

    prompt_tokens: int
    """Tokens of all texts."""
    total_tokens: int
    """The same."""


class Embeddings(BaseModel):
    """The vectors of texts."""

    object: Literal["list"] = "list"
    """Always `list`."""
    data: tuple[Embedding, ...]
    """The vectors, in the order of the texts."""
    model: str
    """The model's name."""
    usage: EmbeddingUsage
    """What was used."""


async def embed(bus: Bus, who: Principal, body: EmbeddingAsked) -> Embeddings:
    """The vectors of texts. Raises `ModelNotFound`."""
    model = None if body.model == ANY_MODEL else body.model
    vectors: list[str] = []
    tokens = 0
    for begin in range(0, len(body.input), MAX_EMBEDDED):
        some = EmbedTexts(texts=body.input[begin : begin + MAX_EMBEDDED], model=model, dimensions=body.dimensions)
        try:
            found = await ask(bus, who, EMBED_TEXTS, some)
        except NotFound as error:
            raise ModelNotFound(error.detail, field="model") from error
        model = found.model
        vectors += found.vectors
        tokens += found.tokens
    data = tuple(
        Embedding(index=at, embedding=vector if body.encoding_format == "base64" else _numbers(vector))
        for at, vector in enumerate(vectors)
    )
    return Embeddings(data=data, model=model or "", usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens))


def _numbers(vector: str) -> tuple[float, ...]:
    data = base64.b64decode(vector)
    return struct.unpack(f"<{len(data) // 4}f", data)


_FORM = {
    "schema": {
        "type": "object",
        "required": ["file", "purpose"],
        "properties": {
            "file": {"type": "string", "format": "binary", "description": "The file, 25 MiB at most."},
            "purpose": {"type": "string", "enum": ["assistants", "user_data"], "description": "What it is for."},
        },
        "additionalProperties": False,
    },
    "encoding": {"file": {"contentType": ", ".join(FILE_TYPES)}},
}
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def add_routes(routes: APIRouter, authenticator: Authenticator, bus: Bus, uploads: UploadReceiver) -> None:
    """Add the routes of files and of vectors."""

    @routes.post("/embeddings", responses=route_responses(Embeddings) | refusals(404))
    async def create_embeddings(body: EmbeddingAsked, who: Caller) -> Answer:
        """Turn texts into vectors.

        By the model that memory searches with. Nothing is stored.
        """
        return json_response(await embed(bus, await authenticator.acting(who, body.user), body))

    @routes.post(
        "/files",
        responses=route_responses(FileObject),
        openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": _FORM}}},
    )
    async def create_file(request: Request, who: Caller, key: IdempotencyKey) -> Answer:
        """Upload a file for a client.

        It is an upload like those of `/api/v1/media`, and messages name it by its id; here it is listed too.
        """
        return json_response(_file(await uploads.take_file(who, request, scope_idempotency_key(who, key))))

    @routes.get("/files", responses=route_responses(FileObjects) | refusals(404))
    async def list_files(
        who: Caller,
        purpose: Annotated[FilePurpose | None, Query(description="Those for this alone.")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000, description="Files of a page, 1 to 1,000.")] = 100,
        order: Annotated[Literal["asc", "desc"], Query(description="`desc` for the newest first.")] = "desc",
        after: Annotated[str | None, Query(max_length=64, description="`last_id` of the page before.")] = None,
    ) -> Answer:
        """List files.

        Those that the caller uploaded here.
        """
        wanted = ListFiles(purpose=purpose, after=after, limit=limit, oldest_first=order == "asc")
        found = await ask(bus, who, FILE_LIST, wanted)
        data = tuple(map(_file, found.files))
        first, last = (data[0].id, data[-1].id) if data else (None, None)
        return json_response(FileObjects(data=data, first_id=first, last_id=last, has_more=found.more))

    @routes.get("/files/{id}", responses=route_responses(FileObject))
    async def get_file(id: FileId, who: Caller) -> Answer:
        """Get a file.

        What is known of it, without its content.
        """
        return json_response(_file(await ask(bus, who, MEDIA_GET, MediaRef(media_id=id))))

    @routes.get("/files/{id}/content", responses=_CONTENT, response_class=Answer)
    async def get_file_content(id: FileId, who: Caller) -> Answer:
        """Get a file's content.

        As it was uploaded.
        """
        media, data = await uploads.content(who, id)
        # A browser is to store it, and never to show it as a page of this origin.
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(media.name)}",
            "X-Content-Type-Options": "nosniff",
        }
        return Answer(data, headers=headers, media_type="application/octet-stream")

    @routes.delete("/files/{id}", responses=route_responses(FileDeleted))
    async def delete_file(id: FileId, who: Caller) -> Answer:
        """Delete a file.

        What a conversation has read of it goes with that conversation.
        """
        return json_response(FileDeleted(id=(await ask(bus, who, MEDIA_DELETE, MediaRef(media_id=id))).id))
