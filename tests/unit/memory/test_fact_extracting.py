"""What rules draw from a user's own sentences, what is a secret, and how an import is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts import BadRequest
from phronesis_contracts.facts import MAX_IMPORT_LINES, FactKind, Origin
from phronesis_memory.facts.decision import has_secret
from phronesis_memory.facts.extraction import MAX_STATEMENTS, extract_statements, note_the_rest
from phronesis_memory.facts.handlers import read_import
from tests.support.cases import for_each


@for_each(
    ("text", "kind", "told"),
    [
        ("I prefer short answers.", "preference", ("user", "prefers", "short answers", False)),
        ("Actually, I’d prefer long answers now", "preference", ("user", "prefers", "long answers", False)),
        ("I really like green tea!", "preference", ("user", "likes", "green tea", False)),
        ("I don’t like olives", "preference", ("user", "likes", "olives", True)),
        ("I never eat meat", "fact", ("user", "eats", "meat", True)),
        ("Call me Ann, please.", "fact", ("user", "called", "Ann", False)),
        ("My name is Ann", "fact", ("user", "called", "Ann", False)),
        ("I work at the Ministry of Works.", "fact", ("user", "works at", "the Ministry of Works", False)),
        ("I no longer work at Acme", "fact", ("user", "works at", "Acme", True)),
        ("My manager is Fatima", "relation", ("user", "manager is", "Fatima", False)),
        ("Fatima is my manager", "relation", ("user", "manager is", "Fatima", False)),
        ("Fatima leads Project Atlas", "relation", ("Fatima", "leads", "Project Atlas", False)),
        ("Atlas is the payroll project", "entity", ("Atlas", "is", "the payroll project", False)),
        ("My favourite colour is blue", "fact", ("user", "favourite colour is", "blue", False)),
    ],
)
def test_a_statement_of_the_user_becomes_a_fact(text: str, kind: str, told: tuple[str, str, str, bool]) -> None:
    (one,) = extract_statements(text)
    assert (one.kind, (one.subject, one.predicate, one.object, one.negated)) == (kind, told)
    assert one.origin is Origin.USER


@for_each(
    ("text", "objects"),
    [
        ("My car is a red Fiat, and it needs new tyres", ["a red Fiat"]),
        ("I work in Poznan and start at six", ["Poznan"]),
        ("My rent is 900 euros and the garage is 60", ["900 euros"]),
        ("Mein Auto ist ein roter Fiat, und ich fahre selten", ["ein roter Fiat"]),
        ("I collect stamps and run a chess club", ["stamps"]),
        ("I love pears, tastes of summer", ["pears"]),
        ("I love pears, plums and figs", ["pears", "plums", "figs"]),
        ("My exam is on 9 June at 10 am", ["on 9 June at 10 am"]),
    ],
)
def test_an_object_ends_where_another_clause_begins(text: str, objects: list[str]) -> None:
    assert [one.object for one in extract_statements(text)] == objects


@pytest.mark.parametrize(
    "text",
    ["My sister olga is expecting a baby", "I have our two kids", "I love it, 3 hours a day", "Rent is the car costs me 290"],
)
def test_a_sentence_that_no_rule_reads_well_is_a_note_and_no_fact(text: str) -> None:
    assert extract_statements(text) == ()
    assert [one.kind for one in note_the_rest(text, ())] in ([], [FactKind.NOTE])


@pytest.mark.parametrize(
    "text",
    [
        "Do you know that I like tea?",
        '"I prefer short answers" is what she said',
        "If I work at Acme, what changes?",
        "My question is whether it works",
        "What is the budget of 2026?",
        "This is a test",
        "",
    ],
)
def test_what_states_nothing_of_the_user_teaches_nothing(text: str) -> None:
    assert extract_statements(text) == ()


@given(st.text(max_size=400))
def test_any_text_is_read_and_bounded(text: str) -> None:
    assert len(extract_statements(text)) <= MAX_STATEMENTS


@pytest.mark.parametrize(
    "text",
    [
        "My password is hunter2",
        "the api key: 1234",
        "my passcode 606113 does not open the door",
        "my login is ann_h / Kettle_99",
        "mein Passwort lautet Kessel99",
        "use sk-proj-abcdefghijklmnopqrstuv",
        "my card is 4111 1111 1111 1111",
        "AKIAIOSFODNN7EXAMPLE",
        "postgres://ann:hunter2@db/x",
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc",
    ],
)
def test_a_secret_is_seen(text: str) -> None:
    assert has_secret(text)


@pytest.mark.parametrize("text", ["I prefer short answers", "call 0599 123 456", "the key to success", "4111 1111 1111 1112"])
def test_what_is_no_secret_is_not_taken_for_one(text: str) -> None:
    assert not has_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        '"I am Columbus! I live in Genoa and I fear no sea." Is that from the film?',
        "You are the captain, I am Dr. Bell, a cook who lives in Cork.",
        "I don't have time, no idea why",
        "she hates plums",
        "it's cold in here",
        "I'm just trying to plan my week",
        "I'll have a look",
    ],
)
def test_what_is_quoted_played_pointed_at_or_passing_is_not_kept(text: str) -> None:
    stated = extract_statements(text)
    assert [one.text for one in (*stated, *note_the_rest(text, stated))] == []


def test_what_is_only_pointed_at_is_no_thing_that_somebody_likes() -> None:
    assert extract_statements("I don't want it broken") == ()


def test_a_line_with_text_alone_is_read_by_the_rules_and_kept_as_a_note_where_none_fits() -> None:
    lines = [{"text": "I prefer short answers"}, {"text": "The fair opens in May."}, {"text": "My password is hunter2"}]
    by_rule, note, secret = read_import("\n".join(json.dumps(line) for line in lines))
    assert [(one.predicate, one.origin) for one in by_rule.statements] == [("prefers", Origin.IMPORT)]
    assert [(one.predicate, one.object) for one in note.statements] == [("noted", "The fair opens in May.")]
    assert (secret.number, secret.statements) == (3, ())


def test_a_line_with_all_fields_is_taken_as_it_stands() -> None:
    line = {
        "text": "Ann works at Acme.",
        "subject": "Ann",
        "predicate": "works at",
        "object": "Acme",
        "kind": "relation",
        "confidence": 0.5,
        "at": "2026-01-01T00:00:00Z",
    }
    (one,) = read_import(json.dumps(line))
    (statement,) = one.statements
    assert (statement.kind, statement.subject, statement.object, statement.confidence) == (
        FactKind.RELATION,
        "Ann",
        "Acme",
        0.5,
    )
    assert one.at is not None
    assert one.at.year == 2026


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        '"text"',
        "{}",
        '{"text": ""}',
        '{"text": "x", "size": 1}',
        '{"text": "x", "predicate": "y"}',
        '{"text": "a\\u0000"}',
    ],
)
def test_a_bad_line_is_named_by_its_number(bad: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_import('{"text": "I like tea"}\n\n' + bad)
    assert refused.value.field == "lines.3"
    assert "line 3" in refused.value.detail


def test_too_many_lines_are_refused() -> None:
    with pytest.raises(BadRequest) as refused:
        read_import('{"text": "x"}\n' * (MAX_IMPORT_LINES + 1))
    assert refused.value.field == "lines"
