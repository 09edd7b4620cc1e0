"""The face that programs made for OpenAI's API use: agents as models, chat completions, and responses."""

from .routes import router

__all__ = ["router"]
