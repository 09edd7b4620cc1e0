"""The small rules for names of files and for texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_media.media import LARGEST_REPLY, LONGEST_REPLY, clean_name, clean_text, cut_to_reply


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ann\\My  plan.docx", "My plan.docx"),
        ("a\x00b\r\nc.pdf", "abc.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("Cafe\u0301.md", "Caf\u00e9.md"),
        ("", "document"),
        ("/", "document"),
        ("\u200b", "document"),
        ("x" * 400 + ".pdf", "x" * 251 + ".pdf"),
        ("y" * 400, "y" * 255),
    ],
)
def test_a_name_is_kept_without_folders_and_tricks(name: str, clean: str) -> None:
    assert clean_name(name, "document") == clean


@given(st.text(max_size=600))
def test_every_name_becomes_one_that_can_be_shown(name: str) -> None:
    clean = clean_name(name, "document")
    assert 0 < len(clean) <= 255
    assert clean.isprintable()
    assert "/" not in clean


def test_a_text_loses_control_characters_and_long_gaps() -> None:
    assert clean_text("a\x00\x1b[1m\r\nb\rc\fd\n\n\n\n\n\ne\ud800 ") == "a[1m\nb\nc\n\nd\n\n\ne?"


@pytest.mark.req("D-035")
def test_a_text_is_cut_to_what_a_reply_carries() -> None:
    assert cut_to_reply("a" * (LONGEST_REPLY + 1)) == ("a" * LONGEST_REPLY, True)
    assert cut_to_reply("a" * LONGEST_REPLY) == ("a" * LONGEST_REPLY, False)


@pytest.mark.parametrize("character", ["漢", "😀", '"', "\n"])
def test_a_cut_text_fits_as_json_whatever_its_characters(character: str) -> None:
    text, _ = cut_to_reply(character * LONGEST_REPLY)
    assert len(json.dumps(text, ensure_ascii=False).encode()) <= LARGEST_REPLY
