"""The requests by which it is found out what an endpoint can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from ..ledger.usage import CallUsage
from .capabilities import Probed, Refused
from .client import ChatClient, ChatRequest
from .completions import TryFailed

STEP = "probe"
"""What the step's header says of a probe."""
_SECONDS = 60.0
"""Seconds for one probe: a local model may be loaded by the first."""
_WORD = ({"role": "user", "content": "Say the word hello, and nothing else. Reply in plain words, not in JSON."},)
_FEW = "output limit was reached"
"""What OpenAI says where a model that thinks first has no token left to answer with."""
_CONTEXT = ("max_model_len", "context_window", "context_length", "max_context_length", "n_ctx")
"""Names under which servers list the size of a model's context."""
_LARGEST = 100_000_000


class EndpointProber:
    """A `Prober` on one provider's client."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client

    async def complete(self, model: str, options: Mapping[str, Any]) -> Probed:
        try:
            done = await self._client.send(_request(model, options), _SECONDS)
        except TryFailed as failed:
            if _FEW in failed.told:
                return Probed("", cut=True, rejected=True)
            raise _sorted(failed) from failed
        return Probed(done.text, cut=done.finish == "length", rejected=done.finish == "rejected")

    async def stream(self, model: str, options: Mapping[str, Any]) -> bool:
        try:
            return (await self._client.send(_request(model, options), _SECONDS, _ignore)).streamed
        except TryFailed as failed:
            if _FEW in failed.told:
                return True
            raise _sorted(failed) from failed

    async def context(self, model: str) -> int | None:
        for path, read in (("models", _of_models), ("/props", _of_props)):
            body = await self._client.get(path, _SECONDS)
            if body is not None and (found := read(_json(body), model)) is not None:
                return found
        return None


async def _ignore(text: str) -> None:
    """Whether the text came in pieces is all that is asked."""


def _request(model: str, options: Mapping[str, Any]) -> ChatRequest:
    return ChatRequest(model, _WORD, dict(options), {"X-Phronesis-Step": STEP})


def _sorted(failed: TryFailed) -> Exception:
    """A failure as what it says of the form; no turn pays for it."""
    failed.spent = CallUsage()
    return Refused(failed) if failed.refuses_form else failed


def _json(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError:
        return None


def _of_models(body: Any, model: str) -> int | None:
    """The size in a list of models: of the model asked for, or of the only one."""
    listed = body.get("data") if isinstance(body, dict) else None
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    entry = next((one for one in entries if one.get("id") == model), entries[0] if len(entries) == 1 else {})
    return next((size for name in _CONTEXT if (size := _size(entry.get(name))) is not None), None)


def _of_props(body: Any, model: str) -> int | None:
    """The size in the properties of llama.cpp's own server."""
    found = body if isinstance(body, dict) else {}
    settings = found.get("default_generation_settings")
    inner = settings.get("n_ctx") if isinstance(settings, dict) else None
    return _size(inner) or _size(found.get("n_ctx"))


def _size(told: object) -> int | None:
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 < told <= _LARGEST else None
