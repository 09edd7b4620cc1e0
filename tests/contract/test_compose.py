"""`docker-compose.yml` against the services' own settings, and against what every part of it has to be."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from pydantic import AliasChoices
from pydantic_settings import BaseSettings

from phronesis_contracts.service import SERVICES
from scripts.tree import ROOT
from tests.support.cases import for_each

TEXT = (ROOT / "docker-compose.yml").read_text()
OURS = (*SERVICES, "declare", "migrate", "operations")
ENDING = {"migrate": "on-failure:5", "operations": "no", "volumes": "no"}
"""Parts that end, with how they are started again."""
ROOTS = {"volumes"}
"""Parts that run as root: this one gives folders to others, and has no right but that."""
WRITABLE = {"neo4j"}
"""Parts whose root file system is not read-only: the image's start writes its configuration there."""
UNASKED = {"collector"}
"""Long-running parts without a health check: the image has nothing that could be run for one."""
EXTRA = {
    "declare": ("phronesis_bus.settings",),
    "migrate": ("phronesis_postgres.settings",),
    "operations": tuple(f"phronesis_{name}.settings" for name in ("bus", "postgres", "graph", "memory")),
}
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def compose() -> dict[str, Any]:
    """The file, with every variable at its default."""
    found: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(lambda variable: variable[2] or "", TEXT))
    return found


PARTS: dict[str, Any] = compose()["services"]


@cache
def classes(part: str) -> tuple[type[BaseSettings], ...]:
    """The settings classes that a process of ours reads."""
    modules = EXTRA.get(part, ())
    if part in SERVICES:
        needs = tomllib.loads((ROOT / f"services/{part}/pyproject.toml").read_text())["project"]["dependencies"]
        libs = [need.removeprefix("phronesis-").partition("==")[0] for need in needs if need.startswith("phronesis-")]
        wanted = [f"phronesis_{name}.settings" for name in (*libs, part)]
        modules = tuple(name for name in wanted if importlib.util.find_spec(name))
    found = {value for name in modules for value in vars(importlib.import_module(name)).values() if inspect.isclass(value)}
    return tuple(sorted((c for c in found if issubclass(c, BaseSettings) and c is not BaseSettings), key=lambda c: c.__name__))


def variables(settings: type[BaseSettings]) -> dict[str, str]:
    """The field that each variable of a settings class fills."""
    told: dict[str, str] = {}
    for name, field in settings.model_fields.items():
        match field.validation_alias:
            case AliasChoices(choices=choices):
                names = [str(choice) for choice in choices]
            case str(alias):
                names = [alias]
            case _:
                names = [f"{settings.model_config['env_prefix']}{name}"]
        for variable in names:
            told[variable.upper()] = name
    return told


def mounted(part: str) -> dict[str, str]:
    """The secrets of a part: where each one stands inside it, and its name."""
    given = [{"source": s} if isinstance(s, str) else s for s in PARTS[part].get("secrets", ())]
    return {str(Path("/run/secrets") / s.get("target", s["source"])): s["source"] for s in given}


@pytest.mark.parametrize("part", OURS)
def test_every_variable_is_one_that_the_process_reads(part: str) -> None:
    known = {variable for settings in classes(part) for variable in variables(settings)}
    assert set(PARTS[part]["environment"]) - known == set()


