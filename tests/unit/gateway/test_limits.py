"""Rates and open streams."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from phronesis_contracts import Principal, Role, TooManyRequests
from phronesis_gateway.auth import authentication
from phronesis_gateway.auth.authentication import Limits, OpenStreams, RateLimiter, Share, TenantRequests, share
from phronesis_gateway.auth.keys import OPERATOR
from phronesis_gateway.settings import GatewaySettings


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_and_then_the_rate() -> None:
    clock = Clock()
    rate = RateLimiter(2.0, 3, clock)
    for _ in range(3):
        rate.spend("k")
    with pytest.raises(TooManyRequests) as refused:
        rate.spend("k")
    assert refused.value.retry_after == 0.5
    clock.now += 0.5
    rate.spend("k")
    with pytest.raises(TooManyRequests):
        rate.spend("k")


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    clock = Clock()
    rate = RateLimiter(100.0, 2, clock)
    clock.now += 3_600
    rate.spend("k")
    rate.spend("k")
    with pytest.raises(TooManyRequests):
        rate.spend("k")


def test_one_keys_requests_are_not_anothers() -> None:
    rate = RateLimiter(1.0, 1, Clock())
    rate.spend("a")
    rate.spend("b")
    with pytest.raises(TooManyRequests):
        rate.spend("a")


def test_the_table_of_buckets_is_bounded_and_forgets_the_longest_unseen() -> None:
    clock = Clock()
    rate = RateLimiter(1.0, 1, clock)
    for number in range(10_001):
        rate.spend(str(number))
    rate.spend("0")
    with pytest.raises(TooManyRequests):
        rate.spend("10000")


def test_streams_are_limited_for_each_key_and_in_all() -> None:
    streams = OpenStreams(3, 2)
    with ExitStack() as held:
        held.enter_context(streams.opened("a"))
        held.enter_context(streams.opened("a"))
        with pytest.raises(TooManyRequests), streams.opened("a"):
            pass
        held.enter_context(streams.opened("b"))
        with pytest.raises(TooManyRequests), streams.opened("c"):
            pass
        assert streams.open == 3
    assert streams.open == 0
    with streams.opened("c"):
        assert streams.open == 1


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was counted as refused; nobody waits for it."""
    monkeypatch.setattr(authentication, "REFUSAL_SECONDS", 0)
    return []


def limits(refused: list[tuple[str, str]], **settings: float) -> Limits:
    return Limits(GatewaySettings.model_validate(settings), lambda *told: refused.append(told))


async def test_a_user_has_one_rate_with_all_keys(refused: list[tuple[str, str]]) -> None:
    one = limits(refused, burst=2)
    await one.spend(Principal(tenant="acme", user="ann", key="k1"))
    await one.spend(Principal(tenant="acme", user="ann", key="k2"))
    with pytest.raises(TooManyRequests):
        await one.spend(Principal(tenant="acme", user="ann", key="k3"))
    await one.spend(Principal(tenant="acme", user="bob", key="k1"))
    await one.spend(Principal(tenant="other", user="ann", key="k4"))
    assert refused == [("user", "acme")]


async def test_a_tenant_has_one_rate_with_all_users(refused: list[tuple[str, str]]) -> None:
    one = limits(refused, tenant_burst=2)
    for user in ("ann", "bob"):
        await one.spend(Principal(tenant="acme", user=user, key=user))
    with pytest.raises(TooManyRequests):
        await one.spend(Principal(tenant="acme", user="cleo", key="cleo"))
    await one.spend(Principal(tenant="other", user="cleo", key="x"))
    assert refused == [("tenant", "acme")]


async def test_a_program_has_a_rate_for_all_that_it_acts_for(refused: list[tuple[str, str]]) -> None:
    one = limits(refused, program_burst=2)
    for user in ("ann", "bob"):
        await one.spend(Principal(tenant="acme", user=user, key="k", acted_by="bot"))
    with pytest.raises(TooManyRequests):
        await one.spend(Principal(tenant="acme", user="cleo", key="k", acted_by="bot"))
    assert refused == [("program", "acme")]


async def test_the_first_key_has_no_limits(refused: list[tuple[str, str]]) -> None:
    one = limits(refused, burst=1, tenant_burst=1, max_requests_per_tenant=1)
    for _ in range(3):
        await one.spend(Principal(tenant="local", user="owner", role=Role.OWNER, agents=(), scopes=(OPERATOR,), key="k"))
    assert refused == []


def test_requests_of_a_tenant_at_once_are_bounded_and_end_once() -> None:
    requests = TenantRequests(1)
    end = requests.begin("acme")
    with pytest.raises(TooManyRequests):
        requests.begin("acme")
    other = requests.begin("other")
    end()
    end()
    requests.begin("acme")
    with pytest.raises(TooManyRequests):
        requests.begin("acme")
    other()


async def test_an_answer_states_each_limit_and_what_is_left_of_it(refused: list[tuple[str, str]]) -> None:
    mine = Share()
    share.set(mine)
    await limits(refused).spend(Principal(tenant="acme", user="ann", key="k"))
    assert mine.headers == [
        (b"ratelimit-policy", b'"user";q=60;w=2, "tenant";q=2000;w=2'),
        (b"ratelimit", b'"user";r=59;t=1, "tenant";r=1999;t=1'),
    ]


async def test_the_more_of_a_tenants_requests_are_refused_the_longer_each_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) < 40:
            with pytest.raises(TooManyRequests):
                await one.spend(ann)

    monkeypatch.setattr(authentication.asyncio, "sleep", sleep)
    one, ann = limits([], burst=1), Principal(tenant="acme", user="ann", key="k")
    await one.spend(ann)
    with pytest.raises(TooManyRequests):
        await one.spend(ann)
    assert (slept[0], slept[19], slept[39]) == (1.0, 1.0, 2.0)
