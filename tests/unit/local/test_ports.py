"""Ports of the loopback interface that a stack's servers are given before they listen on them."""

from __future__ import annotations

import socket

import pytest

from phronesis_local.loopback import LOOPBACK, free_port
from phronesis_local.weaviate import Ports


def test_no_port_is_given_twice() -> None:
    given = [free_port() for _ in range(1_000)]
    assert len(set(given)) == len(given)


def test_the_second_port_of_a_run_is_given_to_nobody_else() -> None:
    given = [port for _ in range(1_000) for first in (free_port(2),) for port in (first, first + 1)]
    assert len(set(given)) == len(given)


def test_a_vector_server_is_given_six_ports() -> None:
    for _ in range(300):
        ports = Ports.free()
        assert len({ports.http, ports.grpc, ports.gossip, ports.data, ports.raft, ports.raft + 1}) == 6


def test_no_port_is_given_on_which_somebody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        taken = server.getsockname()[1]
        drawn = iter([taken, taken, port := free_port()])
        monkeypatch.setattr("phronesis_local.loopback.random.randint", lambda *_: next(drawn))
        monkeypatch.setattr("phronesis_local.loopback._given", [])
        assert free_port() == port
