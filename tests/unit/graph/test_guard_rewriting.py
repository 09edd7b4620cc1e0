from __future__ import annotations

import pytest

from phronesis_graph.guard import KNOWLEDGE, KNOWLEDGE_WRITING, READING, Guard, Rules
from phronesis_graph.guard.parser import Parser
from phronesis_graph.guard.tree import Tree, name
from tests.guard.corpus import VALUES, honest

TENANT = "phronesis_tenant"


def rewritten(guard: Guard, statement: str, rules: Rules = READING) -> str:
    """A statement after the guard, with single spaces."""
    return " ".join(guard.check(statement, VALUES, "acme", rules).statement.split())


def test_every_node_gets_the_tenant_and_the_tenant_is_a_parameter(guard: Guard) -> None:
    allowed = guard.check("MATCH (a:EntityProject {id: $id})-[:CLOSE_GAPS]->(b:EntityOrgUnit) RETURN a.id", VALUES, "acme")
    assert " ".join(allowed.statement.split()) == (
        "MATCH (a:EntityProject {id: $id , tenant: $phronesis_tenant })-[:CLOSE_GAPS]->"
        "(b:EntityOrgUnit {tenant: $phronesis_tenant}) RETURN a.id LIMIT 500"
    )
    assert allowed.parameters == {**VALUES, TENANT: "acme"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(a:EntityProject {})", "(a:EntityProject { tenant: $phronesis_tenant })"),
        ("(:EntityProject)", "(:EntityProject {tenant: $phronesis_tenant})"),
        ("(a:EntityProject WHERE a.year = 1)", "(a:EntityProject {tenant: $phronesis_tenant} WHERE a.year = 1)"),
        ("(a:EntityProject /* x */ )", "(a:EntityProject {tenant: $phronesis_tenant} )"),
        ("(a:EntityProject|EntityRisk)", "(a:EntityProject|EntityRisk {tenant: $phronesis_tenant})"),
    ],
)
def test_the_tenant_goes_where_a_nodes_properties_go(guard: Guard, before: str, after: str) -> None:
    assert rewritten(guard, f"MATCH {before} RETURN count(*)") == f"MATCH {after} RETURN count(*) LIMIT 500"


def test_a_node_without_a_label_gets_those_that_its_relationship_leads_to(guard: Guard) -> None:
    assert rewritten(guard, "MATCH ()<-[:CLOSE_GAPS]-(p) RETURN count(*)") == (
        "MATCH ( :EntityITSystem|EntityOrgUnit|EntityProcess {tenant: $phronesis_tenant})<-[:CLOSE_GAPS]-"
        "(p :EntityProject {tenant: $phronesis_tenant}) RETURN count(*) LIMIT 500"
    )


def test_all_nodes_of_a_path_of_variable_length_are_held(guard: Guard) -> None:
    """Whatever its own condition says: an OR does not get around the tenant."""
    statement = "MATCH (a:EntityOrgUnit)-[:APPLY|AUTOMATION*1..2]->(b:EntityITSystem) WHERE a.year = 1 OR true RETURN count(*)"
    assert rewritten(guard, statement) == (
        "MATCH phronesis_1 = (a:EntityOrgUnit {tenant: $phronesis_tenant})-[:APPLY|AUTOMATION*1..2]->"
        "(b:EntityITSystem {tenant: $phronesis_tenant}) WHERE ( a.year = 1 OR true ) AND "
        "all(phronesis_2 IN nodes(phronesis_1) WHERE phronesis_2.tenant = $phronesis_tenant) RETURN count(*) LIMIT 500"
    )


def test_a_path_of_variable_length_that_has_a_name_keeps_it(guard: Guard) -> None:
    statement = "MATCH p = (a:EntityOrgUnit)-[:APPLY*1..2]->(b:EntityProcess) RETURN length(p)"
    assert "WHERE all(phronesis_1 IN nodes(p) WHERE phronesis_1.tenant = $phronesis_tenant)" in rewritten(guard, statement)


def test_comments_are_gone_and_strings_stay(guard: Guard) -> None:
    statement = "MATCH (a:EntityProject) // what\nWHERE a.name = '// not /* this */' /* x */RETURN a.id;"
    assert rewritten(guard, statement) == (
        "MATCH (a:EntityProject {tenant: $phronesis_tenant}) WHERE a.name = '// not /* this */' RETURN a.id LIMIT 500"
    )


def test_new_nodes_of_the_curator_get_the_tenant_and_known_ones_stay_as_they_are(guard: Guard) -> None:
    statement = "MATCH (a:Product {name: 'x'}) CREATE (a)-[:HAS]->(b:Part {name: 'y'}), (b)-[:OF]->(:Maker)"
    assert rewritten(guard, statement, KNOWLEDGE_WRITING) == (
        "MATCH (a:Product {name: 'x' , tenant: $phronesis_tenant }) CREATE (a)-[:HAS]->"
        "(b:Part {name: 'y' , tenant: $phronesis_tenant }), (b)-[:OF]->(:Maker {tenant: $phronesis_tenant})"
    )


@pytest.mark.req("XC-003", "K-030")
def test_the_curator_may_skip_and_read_whole_nodes(guard: Guard) -> None:
    assert rewritten(guard, "MATCH (p:Product)-->(x) RETURN p, x SKIP 5 LIMIT 5", KNOWLEDGE) == (
        "MATCH (p:Product {tenant: $phronesis_tenant})-->(x {tenant: $phronesis_tenant}) RETURN p, x SKIP 5 LIMIT 5"
    )


@pytest.mark.timeout(300)
def test_every_rewritten_statement_parses_and_has_the_tenant_on_every_node(guard: Guard) -> None:
    parser = Parser()
    without = []
    for statement in honest():
        text = guard.check(statement.text, VALUES, "acme").statement
        tree = parser.parse(*parser.tokens(text)).tree
        without += [text for node in tree.find("nodePattern") if not held(node)]
        without += [text for path in lengthy(tree) if f"IN nodes({path})" not in text]
    assert without == []


def held(node: Tree) -> bool:
    """Whether a node pattern's own map asks for the guard's tenant, once."""
    properties = node.child("properties")
    written = properties.child("map") if properties else None
    keys = [name(key) for key in written.children("propertyKeyName")] if written else []
    values = [value.text() for value in written.children("expression")] if written else []
    return keys.count("tenant") == 1 and values[keys.index("tenant")] == f"${TENANT}"


def lengthy(tree: Tree) -> list[str]:
    """The names of the paths that have a relationship of variable length."""
    return [name(path.need("variable")) for path in tree.find("pattern") if any(path.find("pathLength"))]
