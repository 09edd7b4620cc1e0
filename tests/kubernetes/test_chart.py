"""The chart on a real control plane: what the API server admits, and what the controllers make of it.

`make kubernetes` builds the control plane once and runs these tests. No container runs, so they say nothing about images.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from phronesis_contracts.service import SERVICES
from scripts import custom_resources, helm, kind
from scripts.chart import Object, name
from tests.support.bus import eventually
from tests.support.cases import for_each
from tests.support.chart import BUILD_SECONDS, RELEASE, rendered, secret_keys, workload, workloads
from tests.support.control_plane import Cluster, Refused, control_plane, missing

pytestmark = [
    pytest.mark.verify,
    pytest.mark.timeout(BUILD_SECONDS),
    pytest.mark.skipif(bool(missing()), reason="needs etcd, kube-apiserver and kube-controller-manager: make kubernetes"),
]
each_set = pytest.mark.parametrize("values", helm.SETS)

SIZES = ("postgres.storage.size=10Gi", "neo4j.storage.size=5Gi", "weaviate.storage.size=10Gi")
"""What a release with the small values has for volumes."""
QUOTA: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "all"},
    "spec": {
        "hard": {
            "requests.cpu": "40",
            "requests.memory": "100Gi",
            "limits.memory": "200Gi",
            "requests.storage": "1Ti",
            "pods": "100",
            "persistentvolumeclaims": "10",
        }
    },
}
"""Admits no container that leaves out one of these requests or the limit of memory."""


@pytest.fixture(scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """A control plane that knows the kinds of KEDA, the Prometheus operator and the Gateway API."""
    async with control_plane(tmp_path_factory.mktemp("cluster")) as made:
        definitions = custom_resources.definitions()
        for definition in definitions:
            made.apply(definition)
        await eventually(lambda: all(_established(made, each) for each in definitions))
        yield made


def _established(cluster: Cluster, definition: Object) -> bool:
    conditions = cluster.find(definition, "").get("status", {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)


async def limit(cluster: Cluster, namespace: str, quota: Object = QUOTA) -> None:
    """Let a quota hold in a namespace: it does once a controller has counted what is there."""
    cluster.apply(quota, namespace)
    await eventually(lambda: bool(cluster.find(quota, namespace).get("status", {}).get("hard")))


def install(cluster: Cluster, namespace: str, values: str, *changes: str) -> None:
    """Install the chart, or upgrade it, as the API server lets helm; fails the test where it does not, or warns."""
    more = [part for change in changes for part in ("--set", change)]
    file = helm.VALUES / f"{values}.yaml"
    done = cluster.helm("upgrade", "--install", "-n", namespace, RELEASE, str(helm.CHART), "-f", str(file), *more)
    assert done.ok, done.errors
    assert done.errors == ""


def manifest(cluster: Cluster, namespace: str) -> list[Object]:
    """The objects of the release as helm has them."""
    done = cluster.helm("get", "manifest", "-n", namespace, RELEASE)
    return [found for found in yaml.safe_load_all(done.text) if found]


def missing_pods(cluster: Cluster, namespace: str) -> set[str]:
    """Which workloads of the release have too few pods, or none by their present template."""
    pods = Counter(_component(each) for each in cluster.items(f"/api/v1/namespaces/{namespace}/pods"))
    return {
        _component(each)
        for each in _made(cluster, namespace)
        if pods[_component(each)] < each["spec"].get("replicas", 1) or not _follows(each)
    }


def _follows(found: Object) -> bool:
    """Whether the controller has seen the present template, and has made a pod of it."""
    status = found.get("status", {})
    if found["kind"] == "Job":
        return int(status.get("active", 0)) == 1
    seen: bool = status.get("observedGeneration") == found["metadata"]["generation"]
    # A changed StatefulSet waits until its pods are ready, which none is here.
    return seen and (found["kind"] == "StatefulSet" or int(status.get("updatedReplicas", 0)) > 0)


def generations(cluster: Cluster, namespace: str) -> dict[str, int]:
    """How often the specification of each workload has changed."""
    return {each["metadata"]["name"]: each["metadata"]["generation"] for each in _made(cluster, namespace)}


def _made(cluster: Cluster, namespace: str) -> list[Object]:
    return [
        cluster.find(each, namespace)
        for each in manifest(cluster, namespace)
        if each["kind"] in ("Deployment", "StatefulSet", "Job")
    ]


def _component(found: Object) -> str:
    return str(found["metadata"]["labels"]["app.kubernetes.io/component"])


def complaints(cluster: Cluster, namespace: str) -> list[str]:
    """What controllers could not make, as their events tell."""
    events = cluster.items(f"/api/v1/namespaces/{namespace}/events")
    return [f"{each['involvedObject']['name']}: {each['message']}" for each in events if each["reason"] == "FailedCreate"]


def gateway_pod(**more: Any) -> Object:
    """A pod as the gateway's, with changes, that any namespace has an account for."""
    spec = {**workload("small", "gateway").pod, "serviceAccountName": "default", **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gateway"}, "spec": spec}


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """A namespace of the test's own, which admits pods within the standard `restricted` alone."""
    made = f"test-{uuid4().hex[:8]}"
    cluster.create_namespace(made)
    return made


@each_set
def test_every_object_is_admitted_with_every_field_and_without_a_warning(values: str, cluster: Cluster, namespace: str) -> None:
    said = {name(found): cluster.apply(found, namespace, dry_run=True) for found in rendered(values)}
    assert {each: warnings for each, warnings in said.items() if warnings} == {}
    assert len(said) == len(rendered(values))


@for_each(
    "values, changes",
    [
        ("small", ["global.networkPolicies.enabled=false"]),
        ("small", ["models.groq=true", "models.model=true", "models.embedding=true"]),
        ("small", ["global.imagePullSecrets={one,two}", "image.registry=images.example:5000/of/ours", "image.tag=1.2.3-rc.1"]),
        ("small", ["nats.tls.secret=certificates", "nats.storage.className=fast"]),
        ("small", ["ingress.enabled=true", "ingress.host=phronesis.example.com", "ingress.className=other"]),
        ("small", ["autoscaling.enabled=true", "services.media.priorityClassName=low", "services.media.nodeSelector.of=media"]),
        ("production", ["telemetry.labels.release=prometheus", "autoscaling.prometheus="]),
        ("managed", ["managed.nats.caConfigMap=", "autoscaling.keda=true", "managed.nats.monitoring=nats.example:8222"]),
        ("small", ["nats.enabled=false", "managed.nats.url=nats://n.example:4222", "managed.nats.cidrs={10.1.0.0/16}"]),
        ("small", ["postgres.enabled=false", "managed.postgres.host=p.example", "managed.postgres.cidrs={10.1.0.0/16}"]),
        ("small", ["neo4j.enabled=false", "managed.neo4j.url=bolt://g.example:7687", "managed.neo4j.cidrs={10.1.0.0/16}"]),
    ],
)
def test_every_choice_of_values_is_admitted_without_a_warning(
    values: str, changes: list[str], cluster: Cluster, namespace: str
) -> None:
    found = rendered(values, *changes)
    assert {name(each): said for each in found if (said := cluster.apply(each, namespace, dry_run=True))} == {}


@each_set
async def test_helm_installs_it_and_the_controllers_make_every_pod(values: str, cluster: Cluster, namespace: str) -> None:
    await limit(cluster, namespace)
    install(cluster, namespace, values)
    assert len(manifest(cluster, namespace)) == len(rendered(values))
    await eventually(lambda: not missing_pods(cluster, namespace))
    assert complaints(cluster, namespace) == []


async def test_a_quota_of_processor_limits_needs_defaults_beside_it(cluster: Cluster, namespace: str) -> None:
    processors: Object = {**QUOTA, "spec": {"hard": {"limits.cpu": "100"}}}
    defaults = [{"type": "Container", "default": {"cpu": "2"}}]
    range_of: Object = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "all"}, "spec": {"limits": defaults}}
    await limit(cluster, namespace, processors)
    with pytest.raises(Refused, match=r"must specify limits\.cpu"):
        cluster.create_pod(gateway_pod(), namespace)
    cluster.apply(range_of, namespace)
    install(cluster, namespace, "small")
    await eventually(lambda: not missing_pods(cluster, namespace))


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ("image.tag=9.9.9", {*SERVICES, "declare", "migrate"}),
        ("services.gateway.replicas=2", {"gateway"}),
        ("services.memory.resources.limits.memory=2Gi", {"memory"}),
        ("nats.resources.limits.memory=600Mi", {"nats"}),
    ],
)
async def test_an_upgrade_is_admitted_and_its_pods_are_made(
    change: str, changed: set[str], cluster: Cluster, namespace: str
) -> None:
    install(cluster, namespace, "small")
    await eventually(lambda: not missing_pods(cluster, namespace))
    before = generations(cluster, namespace)
    install(cluster, namespace, "small", change)
    after = generations(cluster, namespace)
    assert {name.split("-")[1] for name, _ in after.items() - before.items()} == changed
    await eventually(lambda: not missing_pods(cluster, namespace))
    assert complaints(cluster, namespace) == []


