"""A few hundred random calls of another tenant; `python -m tests.tenancy` makes a hundred thousand."""

from __future__ import annotations

import pytest

from tests.support.belongings import Belongings
from tests.support.people import Town
from tests.support.tenancy import stranger

pytestmark = [pytest.mark.verify, pytest.mark.stores, pytest.mark.timeout(240)]

CALLS = 800


@pytest.mark.req("D-143", "D-165")
async def test_random_calls_of_another_tenant_see_nothing_by_any_face(everybody: Town) -> None:
    theirs = Belongings(everybody)
    await theirs.fill()
    async with stranger(everybody, theirs) as other:
        found = await other.call(CALLS, seed=20)
    assert (found.leaks, found.tellings, found.overheard, dict(found.faults)) == ([], [], [], {})
    assert found.calls >= CALLS
    assert {name.split()[0] for name in found.by_what} == {"http", "mcp", "bus"}
    assert found.compared > CALLS / 10
    assert await theirs.lost() == []
