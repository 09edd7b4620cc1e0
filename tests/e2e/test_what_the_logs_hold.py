"""After all other stories: no log of the stack holds a key, a password, or what anybody said."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.support.documents import pdf
from tests.support.people import Person, Town
from tests.support.stack import RunningStack

pytestmark = pytest.mark.timeout(300)

TEXT = "My sister's name is Ingeborg Tveitaskog, and she keeps bees near Lom."
PAGE = "Minutes of the Tveitaskog honey cooperative, not for publication."


@pytest.mark.req("D-154")
async def test_no_log_holds_a_secret_or_a_text(stack: RunningStack, everybody: Town, somebody: Person) -> None:
    await somebody.remember("Ingeborg Tveitaskog", TEXT)
    media = await somebody.uploaded("honey.pdf", pdf([[PAGE]]))
    reply = await somebody.reply("What do you know of Ingeborg Tveitaskog and the honey cooperative?", media=[media])
    await somebody.http.put("/api/v1/profile", json={"profile": {"sister": TEXT}})
    await somebody.http.post("/api/v1/conversations/messages", content=f'{{"currentMessageText": "{TEXT}'.encode())

    secrets = [path.read_text().strip() for path in stack.data.secrets.iterdir()]
    lines = [line for secret in secrets for line in secret.splitlines() if not line.startswith("-----")]
    assert len(lines) >= 12
    wanted = {*lines, *everybody.keys, *everybody.said, TEXT, PAGE, *reply["user_response"].splitlines()} - {""}
    assert len(wanted) > 20
    held: Counter[str] = Counter()
    logs = await asyncio.to_thread(lambda: {path.name: path.read_text(errors="replace") for path in stack.data.logs.iterdir()})
    assert len(logs) >= 10
    for name, text in logs.items():
        held.update(name for one in wanted if one in text)
    assert held == Counter()
