"""What a generator of API calls cannot make up by itself: files of each type that is taken, and ids of things there are."""

from __future__ import annotations

import io
import wave
from datetime import UTC, datetime
from typing import Any

import schemathesis
from hypothesis import strategies as st
from PIL import Image

from phronesis_contracts.agents import source_of
from phronesis_contracts.catalog import TOOLS
from tests.support import documents
from tests.support.people import Person

_OFFICE = "application/vnd.openxmlformats-officedocument."
_LETTERS = st.characters(codec="utf-8", categories=("L", "N", "S"))
_TOOLS = sorted(tool.name for tool in TOOLS.values() if source_of(tool) is None)
"""Tools that an agent may list whatever its sources are."""
_PILLOW = {"png": "PNG", "jpeg": "JPEG", "gif": "GIF", "webp": "WEBP", "bmp": "BMP", "tiff": "TIFF"}


def _image(format: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "white").save(file, format)
    return file.getvalue()


def _sound() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 8_000, 0, "NONE", ""))
        sound.writeframes(bytes(1_600))
    return file.getvalue()


def files() -> dict[str, bytes]:
    """A small file of each type that an upload may have."""
    return {
        "text/plain": b"A note.",
        "text/markdown": b"# A note",
        "text/html": documents.html("A note", ["Text."]),
        "text/csv": b"a,b\n1,2\n",
        "application/pdf": documents.pdf([["A note."]]),
        _OFFICE + "wordprocessingml.document": documents.docx(["A note."]),
        _OFFICE + "spreadsheetml.sheet": documents.xlsx([["a", 1]]),
        _OFFICE + "presentationml.presentation": documents.pptx([("A note", "Text.")]),
        **{f"image/{name}": _image(format) for name, format in _PILLOW.items()},
        "audio/wav": _sound(),
        "audio/mpeg": b"ID3\x04\0\0\0\0\0\0" + bytes(64),
        "audio/flac": b"fLaC" + bytes(64),
        "audio/ogg": b"OggS" + bytes(64),
        "audio/mp4": b"\0\0\0\x18ftypM4A \0\0\0\0M4A mp42" + bytes(64),
    }


CURSOR = "a-cursor"
"""Stands for a cursor until there is one."""


class World:
    """Things that there are in a stack, for calls that need one."""

    def __init__(self) -> None:
        self.cursors: dict[str, str] = {}
        """Cursors by the path of the list that they are of."""
        self.ids: dict[str, str] = {}
        """Ids by the collection that they stand in. Of approvals there is none: without a model nobody asks for one."""

    async def fill(self, owner: Person) -> None:
        """Make one of each thing as `owner`."""
        first, second = [await owner.reply(text) for text in ("Hello!", "What do you know?")]
        await owner.http.post("/api/v1/memory", json={"memories": [{"text": "The launch is on 4 May."}, {"text": "It rains."}]})
        for path in ("/api/v1/conversations", "/api/v1/memory"):
            page = await owner.http.get(path, params={"limit": 1})
            self.cursors[path] = page.json()["next"]
        gone = await owner.http.delete(f"/api/v1/conversations/{second['conversation_id']}")
        key = await owner.http.post("/api/v1/keys", json={"user": "somebody"})
        task = await owner.http.post("/api/v1/tasks", json={"goal": "Portfolio risk report"})
        self.ids = {
            "turns": first["turn_id"],
            "conversations": first["conversation_id"],
            "deletions": gone.json()["deletion_id"],
            "media": await owner.uploaded("note.txt", b"A note.", "text/plain"),
            "keys": key.json()["id"],
            "tasks": task.json()["turn_id"],
            "models": "dialogue",
            "responses": f"resp_{first['turn_id'].replace('-', '')}",
        }

    def place(self, case: schemathesis.Case) -> None:
        """Put what there is in the place of what a generator cannot know: the next page, the version of the profile."""
        if case.query and case.query.get("cursor") == CURSOR:
            case.query["cursor"] = self.cursors[case.path]
        if case.headers and case.headers.get("If-Match", "").startswith('"'):
            case.headers["If-Match"] = "*"

    def reachable(self, case: schemathesis.Case) -> bool:
        """Whether a call names no server of an example, which is nowhere, and asks for nothing that only a schema takes."""
        if _is_positive(case) and isinstance(case.body, dict) and (_takes_model(case.body) or case.body.get("dimensions")):
            return False
        if _is_positive(case) and (_has_expired(case.body) or _says_twice(case.body)):
            return False  # that a moment is still to come, or that a pair has one rule, no schema can tell
        if case.path == "/v1/files" and isinstance(case.body, dict) and case.body.get("purpose") == "":
            return False  # the generator's own word for a part that is one of a list
        return not (isinstance(case.body, dict) and str(case.body.get("url", "")).startswith("https://weather.example.org"))

    def placed(self, case: schemathesis.Case) -> bool:
        """Name a thing there is in a path that names none there is; whether that was done."""
        if "{id}" not in case.path or case.meta is None or not case.meta.generation.mode.is_positive:
            return False
        there = self.ids.get(case.path.partition("/{id}")[0].rpartition("/")[2])
        if there is None:
            return False
        case.path_parameters["id"] = there
        return True


