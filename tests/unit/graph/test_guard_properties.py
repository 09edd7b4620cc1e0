"""What holds for any text, and for any way to write a statement."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from phronesis_contracts.twin import QueryRefused
from phronesis_graph.guard import Guard, Rules
from phronesis_graph.guard.parser import Parser
from phronesis_graph.twin.ontology_file import load
from tests.guard.corpus import VALUES, Statement, honest, hostile

GUARD = Guard(load())
PARSER = Parser()
HONEST = sorted({statement.text for statement in honest()})
HOSTILE = [each for each in hostile() if each.rule not in ("text", "syntax", "size")]
TEXTS = sorted({each.text for each in HOSTILE})
# Words that hostile statements are made of, in any order.
WORDS = sorted({word for text in (*HONEST, *TEXTS) for word in text.replace("(", " ( ").replace(")", " ) ").split()})
SPACES = (" ", "\n", "\t", "  ", "/**/", " /* SKIP 5 */ ", " // CREATE (n)\n", "\r\n")

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
pytestmark = [pytest.mark.timeout(240)]


def verdict(text: str, rules: Rules = Rules.READING) -> str:
    try:
        GUARD.check(text, VALUES, "acme", rules)
    except QueryRefused as refusal:
        return refusal.detail.split(": ")[1]
    return "passed"


def spaced(text: str, data: st.DataObject) -> str:
    """The text with other space between its words, and other letters in its keywords."""
    _, tokens = PARSER.tokens(text)
    parts, end = [], 0
    for token in tokens:
        if token.start > end:
            # A comment straight behind a division is no longer one.
            parts.append(" " if parts[-1:] == ["/"] else data.draw(st.sampled_from(SPACES)))
        word = token.text
        keyword = token.kind not in ("IDENTIFIER", "ESCAPED_SYMBOLIC_NAME", "STRING_LITERAL1", "STRING_LITERAL2")
        if keyword and word.isupper() and len(word) > 1 and "_" not in word:
            word = data.draw(st.sampled_from((word, word.lower(), word.capitalize(), word.swapcase())))
        parts.append(word)
        end = token.stop + 1
    return "".join(parts)


@pytest.mark.req("K-032", "NC-058")
@quick
@given(st.sampled_from(HOSTILE), st.data())
def test_space_comments_and_case_open_no_way_for_a_hostile_statement(statement: Statement, data: st.DataObject) -> None:
    assert verdict(spaced(statement.text, data), Rules(statement.rules)) != "passed"


@quick
@given(st.sampled_from(HONEST), st.data())
def test_space_comments_and_case_take_nothing_from_an_honest_statement(text: str, data: st.DataObject) -> None:
    assert verdict(spaced(text, data)) == "passed"


@quick
@given(st.lists(st.sampled_from(WORDS), max_size=30), st.sampled_from(list(Rules)))
def test_any_words_pass_or_are_refused_and_nothing_else_happens(words: list[str], rules: Rules) -> None:
    assert verdict(" ".join(words), rules)


@quick
@given(st.text(max_size=200), st.sampled_from(list(Rules)))
def test_any_text_passes_or_is_refused_and_nothing_else_happens(text: str, rules: Rules) -> None:
    assert verdict(text, rules)


@quick
@given(st.sampled_from(TEXTS), st.integers(0, 200), st.integers(0, 40), st.sampled_from(WORDS), st.sampled_from(list(Rules)))
def test_a_changed_statement_passes_or_is_refused_and_nothing_else_happens(
    text: str, at: int, length: int, word: str, rules: Rules
) -> None:
    assert verdict(text[:at] + word + text[at + length :], rules)


@quick
@given(st.sampled_from(HONEST), st.sampled_from(HONEST), st.integers(0, 200), st.integers(0, 200))
def test_whatever_passes_is_read_again_and_holds_the_tenant_on_every_node(one: str, other: str, cut: int, begin: int) -> None:
    text = one[:cut] + " " + other[begin:]
    assume(verdict(text) == "passed")
    statement = GUARD.check(text, VALUES, "acme").statement
    tree = PARSER.parse(*PARSER.tokens(statement)).tree
    for node in tree.find("nodePattern"):
        assert "tenant:$phronesis_tenant" in node.text()
        assert node.child("labelExpression") is not None


@quick
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda part: st.lists(part) | st.dictionaries(st.text(max_size=5), part),
        max_leaves=20,
    )
)
def test_any_value_is_taken_as_it_is_or_refused(value: object) -> None:
    statement = "MATCH (n:EntityProject) WHERE n.id = $value RETURN n.id"
    try:
        allowed = GUARD.check(statement, {"value": value}, "acme")
    except QueryRefused:
        return
    assert allowed.parameters["value"] is value
