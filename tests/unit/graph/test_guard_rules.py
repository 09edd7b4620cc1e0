from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts.twin import QueryRefused
from phronesis_graph.guard import Guard

PREFIX = "MCP Constraint Violation:"


def refusal(guard: Guard, statement: str, **parameters: Any) -> str:
    """The detail of a refused statement."""
    with pytest.raises(QueryRefused) as refused:
        guard.check(statement, parameters, "acme")
    return refused.value.detail


def passes(guard: Guard, statement: str, **parameters: Any) -> bool:
    return bool(guard.check(statement, parameters, "acme").statement)


@pytest.mark.req("N-132", "NC-058")
def test_skip_is_refused_with_the_way_to_page(guard: Guard) -> None:
    detail = refusal(guard, "MATCH (n:EntityProject) RETURN n.id SKIP 5")
    assert detail.startswith(PREFIX)
    assert all(word in detail for word in ("keyset", "last_seen_id", "LIMIT 30"))


@pytest.mark.req("NC-058")
@pytest.mark.parametrize("text", ["SKIP\n5", "SKIP\t5", "skip $n", "OFFSET 5"])
def test_no_spelling_of_skip_passes(guard: Guard, text: str) -> None:
    assert " paging: " in refusal(guard, f"MATCH (n:EntityProject) RETURN n.id {text}", n=3)


@pytest.mark.req("NC-058", "K-044")
def test_a_string_may_say_skip(guard: Guard) -> None:
    assert passes(guard, "MATCH (n:EntityProject) WHERE n.name = 'SKIP this' RETURN n.id")


@pytest.mark.req("N-133")
def test_a_page_by_key_passes_without_a_word(guard: Guard) -> None:
    statement = "MATCH (n:EntityProject) WHERE n.id > $last_seen_id RETURN n.id AS id, n.name AS name ORDER BY n.id LIMIT 30"
    assert guard.check(statement, {"last_seen_id": "p-1"}, "acme").warnings == ()


@pytest.mark.req("N-134")
def test_two_levels_on_a_path_are_refused_and_one_is_not(guard: Guard) -> None:
    path = "MATCH (a:EntityProject {{level: 'L3'}})-[:CLOSE_GAPS]->(b:EntityOrgUnit {{level: '{}'}}) RETURN a.id"
    detail = refusal(guard, path.format("L2"))
    assert detail.startswith(PREFIX)
    assert "same-level rule" in detail
    assert passes(guard, path.format("L3"))


@pytest.mark.req("N-135")
def test_levels_are_compared_whatever_their_case_and_quotes(guard: Guard) -> None:
    statement = "MATCH (a:EntityProject {level:\"l2\"})-[:CLOSE_GAPS]->(b:EntityOrgUnit {level:'L3'}) RETURN a.id"
    assert " level: " in refusal(guard, statement)


@pytest.mark.req("NC-059")
@pytest.mark.parametrize(
    ("first", "second", "mixed"),
    [("L2", "L3", True), ("L2", "l3", True), ("L3", "L3", False), (["L3"], "L3", False), (["L3", "L1"], "L3", True)],
)
def test_levels_in_parameters_are_looked_at_at_each_call(guard: Guard, first: Any, second: Any, mixed: bool) -> None:
    statement = "MATCH (a:EntityProject)-[:CLOSE_GAPS]->(b:EntityOrgUnit {level: $b}) WHERE a.level IN $a RETURN a.id"
    if mixed:
        assert " level: " in refusal(guard, statement, a=first, b=second)
    else:
        assert passes(guard, statement, a=first, b=second)


@pytest.mark.req("NC-060")
def test_levels_of_parts_that_nothing_joins_are_refused_too(guard: Guard) -> None:
    assert " level: " in refusal(guard, "MATCH (a:EntityProject {level: 'L2'}), (b:EntityRisk {level: 'L3'}) RETURN a.id, b.id")


