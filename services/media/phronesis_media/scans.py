"""Pages of a document that had no text of their own, filled in with what OCR read."""

from __future__ import annotations

from collections.abc import Sequence

from .domain import Reading


def merged(found: Reading, bare: Sequence[int], read: Sequence[str], engine: str) -> Reading:
    """The whole text in the order of the pages.

    Args:
        found: the text by the parser, with a form feed between pages.
        bare: numbers of the pages without text, from 1.
        read: what OCR found on the first of them.
        engine: name and version of the OCR.

    Returns:
        The reading; its text says which pages were read by OCR, and which were not.
    """
    pages = found.text.split("\f")
    for number, text in zip(bare, read, strict=False):
        if text.strip() and number <= len(pages):
            pages[number - 1] = f"[Page {number}, by OCR]\n{text}"
    left = bare[len(read) :]
    words = "\f".join(pages)
    if words.strip() and left:
        words += f"\f[{_named(left)} without text of its own; OCR has not looked there.]"
    return found.model_copy(update={"text": words, "engine": f"{found.engine}, {engine}" if engine else found.engine})


def _named(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"Page {numbers[0]} is"
    return f"{len(numbers)} pages, from {numbers[0]} to {numbers[-1]}, are"
