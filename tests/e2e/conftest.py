"""One whole stack for all stories with the rules in place of a language model, and one with a scripted model.

Each is stopped after the last story.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from uuid import uuid4

import pytest

from phronesis_local.parts import SERVICES
from phronesis_samples.portfolio.reports import batches
from tests.support import approving
from tests.support.approving import Desk
from tests.support.bus import eventually
from tests.support.people import Person, Town, town
from tests.support.production import SERVERS
from tests.support.sample_portfolio import few_projects, programme
from tests.support.stack import RunningStack, running


@pytest.fixture(scope="package")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningStack]:
    """A stack of all parts. No model is set up, whatever key the environment has."""
    folder = tmp_path_factory.mktemp("e2e") / "data"
    async with running(folder, (*SERVERS, *SERVICES), {"GROQ_API_KEY": "", "ORCHESTRATOR_MODEL_URL": ""}) as stack:
        yield stack


@pytest.fixture(scope="package")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    """A stack with a scripted model, and an admin whose agent may delete. A story scripts what names a word of its own."""
    async with approving.desk(tmp_path_factory.mktemp("desk") / "data") as desk:
        yield desk


@pytest.fixture(scope="package")
async def everybody(stack: RunningStack) -> AsyncIterator[Town]:
    """The users of the stack, once it is ready for them."""
    async with town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()) as people:
        await people.ready()
        yield people


@pytest.fixture
async def somebody(everybody: Town) -> Person:
    """A user in a tenant of its own."""
    return await everybody.someone()


@pytest.fixture(scope="package")
async def analyst(everybody: Town) -> Person:
    """Somebody in a tenant that has the whole sample portfolio."""
    keeper = await everybody.someone(role="maestro")
    for batch in batches():
        body, key = batch.model_dump(mode="json"), uuid4().hex
        answer = await keeper.http.post("/api/v1/tools/graph_upsert", json=body, headers={"Idempotency-Key": key})
        assert answer.status_code == 200, answer.text
    person = await everybody.someone(tenant=keeper.tenant)

    async def answers() -> bool:  # the first questions to a fresh graph store are planned and compiled: some take many seconds
        body = {"query": "How many projects are there?", "agent": "noor"}
        answer = await person.http.post("/api/v1/chat/message", json=body, headers={"Idempotency-Key": uuid4().hex})
        return answer.status_code == 200

    await eventually(answers, within=90)
    return person


@pytest.fixture(scope="package")
async def portfolio(everybody: Town) -> None:
    """Five projects of the sample portfolio in the owner's tenant, found by meaning."""
    owner, wanted = everybody.owner, programme()
    answer = await owner.http.post(
        "/api/v1/tools/graph_upsert", json=few_projects().model_dump(mode="json"), headers={"Idempotency-Key": uuid4().hex}
    )
    assert answer.status_code == 200, answer.text
    end = monotonic() + 120  # two stacks that start beside it leave the first vectors little of two processors
    while wanted.key not in [item["external_id"] for item in await owner.recall(wanted.name)]:
        assert monotonic() < end, "the portfolio is not found"
        await asyncio.sleep(0.2)
