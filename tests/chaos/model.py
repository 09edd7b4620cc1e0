"""The model of a chaos run: a process of its own that speaks its HTTP, outlives every kill, and counts its calls."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from phronesis_local.loopback import free_port


class Model:
    """A running scripted model.

    Args:
        url: where it listens.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def environment(self) -> dict[str, str]:
        """With this a stack asks it. There is no key, so that pictures and recordings are read on this machine."""
        return {"GROQ_API_KEY": "", "ORCHESTRATOR_MODEL_URL": f"{self.url}/v1"}

    async def calls(self) -> dict[str, list[float]]:
        """When each step of each turn was asked for, by this machine's clock."""
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            calls = (await http.get(f"{self.url}/calls")).json()
        asked = defaultdict[str, list[float]](list)
        for call in calls:
            if call.get("step"):
                asked[call["step"]].append(call["at"])
        return asked

    async def script(self, **told: Any) -> None:
        """Tell it how to answer from now on."""
        async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
            (await http.post(f"{self.url}/script", json=told)).raise_for_status()


@asynccontextmanager
async def scripted_model() -> AsyncIterator[Model]:
    """A model for the length of a block."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.support.groq_server", "--port", str(port))
    model = Model(f"http://127.0.0.1:{port}")
    try:
        await _answered(model)
        yield model
    finally:
        process.terminate()
        await process.wait()


async def _answered(model: Model) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await model.calls()
                return
            except httpx.HTTPError:
                await asyncio.sleep(0.05)