@pytest.mark.parametrize("part", OURS)
def test_every_value_is_one_that_the_settings_take(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PARTS[part]["environment"].items():
        monkeypatch.setenv(name, str(value))
    assert [type(settings()) for settings in classes(part)] == list(classes(part))


@pytest.mark.parametrize("part", OURS)
def test_a_file_that_a_variable_names_is_a_secret_of_the_part(part: str) -> None:
    named = {value for value in PARTS[part]["environment"].values() if str(value).startswith("/run/secrets/")}
    assert named - set(mounted(part)) == set()


@pytest.mark.parametrize("part", SERVICES)
def test_a_secret_under_a_variable_s_name_fills_that_setting(part: str, tmp_path: Path) -> None:
    named = {Path(target).name for target in mounted(part) if Path(target).name.isupper()}
    for name in named:
        (tmp_path / name).write_text("a secret of some length\n")
    filled_in = {
        variable
        for settings in classes(part)
        for variable, field in variables(settings).items()
        if variable in named and getattr(settings(_secrets_dir=tmp_path), field).get_secret_value() == "a secret of some length"
    }
    assert filled_in == named


def test_the_orchestrator_is_given_the_key_that_calendars_passwords_are_encrypted_with() -> None:
    assert mounted("orchestrator")["/run/secrets/ORCHESTRATOR_CALENDAR_KEY"] == "calendar.key"


def test_every_secret_that_is_given_is_declared_and_every_declared_one_is_given() -> None:
    given = {source for part in PARTS for source in mounted(part).values()}
    assert given == set(compose()["secrets"])


def test_every_service_runs_from_an_image_that_is_built_from_it() -> None:
    built = {name: PARTS[name]["build"] for name in SERVICES}
    assert {name: build["args"]["SERVICE"] for name, build in built.items()} == {name: name for name in SERVICES}
    assert {build["dockerfile"] for build in built.values()} == {"deploy/Dockerfile"}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = [PARTS[name]["image"].rpartition("/")[2] for name in SERVICES]
    assert images == [f"phronesis-{name}:{version}" for name in SERVICES]


@for_each("part", PARTS)
def test_an_image_is_pinned_to_a_full_version(part: str) -> None:
    assert re.fullmatch(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+(-[a-z0-9.-]+)?(@sha256:[0-9a-f]{64})?", PARTS[part]["image"])


def test_nats_is_2_14_or_newer() -> None:
    assert tuple(map(int, PARTS["nats"]["image"].partition(":")[2].split("-")[0].split("."))) >= (2, 14, 0)


@for_each("part", PARTS)
def test_a_part_has_limits_and_starts_again(part: str) -> None:
    limits = PARTS[part]["deploy"]["resources"]["limits"]
    assert (set(limits), PARTS[part]["restart"]) == ({"cpus", "memory", "pids"}, ENDING.get(part, "unless-stopped"))


@for_each("part", PARTS)
def test_a_part_has_no_rights_it_does_not_need(part: str) -> None:
    told = PARTS[part]
    user = told["user"].partition(":")[0]
    assert user.isdigit()
    assert (user == "0") == (part in ROOTS)
    assert told["read_only"] == (part not in WRITABLE)
    assert (told["cap_drop"], told["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert told.get("cap_add", []) == (["CHOWN"] if part in ROOTS else [])


@for_each("part", sorted(set(PARTS) - set(ENDING)))
def test_a_part_that_stays_has_a_health_check(part: str) -> None:
    assert bool(PARTS[part].get("healthcheck", {}).get("test")) == (part not in UNASKED)


@for_each("part", PARTS)
def test_logs_are_bounded(part: str) -> None:
    assert PARTS[part]["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "5"}}


@pytest.mark.req("K-086")
def test_ports_are_published_on_the_loopback_interface_alone() -> None:
    published = {part: told["ports"] for part, told in PARTS.items() if "ports" in told}
    assert published == {"gateway": ["127.0.0.1:8700:8080"], "grafana": ["127.0.0.1:3000:3000"]}


def test_what_is_not_published_has_no_way_in_and_the_stores_have_none_out() -> None:
    assert compose()["networks"]["back"] == {"internal": True}
    inside = {part for part, told in PARTS.items() if told.get("networks") == ["back"]}
    assert {"nats", "postgres", "neo4j", "weaviate", "instructions", "graph", "declare", "migrate"} <= inside


def test_no_secret_stands_in_the_file() -> None:
    entries = [(part, name, str(value)) for part in PARTS for name, value in PARTS[part].get("environment", {}).items()]
    secret = re.compile(r"(PASSWORD|SECRET|TOKEN|KEY)S?$|_AUTH$")
    assert [(part, name) for part, name, _ in entries if secret.search(name)] == []
    assert [(part, name) for part, name, value in entries if urlsplit(value).password] == []


def test_what_a_part_waits_for_is_there_and_can_become_what_is_waited_for() -> None:
    for part, told in PARTS.items():
        for other, how in told.get("depends_on", {}).items():
            ends = other in ENDING
            assert how == {"condition": "service_completed_successfully" if ends else "service_healthy"}, (part, other)
            assert ends or PARTS[other]["healthcheck"]["test"]


def test_files_that_are_mounted_are_in_the_repository() -> None:
    binds = [v for told in PARTS.values() for v in told.get("volumes", ()) if isinstance(v, dict)]
    ours = {v["source"] for v in binds if v["source"].startswith("./deploy/")}
    assert {source for source in ours if not (ROOT / source).exists()} == set()
    assert [v for v in binds if not v["read_only"]] == []


def test_every_variable_has_its_default_in_the_example() -> None:
    example = dict(line.split("=", 1) for line in (ROOT / ".env.example").read_text().splitlines() if line and line[0] != "#")
    assert {name: default or "" for name, default in _VARIABLE.findall(TEXT)} == example
