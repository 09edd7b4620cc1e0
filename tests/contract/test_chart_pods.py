"""What every pod of the chart keeps to, in each set of values."""

from __future__ import annotations

import tomllib
from importlib.util import find_spec

import pytest
import yaml

from phronesis_contracts.service import SERVICES
from scripts.tree import ROOT
from tests.support.chart import BUILD_SECONDS, COMPONENT, of_kind, rendered, workload, workloads

pytestmark = [
    pytest.mark.verify,
    pytest.mark.timeout(BUILD_SECONDS),
    pytest.mark.parametrize("values", ["small", "production", "managed"]),
]

OWN = (*SERVICES, "declare", "migrate")


def test_no_pod_runs_as_root_or_writes_to_its_image_or_has_a_token(values: str) -> None:
    for found in workloads(values):
        pod, security = found.pod, found.pod["securityContext"]
        assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert [pod.get(shared) for shared in ("hostNetwork", "hostPID", "hostIPC")] == [None, None, None]
        for container in found.containers:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "privileged": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_each_has_an_account_of_its_own_without_a_token_or_a_right(values: str) -> None:
    accounts = {found["metadata"]["name"]: found["automountServiceAccountToken"] for found in of_kind(values, "ServiceAccount")}
    used = [found.pod["serviceAccountName"] for found in workloads(values)]
    assert accounts == dict.fromkeys(used, False)
    assert len(used) == len(set(used))
    assert of_kind(values, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding") == []


def test_each_container_states_what_it_needs_and_what_it_may_have(values: str) -> None:
    for found in workloads(values):
        for container in found.containers:
            resources = container["resources"]
            assert sorted(resources["requests"]) == ["cpu", "memory"]
            assert "memory" in resources["limits"]


def test_each_container_that_stays_is_asked_how_it_is(values: str) -> None:
    for found in workloads(values):
        if found.component != "migrate":
            (container,) = found.pod["containers"]
            ports = {port["name"] for port in container["ports"]}
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                handler = container[probe].get("httpGet") or container[probe].get("tcpSocket")
                assert handler is None or handler["port"] in ports
                assert handler is not None or container[probe]["exec"]["command"]


def test_a_service_is_ready_by_the_broker_and_not_by_its_stores(values: str) -> None:
    for name in (*SERVICES, "declare"):
        (container,) = workload(values, name).pod["containers"]
        assert container["readinessProbe"]["httpGet"] == {"path": "/health/ready", "port": "metrics"}


def test_images_have_a_version_and_ours_one_registry_and_one_tag(values: str) -> None:
    images = {(found.component, each["image"]) for found in workloads(values) for each in found.containers}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    image = {name: f"ghcr.io/phronesis/phronesis-{name}:{version}" for name in SERVICES}
    operations = f"ghcr.io/phronesis/phronesis-operations:{version}"
    assert {pair for pair in images if pair[0] in OWN} == {*image.items(), ("declare", operations), ("migrate", operations)}
    for _, text in images:
        tag = text.partition("@")[0].rpartition(":")[2]
        assert tag[0].isdigit(), f"{text} names no version"


def test_each_program_of_ours_is_one_that_its_image_has(values: str) -> None:
    programs = {
        command[2]
        for found in workloads(values)
        for command in (each.get("command", ["elsewhere"]) for each in found.containers)
        if command[:2] == ["python", "-m"]
    }
    assert {name for name in programs if not _runs(name)} == set()
    assert len(programs) == len(SERVICES) + 3


def _runs(name: str) -> bool:
    found = find_spec(name)
    return found is not None and (found.submodule_search_locations is None or find_spec(f"{name}.__main__") is not None)


def test_a_rollout_takes_no_copy_away_before_another_is_there(values: str) -> None:
    for found in of_kind(values, "Deployment"):
        assert found["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def test_what_has_several_copies_has_a_budget(values: str) -> None:
    scaled = {
        found["metadata"]["labels"][COMPONENT]: found["spec"].get("minReplicas", found["spec"].get("minReplicaCount"))
        for found in of_kind(values, "ScaledObject", "HorizontalPodAutoscaler")
    }
    copies = {
        found.component: scaled.get(found.component, found.object["spec"].get("replicas", 1)) for found in workloads(values)
    }
    budgets = {found["metadata"]["labels"][COMPONENT]: found["spec"] for found in of_kind(values, "PodDisruptionBudget")}
    assert {name for name, count in copies.items() if count > 1} <= set(budgets)
    for name, budget in budgets.items():
        assert budget["maxUnavailable"] == (1 if copies[name] > 1 else 0)
        template = workload(values, name).template["metadata"]["labels"]
        assert budget["selector"]["matchLabels"].items() <= template.items()


def test_the_gateway_is_told_to_stop_after_the_cluster_has_heard_of_it(values: str) -> None:
    pod = workload(values, "gateway").pod
    pause = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert (pause, pod["terminationGracePeriodSeconds"] - pause) == (10, 30)


def test_no_object_holds_a_secret(values: str) -> None:
    assert of_kind(values, "Secret") == []
    for found in workloads(values):
        for container in found.containers:
            for name, value in found.variables(container["name"]).items():
                assert value.startswith("/") or not name.endswith(("PASSWORD", "KEY", "TOKEN")), name
    text = yaml.safe_dump(list(rendered(values)))
    assert "BEGIN PRIVATE KEY" not in text


def test_what_may_be_written_is_bounded(values: str) -> None:
    for found in workloads(values):
        for volume in found.pod.get("volumes", ()):
            assert "hostPath" not in volume
            assert "emptyDir" not in volume or "sizeLimit" in volume["emptyDir"]