def _is_positive(case: schemathesis.Case) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_positive


def _has_expired(value: object) -> bool:
    match value:
        case dict():
            stated = value.get("expires_at", value.get("expiresAt"))
            return (isinstance(stated, str) and stated < f"{datetime.now(UTC):%Y-%m-%dT%H:%M}") or any(
                map(_has_expired, value.values())
            )
        case list():
            return any(map(_has_expired, value))
    return False


def _says_twice(body: object) -> bool:
    rules = body.get("rules") if isinstance(body, dict) else None
    pairs = [(rule.get("origin"), rule.get("effect")) for rule in rules or () if isinstance(rule, dict)]
    return len(set(pairs)) < len(pairs)


def _takes_model(body: dict[str, Any]) -> bool:
    """Whether OpenAI's client asks for its own tools or for a form; or sends calls or results, whose order no schema says."""
    text = body.get("text")
    form = body.get("response_format") or (text.get("format") if isinstance(text, dict) else None)
    said = body.get("messages") or body.get("input") or ()
    steps = [
        one
        for one in (said if isinstance(said, list) else ())
        if isinstance(one, dict) and (one.get("tool_calls") or one.get("role") == "tool" or "call_id" in one)
    ]
    chosen = body.get("tool_choice") not in (None, "none", "auto")
    return bool(body.get("tools") or chosen or steps) or (isinstance(form, dict) and form.get("type") != "text")


_INT64 = 2**63


def _numbers_fit(value: object) -> bool:
    """Whether the strict reader takes every number: members that no schema names may hold any."""
    match value:
        case dict():
            return all(_numbers_fit(member) for member in value.values())
        case list():
            return all(_numbers_fit(member) for member in value)
        case int():
            return -_INT64 <= value < _INT64
        case float():
            return not value.is_integer() or -_INT64 <= value < _INT64
    return True


@schemathesis.hook
def filter_query(context: schemathesis.HookContext, query: dict[str, str] | None) -> bool:
    """Leave out spans that end before they begin, which no schema can tell."""
    return not query or str(query.get("since", "")) <= str(query.get("until", "9"))


@schemathesis.hook
def filter_body(context: schemathesis.HookContext, body: object) -> bool:
    """Leave out bodies whose numbers no reader takes."""
    return _numbers_fit(body)


def taught() -> World:
    """A world that the generator of calls knows of: types of files, cursors, and that no address is public here."""
    world = World()
    for type, content in files().items():
        schemathesis.openapi.media_type(type, st.just(content))
    schemathesis.openapi.format("cursor", st.just(CURSOR))
    schemathesis.openapi.format("agent", st.just("dialogue"))
    schemathesis.openapi.format("cron", st.just("0 8 * * 1"))
    schemathesis.openapi.format("node-type", st.just("task"))
    schemathesis.openapi.format("time-zone", st.just("Europe/Oslo"))
    schemathesis.openapi.format("analyst", st.just("noor"))
    schemathesis.openapi.format("packaged-agent", st.just("nova"))
    schemathesis.openapi.format("tool-name", st.sampled_from(_TOOLS))
    schemathesis.openapi.format("entity-tag", st.just("*"))
    schemathesis.openapi.format("host-below", st.sampled_from(["example.org", "*.example.org"]))
    schemathesis.openapi.format("user-name", st.text(_LETTERS, min_size=1, max_size=50))
    schemathesis.openapi.format("not-blank", st.text(_LETTERS, min_size=1, max_size=50))
    # Nothing outside this machine can be reached from a test, and nothing on it may be fetched.
    schemathesis.openapi.format("public-address", st.nothing())
    # What has to be there, or to be a file of its type, the tests of the face say.
    for format in ("medium", "inline-file", "response", "conversation", "name-in-path"):
        schemathesis.openapi.format(format, st.nothing())
    return world
