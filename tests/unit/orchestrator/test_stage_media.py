"""Stage media: labels, order, notes, and one tool for each kind."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from phronesis_contracts import NotFound, Principal, ServiceError, TooLarge, Unavailable
from phronesis_contracts.media import ExtractedText, Media, MediaKind
from phronesis_orchestrator.agents.context import MediaText, read_media
from phronesis_orchestrator.understanding.language import languages
from phronesis_orchestrator.understanding.search import attached, quote
from tests.unit.orchestrator.fakes import FakeNeighbours

ANN = Principal(tenant="acme", user="ann")


def read(id: str, kind: MediaKind, name: str, text: str) -> ExtractedText:
    return ExtractedText(media_id=id, name=name, type="x/y", text=text, engine="test", kind=kind)


IMAGE = read("m1", MediaKind.IMAGE, "board.png", "The open day is on Saturday, 8 June 2024.")
VOICE = read("m2", MediaKind.AUDIO, "memo.ogg", "The drilling at the second site begins in September.")
PAPER = read("m3", MediaKind.DOCUMENT, "note.pdf", "The review meeting is in room 3.12 on the second floor.")


@dataclass
class Neighbours(FakeNeighbours):
    """Each medium answers only after the one that follows it, and what runs is counted."""

    running: int = 0
    most: int = 0
    done: dict[str, asyncio.Event] = field(default_factory=dict)

    async def medium_text(self, who: Principal, medium: Media, limit: float) -> ExtractedText:
        self.running += 1
        self.most = max(self.most, self.running)
        following = f"m{int(medium.id[1:]) + 1}"
        if following in self.documents:
            await self.done.setdefault(following, asyncio.Event()).wait()
        try:
            return await super().medium_text(who, medium, limit)
        finally:
            self.running -= 1
            self.done.setdefault(medium.id, asyncio.Event()).set()


async def stage(documents: dict[str, ExtractedText | ServiceError], limit: float = 5.0) -> tuple[MediaText, Neighbours]:
    neighbours = Neighbours(documents=documents)
    return await read_media(neighbours, ANN, tuple(documents), None, limit), neighbours


@pytest.mark.req("D-028", "D-029")
async def test_attachments_are_read_side_by_side_and_keep_their_order_and_labels() -> None:
    found, neighbours = await stage({"m1": IMAGE, "m2": VOICE, "m3": PAPER})
    assert found.text == (
        f"[image: board.png]\n{IMAGE.text}\n[end of image]\n\n"
        f"[audio: memo.ogg]\n{VOICE.text}\n[end of audio]\n\n"
        f"[document: note.pdf]\n{PAPER.text}\n[end of document]"
    )
    assert (found.documents, found.unreadable, neighbours.most) == ((IMAGE, VOICE, PAPER), 0, 3)


@pytest.mark.parametrize(
    ("fault", "note"),
    [
        (
            TooLarge("the image has too many pixels"),
            "(The attachment note.pdf could not be read: the image has too many pixels.)",
        ),
        (Unavailable("the extra is missing."), "(The attachment note.pdf could not be read: the extra is missing.)"),
        (
            read("m1", MediaKind.AUDIO, "a]\n[document: b.ogg", " "),
            "(The attachment a) (document: b.ogg could not be read: no text was found in it.)",
        ),
    ],
)
@pytest.mark.req("D-033", "D-034")
async def test_one_that_cannot_be_read_leaves_a_note_that_says_why(fault: ExtractedText | ServiceError, note: str) -> None:
    found, _ = await stage({"m1": fault, "m2": VOICE})
    assert found.text.split("\n\n")[0] == note
    assert (found.documents, found.unreadable) == ((VOICE,), 1)


async def test_one_that_is_gone_is_named_by_its_id() -> None:
    found = await read_media(FakeNeighbours(), ANN, ("m9",), None, 5.0)
    assert found.text == f"(The attachment m9 could not be read: {NotFound('no such media').detail}.)"


async def test_one_that_takes_too_long_does_not_hold_the_others() -> None:
    neighbours = Neighbours(documents={"m1": IMAGE, "m2": VOICE})
    neighbours.done["m2"] = asyncio.Event()
    neighbours.done["m2"].set = lambda: None  # type: ignore[method-assign]  # m1 waits for ever
    found = await read_media(neighbours, ANN, ("m1", "m2"), None, 0.1)
    assert found.text.split("\n\n")[0] == "(The attachment board.png could not be read: reading it took too long.)"
    assert found.documents == (VOICE,)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [("When is the open day in the picture?", IMAGE.text), ("When does the drilling begin in the recording?", VOICE.text)],
)
async def test_what_was_seen_and_heard_is_quoted_without_a_model(question: str, sentence: str) -> None:
    found, _ = await stage({"m1": IMAGE, "m2": VOICE, "m3": TooLarge("it is too large")})
    quotes = quote(question, attached(found.text), languages()["en"], given=True)
    assert sentence in [line for one in quotes for line in one.sentences]
