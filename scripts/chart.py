"""Check the chart: lint it, render it with each set of values, hold every object against its schema.

python -m scripts.chart    fail where something is wrong
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import kubernetes_validate
import yaml
from kubernetes_validate import utils

from . import custom_resources, helm, tools

Object = dict[str, Any]
utils.schema_contents = cache(utils.schema_contents)  # it reads megabytes anew for each object


class _Strict(yaml.SafeLoader):
    """Refuses what a cluster refuses and the library does not: a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.constructor.ConstructorError(None, None, "a key stands twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def objects(text: str) -> list[Object]:
    """The objects of what helm rendered.

    Raises:
        yaml.YAMLError: it is not YAML, or a key stands twice.
    """
    return [found for found in yaml.load_all(text, Loader=_Strict) if found]


def name(found: Object) -> str:
    """Kind and name of an object."""
    return f"{found.get('kind')}/{found.get('metadata', {}).get('name')}"


def faults(found: Object) -> list[str]:
    """What is wrong with an object, by the schema of its kind; a kind without one is wrong too."""
    kind = (str(found.get("apiVersion")), str(found.get("kind")))
    custom = custom_resources.schema(*kind)
    if custom is not None:
        return [_place(error) for error in jsonschema.Draft202012Validator(custom).iter_errors(found)]
    told = []
    for version in (helm.OLDEST, helm.NEWEST):
        try:
            kubernetes_validate.validate(found, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            told.append(f"{_place(error)} (Kubernetes {error.version})")
        except kubernetes_validate.SchemaNotFoundError:
            told.append(f"there is no schema of {' '.join(kind)} in Kubernetes {version}")
    return told


def _place(error: jsonschema.ValidationError) -> str:
    return f"{'.'.join(map(str, error.absolute_path)) or 'at the top'}: {error.message[:300]}"


def _doubled(found: list[Object]) -> Iterator[str]:
    names = [name(each) for each in found]
    yield from (f"{each} is made twice" for each in sorted({one for one in names if names.count(one) > 1}))


def check(values: str) -> tuple[int, list[str]]:
    """How many objects one set of values makes, and what is wrong with them."""
    linted = helm.lint(values)
    if not linted.ok:
        return 0, [f"helm lint: {linted.text}{linted.errors}"]
    rendered = helm.render(values)
    if not rendered.ok:
        return 0, [f"helm template: {rendered.errors}"]
    found = objects(rendered.text)
    wrong = [f"{name(each)}: {fault}" for each in found for fault in faults(each)]
    return len(found), [*wrong, *_doubled(found)]


def main() -> None:
    """The command."""
    try:
        results = {values: check(values) for values in helm.SETS}
    except (tools.Missing, custom_resources.SchemaMissing, yaml.YAMLError) as error:
        sys.exit(str(error))
    wrong = [f"  {values}: {fault}" for values, (_, found) in results.items() for fault in found]
    if wrong:
        sys.exit("The chart is wrong:\n" + "\n".join(wrong))
    print(", ".join(f"{values}: {count} objects" for values, (count, _) in results.items()) + " of the chart are valid")


if __name__ == "__main__":
    main()
