"""The console: a web application that the gateway serves, in a person's browser, over the public routes alone."""

from .web import router

__all__ = ["router"]
