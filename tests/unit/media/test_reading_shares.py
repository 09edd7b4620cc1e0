"""Who comes to a reading process, where more wait than there are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from phronesis_contracts import Busy
from phronesis_media.media import tenant
from phronesis_media.reading import workers
from phronesis_media.reading.jobs import Job
from phronesis_media.reading.workers import WorkerPool

JOB = Job("documents", "application/pdf", 1.0, 1.0, 1, 1, 1, 1.0)


class Pool(WorkerPool):
    """A pool whose processes note whose medium they read, and wait to be let go."""

    def __init__(self, most: int) -> None:
        super().__init__(0, most, 0)
        self.read: list[str] = []
        self.go = asyncio.Semaphore(0)

    async def _answer(self, job: Job, data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        self.read.append(tenant.get())
        await self.go.acquire()
        return {}, b""


async def ask(pool: Pool, of: str) -> None:
    tenant.set(of)
    await pool.ask(JOB, b"", 1)


async def test_a_tenant_with_many_media_lets_another_in_as_soon_as_a_process_is_free() -> None:
    pool = Pool(2)
    asked = [asyncio.create_task(ask(pool, "loud")) for _ in range(5)]
    await asyncio.wait(asked, timeout=0)
    asked.append(asyncio.create_task(ask(pool, "quiet")))
    for _ in asked:
        pool.go.release()
    await asyncio.gather(*asked)
    assert pool.read == ["loud", "loud", "quiet", "loud", "loud", "loud"]


async def test_a_tenant_with_too_many_media_is_refused_and_another_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_WAITING_OF_TENANT", 1)
    pool = Pool(2)
    first = asyncio.create_task(ask(pool, "loud"))
    await asyncio.wait([first], timeout=0)
    with pytest.raises(Busy):
        await ask(pool, "loud")
    second = asyncio.create_task(ask(pool, "quiet"))
    pool.go.release()
    pool.go.release()
    await asyncio.gather(first, second)
    assert pool.read == ["loud", "quiet"]
