"""A line of a log: JSON with the ids of the work at hand, and no text of anybody's."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from phronesis_bus.service import configure_logging
from phronesis_bus.tracing import Tracing, conversation, correlation, turn, user
from phronesis_contracts import NotFound

SAID = "what somebody said"


class Number(BaseModel):
    """Refuses words."""

    value: int


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    written = io.StringIO()
    configure_logging("memory", stream=written)
    yield written
    root.handlers = handlers
    root.setLevel(level)


def line(stream: io.StringIO) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stream.getvalue())
    return found


@pytest.mark.req("K-095", "V-169", "KC-030")
def test_a_line_has_the_ids_of_the_work_at_hand(stream: io.StringIO) -> None:
    tokens = [(one, one.set(f"{one.name}-1")) for one in (correlation, turn, conversation, user)]
    with Tracing("memory").span("serve", parent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"):
        logging.getLogger("phronesis_memory").warning("%d items are late", 3)
    for one, token in tokens:
        one.reset(token)
    found = line(stream)
    del found["timestamp"]
    assert found == {
        "event": "3 items are late",
        "level": "warning",
        "logger": "phronesis_memory",
        "service": "memory",
        "correlation_id": "correlation-1",
        "turn_id": "turn-1",
        "conversation_id": "conversation-1",
        "user_id": "user-1",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
    }


@pytest.mark.req("O-335")
def test_a_line_has_the_figures_that_it_is_given_and_no_other_field(stream: io.StringIO) -> None:
    logging.getLogger("phronesis_graph").warning("a list", extra={"tool": "t", "tokens": 5, "cached": True, "title": SAID})
    found = line(stream)
    del found["timestamp"]
    about = {"event": "a list", "level": "warning", "logger": "phronesis_graph", "service": "memory"}
    assert found == {**about, "tool": "t", "tokens": 5, "cached": True}


def test_an_exception_is_logged_by_class_and_place_and_without_its_text(stream: io.StringIO) -> None:
    try:
        try:
            Number.model_validate({"value": SAID})
        except ValidationError as error:
            raise NotFound(SAID) from error
    except NotFound:
        logging.getLogger("phronesis_memory").exception("a question failed")
    told = line(stream)["exception"].splitlines()
    assert [text for text in told if not text.startswith("  ")] == [
        "phronesis_contracts.errors.NotFound (not_found)",
        "pydantic_core._pydantic_core.ValidationError",
    ]
    assert (SAID in stream.getvalue(), any("test_logs.py" in text for text in told)) == (False, True)
