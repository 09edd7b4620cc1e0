"""Pages of the web that other services read."""

from __future__ import annotations

import base64
import os
import zlib
from dataclasses import dataclass, field

import pytest

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Principal, TooLarge
from phronesis_contracts.media import MAX_PAGE, ReadWeb, WebRead
from phronesis_media.fetching.handlers import PageHandlers
from phronesis_media.media import Fetched, WebPage, WebRequest

CALL = Call(Principal(tenant="acme", user="ann"), "orchestrator")
URL = "https://calendar.example/ann"


@dataclass
class OneAddress:
    """A web of one address that answers with a page, whatever it is asked."""

    page: WebPage
    orders: list[WebRequest] = field(default_factory=list)

    async def fetch(self, url: str) -> Fetched:
        raise NotImplementedError

    async def read(self, order: WebRequest) -> WebPage:
        self.orders.append(order)
        return self.page


async def test_a_page_comes_packed_with_its_status_and_where_it_came_from() -> None:
    web = OneAddress(WebPage(200, b"BEGIN:VCALENDAR", URL, "text/calendar"))
    found = await PageHandlers(web).read(CALL, ReadWeb(url=URL))
    packed = base64.b64encode(zlib.compress(b"BEGIN:VCALENDAR")).decode()
    assert found == WebRead(status=200, url=URL, type="text/calendar", content=packed)
    assert web.orders == [WebRequest(URL, most=MAX_PAGE, seconds=10.0)]


async def test_a_report_has_its_depth_its_body_and_its_login() -> None:
    web = OneAddress(WebPage(207, b"", URL, None))
    request = ReadWeb(url=URL, method="REPORT", depth="1", body="<query/>", authorization="Basic eA==", most=10, seconds=2)
    assert (await PageHandlers(web).read(CALL, request)).content == ""
    headers = (("Depth", "1"), ("Content-Type", "application/xml; charset=utf-8"))
    assert web.orders == [WebRequest(URL, "REPORT", headers, "Basic eA==", b"<query/>", 10, 2.0)]
    assert "eA==" not in repr(web.orders)


@pytest.mark.parametrize("login", ["Basic x\r\nHost: inside", "Basic é", "\x00"])
async def test_a_login_that_would_be_more_than_one_header_is_refused(login: str) -> None:
    web = OneAddress(WebPage(200, b"", URL, None))
    with pytest.raises(BadRequest) as refused:
        await PageHandlers(web).read(CALL, ReadWeb(url=URL, authorization=login))
    assert (refused.value.field, web.orders) == ("authorization", [])


async def test_content_that_no_answer_can_carry_is_refused() -> None:
    web = OneAddress(WebPage(200, os.urandom(2_000_000), URL, None))
    with pytest.raises(TooLarge):
        await PageHandlers(web).read(CALL, ReadWeb(url=URL))
