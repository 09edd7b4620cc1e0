"""The sample portfolio and a made-up twin, each loaded once into the embedded graph."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from phronesis_samples.portfolio import reports
from phronesis_samples.twin.generator import Twin, generate
from tests.questions.asking import Asker, asker_of, in_parts
from tests.support.servers import GraphServer


@pytest.fixture(scope="package")
async def asker(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Asker]:
    """Somebody who asks an analyst about the whole portfolio."""
    async with asker_of(graph_server, tmp_path_factory.mktemp("portfolio"), in_parts(reports.batches())) as found:
        yield found


@pytest.fixture(scope="package")
def made() -> Twin:
    return generate(nodes=1500, seed=7)


@pytest.fixture(scope="package")
async def twin(graph_server: GraphServer, made: Twin, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Asker]:
    """Somebody who asks an analyst about the made-up twin."""
    async with asker_of(graph_server, tmp_path_factory.mktemp("made-up"), made.batches()) as found:
        yield found
