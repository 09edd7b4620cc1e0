"""Every hostile address against the media service on a real broker, with a canary on every address of this machine."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from phronesis_bus import Bus, ask
from phronesis_contracts import Nothing, ServiceError, Unavailable
from phronesis_contracts.media import FETCH, READ_WEB, FetchUrl, ReadWeb
from phronesis_contracts.service import HEALTH
from phronesis_media.app import build
from phronesis_media.fetching.web import DestinationResolver, PublicWeb, SystemResolver
from phronesis_media.media import Fetched, WebPage, WebRequest
from tests.support.bus import connected, somebody
from tests.support.canary import Canary, canary, knock
from tests.support.certificates import certificate
from tests.support.hostile_urls import HERE, HostileUrl, hostile_urls
from tests.support.hostile_web import HostileWeb, hostile_web
from tests.support.readers import reader
from tests.support.servers import NatsServer

PATIENT, HASTY = 30.0, 1.0
"""Seconds of a fetch, and of one that is made to last for ever."""
URLS = list(hostile_urls())
SLOW = tuple(url.url for url in URLS if url.code == "timed_out")
WHO = somebody()

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="macOS has one loopback address alone")


@dataclass(frozen=True)
class Stage:
    """The service, the web that it can reach, and what it may never reach."""

    gateway: Bus
    bird: Canary
    web: HostileWeb


class _Webs:
    """The tests' web, with little patience for the pages that never end."""

    def __init__(self, web: HostileWeb) -> None:
        self._patient, self._hasty = web.web(PATIENT), web.web(HASTY)

    async def fetch(self, url: str) -> Fetched:
        return await (self._hasty if url in SLOW else self._patient).fetch(url)

    async def read(self, order: WebRequest) -> WebPage:
        return await (self._hasty if order.url in SLOW else self._patient).read(order)


@pytest.fixture(scope="module")
async def stage(nats_server: NatsServer) -> AsyncIterator[Stage]:
    """The media service with the tests' own internet."""
    async with (
        canary(HERE) as bird,
        hostile_web(bird.port) as web,
        connected(nats_server, "gateway", "media") as (gateway, media),
        reader() as read,
    ):
        await build(media, read, _Webs(web), DestinationResolver(SystemResolver()))
        yield Stage(gateway, bird, web)


async def fetched(stage: Stage, url: str) -> str:
    """The code that a fetch ends with, and the field that it names; `ok` where there is no error."""
    try:
        await ask(
            stage.gateway,
            WHO,
            FETCH,
            FetchUrl.model_construct(url=url.replace("{port}", str(stage.bird.port))),
            timeout=2 * PATIENT,
        )
    except ServiceError as error:
        return error.code
    return "ok"


async def read(stage: Stage, url: str) -> str:
    """The code that a report ends with; an answer with which a fetch would have failed has no content."""
    request = ReadWeb.model_construct(url=url.replace("{port}", str(stage.bird.port)), method="REPORT", body="<query/>")
    try:
        page = await ask(stage.gateway, WHO, READ_WEB, request, timeout=2 * PATIENT)
    except ServiceError as error:
        return error.code
    return "ok" if page.content else "no content"


def test_there_are_enough_of_them_and_no_id_stands_for_two() -> None:
    counted = Counter(url.id for url in URLS)
    assert ([id for id, times in counted.items() if times > 1], len(counted) >= 120) == ([], True)


async def test_the_canary_hears_who_connects() -> None:
    async with canary() as bird:
        for address in ("127.0.0.1", "::1"):
            await knock(address, bird.port)
        assert bird.heard == [f"127.0.0.1 {bird.port}", f"::1 {bird.port}"]


async def test_a_good_address_is_fetched_from_the_web_of_these_tests(stage: Stage) -> None:
    assert await fetched(stage, "http://public.example/good") == "ok"


@pytest.mark.parametrize("url", URLS, ids=lambda url: url.id)
@pytest.mark.req("D-152")
async def test_a_hostile_address_is_a_typed_error_and_nothing_inside_is_connected_to(stage: Stage, url: HostileUrl) -> None:
    assert await fetched(stage, url.url) == url.code
    assert stage.bird.heard == []


@pytest.mark.parametrize("url", URLS, ids=lambda url: url.id)
async def test_no_service_reads_a_page_inside_by_a_hostile_address(stage: Stage, url: HostileUrl) -> None:
    assert await read(stage, url.url) in (url.code, "no content")
    assert stage.bird.heard == []


async def test_after_all_of_them_the_service_is_ready_and_fetches(stage: Stage) -> None:
    health = await ask(stage.gateway, WHO, HEALTH["media"], Nothing())
    assert (health.ready, await fetched(stage, "http://public.example/good")) == (True, "ok")


async def test_what_a_name_said_first_is_where_it_connects_whatever_it_says_next(stage: Stage) -> None:
    stage.web._names["rebinding.example"] = [(HERE,), ("127.0.0.1",)]
    assert await fetched(stage, "http://rebinding.example/good") == "ok"
    assert await fetched(stage, "http://rebinding.example/good") == "bad_request"
    assert stage.bird.heard == []


async def test_a_name_that_turns_inside_between_a_page_and_where_it_has_moved_to_is_refused(stage: Stage) -> None:
    stage.web._names["public.example"].insert(0, (HERE,))
    stage.web._names["public.example"][1:] = [("127.0.0.1",), (HERE,)]
    assert await fetched(stage, "http://public.example/loop") == "bad_request"
    assert (stage.bird.heard, stage.web._names["public.example"]) == ([], [(HERE,)])


async def test_a_server_with_another_name_in_its_certificate_is_not_believed(stage: Stage, tmp_path: Path) -> None:
    for_server, for_client = certificate("other.example", tmp_path)
    server = await asyncio.start_server(stage.web.serve, HERE, 0, ssl=for_server)
    ports = {"https": server.sockets[0].getsockname()[1]}
    web = PublicWeb(stage.web, seconds=5, allowed=lambda address: address == HERE, ports=ports, tls=for_client)
    with pytest.raises(Unavailable):
        await web.fetch("https://public.example/good")
    server.close()
