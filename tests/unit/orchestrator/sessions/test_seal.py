"""What is kept of a calendar's password."""

from __future__ import annotations

import pytest
from pydantic import SecretStr, ValidationError

from phronesis_contracts import BadRequest, Principal, Unavailable
from phronesis_orchestrator.sessions.store import AesSeal
from phronesis_orchestrator.settings import CalendarSettings

ANN = Principal(tenant="acme", user="ann")
KEY = SecretStr("a long enough key of somebody")


def test_what_was_sealed_opens_for_its_owner_and_stands_nowhere_in_it() -> None:
    sealed = AesSeal(KEY).shut("open sesame", ANN)
    assert (AesSeal(KEY).open(sealed, ANN), b"sesame" in sealed) == ("open sesame", False)


def test_the_same_is_never_sealed_the_same_way_twice() -> None:
    assert AesSeal(KEY).shut("x", ANN) != AesSeal(KEY).shut("x", ANN)


@pytest.mark.parametrize(
    ("seal", "owner"),
    [
        (AesSeal(SecretStr("another key of somebody")), ANN),
        (AesSeal(KEY), Principal(tenant="acme", user="bob")),
        (AesSeal(KEY), Principal(tenant="other", user="ann")),
        (AesSeal(None), ANN),
    ],
    ids=["another key", "another user", "another tenant", "no key"],
)
def test_nothing_else_opens_it(seal: AesSeal, owner: Principal) -> None:
    sealed = AesSeal(KEY).shut("open sesame", ANN)
    with pytest.raises(Unavailable):
        seal.open(sealed, owner)


@pytest.mark.parametrize("sealed", [b"", b"short", bytes(40)])
def test_what_was_never_sealed_does_not_open(sealed: bytes) -> None:
    with pytest.raises(Unavailable):
        AesSeal(KEY).open(sealed, ANN)


def test_without_a_key_nothing_is_sealed() -> None:
    with pytest.raises(BadRequest) as refused:
        AesSeal(None).shut("open sesame", ANN)
    assert (refused.value.field, "sesame" in refused.value.detail) == ("password", False)


def test_a_key_that_can_be_guessed_is_refused_at_the_start_and_not_shown() -> None:
    with pytest.raises(ValidationError):
        CalendarSettings(calendar_key=SecretStr("short"))
    assert "somebody" not in repr(CalendarSettings(calendar_key=KEY))
