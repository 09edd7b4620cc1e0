"""The software bill of materials of a release: each package of the locks with its licence and the hashes of its files.

python -m scripts.sbom [FILE]    CycloneDX 1.6 as JSON, by default `dist/sbom.cdx.json`
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from jsonschema import Draft7Validator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .licences import (
    INTEGRATIONS,
    INTEGRATIONS_LOCK,
    LOCK,
    MODEL_LOCK,
    Locked,
    Rules,
    find_licence,
    is_needed,
    list_installed,
    list_shipped,
    read_lock,
    read_rules,
)
from .tree import ROOT

PLACE = ROOT / "dist" / "sbom.cdx.json"
_SCHEMA = SchemaVersion.V1_6
# What reads IRIs is left out of the lock; the addresses of a bill are URIs, which is a stricter rule.
_FORMATS = Draft7Validator.FORMAT_CHECKER.checkers
_FORMATS["iri-reference"] = _FORMATS["uri-reference"]


class Invalid(Exception):
    """What was made does not fit the schema of CycloneDX."""


def make_bill(
    packages: Mapping[Locked, ComponentScope], installed: Mapping[str, metadata.Distribution], rules: Rules, version: str
) -> str:
    """The bill as JSON.

    Args:
        packages: what is locked, and whether the product needs it; what only tests and checks need is `EXCLUDED`.
        installed: where licences and needs are read.
        rules: those of the licences.
        version: of the product.

    Raises:
        ValueError: the licence of a package is unknown.
        Invalid: the bill does not fit the schema.
    """
    product = Component(
        name="phronesis",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref="phronesis",
        licenses=[_licence("Apache-2.0")],
    )
    bill = Bom()
    bill.metadata.component = product
    made: dict[str, list[Component]] = {}
    for package, scope in packages.items():
        component = _make_component(package, scope, find_licence(package.name, installed, rules))
        bill.components.add(component)
        made.setdefault(package.name, []).append(component)
    for name, components in made.items():
        requires = (installed[name].requires or ()) if name in installed else ()
        needs = [need for need in map(Requirement, requires) if is_needed(need, "")]
        for component in components:
            bill.register_dependency(component, [one for need in needs for one in made.get(canonicalize_name(need.name), ())])
    shipped = [one for ones in made.values() for one in ones if one.scope is not ComponentScope.EXCLUDED]
    bill.register_dependency(product, shipped)
    text = make_outputter(bill, OutputFormat.JSON, _SCHEMA).output_as_string(indent=2)
    if wrong := JsonStrictValidator(_SCHEMA).validate_str(text):
        raise Invalid(str(wrong)[:2000])
    return text


def _make_component(package: Locked, scope: ComponentScope, licence: str) -> Component:
    url = PackageURL("pypi", name=package.name, version=package.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(str(url)),
        comment="the hashes of its files, one for each system and Python",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=content) for content in package.hashes],
    )
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=str(url),
        purl=url,
        scope=scope,
        licenses=[_licence(licence)],
        external_references=[files],
    )


def _licence(expression: str) -> License:
    return LicenseFactory().make_from_string(expression)


def main(arguments: Sequence[str]) -> int:
    """Write the bill; the exit status."""
    installed = list_installed()
    shipped = list_shipped(installed)
    packages = {one: ComponentScope.REQUIRED if one.name in shipped else ComponentScope.EXCLUDED for one in read_lock(LOCK)}
    known = {(one.name, one.version) for one in packages}
    packages |= {one: ComponentScope.OPTIONAL for one in read_lock(MODEL_LOCK) if (one.name, one.version) not in known}
    known = {(one.name, one.version) for one in packages}
    needed = list_shipped(installed, INTEGRATIONS)
    packages |= {
        one: ComponentScope.OPTIONAL if one.name in needed else ComponentScope.EXCLUDED
        for one in read_lock(INTEGRATIONS_LOCK)
        if (one.name, one.version) not in known
    }
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    place = Path(arguments[0]) if arguments else PLACE
    text = make_bill(packages, installed, read_rules(), version)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    print(f"{len(packages)} packages in {place}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
