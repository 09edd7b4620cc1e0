"""The matrix's content files: Markdown with a head of YAML, and what is written from the ontology."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from ..domain.matrix import Element, Matrix
from ..domain.texts import MODES
from .twin_texts import TwinTexts

_FENCE = "---\n"


def matrix() -> Matrix:
    """The matrix as it ships.

    Raises:
        ValueError: a file that does not fit what the matrix needs.
    """
    folder = files("phronesis_instructions") / "content" / "matrix"
    order = _yaml(folder / "matrix.yaml")
    tier_2 = [_element(folder / "tier2", tag, 2) for tag in order["tier2"]]
    charts = [_element(folder / "visualizations", tag, 3) for tag in order["visualizations"]]
    patterns = [_element(folder / "patterns", tag, 3) for tag in order["patterns"]]
    written = {name: _yaml(folder / f"{name}.yaml") for name in ("ontology", "nodes", "relationships", "chains")}
    templates = {name: _text(folder / "templates" / f"{name}.md") for name in ("node", "relationship", "chain")}
    twin = TwinTexts(**written, templates=templates)
    return Matrix(
        version=order["version"],
        tier1=_text(folder / "tier1.md"),
        prefaces={mode: _text(folder / "modes" / f"{mode}.md") for mode in MODES},
        elements=(*tier_2, *twin.elements(), *charts, *patterns),
    )


def _element(folder: Traversable, tag: str, tier: int) -> Element:
    before, head, content = (folder / f"{tag}.md").read_text("utf-8").split(_FENCE, 2)
    if before:
        raise ValueError(f"{tag}.md does not begin with its head")
    return Element(tag=tag, tier=tier, content=content.strip(), **yaml.safe_load(head))


def _yaml(file: Traversable) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return found


def _text(file: Traversable) -> str:
    return file.read_text("utf-8").strip()
