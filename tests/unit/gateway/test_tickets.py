"""Tickets: one turn, one minute, one purpose."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import Unauthorized
from phronesis_gateway.auth.tickets import LIFETIME, Tickets


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_ticket_names_the_key_it_was_made_with() -> None:
    tickets = Tickets(b"s")
    assert tickets.holder(tickets.make("key", "turn").text, "turn") == ("key", None)


def test_every_replica_takes_a_ticket_and_nobody_elses() -> None:
    ticket = Tickets(b"s").make("key", "turn")
    assert Tickets(b"s").holder(ticket.text, "turn") == ("key", None)
    with pytest.raises(Unauthorized):
        Tickets(b"other").holder(ticket.text, "turn")


def test_a_ticket_is_for_its_turn_alone() -> None:
    tickets = Tickets(b"s")
    with pytest.raises(Unauthorized):
        tickets.holder(tickets.make("key", "turn").text, "other")


def test_a_ticket_expires() -> None:
    clock = Clock()
    tickets = Tickets(b"s", clock)
    ticket = tickets.make("key", "turn")
    clock.now += LIFETIME - 1
    assert tickets.holder(ticket.text, "turn") == ("key", None)
    clock.now += 1
    with pytest.raises(Unauthorized):
        tickets.holder(ticket.text, "turn")


def test_claims_that_were_changed_are_refused() -> None:
    tickets = Tickets(b"s")
    mac = tickets.make("key", "turn").text.partition(".")[2]
    claims = base64.urlsafe_b64encode(json.dumps(["root", "turn", 2**40]).encode()).decode().rstrip("=")
    with pytest.raises(Unauthorized):
        tickets.holder(f"{claims}.{mac}", "turn")


@given(st.text(max_size=300))
def test_any_text_is_refused_and_never_breaks_it(text: str) -> None:
    with pytest.raises(Unauthorized):
        Tickets(b"s").holder(text, "turn")
