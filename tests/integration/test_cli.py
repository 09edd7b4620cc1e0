"""The command and the examples on a whole embedded stack with the portfolio loaded."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from phronesis_local.layout import inherited_environment

pytestmark = [pytest.mark.verify, pytest.mark.any_store, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("[0-9]*.py"))
QUESTION = "What is the Geological Disposal Facility programme for?"


class Stack:
    """A running stack, and commands run on it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.environment = inherited_environment() | {"PHRONESIS_DATA": str(data)}

    async def run(self, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program of this Python on the stack."""
        whole = [sys.executable, *command]
        return await asyncio.to_thread(
            subprocess.run, whole, env=self.environment, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=240
        )

    async def phronesis(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the command `phronesis`."""
        return await self.run("-m", "phronesis", *arguments, stdin=stdin)


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack with the portfolio, as the README says to start one."""
    stack = Stack(tmp_path_factory.mktemp("cli") / "data")
    try:
        up = await stack.phronesis("up", "--detach", "--port", "0")
        assert up.returncode == 0, up.stdout + up.stderr
        loaded = await stack.phronesis("load", "portfolio", "--no-wait")
        assert loaded.returncode == 0, loaded.stderr
        await _embedded(stack)
        yield stack
    finally:
        await stack.phronesis("down")


async def _embedded(stack: Stack) -> None:
    """Wait for the programme that is asked about; it is in the first batch, and memory goes on with the others."""
    async with asyncio.timeout(120):
        found = ""
        while "(GDF)" not in found:
            found = (await stack.phronesis("recall", "Geological Disposal Facility", "--limit", "3")).stdout


async def test_a_question_is_answered_from_the_portfolios_texts(stack: Stack) -> None:
    asked = await stack.phronesis("ask", "--json", QUESTION)
    assert asked.returncode == 0, asked.stderr
    reply = json.loads(asked.stdout)
    assert "Geological Disposal Facility" in reply["sources"][0]["title"]
    said, question = (set(re.findall(r"[a-z]{5,}", text.lower())) for text in (reply["user_response"], QUESTION))
    assert said - question >= {"radioactive", "waste"}


async def test_loading_again_changes_nothing(stack: Stack) -> None:
    loaded = await stack.phronesis("load", "portfolio", "--no-wait")
    assert loaded.returncode == 0
    assert "nodes created: 0, nodes updated: 0" in loaded.stderr
    assert "relationships created: 0" in loaded.stderr


@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_runs_on_a_stack_of_this_machine(stack: Stack, name: str) -> None:
    done = await stack.run(f"examples/{name}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


async def test_a_trace_shows_the_messages_between_the_services(stack: Stack) -> None:
    reply = json.loads((await stack.phronesis("ask", "--json", QUESTION)).stdout)
    shown = await stack.phronesis("trace", reply["turn_id"])
    assert shown.returncode == 0
    assert {name for name in ("gateway", "orchestrator", "memory") if name in shown.stdout} == {
        "gateway",
        "orchestrator",
        "memory",
    }


async def test_a_piped_chat_keeps_its_conversation(stack: Stack) -> None:
    done = await stack.phronesis("chat", stdin=f"{QUESTION}\nHow was its delivery confidence rated, and why?\n/quit\n")
    assert done.returncode == 0, done.stderr
    assert len(set(re.findall(r"conversation ([0-9a-f-]{36})", done.stderr))) == 1
    assert len(set(re.findall(r"turn ([0-9a-f-]{36})", done.stderr))) == 2


async def test_a_new_key_opens_its_own_memory_until_it_is_revoked(stack: Stack) -> None:
    user, fact = f"u{uuid4().hex[:8]}", f"The password of the garden is {uuid4().hex}."
    made = await stack.phronesis("keys", "create", "--tenant", "local", "--user", user, "--agent", "noor")
    key, id = made.stdout.strip(), re.findall(r"key ([0-9a-f-]{36}) ", made.stderr)[0]
    assert (await stack.phronesis("remember", fact, "--key", key)).returncode == 0
    assert fact in (await stack.phronesis("recall", "garden password", "--key", key)).stdout
    assert fact not in (await stack.phronesis("recall", "garden password")).stdout
    assert (await stack.phronesis("keys", "list", "--key", key)).returncode == 3
    assert (await stack.phronesis("keys", "revoke", id)).returncode == 0
    refused = await stack.phronesis("recall", "garden password", "--key", key)
    assert (refused.returncode, refused.stdout) == (3, "")


async def test_what_is_not_there_is_a_refusal(stack: Stack) -> None:
    refused = await stack.phronesis("turns", "show", str(uuid4()))
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("error: not_found: ")
