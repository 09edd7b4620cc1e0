"""The profile over HTTP, with the memory service's own rules behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from phronesis_bus import connect, serve
from phronesis_contracts.memory import PROFILE_DELETE_TOOL, PROFILE_GET_TOOL, PROFILE_PUT, PROFILE_UPDATE_TOOL
from tests.support.gateway import Holder, RunningGateway
from tests.support.memory import open_memory
from tests.support.servers import NatsServer, PostgresServer

PROFILE = "/api/v1/profile"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture(scope="module", autouse=True)
async def memory(nats_server: NatsServer, postgres: PostgresServer) -> AsyncIterator[None]:
    async with open_memory(postgres, None) as opened, connect("memory", nats_server.settings("memory")) as bus:
        await serve(bus, PROFILE_GET_TOOL, opened.profiles.get)
        await serve(bus, PROFILE_PUT, opened.profiles.put)
        await serve(bus, PROFILE_UPDATE_TOOL, opened.profiles.update)
        await serve(bus, PROFILE_DELETE_TOOL, opened.profiles.delete)
        yield


async def send(api: RunningGateway, who: Holder, method: str, body: Any = None, **headers: str) -> httpx.Response:
    stated = who.headers | {name.replace("_", "-"): value for name, value in headers.items()}
    return await api.http.request(method, PROFILE, json=body, headers=stated)


async def test_a_profile_is_read_replaced_corrected_and_deleted(api: RunningGateway, ann: Holder) -> None:
    new = await send(api, ann, "GET")
    assert (new.json(), new.headers["etag"]) == ({"labels": [], "profile": {}, "updated_at": None, "version": 0}, '"0"')
    put = await send(api, ann, "PUT", {"profile": {"name": "Ann", "age": 30}})
    assert put.headers["etag"] == f'"{put.json()["version"]}"'
    patched = await send(api, ann, "PATCH", {"profile": {"age": None, "likes": ["tea"]}}, **MERGE_PATCH)
    assert (patched.status_code, patched.json()["profile"]) == (200, {"name": "Ann", "likes": ["tea"]})
    gone = await send(api, ann, "DELETE")
    assert (gone.status_code, gone.json()["profile"], gone.headers["etag"]) == (200, {}, '"0"')
    assert (await send(api, ann, "GET")).json()["profile"] == {}


async def test_a_change_of_a_passed_version_is_a_412_that_names_the_header(api: RunningGateway, ann: Holder) -> None:
    first = (await send(api, ann, "PUT", {"profile": {"a": 1}}, If_Match='"0"')).headers["etag"]
    second = await send(api, ann, "PATCH", {"profile": {"b": 2}}, If_Match=first)
    for method in ("PUT", "PATCH", "DELETE"):
        body: Any = None if method == "DELETE" else {"profile": {}}
        late = await send(api, ann, method, body, If_Match=first)
        said = (late.status_code, late.json()["code"], late.json()["field"])
        assert said == (412, "memory.profile_changed", "If-Match")
    assert (await send(api, ann, "DELETE", If_Match="*")).status_code == 200
    assert second.json()["profile"] == {"a": 1, "b": 2}


@pytest.mark.parametrize("tag", ["1", '"a"', 'W/"1"', '"1", "2"', '"-1"', '""', f'"{"9" * 30}"'])
async def test_an_etag_that_is_none_is_a_bad_request(api: RunningGateway, ann: Holder, tag: str) -> None:
    answer = await send(api, ann, "DELETE", If_Match=tag)
    assert (answer.status_code, answer.json()["field"]) == (400, "If-Match")


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"profile": {"a": "x" * 40_000}}, 413, "profile"),
        ({"profile": nested(17)}, 400, "profile"),
        ({"profile": None}, 400, "profile"),
        ({"profile": []}, 400, "profile"),
        ({"profile": {}, "other": 1}, 400, "other"),
        ({}, 400, "profile"),
    ],
)
async def test_what_is_no_profile_is_refused_with_its_field(
    api: RunningGateway, ann: Holder, method: str, body: Any, status: int, field: str
) -> None:
    answer = await send(api, ann, method, body)
    assert (answer.status_code, answer.json()["field"]) == (status, field)


async def test_a_repeat_of_a_key_changes_nothing_and_another_body_is_refused(api: RunningGateway, ann: Holder) -> None:
    key = {"Idempotency_Key": "one"}
    first = await send(api, ann, "PATCH", {"profile": {"a": 1}}, **key)
    again = await send(api, ann, "PATCH", {"profile": {"a": 1}}, **key)
    other = await send(api, ann, "PATCH", {"profile": {"a": 2}}, **key)
    assert (again.json(), other.status_code) == (first.json(), 409)


@pytest.mark.req("D-143")
async def test_a_profile_is_its_users_alone(api: RunningGateway, ann: Holder) -> None:
    bob = await api.holder(tenant=ann.who.tenant)
    await send(api, ann, "PUT", {"profile": {"name": "Ann"}})
    await send(api, bob, "DELETE")
    assert (await send(api, bob, "GET")).json()["profile"] == {}
    assert (await send(api, ann, "GET")).json()["profile"] == {"name": "Ann"}


async def test_the_profile_is_a_tool_too(api: RunningGateway, ann: Holder) -> None:
    tools = "/api/v1/tools/profile"
    await api.http.post(f"{tools}.update", json={"patch": {"name": "Ann"}}, headers=ann.headers)
    read = await api.http.post(f"{tools}.get", json={}, headers=ann.headers)
    assert read.json()["profile"] == {"name": "Ann"} == (await send(api, ann, "GET")).json()["profile"]
    await api.http.post(f"{tools}.delete", json={}, headers=ann.headers)
    assert (await send(api, ann, "GET")).json()["profile"] == {}
