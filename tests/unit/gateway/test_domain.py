"""Who may make a key for whom, and what a message and an upload's name become."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from phronesis_bus import Signer
from phronesis_contracts import BadRequest, Forbidden, Principal
from phronesis_contracts.catalog import TOOLS
from phronesis_gateway.auth.keys import OPERATOR, find_tools, is_secret, new_secret, require_maker, require_narrower
from phronesis_gateway.http.requests import MAX_TOOLS, MessageGiven
from phronesis_gateway.http.uploads import clean_file_name
from phronesis_gateway.turns.handlers import ScheduleGiven
from tests.support.personas import Persona

ADMIN = Principal(tenant="acme", user="boss", **Persona.ADMIN.rights, scopes=("audit",))
OWNER = Principal(tenant="local", user="owner", **Persona.ADMIN.rights, scopes=(OPERATOR,))


def test_secrets_have_one_form_and_are_never_the_same() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert (len(secrets), all(is_secret(secret) for secret in secrets)) == (100, True)


def test_an_administrator_gives_no_more_than_it_has() -> None:
    require_maker(ADMIN, "acme", ("audit",))
    with pytest.raises(Forbidden):
        require_maker(ADMIN, "acme", (OPERATOR,))
    with pytest.raises(Forbidden):
        require_maker(ADMIN, "other", ())


def test_an_operator_makes_keys_of_any_tenant_but_the_platforms_own() -> None:
    require_maker(OWNER, "acme", (OPERATOR, "any"))
    with pytest.raises(BadRequest) as refused:
        require_maker(OWNER, "system", ())
    assert refused.value.field == "tenant"


def test_a_scope_without_the_role_makes_no_keys() -> None:
    with pytest.raises(Forbidden):
        require_maker(OWNER.model_copy(update=Persona.NOOR.rights), "local", ())


NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("who", [ADMIN, OWNER])
@pytest.mark.parametrize(("ends", "until"), [(None, None), (None, NOON), (NOON, NOON), (NOON, NOON - SECOND)])
def test_a_key_that_ends_with_its_makers_or_before_is_no_wider(
    who: Principal, ends: datetime | None, until: datetime | None
) -> None:
    require_narrower(who, ends, None, until)
    require_narrower(who.model_copy(update={"tools": ("forget", "recall")}), ends, ("recall",), until)


@pytest.mark.parametrize("who", [ADMIN, OWNER])
@pytest.mark.parametrize(
    ("own", "tools", "until", "field"),
    [
        (None, None, None, "days"),
        (None, None, NOON + SECOND, "days"),
        (("recall",), None, NOON, "tools"),
        (("recall",), ("forget", "recall"), NOON, "tools"),
    ],
)
def test_a_key_that_ends_later_or_may_call_more_than_its_makers_is_refused(
    who: Principal, own: tuple[str, ...] | None, tools: tuple[str, ...] | None, until: datetime | None, field: str
) -> None:
    with pytest.raises(Forbidden) as refused:
        require_narrower(who.model_copy(update={"tools": own}), NOON, tools, until)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give `cron` or `on`"),
        ({"cron": "0 8 * * *", "on": {"event": "file_arrived"}}, "give `cron` or `on`"),
        ({"on": {"event": "file_arrived"}, "time_zone": "UTC"}, "`time_zone` belongs to `cron`"),
    ],
)
def test_a_schedule_has_times_in_a_zone_or_events_and_not_both(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        ScheduleGiven.model_validate({"goal": "Look", **given})


@pytest.mark.req("D-C08")
def test_a_fingerprint_is_the_same_for_the_same_message_however_it_is_spelt() -> None:
    camel = MessageGiven.model_validate({"currentMessageText": "x", "currentMessageMedia": {"url": "http://a"}})
    snake = MessageGiven.model_validate({"current_message_media": [{"url": "http://a"}], "current_message_text": "x"})
    other = MessageGiven.model_validate({"currentMessageText": "x", "currentMessageMedia": [{"url": "http://b"}]})
    assert camel.fingerprint == snake.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\a.pdf", "a.pdf"),
        ("a\r\nSet-Cookie: x\x00.pdf", "aSet-Cookie: x.pdf"),
        ("..", ""),
        ("résumé.pdf", "résumé.pdf"),
        ("x" * 300, "x" * 255),
    ],
)
def test_a_files_name_is_no_path(given: str, kept: str) -> None:
    assert clean_file_name(given) == kept


def test_a_principal_with_the_longest_tools_fits_its_header() -> None:
    longest = sorted(TOOLS, key=lambda name: len("".join(find_tools((name,)))))[-MAX_TOOLS:]
    who = ADMIN.model_copy(update={"tools": find_tools(longest)})
    token = Signer("gateway", Ed25519PrivateKey.generate()).token(who)
    assert len(token) < 8 * 1024
