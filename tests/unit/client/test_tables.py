from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from phronesis.twin.tables import Ids, Unfit, read_tables, slug
from phronesis_contracts.twin import Level, NodeRef
from phronesis_graph.twin.ontology_file import parse
from phronesis_graph.twin.vocabulary import to_view

VIEW = to_view(
    parse(
        """
name: shipyard
nodes:
  Vessel:
    words: {en: [vessel, vessels, ships]}
    properties:
      tonnage: {type: number, range: [0, 5000]}
      state: {type: string, enum: [afloat, docked]}
      launched: {type: date}
  Yard:
  Fleet: {levels: {L1: navy, L2: squadron}}
relationships:
  BUILT_AT: {from: [Vessel], to: [Yard]}
  PART_OF: {from: [Vessel], to: [Fleet, Yard]}
"""
    ),
    "1",
)


def nobody() -> Ids:
    return {}


def faults(tmp_path: Path, **files: str) -> list[str]:
    with pytest.raises(Unfit) as unfit:
        read_tables(VIEW, written(tmp_path, files), 2025, nobody)
    return [str(fault) for fault in unfit.value.faults]


def written(tmp_path: Path, files: dict[str, str]) -> list[Path]:
    paths = [tmp_path / f"{name}.csv" for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def test_tables_become_nodes_first_and_relationships_after_them(tmp_path: Path) -> None:
    header = "Name,Tonnage,state,launched,aliases,BUILT_AT\n"
    ships = f'{header}Aurora,"1,200",Afloat,2019-05-02,The A; Aury,Nørd Yard;South Yard\n\nBo,,,,,\n'
    yards = "\ufeffid;name;year\nsouth;South Yard;2025\n;Nørd Yard;\n"
    found = read_tables(VIEW, written(tmp_path, {"ships": ships, "Yard": yards}), 2025, nobody)
    aurora = found.nodes[0]
    assert (aurora.key, aurora.name, aurora.level, aurora.aliases) == (
        "Vessel/aurora/2025",
        "Aurora",
        Level.L3,
        ("The A", "Aury"),
    )
    assert aurora.properties == {"tonnage": 1200.0, "state": "afloat", "launched": "2019-05-02"}
    assert [node.key for node in found.nodes[1:]] == ["Vessel/bo/2025", "Yard/south/2025", "Yard/nørd-yard/2025"]
    assert [(each.source.id, each.target.id) for each in found.relationships] == [("aurora", "nørd-yard"), ("aurora", "south")]
    first, second = found.batches()
    assert (len(first.nodes), first.relationships, second.nodes, len(second.relationships)) == (4, (), (), 2)


def test_every_fault_is_told_with_its_file_and_line(tmp_path: Path) -> None:
    ships = (
        "name,tonnage,state,launched,year,BUILT_AT\n"
        '"A\nlong name",heavy,,,,\n'
        "B,9000,,,,\n"
        "C,,sunk,,,\n"
        "D,,,2.5.2019,,\n"
        ",5,,,,\n"
        "E,,,,19,\n"
        "F,,,,,,,\n"
        "G,,,,,nowhere\n"
        "G,,,,,\n"
    )
    assert faults(tmp_path, Vessel=ships) == [
        "Vessel.csv:2: column 'tonnage': 'heavy' is no number; write 1234.5",
        "Vessel.csv:4: column 'tonnage': 9000 is not between 0 and 5000",
        "Vessel.csv:5: column 'state': 'sunk' is none of afloat, docked",
        "Vessel.csv:6: column 'launched': '2.5.2019' is no date as YYYY-MM-DD",
        "Vessel.csv:7: the row has no name",
        "Vessel.csv:8: column 'year': '19' is no year",
        "Vessel.csv:9: the row has 8 cells, and the header 6 columns",
        "Vessel.csv:11: 'g' of 2025 stands in Vessel.csv:10 too; each row needs its own id",
        "Vessel.csv:10: BUILT_AT: no Yard 'nowhere' in 2025, in the files or in the twin",
    ]


@pytest.mark.parametrize(
    ("name", "header", "says"),
    [
        ("Boat", "name", "the ontology has no node type 'Boat'"),
        ("Vessel", "name,colour", "column 'colour': Vessel has no such property"),
        ("Vessel", "name,name", "column 'name' stands here twice"),
        ("Vessel", "tonnage", "there is no column `name`"),
        ("Yard", "name,BUILT_AT", "column 'BUILT_AT': BUILT_AT starts at Vessel"),
        ("Vessel", "name,PART_OF", "column 'PART_OF': say where it leads: PART_OF:Fleet or PART_OF:Yard"),
        ("Vessel", "name,PART_OF:Vessel", "column 'PART_OF:Vessel': PART_OF leads to Fleet, Yard"),
        ("Vessel", "", "there is no column `name`"),
    ],
)
def test_a_header_that_does_not_fit_is_a_fault_of_the_first_line(tmp_path: Path, name: str, header: str, says: str) -> None:
    found = faults(tmp_path, **{name: f"{header}\nx,y\n"})
    assert found[0].startswith(f"{name}.csv:1: {says}")


def test_a_level_is_the_lowest_of_the_type_where_none_is_stated(tmp_path: Path) -> None:
    paths = written(tmp_path, {"Fleet": "name,level\nHome,\nNorth,l1\n"})
    assert [node.level for node in read_tables(VIEW, paths, 2025, nobody).nodes] == [Level.L2, Level.L1]
    assert "Fleet stands at L1 or L2" in faults(tmp_path, Fleet="name,level\nHome,L3\n")[0]


def test_a_target_may_be_in_the_twin_already(tmp_path: Path) -> None:
    paths = written(tmp_path, {"Vessel": "name,PART_OF:Fleet\nAurora,Home Fleet\n"})
    found = read_tables(VIEW, paths, 2025, lambda: {("Fleet", "Home Fleet", 2025): "f1"})
    assert found.relationships[0].target == NodeRef(type="Fleet", id="f1", year=2025)


def test_a_file_that_is_no_text_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "Vessel.csv"
    path.write_bytes(b"name\n\xff\xfe\n")
    with pytest.raises(Unfit, match=r"Vessel\.csv:1: the file is not UTF-8"):
        read_tables(VIEW, [path], 2025, nobody)


@given(st.text(max_size=300))
@example("𝐀")
def test_a_slug_is_an_id_or_nothing_and_is_its_own(name: str) -> None:
    made = slug(name)
    assert len(made) <= 200
    assert {";", "/"}.isdisjoint(made)
    assert made == made.strip("-")
    assert slug(made)[:190] == made[:190]


@given(st.text(max_size=400))
def test_no_table_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("t") / "Vessel.csv"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(Unfit):
        read_tables(VIEW, [path], 2025, nobody)