@pytest.mark.req("NC-069")
def test_one_level_fixed_and_the_other_end_free_passes(guard: Guard) -> None:
    path = "MATCH (p:EntityProject {level: 'L3'})-[:CLOSE_GAPS]->(u:EntityOrgUnit) "
    assert passes(guard, path + "RETURN u.level AS level")
    assert " level: " in refusal(guard, path + "WHERE u.level = 'L2' RETURN u.level AS level")


@pytest.mark.req("N-134", "NC-059")
@pytest.mark.parametrize("relation", ["PARENT_OF", "DELIVERED_BY", "RATED"])
def test_relationships_across_levels_may_join_two_levels(guard: Guard, relation: str) -> None:
    target = {"PARENT_OF": "EntityProject", "DELIVERED_BY": "SectorGovEntity", "RATED": "EntityRisk"}[relation]
    assert passes(guard, f"MATCH (a:EntityProject {{level: 'L2'}})-[:{relation}]->(b:{target} {{level: 'L3'}}) RETURN a.id")


@pytest.mark.req("N-136", "N-137")
@pytest.mark.parametrize("column", ["n.embedding", "n.EMBEDDING", "n", "n {.*}", "properties(n)"])
def test_embeddings_are_refused_with_the_tool_that_finds_by_meaning(guard: Guard, column: str) -> None:
    detail = refusal(guard, f"MATCH (n:EntityProject) RETURN {column}")
    assert detail.startswith(f"{PREFIX} embedding: ")
    assert "recall_memory" in detail


@pytest.mark.req("N-136", "NC-061")
def test_procedures_over_vectors_are_refused(guard: Guard) -> None:
    for procedure in ("queryNodes", "queryRelationships"):
        call = f"CALL db.index.vector.{procedure}('x', 5, [1.0]) YIELD node RETURN node.id"
        assert " embedding: " in refusal(guard, call)


@pytest.mark.req("NC-061")
def test_a_string_may_speak_of_embeddings(guard: Guard) -> None:
    assert passes(guard, "MATCH (n:EntityProject) WHERE n.name CONTAINS 'embedding' RETURN n.id")


@pytest.mark.req("N-138")
@pytest.mark.parametrize(
    "clause",
    [
        "CREATE (x:A)",
        "MERGE (x:A)",
        "SET n.a = 1",
        "DELETE n",
        "REMOVE n.a",
        "DETACH DELETE n",
        "FOREACH (i IN [1] | SET n.a = i)",
    ],
)
def test_every_writing_clause_is_refused_as_a_write(guard: Guard, clause: str) -> None:
    assert refusal(guard, f"MATCH (n:EntityProject) {clause} RETURN 1 AS one").startswith(
        f"{PREFIX} writing: this tool is read-only"
    )


@pytest.mark.req("NC-065")
@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("CREATE(x:A)", "writing"),
        ("MATCH (n:EntityProject) SET\nn.a = 1", "writing"),
        ("MATCH (n:EntityProject) DELETE\nn", "writing"),
        ("DROP INDEX x", "writing"),
        ("LOAD CSV FROM 'file:///etc/passwd' AS r RETURN r", "clause"),
        ("CALL apoc.create.node(['A'], {})", "procedure"),
        ("GRANT ROLE admin TO x", "clause"),
        ("ALTER USER x SET PASSWORD 'y'", "writing"),
    ],
)
def test_what_a_word_list_misses_is_refused(guard: Guard, statement: str, rule: str) -> None:
    assert f" {rule}: " in refusal(guard, statement)


@pytest.mark.req("NC-064")
def test_harmless_names_and_strings_pass(guard: Guard) -> None:
    assert passes(guard, "MATCH (asset:EntityITSystem) WHERE asset.name = 'Do not DELETE' RETURN asset.id AS dataset")


