"""Fetching addresses, against a web server on this machine that stands in for the public internet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from phronesis_contracts import BadRequest, ServiceError, TimedOut, TooLarge, Unavailable
from phronesis_contracts.media import MAX_UPLOAD
from phronesis_media.fetching.web import PublicWeb, SystemResolver, is_public
from phronesis_media.media import Fetched, WebPage, WebRequest
from tests.support.certificates import certificate

HERE = "127.0.0.1"


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


def moved(to: str) -> bytes:
    return answer("302 Found", f"Location: {to}", "Content-Length: 0")


PAGES = {
    "/report.pdf": answer("200 OK", "Content-Type: application/pdf", "Content-Length: 5", body=b"bytes"),
    "/": answer("200 OK", "Content-Type: text/html", "Content-Length: 4", body=b"root"),
    "/moved": moved("/report.pdf"),
    "/elsewhere": moved("http://other.example/report.pdf"),
    "/inside": moved("http://127.0.0.1/"),
    "/by-name": moved("http://inside.example/"),
    "/file": moved("file:///etc/passwd"),
    "/gopher": moved("gopher://public.example/"),
    "/port": moved("http://public.example:6379/"),
    "/user": moved("http://a@public.example/"),
    "/loop": moved("/loop"),
    "/gone": answer("404 Not Found", "Content-Length: 0"),
    "/broken": answer("500 Oops", "Content-Length: 0"),
    "/busy": answer("429 Slow", "Content-Length: 0"),
    "/short": answer("200 OK", "Content-Length: 10", body=b"four"),
    "/packed": answer("200 OK", "Content-Encoding: gzip", "Content-Length: 4", body=b"\x1f\x8b\x00\x00"),
    "/says-large": answer("200 OK", f"Content-Length: {MAX_UPLOAD + 1}", body=b"x"),
    "/report": answer("207 Multi-Status", "Content-Type: application/xml", "Content-Length: 6", body=b"<many>"),
    "/login": answer("401 Unauthorized", "Content-Length: 9", body=b"who's you"),
    "/login-elsewhere": moved("https://b.web.example/report"),
    "/login-in-the-clear": moved("http://a.web.example/report"),
    "/login-here": moved("https://a.web.example/report"),
    "/nonsense": b"hello, I am no web server\r\n\r\n",
}


@dataclass
class Internet:
    """A web server with the pages above, and the names that lead to it."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    lookups: list[str] = field(default_factory=list)
    names: dict[str, list[tuple[str, ...]]] = field(
        default_factory=lambda: {
            "public.example": [(HERE,)],
            "other.example": [(HERE,)],
            "a.web.example": [(HERE,)],
            "b.web.example": [(HERE,)],
            "inside.example": [("10.0.0.1",)],
            "both.example": [("10.0.0.1", HERE)],
            "six.example": [("fd00::1",)],
            "rebinding.example": [(HERE,), ("10.0.0.1",)],
        }
    )

    async def addresses(self, host: str) -> tuple[str, ...]:
        self.lookups.append(host)
        answers = self.names.get(host, [()])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def allowed(self, address: str) -> bool:
        return address == HERE or is_public(address)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head)
        path = head.split()[1].decode()
        try:
            if path == "/endless":
                writer.write(answer("200 OK"))
                while True:
                    writer.write(bytes(1024 * 1024))
                    await writer.drain()
            elif path == "/slow":
                writer.write(answer("200 OK", "Content-Length: 100", body=b"x"))
                await reader.read()
            else:
                writer.write(PAGES[path])
                await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    def web(self, seconds: float = 10.0) -> PublicWeb:
        return PublicWeb(self, seconds=seconds, allowed=self.allowed, ports={"http": self.port, "https": self.port})


@pytest.fixture
async def internet() -> AsyncIterator[Internet]:
    internet = Internet()
    server = await asyncio.start_server(internet.serve, HERE, 0)
    internet.port = server.sockets[0].getsockname()[1]
    yield internet
    server.close()


async def test_content_comes_with_its_name_and_type(internet: Internet) -> None:
    found = await internet.web().fetch("http://public.example/report.pdf#page=2")
    assert found == Fetched(b"bytes", "report.pdf", "application/pdf")


async def test_a_page_without_a_name_is_called_like_its_host(internet: Internet) -> None:
    assert await internet.web().fetch("http://public.example/") == Fetched(b"root", "public.example", "text/html")


async def test_the_server_sees_the_host_that_was_asked_for_and_no_offer_of_packing(internet: Internet) -> None:
    await internet.web().fetch("http://public.example/")
    headers = internet.requests[0].lower().split(b"\r\n")
    assert (b"host: public.example" in headers, b"accept-encoding: identity" in headers) == (True, True)


async def test_a_redirect_is_followed_and_looked_up_anew(internet: Internet) -> None:
    found = await internet.web().fetch("http://public.example/elsewhere")
    assert (found.data, internet.lookups) == (b"bytes", ["public.example", "other.example"])


async def test_a_name_is_looked_up_once_and_connected_to_where_it_was_checked(internet: Internet) -> None:
    found = await internet.web().fetch("http://rebinding.example/")
    assert (found.data, internet.lookups) == (b"root", ["rebinding.example"])


