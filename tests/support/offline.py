"""No test reaches a paid model: a guard on every HTTP client that the model SDKs stand on."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import httpx2
import pytest


@contextmanager
def only_loopback() -> Iterator[list[str]]:
    """Fail whoever asks another host than this machine by httpx or httpx2, inside the block; the hosts asked are yielded.

    A failure is no `Exception`, so that no retry can swallow it; and the block itself fails at its end, in case a task did.
    For a conftest:

        @pytest.fixture(scope="session", autouse=True)
        def _offline() -> Iterator[None]:
            with only_loopback():
                yield
    """
    asked: list[str] = []
    patch = pytest.MonkeyPatch()
    for library in (httpx, httpx2):
        for transport, method in (("AsyncHTTPTransport", "handle_async_request"), ("HTTPTransport", "handle_request")):
            _guard(patch, getattr(library, transport), method, asked)
    try:
        yield asked
    finally:
        patch.undo()
    if asked:
        pytest.fail(f"tests asked other hosts: {', '.join(sorted(set(asked)))}")


def _guard(patch: pytest.MonkeyPatch, transport: Any, method: str, asked: list[str]) -> None:
    original: Callable[..., Any] = getattr(transport, method)

    def guarded(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        host = request.url.host
        if not _is_loopback(host):
            asked.append(host)
            pytest.fail(f"a test asked {host}; the scripted server stands in for it")
        return original(self, request, *args, **kwargs)

    patch.setattr(transport, method, guarded)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
