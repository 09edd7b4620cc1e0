"""Which reasoner answers: Groq where there is a key, else an OpenAI-compatible address, else rules alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis_bus.tracing import Tracing
from phronesis_tokens import load

from ..budget import ANSWER
from ..extractive import Extractive
from ..reasoner import Reasoner
from ..settings import ModelSettings


@asynccontextmanager
async def reasoner(settings: ModelSettings, tracing: Tracing) -> AsyncIterator[Reasoner]:
    """The reasoner that the settings name, for the length of a block."""
    await asyncio.to_thread(load)  # here, and not inside the first turn
    if not settings.groq_api_key and settings.model_url is None:
        yield Extractive()
        return
    from .chat_model import language_model

    groq = bool(settings.groq_api_key)
    key = settings.groq_api_key or settings.model_key
    model = language_model(
        "groq" if groq else "openai",
        key.get_secret_value() if key else "none",
        tracing,
        url=settings.model_url,
        model=settings.model,
        light_model=settings.light_model,
        budget=settings.context_tokens - ANSWER,
    )
    try:
        yield model
    finally:
        await model.close()
