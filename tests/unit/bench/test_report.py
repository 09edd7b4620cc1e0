"""The report of the bench: sections that are measured again take the places of the old ones."""

from __future__ import annotations

from bench.report import head, section, with_sections

ORDER = ["One", "Two", "Three"]
ONE, TWO, THREE = (section(title, ["| a |", "|---|", f"| {title} |"], "abc") for title in ORDER)


def test_a_section_that_is_measured_again_takes_the_place_of_the_old_one() -> None:
    old = with_sections("", ORDER, {"One": ONE, "Two": TWO, "Three": THREE})
    again = section("Two", ["anew"], "def")
    assert with_sections(old, ORDER, {"Two": again}) == "\n".join([head(), ONE, again, THREE])


def test_a_section_that_is_measured_no_more_goes() -> None:
    assert with_sections("\n".join([head(), ONE, THREE]), ["One"], {}) == "\n".join([head(), ONE])


def test_a_section_says_at_which_commit_it_was_measured() -> None:
    assert section("One", ["text"], "abc") == "## One\n\nMeasured at `abc`.\n\ntext\n"
