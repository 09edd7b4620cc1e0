"""What the chart refuses, and that its check sees what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts import helm, tools
from scripts.chart import faults, objects
from tests.support.cases import for_each
from tests.support.chart import BUILD_SECONDS, of_kind, rendered

pytestmark = [pytest.mark.verify, pytest.mark.timeout(BUILD_SECONDS)]


@for_each(
    ("change", "said"),
    [
        ("service.gateway.replicas=2", "service"),
        ("services.gateway.replica=2", "replica"),
        ("services.gateway.replicas=many", "replicas"),
        ("services.billing.replicas=1", "billing"),
        ("services.memory.env.MEMORY_EMBEDDING_KEY=abc", "MEMORY_EMBEDDING_KEY"),
        ("services.memory.env.POSTGRES_DSN=postgresql://a:b@c/d", "POSTGRES_DSN"),
        ("services.orchestrator.grace=1", "grace"),
        ("image.tag=latest", "tag"),
        ("nats.image=nats:latest", "image"),
        ("nats.replicas=2", "replicas"),
        ("postgres.password=abc", "password"),
        ("weaviate.storage.size=lots", "size"),
        ("global.existingSecret=", "existingSecret"),
        ("managed.postgres.sslmode=prefer", "sslmode"),
    ],
)
def test_a_value_that_is_not_known_or_cannot_be_is_refused(change: str, said: str) -> None:
    output = helm.render("small", change)
    assert not output.ok
    assert said in output.errors


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("managed.nats.url=", "nats.enabled is false, so managed.nats.url has to say where it runs"),
        ("managed.postgres.host=", "postgres.enabled is false, so managed.postgres.host has to say where it runs"),
        ("managed.neo4j.url=", "neo4j.enabled is false, so managed.neo4j.url has to say where it runs"),
        ("managed.weaviate.url=", "weaviate.enabled is false, so managed.weaviate.url has to say where it runs"),
        ("managed.weaviate.grpcUrl=", "weaviate.enabled is false, so managed.weaviate.grpcUrl has to say where it runs"),
        ("managed.neo4j.url=bolt://graph", "managed.neo4j.url has to name its port"),
        ("autoscaling.keda=true", "autoscaling by KEDA needs managed.nats.monitoring"),
        ("httpRoute.host=", "httpRoute.enabled needs httpRoute.host"),
    ],
)
def test_what_a_managed_store_needs_is_asked_for_by_name(change: str, said: str) -> None:
    output = helm.render("managed", change)
    assert not output.ok
    assert said in output.errors


def test_the_networks_of_a_managed_store_are_asked_for() -> None:
    output = helm.render("small", "neo4j.enabled=false", "managed.neo4j.url=bolt://g.example:7687")
    assert not output.ok
    assert "neo4j.enabled is false, so managed.neo4j.cidrs has to list its networks, or nothing may reach it" in output.errors


def test_managed_stores_leave_no_store_in_the_cluster() -> None:
    assert of_kind("managed", "StatefulSet") == []
    stores = ("nats", "postgres", "neo4j", "weaviate")
    assert [found["metadata"]["name"] for found in rendered("managed") if found["metadata"]["name"].endswith(stores)] == []


@pytest.mark.parametrize("store", ["nats", "postgres", "neo4j", "weaviate"])
def test_one_store_alone_can_be_managed(store: str) -> None:
    where = {
        "nats": ("url=nats://n.example:4222", "cidrs={10.1.0.0/16}"),
        "postgres": ("host=p.example", "cidrs={10.1.0.0/16}"),
        "neo4j": ("url=bolt://g.example:7687", "cidrs={10.1.0.0/16}"),
        "weaviate": ("url=http://w.example:80", "grpcUrl=http://w.example:50051", "cidrs={10.1.0.0/16}"),
    }
    changes = [f"managed.{store}.{change}" for change in where[store]]
    made = {found["metadata"]["name"] for found in rendered("small", f"{store}.enabled=false", *changes)}
    stores = {"nats", "postgres", "neo4j", "weaviate"}
    assert {name for name in stores if f"phronesis-{name}" in made} == stores - {store}


def test_several_brokers_need_certificates() -> None:
    output = helm.render("small", "nats.replicas=3")
    assert not output.ok
    assert "nats.replicas above 1 needs nats.tls.secret" in output.errors


@pytest.mark.parametrize(
    ("file", "right", "wrong", "said"),
    [
        ("templates/services.yaml", "revisionHistoryLimit: 3", "revisionHistory: 3", "revisionHistory"),
        ("templates/services.yaml", "terminationGracePeriodSeconds: {{", "terminationGracePeriodSeconds: soon{{", "integer"),
        ("templates/autoscaling.yaml", "maxReplicaCount:", "maxReplicas:", "maxReplicas"),
        ("templates/monitoring.yaml", "podMetricsEndpoints:", "endpoints:", "endpoints"),
        ("templates/disruption.yaml", "apiVersion: policy/v1", "apiVersion: policy/v1beta1", "no schema"),
        ("templates/gateway.yaml", "pathType: Prefix", "pathType: 1", "pathType"),
    ],
)
def test_the_check_sees_an_object_that_a_cluster_would_refuse_or_cut(
    file: str, right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    chart = tmp_path / "phronesis"
    shutil.copytree(helm.CHART, chart)
    text = (chart / file).read_text()
    assert right in text
    (chart / file).write_text(text.replace(right, wrong))
    output = helm.render("production", chart=chart)
    assert output.ok, output.errors
    found = next(wrong for each in objects(output.text) if (wrong := faults(each)))
    assert said in " ".join(found)


def test_without_helm_and_without_go_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(tools.Missing, match="and there is no Go here"):
        helm.program.__wrapped__()


def test_the_values_of_the_sets_are_taken_and_their_objects_are_right() -> None:
    for values in helm.SETS:
        assert [fault for found in rendered(values) for fault in faults(found)] == []
