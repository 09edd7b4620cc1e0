"""What the chart scales by, compared with the consumers that the contracts make."""

from __future__ import annotations

import pytest

from phronesis_bus.topology import consumers
from phronesis_contracts.service import SERVICES
from scripts.chart import Object
from tests.support.chart import BUILD_SECONDS, component, of_kind, rendered, workload

pytestmark = [pytest.mark.verify, pytest.mark.timeout(BUILD_SECONDS)]


def triggers(service: str, kind: str) -> list[dict[str, str]]:
    found = next(each for each in of_kind("production", "ScaledObject") if component(each) == service)
    return [trigger["metadata"] for trigger in found["spec"]["triggers"] if trigger["type"] == kind]


@pytest.mark.parametrize("service", ["orchestrator", "memory", "graph", "media"])
def test_a_service_that_takes_work_scales_by_the_lag_of_each_of_its_consumers(service: str) -> None:
    theirs = {
        (stream, config["durable_name"])
        for stream, config in consumers(ack_wait=1)
        if config["durable_name"].startswith(f"{service}-")
    }
    assert {(each["stream"], each["consumer"]) for each in triggers(service, "nats-jetstream")} == theirs


def test_the_lag_is_read_where_each_server_can_be_found_by_its_name() -> None:
    (address,) = {each["natsServerMonitoringEndpoint"] for each in triggers("memory", "nats-jetstream")}
    peers = next(each for each in of_kind("production", "Service") if each["metadata"]["name"] == "phronesis-nats-peers")
    assert address == "phronesis-nats-peers.phronesis.svc:8222"
    assert peers["spec"]["clusterIP"] == "None"
    assert workload("production", "nats").object["spec"]["serviceName"] == "phronesis-nats-peers"


def test_the_orchestrator_scales_by_the_queue_in_postgres_too() -> None:
    (queue,) = triggers("orchestrator", "prometheus")
    assert queue["query"] == 'max(phronesis_turns_open{status="queued"})'


@pytest.mark.parametrize("service", SERVICES)
def test_every_service_scales_by_cpu_and_never_to_nothing(service: str) -> None:
    by_lag = next(each for each in of_kind("production", "ScaledObject") if component(each) == service)["spec"]
    by_cpu = next(each for each in of_kind("managed", "HorizontalPodAutoscaler") if component(each) == service)["spec"]
    assert len(triggers(service, "cpu")) == 1
    assert min(by_lag["minReplicaCount"], by_cpu["minReplicas"]) >= 1
    assert by_lag["scaleTargetRef"]["name"] == by_cpu["scaleTargetRef"]["name"] == f"phronesis-{service}"


@pytest.mark.parametrize("values", ["small", "production", "managed"])
def test_what_is_scaled_states_no_number_of_its_own(values: str) -> None:
    scaled = {component(each) for each in of_kind(values, "ScaledObject", "HorizontalPodAutoscaler")}
    assert {component(each) for each in of_kind(values, "Deployment") if "replicas" not in each["spec"]} == scaled


def test_the_pool_of_parsers_scales_apart_on_nodes_of_its_own() -> None:
    def apart(name: str) -> Object:
        found = next(each for each in of_kind("production", "ScaledObject") if component(each) == name)["spec"]
        return {"most": found["maxReplicaCount"], "nodes": workload("production", name).pod.get("nodeSelector")}

    assert apart("media") == {"most": 20, "nodes": {"phronesis.io/pool": "parsers"}}
    assert apart("memory") == {"most": 8, "nodes": None}


def test_streams_are_kept_by_as_many_servers_as_there_are() -> None:
    kept = {values: workload(values, "declare").variables("declare")["BUS_REPLICAS"] for values in ("small", "production")}
    assert kept == {"small": "1", "production": "3"}
    assert workload("production", "nats").object["spec"]["replicas"] == 3


def test_without_scaling_there_is_nothing_that_scales() -> None:
    assert {found["kind"] for found in rendered("small")} & {"ScaledObject", "HorizontalPodAutoscaler"} == set()