@pytest.mark.parametrize(
    "url",
    [
        "http://inside.example/",
        "http://both.example/",
        "http://six.example/",
        "http://unknown.example/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://public.example/by-name",
    ],
)
@pytest.mark.req("D-152")
async def test_an_address_of_the_inside_and_a_name_that_does_not_exist_get_the_same_answer(
    internet: Internet, url: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        await internet.web().fetch(url)
    assert refused.value.body() == BadRequest("the address is not a public one", field="url").body()


@pytest.mark.parametrize("page", ["file", "gopher", "port", "user", "loop"])
@pytest.mark.req("D-152")
async def test_a_redirect_to_what_would_be_refused_is_refused(internet: Internet, page: str) -> None:
    with pytest.raises(BadRequest) as refused:
        await internet.web().fetch(f"http://public.example/{page}")
    assert refused.value.field == "url"


async def test_a_redirect_to_this_machine_is_refused(internet: Internet) -> None:
    web = PublicWeb(
        internet, seconds=5, allowed=lambda address: address == "192.0.2.1" or is_public(address), ports={"http": internet.port}
    )
    with pytest.raises(BadRequest):
        await web.fetch("http://127.0.0.1/")
    assert internet.requests == []


async def test_at_most_five_redirects_are_followed(internet: Internet) -> None:
    with pytest.raises(BadRequest, match="redirects too often"):
        await internet.web().fetch("http://public.example/loop")
    assert len(internet.requests) == 6


@pytest.mark.parametrize(
    ("page", "error"),
    [
        ("gone", BadRequest),
        ("broken", Unavailable),
        ("busy", Unavailable),
        ("short", Unavailable),
        ("packed", Unavailable),
        ("nonsense", Unavailable),
        ("says-large", TooLarge),
        ("endless", TooLarge),
    ],
)
async def test_a_page_that_cannot_be_had_is_a_typed_error(internet: Internet, page: str, error: type[ServiceError]) -> None:
    with pytest.raises(error) as failed:
        await internet.web().fetch(f"http://public.example/{page}")
    assert type(failed.value) is error


async def test_a_page_that_never_ends_its_sentence_takes_no_longer_than_the_limit(internet: Internet) -> None:
    with pytest.raises(TimedOut):
        await internet.web(seconds=0.3).fetch("http://public.example/slow")


async def test_a_certificate_is_held_against_the_name_and_not_the_address(internet: Internet, tmp_path: Path) -> None:
    for_server, for_client = certificate("public.example", tmp_path)
    server = await asyncio.start_server(internet.serve, HERE, 0, ssl=for_server)
    ports = {"https": server.sockets[0].getsockname()[1]}
    web = PublicWeb(internet, seconds=10, allowed=internet.allowed, ports=ports, tls=for_client)
    assert (await web.fetch("https://public.example/")).data == b"root"
    with pytest.raises(Unavailable):
        await web.fetch("https://other.example/")
    with pytest.raises(Unavailable):
        await PublicWeb(internet, seconds=10, allowed=internet.allowed, ports=ports).fetch("https://public.example/")
    server.close()


async def test_the_environment_s_proxy_is_not_used(internet: Internet, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert (await internet.web().fetch("http://public.example/")).data == b"root"


async def test_this_machine_s_own_name_is_refused_by_the_real_resolver() -> None:
    assert all(not is_public(address) for address in await SystemResolver().addresses("localhost"))
    assert await SystemResolver().addresses("no-such-name.invalid.") == ()


async def test_a_report_is_sent_with_its_body_and_its_answer_is_read(internet: Internet) -> None:
    order = WebRequest("http://public.example/report", "REPORT", headers=(("Depth", "1"),), body=b"<query/>")
    page = await internet.web().read(order)
    assert page == WebPage(207, b"<many>", "http://public.example/report", "application/xml")
    head = internet.requests[0].lower().split(b"\r\n")
    assert (head[0], b"depth: 1" in head, b"content-length: 8" in head) == (b"report /report http/1.1", True, True)


async def test_a_page_that_wants_a_login_is_told_by_its_status_and_not_read(internet: Internet) -> None:
    page = await internet.web().read(WebRequest("http://public.example/login"))
    assert page == WebPage(401, b"", "http://public.example/login", None)


async def test_an_order_has_its_own_limits_of_size_and_time(internet: Internet) -> None:
    with pytest.raises(TooLarge):
        await internet.web().read(WebRequest("http://public.example/report.pdf", most=4))
    with pytest.raises(TimedOut):
        await internet.web().read(WebRequest("http://public.example/slow", seconds=0.2))


async def test_a_login_is_not_sent_in_the_clear(internet: Internet) -> None:
    with pytest.raises(BadRequest):
        await internet.web().read(WebRequest("http://public.example/report", login="Basic c2VjcmV0"))
    assert internet.requests == []


@pytest.mark.parametrize(
    ("page", "logins"), [("report", 1), ("login-here", 2), ("login-elsewhere", 1), ("login-in-the-clear", 1)]
)
async def test_a_login_goes_to_the_host_it_is_for_and_no_further(
    internet: Internet, tmp_path: Path, page: str, logins: int
) -> None:
    for_server, for_client = certificate("*.web.example", tmp_path)
    server = await asyncio.start_server(internet.serve, HERE, 0, ssl=for_server)
    ports = {"https": server.sockets[0].getsockname()[1], "http": internet.port}
    web = PublicWeb(internet, seconds=10, allowed=internet.allowed, ports=ports, tls=for_client)
    found = await web.read(WebRequest(f"https://a.web.example/{page}", "REPORT", login="Basic c2VjcmV0"))
    assert found.status == 207
    assert sum(b"authorization: basic" in head.lower() for head in internet.requests) == logins
    assert {head.split()[0] for head in internet.requests} == {b"REPORT"}
    server.close()
