"""A backup of the embedded stores is restored onto the production ones, and one of those onto the embedded ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from phronesis_local.parts import SERVICES, servers
from phronesis_local.settings import LocalSettings, Stores
from tests.support import production
from tests.support.bus import eventually
from tests.support.operations import WITHOUT_A_MODEL, counts, phronesis
from tests.support.people import Person, town
from tests.support.sample_portfolio import OTHERS, PROGRAMME, few_projects
from tests.support.stack import running

pytestmark = [
    pytest.mark.verify,
    pytest.mark.timeout(900),
    pytest.mark.skipif(production.STORES is Stores.EMBEDDED, reason="needs Neo4j and Weaviate: make test-stores"),
]

QUERIES = (
    *("nuclear waste", "broadband for rural areas", "digital identity", "homes", "office buildings", "schedule and cost"),
    *("who is it for", "what was delivered late", "a new railway", "ships and submarines", "prisons", "hospital care"),
    *("tax systems", "courts and tribunals", "schools", "aircraft carriers", "border control", "research laboratories"),
    *("benefits of the programme", "risks", "a ferry", "money saved", "contracts with suppliers", "staff and skills"),
)


class Home:
    """A data directory with one kind of stores."""

    def __init__(self, folder: Path, stores: Stores) -> None:
        self.data = folder
        self.environment = WITHOUT_A_MODEL | {"PHRONESIS_STORES": stores.value}
        self.parts = (*servers(LocalSettings().model_copy(update={"stores": stores})), *SERVICES)

    async def restored(self, archive: Path) -> None:
        """Load an archive."""
        code, said, errors = await phronesis("restore", str(archive), data=self.data, environment=self.environment)
        assert (code, "DIFFERS" in said) == (0, False), errors

    async def used(self, archive: Path, key: str | None = None, *, fill: bool = False) -> tuple[str, dict[str, Any]]:
        """Start the stack, ask for what it remembers, and back it up: the owner's key, and what was found."""
        async with running(self.data, self.parts, self.environment) as stack:
            used = key or stack.data.key.read_text().strip()
            async with town(stack.data.url.read_text().strip(), used) as people:
                await people.ready()
                if fill:
                    batch = few_projects().model_dump(mode="json")
                    assert (await people.owner.tool("graph_upsert", batch)).status_code == 200
                    await people.owner.remember("Ferry to Utvorda", "The ferry to Utvorda leaves at six.")
                    body = {"scope": "secrets", "key": "harbour", "content": "The harbour master leaves in May."}
                    assert (await people.owner.tool("keep_memory", body)).status_code == 200
                settled = Settled(people.owner)
                await eventually(settled, within=120)
                asked = {"scope": "secrets", "query_summary": "harbour"}
                kept = (await people.owner.tool("recall_memory", asked)).json()["snippets"]
                assert [one["key"] for one in kept] == ["harbour"]
            code, _, errors = await phronesis("backup", str(archive), data=self.data, environment=self.environment)
            assert code == 0, errors
        return used, settled.found


class Settled:
    """Whether all is embedded: everything that was written is found, and what is found changes no more."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self.found: dict[str, Any] = {}

    async def __call__(self) -> bool:
        before, self.found = self.found, {query: await self._person.recall(query) for query in QUERIES}
        found = {item["title"] for items in self.found.values() for item in items}
        return found >= {"Ferry to Utvorda", PROGRAMME, *OTHERS} and self.found == before


def near(found: dict[str, Any], other: dict[str, Any]) -> float:
    """Which part of the first ten is the same."""
    tens = [({i["id"] for i in found[query][:10]}, {i["id"] for i in other[query][:10]}) for query in QUERIES]
    return sum(len(one & two) for one, two in tens) / sum(len(one) for one, _ in tens)


async def test_there_and_back_nothing_is_lost(tmp_path: Path) -> None:
    first, there, back = (tmp_path / name for name in ("first.phr", "there.phr", "back.phr"))
    key, found = await Home(tmp_path / "embedded", Stores.EMBEDDED).used(first, fill=True)
    production_home, again = Home(tmp_path / "production", Stores.PRODUCTION), Home(tmp_path / "again", Stores.EMBEDDED)
    await production_home.restored(first)
    _, meanwhile = await production_home.used(there, key)
    await again.restored(there)
    _, at_last = await again.used(back, key)
    kept = ("graph/relationships", "postgres/memory/items", "postgres/memory/texts", "vectors", "objects/media")
    assert [[counts(archive)[name] for name in kept] for archive in (there, back)] == [
        [counts(first)[name] for name in kept]
    ] * 2
    assert near(found, meanwhile) >= 0.98
    assert at_last == found
