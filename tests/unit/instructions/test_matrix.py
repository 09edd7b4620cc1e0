"""The texts of the matrix: that all of them are there, of the right length, and say what they have to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

import phronesis_tokens as tokens
from phronesis_graph.twin.ontology_file import load
from phronesis_instructions.library.content import Matrix, read_matrix
from phronesis_instructions.library.texts import combine_parts
from tests.support.cases import for_each

ROOT = Path(__file__).parents[3]
COPY = ROOT / "services/instructions/phronesis_instructions/content/matrix/ontology.yaml"
ONTOLOGY: dict[str, Any] = yaml.safe_load(COPY.read_text(encoding="utf-8"))
MATRIX = read_matrix()
TEXTS = {text.tag: text for text in MATRIX.texts()}
TIER_2 = [
    *("step1_requirements", "step2_recollect", "step3_recall", "step4_reconcile", "step5_return", "gap_type_definitions"),
    *("data_integrity_rules", "level_definitions", "tool_execution_rules", "graph_schema_summary"),
]
CHARTS = ("Column", "Line", "Pie", "Radar", "Scatter", "Bubble", "Combo", "Table", "Html")
FAMILIES = {
    "nodes": set(ONTOLOGY["nodes"]),
    "relationships": set(ONTOLOGY["relationships"]),
    "chains": {f"business_chain_{name}" for name in ONTOLOGY["chains"]},
    "visualizations": {"visualization_schema", *(f"chart_type_{chart}" for chart in CHARTS)},
    "patterns": {"vector_strategy", "optimized_retrieval", "impact_analysis"},
}
TIER_3 = {text.tag: text for text in TEXTS.values() if text.tier == 3}


def said(tag: str) -> str:
    """A text on one line, for looking for a phrase."""
    return " ".join(TEXTS[tag].content.split())


@pytest.mark.req("N-012", "N-013", "N-014", "N-015", "N-016", "NC-009", "T-003")
def test_tier_1_is_an_active_bundle_of_version_4_and_about_2000_tokens() -> None:
    text = TEXTS["tier1_bootstrap"]
    assert (text.kind, text.version, text.status, text.category) == ("bundle", "4.0.0", "active", "bootstrap")
    assert text.tokens == tokens.count(text.content)
    assert 1600 <= text.tokens <= 2400


@pytest.mark.req("N-020", "N-021")
def test_tier_1_states_role_and_identity() -> None:
    text = said("tier1_bootstrap")
    role = ("cognitive digital twin", "graph databases", "sectoral economics", "organizational transformation")
    traits = ("Grounded in facts", "Eager to help", "Invested in the success of the agency", "Professional", "Concise")
    assert [
        part for part in (*role, "classify the intent first, then route", *traits, "actionable insight") if part not in text
    ] == []


@pytest.mark.req("N-022", "NC-003", "NC-006")
def test_tier_1_has_its_three_parts_in_order() -> None:
    text = TEXTS["tier1_bootstrap"].content
    headings = re.findall(r"^\d\. [A-Z ]+$", text, re.M)
    assert headings == ["1. MODE CLASSIFICATION", "2. THE MANDATORY LOOP", "3. CRITICAL RULES AND OUTPUT FORMAT"]
    one, two, three = text.split("\n---\n")[1:]
    assert re.findall(r"^- ([A-J]), ", one, re.M) == list("ABCDEFGHIJ")
    assert re.findall(r"^- STEP (\d), ([A-Z]+):", two, re.M) == list(
        zip("012345", ("REMEMBER", "REQUIREMENTS", "RECOLLECT", "RECALL", "RECONCILE", "RETURN"), strict=True)
    )
    assert re.findall(r"`(\w+)`", three.rpartition("Chart types")[2]) == [chart.lower() for chart in CHARTS]
    keys = ("mode", "memory_process", "answer", "analysis", "data", "visualizations", "cypher_executed", "confidence")
    assert [key for key in keys if f'  "{key}": ' not in three] == []


@pytest.mark.req("N-155", "N-156", "N-157", "NC-075")
def test_tier_2_is_ten_elements_and_the_monolith_is_gone() -> None:
    assert [text.tag for text in TEXTS.values() if text.tier == 2] == TIER_2
    assert all(TEXTS[tag].tokens > 250 and TEXTS[tag].use_cases for tag in TIER_2)
    assert "data_mode_definitions" not in TEXTS


@pytest.mark.parametrize(
    ("tag", "phrases"),
    [
        pytest.param("step1_requirements", ["mandatory in every data mode"], marks=pytest.mark.req("N-158")),
        pytest.param("step1_requirements", ["absence is itself a signal", "level definitions"], marks=pytest.mark.req("N-159")),
        pytest.param("step1_requirements", ["Plan integrally in modes B and D"], marks=pytest.mark.req("N-166")),
        pytest.param("step2_recollect", ["keyset paging", "aggregate first", "SKIP or OFFSET"], marks=pytest.mark.req("N-167")),
        pytest.param("step2_recollect", ["Select the minimum by relevance"], marks=pytest.mark.req("N-168")),
        pytest.param("step2_recollect", ["ONE more call", "one retrieval call"], marks=pytest.mark.req("N-169")),
        pytest.param(
            "step2_recollect",
            ["17 node types", "27 relationship types", "7 business chains", "10 visualization elements", "3 query patterns"],
            marks=pytest.mark.req("N-170", "NC-077"),
        ),
    ],
)
def test_a_step_says_what_it_has_to(tag: str, phrases: list[str]) -> None:
    assert [phrase for phrase in phrases if phrase not in said(tag)] == []


@pytest.mark.req("N-160", "N-161")
def test_the_gap_types_are_the_four_of_the_ontology_in_their_order() -> None:
    text = TEXTS["gap_type_definitions"].content
    assert re.findall(r"^\d\. (\w+): ", text, re.M) == list(ONTOLOGY["gap_types"])
    assert "shown as a table" in text


@pytest.mark.req("N-171", "N-172", "N-173", "NC-009", "NC-055", "NC-076")
@pytest.mark.parametrize("mode", "abcd")
def test_the_bundle_of_a_mode_is_its_preface_and_all_of_tier_2_in_order(mode: str) -> None:
    text = TEXTS[f"tier2_mode_{mode}"]
    assert text.content == combine_parts(MATRIX.prefaces[mode], [TEXTS[tag].content for tag in TIER_2])
    assert text.content.startswith(f"MODE {mode.upper()}: ")
    assert (text.version, text.status, text.tokens) == ("4.0.0", "active", tokens.count(text.content))
    assert 3600 <= text.tokens <= 4500
    assert text.category == {"a": "mode_tactical", "b": "mode_strategy", "c": "mode_tactical", "d": "mode_strategy"}[mode]


@pytest.mark.req("N-175", "N-186", "N-187", "NC-031", "NC-080", "NC-084")
def test_tier_3_is_the_sixty_four_elements_of_the_ontology() -> None:
    assert {name: len(tags) for name, tags in FAMILIES.items()} == {
        "nodes": 17,
        "relationships": 27,
        "chains": 7,
        "visualizations": 10,
        "patterns": 3,
    }
    assert set(TIER_3) == set().union(*FAMILIES.values())
    assert len(TIER_3) == 64


@for_each("tag", sorted(TIER_3))
@pytest.mark.req("NC-048")
def test_every_element_is_a_text_of_its_own_that_can_be_used(tag: str) -> None:
    text = TIER_3[tag]
    assert 150 <= text.tokens <= 900
    assert text.use_cases
    assert "{{" not in text.content
    assert "<element" not in text.content


def test_no_two_elements_say_the_same() -> None:
    assert max(Counter(text.content for text in TIER_3.values()).values()) == 1


def test_the_ontology_of_the_texts_is_the_one_of_the_graph() -> None:
    graph, extra = load(), ONTOLOGY["portfolio"]
    types = {
        name: {**body.get("properties", {}), **extra["nodes"].get(name, {}).get("properties", {})}
        for name, body in ONTOLOGY["nodes"].items()
    }
    assert {name: dict.fromkeys(node.properties) for name, node in graph.nodes.items()} == {
        name: dict.fromkeys(properties) for name, properties in types.items()
    }
    for name, properties in types.items():
        for key, body in properties.items():
            declared = graph.nodes[name].properties[key]
            limits = (declared.kind.value, list(declared.choices), [declared.lowest, declared.highest], declared.high_above)
            assert limits == (body["type"], body.get("enum", []), body.get("range", [None, None]), body.get("high_above"))
        labels = {level: words["en"][0] for level, words in graph.nodes[name].levels.items()}
        assert labels == ONTOLOGY["nodes"][name]["levels"]
    joined = {**ONTOLOGY["relationships"], **extra["relationships"]}
    assert {name: (list(r.sources), list(r.targets)) for name, r in graph.relationships.items() if name != "PARENT_OF"} == {
        name: (body["from"], body["to"]) for name, body in joined.items()
    }
    assert graph.hierarchy == ONTOLOGY["hierarchy"]
    assert {name: [" | ".join(step) for step in chain.steps] for name, chain in graph.chains.items()} == ONTOLOGY["chains"]


@pytest.mark.req("N-189", "N-235", "NC-085")
@for_each("type", sorted(ONTOLOGY["nodes"]))
def test_a_node_types_text_has_exactly_the_properties_of_the_graph(type: str) -> None:
    about = ONTOLOGY["nodes"][type]
    extra = ONTOLOGY["portfolio"]["nodes"].get(type, {"properties": {}})
    expected = {"id": "string", "name": "string", "year": "integer", "quarter": "string", "level": "string"}
    expected |= {name: one["type"] for name, one in {**about.get("properties", {}), **extra["properties"]}.items()}
    assert dict(re.findall(r"^- (\w+) \((\w+)\): ", TEXTS[type].content, re.M)) == expected
    for level, meaning in about["levels"].items():
        assert f"{level}: {meaning}" in TEXTS[type].content


@pytest.mark.req("N-183", "N-184", "N-185", "N-235")
@for_each("type", sorted(ONTOLOGY["nodes"]))
def test_a_node_types_text_has_exactly_the_links_of_the_graph(type: str) -> None:
    ends = ONTOLOGY["relationships"]
    out = {name: " | ".join(one["to"]) for name, one in ends.items() if type in one["from"]}
    into = {name: " | ".join(one["from"]) for name, one in ends.items() if type in one["to"]}
    text = TEXTS[type].content
    assert dict(re.findall(r"^- \[:(\w+)\]->\(([\w| ]+)\): ", text, re.M)) == out
    assert {name: start for start, name in re.findall(r"^- \(([\w| ]+)\)-\[:(\w+)\]->: ", text, re.M)} == into


@pytest.mark.req("N-178", "N-180", "N-181", "N-182", "NC-081")
def test_a_project_has_its_nine_properties_with_their_types_levels_and_ranges() -> None:
    block = TEXTS["EntityProject"].content.partition("\nProperties\n")[2].partition("\n\n")[0]
    assert re.findall(r"^- (\w+) \((\w+)\): ", block, re.M) == [
        ("id", "string"),
        ("name", "string"),
        ("year", "integer"),
        ("quarter", "string"),
        ("level", "string"),
        ("progress_percentage", "number"),
        ("status", "string"),
        ("start_date", "date"),
        ("end_date", "date"),
    ]
    for part in ("L1 portfolio, L2 program, L3 project", "from 0 to 100", "one of Active, Planned, Closed", "Q1, Q2, Q3 or Q4"):
        assert part in block


@for_each("type", sorted(ONTOLOGY["relationships"]))
def test_a_relationships_text_has_exactly_the_pairs_of_the_graph(type: str) -> None:
    ends = ONTOLOGY["relationships"][type]
    pairs = re.findall(r"^- \((\w+)\)-\[:(\w+)\]->\((\w+)\)$", TEXTS[type].content, re.M)
    assert pairs == [(start, type, end) for start in ends["from"] for end in ends["to"]]


@pytest.mark.parametrize("name", sorted(ONTOLOGY["chains"]))
def test_a_chains_text_has_its_steps_in_order(name: str) -> None:
    steps = ONTOLOGY["chains"][name]
    lines = re.findall(r"^\d+\. \((.+)\)-\[:(.+)\]->\((.+)\)$", TEXTS[f"business_chain_{name}"].content, re.M)
    assert lines == [tuple(steps[hop - 1 : hop + 2]) for hop in range(1, len(steps), 2)]


@for_each("tag", sorted(tag for tag, text in TIER_3.items() if "MATCH (" in text.content))
@pytest.mark.req("NC-082")
def test_every_example_fixes_year_and_level_pages_by_key_and_reads_single_properties(tag: str) -> None:
    reads = re.findall(r"^MATCH .+?(?=\n\n|\n\d\.|\n[A-Z][a-z]|\Z)", TIER_3[tag].content, re.M | re.S)
    assert reads
    for read in reads:
        match = read.split("\n")[0]
        assert match.count("(") == match.count("{year: $year, level: $level})"), read
        assert not re.search(r"\b(SKIP|OFFSET|embedding|CREATE|MERGE|SET|DELETE)\b", read)
        returned = read.partition("RETURN ")[2].split("\n")[0]
        assert all(re.search(r"\.\w|count\(", part) for part in re.split(r", (?![^(]*\))", returned)), read
        assert "LIMIT 30" in read or "count(n.id) AS total" in read


@pytest.mark.req("N-188")
def test_the_column_charts_text_states_type_purpose_and_structure() -> None:
    text = said("chart_type_Column")
    parts = ('type: "column"', "comparing discrete categories", '"title"', '"config": {"xAxis"', '"yAxis"', '"data": [')
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.req("NC-033")
def test_a_charts_example_is_one_that_its_own_rules_allow(chart: str) -> None:
    import json

    content = TEXTS[f"chart_type_{chart}"].content
    example = json.loads(content[content.index("{\n") : content.rindex("\n}") + 2])
    assert (sorted(example), example["type"]) == (["config", "data", "title", "type"], chart.lower())
    fields = [field for value in example["config"].values() for field in (value if isinstance(value, list) else [value])]
    rows = example["data"] if isinstance(example["data"], list) else []
    assert all(field in row for row in rows for field in fields)


@pytest.mark.parametrize(
    "fault",
    [
        {"prefaces": {"a": "x"}},
        {"tier1": ""},
        {"version": "4"},
        {"elements": (*MATRIX.elements, MATRIX.elements[0])},
        {"elements": (MATRIX.elements[0].model_copy(update={"dependencies": ("nothing",)}),)},
    ],
)
def test_a_matrix_with_a_fault_is_refused(fault: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Matrix.model_validate({**MATRIX.model_dump(), **fault})


@pytest.mark.req("N-019", "T-010")
def test_no_prompt_stands_in_python() -> None:
    phrases = [line.strip() for line in MATRIX.tier1.splitlines() if len(line) > 60][:20]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "services").rglob("*.py")]
    assert [phrase for phrase in phrases for source in sources if phrase in source] == []
