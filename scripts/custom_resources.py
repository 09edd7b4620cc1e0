"""The schemas of custom resources, from the modules of their own projects, fetched once into the cache folder.

They are held more strictly than a cluster holds them: a field that the schema does not know is an error here, where a cluster
drops it in silence. Rules in CEL (`x-kubernetes-validations`) are not run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from .tools import cache_folder

_FETCH = 300
"""Seconds that fetching a module may take."""


class SchemaMissing(Exception):
    """A schema can neither be found nor fetched."""


@dataclass(frozen=True)
class Source:
    """Where the definition of a kind stands: module, version, file."""

    module: str
    version: str
    file: str


_KEDA = ("github.com/kedacore/keda/v2", "v2.18.1")
_PROMETHEUS = ("github.com/prometheus-operator/prometheus-operator", "v0.85.0")
_GATEWAY = ("sigs.k8s.io/gateway-api", "v1.4.0")
_CRDS = "example/prometheus-operator-crd/monitoring.coreos.com"
SOURCES = {
    ("keda.sh/v1alpha1", "ScaledObject"): Source(*_KEDA, "config/crd/bases/keda.sh_scaledobjects.yaml"),
    ("monitoring.coreos.com/v1", "PodMonitor"): Source(*_PROMETHEUS, f"{_CRDS}_podmonitors.yaml"),
    ("monitoring.coreos.com/v1", "PrometheusRule"): Source(*_PROMETHEUS, f"{_CRDS}_prometheusrules.yaml"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): Source(
        *_GATEWAY, "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"
    ),
}


@cache
def schema(api_version: str, kind: str) -> dict[str, Any] | None:
    """The JSON schema of a kind; `None` where no definition of it is known here.

    Raises:
        SchemaMissing: it is in no cache, and cannot be fetched.
    """
    source = SOURCES.get((api_version, kind))
    if source is None:
        return None
    definition = _definition(source)
    wanted = api_version.partition("/")[2]
    found = next(v["schema"]["openAPIV3Schema"] for v in definition["spec"]["versions"] if v["name"] == wanted)
    closed: dict[str, Any] = _closed(found)
    closed["properties"]["metadata"] = {"type": "object"}
    return closed


def definitions() -> list[dict[str, Any]]:
    """The definition of every kind of `SOURCES`, as a cluster takes it.

    Raises:
        SchemaMissing: one is in no cache, and cannot be fetched.
    """
    return [_definition(source) for source in SOURCES.values()]


def _definition(source: Source) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load(_fetched(source).read_text())
    return made


def _closed(node: Any) -> Any:
    """An OpenAPI schema of a definition as a JSON schema that takes nothing it does not name."""
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    made = {key: _closed(value) for key, value in node.items()}
    if node.get("x-kubernetes-int-or-string") is True:
        made.pop("type", None)
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if node.get("nullable") is True and isinstance(node.get("type"), str):
        made["type"] = [node["type"], "null"]
    named = isinstance(node.get("properties"), dict) and node.get("type") == "object"
    if named and "additionalProperties" not in node and not node.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return made


def _fetched(source: Source) -> Path:
    kept = cache_folder() / "crds" / f"{Path(source.module).parent.name}-{source.version}-{Path(source.file).name}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            fresh = Path(folder) / kept.name
            shutil.copyfile(_module(source) / source.file, fresh)
            fresh.replace(kept)
    return kept


def _module(source: Source) -> Path:
    """The folder in which Go keeps the module."""
    go = shutil.which("go")
    if go is None:
        raise SchemaMissing(f"go is not on PATH, with which {source.module} is fetched")
    with tempfile.TemporaryDirectory() as empty:
        command = [go, "mod", "download", "-json", f"{source.module}@{source.version}"]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH, check=False, cwd=empty)
        except subprocess.TimeoutExpired as error:
            raise SchemaMissing(f"{source.module} could not be fetched in {_FETCH} s") from error
    told = json.loads(ran.stdout or "{}")
    if "Dir" not in told:
        raise SchemaMissing(f"{source.module} could not be fetched: {told.get('Error') or ran.stderr}")
    return Path(told["Dir"])
