"""The rendered chart, for tests that look at its objects: rendered once for each set of values in a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from scripts import helm
from scripts.chart import Object, objects

RELEASE = NAMESPACE = "phronesis"
COMPONENT = "app.kubernetes.io/component"
WORKLOADS = ("Deployment", "StatefulSet", "Job")
BUILD_SECONDS = 1_800
"""Seconds that the first test may take on a machine where helm has to be built first."""


@cache
def rendered(values: str, *changes: str) -> tuple[Object, ...]:
    """The objects of one set of values, with `--set` changes; fails the test where helm does not render them."""
    output = helm.render(values, *changes)
    assert output.ok, output.errors
    return tuple(objects(output.text))


def of_kind(values: str, *kinds: str) -> list[Object]:
    """The objects of these kinds."""
    return [found for found in rendered(values) if found["kind"] in kinds]


def component(found: Object) -> str:
    """Which part of the platform an object belongs to."""
    return str(found["metadata"]["labels"][COMPONENT])


@dataclass(frozen=True)
class Workload:
    """What makes pods."""

    component: str
    object: Object

    @property
    def template(self) -> Object:
        """The template of its pods."""
        made: Object = self.object["spec"]["template"]
        return made

    @property
    def pod(self) -> Object:
        """The specification of its pods."""
        made: Object = self.template["spec"]
        return made

    @property
    def containers(self) -> list[Object]:
        """All containers, those that run first included."""
        return [*self.pod.get("initContainers", ()), *self.pod["containers"]]

    def variables(self, container: str) -> dict[str, str]:
        """The variables of a container that have a value."""
        found = next(each for each in self.containers if each["name"] == container)
        return {entry["name"]: entry["value"] for entry in found.get("env", ()) if "value" in entry}


def workloads(values: str, *changes: str) -> list[Workload]:
    """Everything that makes pods."""
    return [Workload(component(found), found) for found in rendered(values, *changes) if found["kind"] in WORKLOADS]


def workload(values: str, name: str) -> Workload:
    """The one of a component."""
    return next(found for found in workloads(values) if found.component == name)


def secret_keys(found: Any, secret: str) -> Iterator[str]:
    """The keys of a Secret that are named anywhere in an object."""
    if isinstance(found, dict):
        if found.get("secretName", found.get("name")) == secret:
            yield from (item["key"] for item in found.get("items", ()))
            if "key" in found:
                yield str(found["key"])
        for value in found.values():
            yield from secret_keys(value, secret)
    elif isinstance(found, list):
        for value in found:
            yield from secret_keys(value, secret)