async def test_small_grows_to_production_and_goes_back(cluster: Cluster, namespace: str) -> None:
    install(cluster, namespace, "small")
    install(cluster, namespace, "production", *SIZES)
    await eventually(lambda: not missing_pods(cluster, namespace))
    back = cluster.helm("rollback", "-n", namespace, RELEASE, "1")
    assert back.ok, back.errors
    assert len(manifest(cluster, namespace)) == len(rendered("small"))
    assert complaints(cluster, namespace) == []


async def test_stores_of_the_cluster_can_be_given_up_for_managed_ones(cluster: Cluster, namespace: str) -> None:
    install(cluster, namespace, "small")
    install(cluster, namespace, "managed")
    await eventually(lambda: not missing_pods(cluster, namespace))
    assert cluster.items(f"/apis/apps/v1/namespaces/{namespace}/statefulsets") == []


async def test_a_volume_that_cannot_be_changed_stops_an_upgrade_before_anything_changes(
    cluster: Cluster, namespace: str
) -> None:
    install(cluster, namespace, "small")
    before = generations(cluster, namespace)
    more = ("--set", "neo4j.storage.size=7Gi", "--set", "image.tag=9.9.9")
    file = str(helm.VALUES / "small.yaml")
    done = cluster.helm("upgrade", "-n", namespace, RELEASE, str(helm.CHART), "-f", file, *more)
    assert not done.ok
    assert 'neo4j.storage.size is "5Gi" in this release and cannot become "7Gi"' in done.errors
    assert generations(cluster, namespace) == before


