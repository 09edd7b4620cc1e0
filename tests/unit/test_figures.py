"""The shape of the product's code."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.figures import CONSTITUTION, PRODUCT, cycles
from scripts.tree import ROOT


def product_files() -> list[Path]:
    return [path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]


def test_no_modules_import_each_other() -> None:
    assert cycles(product_files()) == []


def test_a_circle_of_imports_is_found(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "orders.py").write_text("from .prices import price\n")
    (package / "prices.py").write_text("def price():\n    from . import orders\n")
    assert cycles(sorted(package.iterdir())) == [["shop.orders", "shop.prices"]]


@pytest.mark.parametrize("where", ["libs/client", "libs/contracts", "services/graph", "services/memory"])
def test_the_constitution_is_one_folder(where: str) -> None:
    folders = {folder for path in (ROOT / where).rglob("*.py") for folder in path.parents if folder.name == CONSTITUTION}
    assert len(folders) == 1
