"""Which licences of packages are refused, what NOTICE names, and the bill of materials."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest
from cyclonedx.model.component import ComponentScope
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts import licences, sbom
from scripts.licences import Locked, Rules, check, find_licence, is_allowed, list_distributions, read_lock

RULES = Rules(
    allowed=frozenset({"MIT", "Apache-2.0", "BSD-3-Clause"}),
    texts={
        "Apache 2.0": "Apache-2.0",
        "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
        "MIT License": "MIT",
    },
    libraries={"x264": "GPL-2.0-or-later"},
)
GPL = "License :: OSI Approved :: GNU General Public License v2 or later (GPLv2+)"


def plant(folder: Path, *lines: str, name: str = "thing", files: tuple[str, ...] = ()) -> dict[str, metadata.Distribution]:
    """What is installed in a folder once a package with these lines of metadata is."""
    place = folder / f"{name}-1.0.dist-info"
    place.mkdir()
    place.joinpath("METADATA").write_text("\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, ""]))
    for file in files:
        folder.joinpath(file).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(file).touch()
    place.joinpath("RECORD").write_text("".join(f"{file},,\n" for file in files))
    return list_distributions(folder)


def problems(installed: dict[str, metadata.Distribution], rules: Rules = RULES) -> list[str]:
    return check([Locked("thing", "1.0")], installed, rules)


@pytest.mark.parametrize(
    "lines",
    [
        ["License-Expression: GPL-3.0-or-later"],
        ["License-Expression: AGPL-3.0-only"],
        ["License-Expression: MIT AND GPL-2.0-only"],
        [f"Classifier: {GPL}"],
        ["License: MIT", f"Classifier: {GPL}"],
    ],
)
def test_a_package_under_the_gpl_is_refused_by_name_with_what_to_do(tmp_path: Path, lines: list[str]) -> None:
    [problem] = problems(plant(tmp_path, *lines))
    assert problem.startswith("thing 1.0: ")
    assert "GPL-" in problem
    assert "Replace the package" in problem


@pytest.mark.parametrize(
    "lines", [[], ["License: ask us"], ["License: BSD", "Classifier: License :: OSI Approved :: BSD License"]]
)
def test_a_package_whose_licence_is_unknown_is_refused_until_it_is_stated(tmp_path: Path, lines: list[str]) -> None:
    installed = plant(tmp_path, *lines)
    [problem] = problems(installed)
    assert "unknown licence" in problem
    assert problems(installed, Rules(allowed=RULES.allowed, stated={"thing": "BSD-3-Clause"})) == []


def test_a_package_that_is_not_installed_needs_a_stated_licence() -> None:
    assert "not installed here" in problems({})[0]
    assert problems({}, Rules(allowed=RULES.allowed, stated={"thing": "MIT"})) == []
    assert "GPL-2.0-only is not allowed" in problems({}, Rules(allowed=RULES.allowed, stated={"thing": "GPL-2.0-only"}))[0]


def test_what_is_stated_may_not_contradict_the_metadata(tmp_path: Path) -> None:
    installed = plant(tmp_path, "License-Expression: Apache-2.0")
    [problem] = problems(installed, Rules(allowed=RULES.allowed, stated={"thing": "MIT"}))
    assert "its metadata says Apache-2.0" in problem


def test_the_lgpl_is_decided_by_name_and_no_decision_lets_the_gpl_in(tmp_path: Path) -> None:
    def decided(licence: str, reason: str) -> Rules:
        return Rules(allowed=RULES.allowed, decided={"thing": {"licence": licence, "reason": reason}})

    installed = plant(tmp_path, "License-Expression: LGPL-3.0-only")
    assert "decided by name" in problems(installed)[0]
    assert "decided by name" in problems(installed, decided("LGPL-3.0-only", ""))[0]
    assert "decided by name" in problems(installed, decided("LGPL-2.1-only", "replaceable"))[0]
    assert problems(installed, decided("LGPL-3.0-only", "replaceable")) == []
    (tmp_path / "thing-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: thing\nVersion: 1.0\nLicense-Expression: GPL-3.0-only\n"
    )
    assert "not allowed" in problems(list_distributions(tmp_path), decided("GPL-3.0-only", "we like it"))[0]


@pytest.mark.parametrize("file", ["thing.libs/libx264-d6533a8d.so.165", "thing/.dylibs/libx264.165.dylib", "thing/x264-1.dll"])
def test_a_library_under_the_gpl_inside_a_wheel_is_found(tmp_path: Path, file: str) -> None:
    installed = plant(tmp_path, "License-Expression: BSD-3-Clause", files=(file, "thing/libx264_notes.txt"))
    [problem] = problems(installed)
    assert "carries the library x264, GPL-2.0-or-later" in problem
    told = {"thing": {"libraries": ["x264"], "reason": "told"}}
    assert problems(installed, Rules(allowed=RULES.allowed, libraries=RULES.libraries, bundled=told)) == []


def test_one_licence_of_a_choice_is_enough_and_all_that_hold_together_are_needed() -> None:
    assert is_allowed("GPL-2.0-only OR MIT", RULES)
    assert not is_allowed("GPL-2.0-only AND MIT", RULES)
    assert is_allowed("MIT AND (Apache-2.0 OR GPL-2.0-only)", RULES)


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (["License-Expression: MIT OR Apache-2.0"], "MIT OR Apache-2.0"),
        (["License: Apache 2.0"], "Apache-2.0"),
        (["License: a long text", "Classifier: License :: OSI Approved :: MIT License"], "MIT"),
    ],
)
def test_a_licence_is_read_from_each_place_of_the_metadata(tmp_path: Path, lines: list[str], licence: str) -> None:
    assert find_licence("thing", plant(tmp_path, *lines), RULES) == licence


def test_packages_of_npm_are_held_against_the_same_list() -> None:
    npm = {Locked("good", "1"): "MIT", Locked("bad", "2"): "GPL-3.0-only", Locked("silent", "3"): ""}
    found = check([], {}, RULES, npm)
    assert [problem.split(":")[0] for problem in found] == ["bad 2 (npm)", "silent 3 (npm)"]
    stated = Rules(allowed=RULES.allowed, stated_npm={"silent": "MIT", "bad": "MIT"})
    assert [problem.split(":")[0] for problem in check([], {}, stated, npm)] == ["bad 2 (npm)"]


def test_a_lock_is_read_with_its_hashes_and_both_versions_of_a_package(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(
        "One_Thing==1.0 ; python_version < '3.12' \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "one-thing==2.0 ; python_version >= '3.12' \\\n    --hash=sha256:cc\nextra[all]==3.0 \\\n    --hash=sha256:dd\n"
    )
    assert read_lock(lock) == [
        Locked("one-thing", "1.0", ("aa", "bb")),
        Locked("one-thing", "2.0", ("cc",)),
        Locked("extra", "3.0", ("dd",)),
    ]


def test_every_package_of_the_locks_has_a_licence_that_may_stay_and_notice_names_it() -> None:
    assert licences.main([]) == 0


def test_what_only_checks_need_is_not_shipped() -> None:
    shipped = licences.list_shipped(licences.list_installed())
    assert {"psycopg", "rustworkx", "htpy", "faster-whisper"} <= shipped
    assert not {"pytest", "ruff", "llama-cpp-python"} & shipped


def test_a_bill_of_materials_has_licences_hashes_and_needs(tmp_path: Path) -> None:
    plant(tmp_path, "License-Expression: MIT", "Requires-Dist: other>=1", name="thing")
    installed = plant(tmp_path, "License-Expression: MIT OR Apache-2.0", name="other")
    packages = {
        Locked("thing", "1.0", ("a" * 64,)): ComponentScope.REQUIRED,
        Locked("other", "1.0", ("b" * 64,)): ComponentScope.EXCLUDED,
    }
    bill = json.loads(sbom.make_bill(packages, installed, RULES, "1.2.3"))
    assert (bill["bomFormat"], bill["specVersion"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "1.6", "1.2.3")
    other, thing = bill["components"]
    assert (thing["purl"], thing["scope"], other["scope"]) == ("pkg:pypi/thing@1.0", "required", "excluded")
    assert (thing["licenses"], other["licenses"]) == ([{"license": {"id": "MIT"}}], [{"expression": "MIT OR Apache-2.0"}])
    assert thing["externalReferences"][0]["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]
    needs = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}
    assert needs == {"phronesis": [thing["bom-ref"]], thing["bom-ref"]: [other["bom-ref"]], other["bom-ref"]: []}


def test_a_bill_that_does_not_fit_the_schema_is_not_written(tmp_path: Path) -> None:
    installed = plant(tmp_path, "License-Expression: MIT")
    with pytest.raises(sbom.Invalid):
        sbom.make_bill({Locked("thing", "1.0", ("no hash",)): ComponentScope.REQUIRED}, installed, RULES, "1.2.3")


def test_a_bill_with_an_address_that_is_none_does_not_fit_the_schema(tmp_path: Path) -> None:
    installed = plant(tmp_path, "License-Expression: MIT")
    bill = sbom.make_bill({Locked("thing", "1.0", ("a" * 64,)): ComponentScope.REQUIRED}, installed, RULES, "1.2.3")
    wrong = bill.replace('"url": "pkg:', '"url": "no address, ')
    assert [JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None for text in (bill, wrong)] == [True, False]


def test_copies_of_packages_elsewhere_on_the_path_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, "License-Expression: GPL-3.0-only", name="psycopg")
    monkeypatch.syspath_prepend(tmp_path)
    assert licences.list_installed()["psycopg"].metadata["License-Expression"] == "LGPL-3.0-only"