async def test_a_release_may_have_a_name_of_43_letters_and_no_more(cluster: Cluster, namespace: str) -> None:
    arguments = ("-n", namespace, str(helm.CHART), "-f", str(helm.VALUES / "small.yaml"))
    longer = cluster.helm("install", "n" * 44, *arguments)
    assert "the release's name has 44 letters, and 43 are the most" in longer.errors
    longest = cluster.helm("install", "n" * 43, *arguments)
    assert longest.ok, longest.errors
    pods = f"/api/v1/namespaces/{namespace}/pods"
    await eventually(lambda: len(cluster.items(pods)) == len(workloads("small")))


async def test_an_uninstalled_release_leaves_the_volumes_alone(cluster: Cluster, namespace: str) -> None:
    install(cluster, namespace, "small")
    claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    of_release = {"labelSelector": f"app.kubernetes.io/instance={RELEASE}"}
    await eventually(lambda: len(cluster.items(claims, **of_release)) == 4)
    done = cluster.helm("uninstall", "-n", namespace, RELEASE)
    assert done.ok, done.errors
    kinds = (
        "/apis/apps/v1/namespaces/{}/deployments",
        "/apis/apps/v1/namespaces/{}/statefulsets",
        "/apis/batch/v1/namespaces/{}/jobs",
    )
    await eventually(lambda: not any(cluster.items(kind.format(namespace)) for kind in kinds))
    assert len(cluster.items(claims, **of_release)) == 4


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_the_secret_that_the_page_makes_has_every_key_that_a_pod_mounts(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setattr(kind, "CONTEXT", "tests")
    kind.prepare(tmp_path / "secrets")
    made = cluster.get(f"/api/v1/namespaces/{kind.NAMESPACE}/secrets/phronesis")["data"]
    needed = {
        key for found in rendered("small", "models.groq=true", "models.model=true") for key in secret_keys(found, "phronesis")
    }
    assert needed - set(made) == set()
    assert {key for key in needed if not made[key]} == {"groq.key", "model.key"}
    labels = cluster.get(f"/api/v1/namespaces/{kind.NAMESPACE}")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


async def test_the_server_refuses_what_the_chart_must_not_have(cluster: Cluster, namespace: str) -> None:
    assert cluster.create_pod(gateway_pod(), namespace) == []
    with pytest.raises(Refused, match="violates PodSecurity"):
        cluster.create_pod(gateway_pod(hostNetwork=True), namespace)
    with pytest.raises(Refused, match="unknown field"):
        cluster.create_pod(gateway_pod(replica=2), namespace)
    await limit(cluster, namespace)
    without = [{**each, "resources": {}} for each in workload("small", "gateway").containers]
    with pytest.raises(Refused, match="must specify"):
        cluster.create_pod(gateway_pod(containers=without, initContainers=[]), namespace)


def test_the_server_warns_of_what_grows_old(cluster: Cluster, namespace: str) -> None:
    old: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "old"}, "subsets": []}
    assert "deprecated" in " ".join(cluster.apply(old, namespace, dry_run=True))
