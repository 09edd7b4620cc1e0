"""Every setting is a line of its package's README: its name, its default, what it does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from scripts.readmes import packages, settings
from tests.support.cases import for_each


@for_each("package", packages())
def test_every_setting_is_named_in_the_readme_of_its_package(package: Path) -> None:
    readme = package / "README.md"
    text = readme.read_text() if readme.exists() else ""
    assert [setting.variable for setting in settings(package) if f"`{setting.variable}`" not in text] == []


@for_each("package", packages())
def test_settings_are_few_have_defaults_and_say_what_they_do(package: Path) -> None:
    found = settings(package)
    assert [s.variable for s in found if not s.default] == [], "a default that works on a laptop"
    assert [s.variable for s in found if not s.text] == [], "what it does"
    assert [name for name, count in Counter(s.owner for s in found).items() if count > 15] == []
