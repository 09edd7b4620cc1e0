"""Hostile files, each made in code and named by an id (TRAPS 63 to 69)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.support.hostile_files.archives import archives
from tests.support.hostile_files.form import LATE, TEXT, HostileFile, Lure
from tests.support.hostile_files.images import images
from tests.support.hostile_files.office import office
from tests.support.hostile_files.orders import orders
from tests.support.hostile_files.pdfs import pdfs
from tests.support.hostile_files.sounds import sounds
from tests.support.hostile_files.texts import texts

__all__ = ["LATE", "TEXT", "HostileFile", "Lure", "hostile_files"]

_FAMILIES = {
    "archive": archives,
    "office": office,
    "PDF": pdfs,
    "image": images,
    "recording": sounds,
    "text": texts,
    "order": orders,
}


def hostile_files() -> Iterator[HostileFile]:
    """All of them."""
    for family, made in _FAMILIES.items():
        for file in made():
            yield replace(file, family=family)