@pytest.mark.req("N-143")
@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("MATCH (n:EntityProject) CREATE (x:A) RETURN n.embedding SKIP 5", "paging"),
        ("MATCH (a:EntityProject {level: 'L2'})-[:CLOSE_GAPS]->(b:EntityOrgUnit {level: 'L3'}) SET a.x = b.embedding", "level"),
        ("MATCH (n:EntityProject) SET n.x = n.embedding", "embedding"),
        ("MATCH (n:EntityProject) SET n.x = 1", "writing"),
    ],
)
def test_of_several_broken_rules_the_first_in_order_is_told(guard: Guard, statement: str, rule: str) -> None:
    assert refusal(guard, statement).startswith(f"{PREFIX} {rule}: ")


@pytest.mark.req("N-140", "N-141", "NC-062", "NC-063")
@pytest.mark.parametrize(
    ("columns", "warned"),
    [
        ("n.id, n.name", False),
        ("count(n)", False),
        ("sum(n.budget), collect(n.name)", False),
        ("n.ID", None),
        ("n.status", True),
        ("n.id, n.status", True),
        ("n {.id, .status}", True),
        ("n.name + '!'", False),
    ],
)
def test_columns_beside_id_name_and_aggregates_are_allowed_with_a_warning(
    guard: Guard, columns: str, warned: bool | None
) -> None:
    statement = f"MATCH (n:EntityProject) RETURN {columns} LIMIT 5"
    if warned is None:
        assert " property: " in refusal(guard, statement)
    else:
        assert any("id and name" in each for each in guard.check(statement, {}, "acme").warnings) is warned


@pytest.mark.req("N-142", "NC-057")
def test_a_list_without_a_limit_is_told_to_count_first(guard: Guard) -> None:
    told = guard.check("MATCH (n:EntityProject) RETURN n.id", {}, "acme").warnings
    assert any("count() before" in each for each in told)
    assert guard.check("MATCH (n:EntityProject) RETURN count(n)", {}, "acme").warnings == ()


@pytest.mark.req("NC-070", "XC-006")
def test_memories_are_out_of_reach(guard: Guard) -> None:
    assert " label: " in refusal(guard, "MATCH (m:Memory {scope: 'secrets'}) RETURN m.content")


@pytest.mark.req("N-150")
def test_a_statement_without_a_limit_gets_one_and_a_high_one_is_lowered(guard: Guard) -> None:
    assert guard.check("MATCH (n:EntityProject) RETURN n.id", {}, "acme").statement.endswith("RETURN n.id LIMIT 500")
    assert guard.check("MATCH (n:EntityProject) RETURN n.id LIMIT 9000", {}, "acme").statement.endswith("LIMIT 500")
    assert guard.check("MATCH (n:EntityProject) RETURN n.id LIMIT 30;", {}, "acme").statement.endswith("LIMIT 30")


@pytest.mark.req("K-038")
def test_a_syntax_error_says_where_it_is(guard: Guard) -> None:
    assert " syntax: syntax error at line 1, column 10" in refusal(guard, "MATCH (n RETURN n")


@pytest.mark.req("K-039")
def test_a_second_statement_is_refused(guard: Guard) -> None:
    assert " writing: " in refusal(guard, "MATCH (n:EntityProject) RETURN n.id; CREATE (:A)")
    assert " clause: send one statement" in refusal(
        guard, "MATCH (n:EntityProject) RETURN n.id; MATCH (m:EntityRisk) RETURN m.id"
    )


def test_a_misspelt_name_is_told_with_the_right_one(guard: Guard) -> None:
    assert "did you mean EntityProject" in refusal(guard, "MATCH (n:EntityProjects) RETURN n.id")
    assert "did you mean CLOSE_GAPS" in refusal(guard, "MATCH (n:EntityProject)-[:CLOSES_GAPS]->(m) RETURN n.id")
    assert "did you mean budget" in refusal(guard, "MATCH (n:EntityProject) RETURN n.budgets")
