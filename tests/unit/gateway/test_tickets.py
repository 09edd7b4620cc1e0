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


def named(tickets: Tickets, text: str) -> tuple[str, str | None]:
    found = tickets.holder(text, "turn")
    return found.key, found.user


def test_a_ticket_names_the_key_it_was_made_with() -> None:
    tickets = Tickets(b"s")
    assert named(tickets, tickets.make("key", "turn").text) == ("key", None)
    assert named(tickets, tickets.make("key", "turn", "bob").text) == ("key", "bob")


def test_two_tickets_of_one_moment_are_two_and_one_is_the_same_to_every_replica() -> None:
    first, second = (Tickets(b"s", Clock()).make("key", "turn").text for _ in range(2))
    hashes = [Tickets(b"s", Clock()).holder(text, "turn").hash for text in (first, second, first)]
    assert hashes[0] == hashes[2] != hashes[1]


def test_another_spelling_of_a_ticket_is_the_same_ticket() -> None:
    tickets = Tickets(b"s", Clock())
    claims, _, mac = tickets.make("key", "turn").text.partition(".")
    padded = "=" * (-len(claims) % 4)
    assert tickets.holder(f"{claims}{padded}.{mac}=", "turn").hash == tickets.holder(f"{claims}.{mac}", "turn").hash


@pytest.mark.parametrize("more", [[], ["bob"]])
def test_a_ticket_that_the_version_before_made_is_taken(more: list[str]) -> None:
    tickets = Tickets(b"s", Clock())
    claims = json.dumps(["key", "turn", 1_030, *more], separators=(",", ":")).encode()
    text = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (claims, tickets._mac(claims)))
    assert named(tickets, text) == ("key", more[0] if more else None)


def test_every_replica_takes_a_ticket_and_nobody_elses() -> None:
    ticket = Tickets(b"s").make("key", "turn")
    assert named(Tickets(b"s"), ticket.text) == ("key", None)
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
    assert named(tickets, ticket.text) == ("key", None)
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
