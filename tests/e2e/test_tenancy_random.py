"""A thousand random calls of wrong tenants, users and roles; `make isolation` makes a hundred thousand."""

from __future__ import annotations

import pytest

from tests.support.belongings import Belongings
from tests.support.people import Town
from tests.support.tenancy import stranger

pytestmark = [pytest.mark.stores, pytest.mark.timeout(240)]

CALLS = 1_000


@pytest.mark.req("D-143", "D-165")
async def test_random_calls_of_wrong_tenants_users_and_roles_see_and_do_nothing_by_any_face(everybody: Town) -> None:
    theirs = Belongings(everybody)
    await theirs.fill()
    async with stranger(everybody, theirs) as other:
        found = await other.call(CALLS, seed=20)
    assert (found.leaks, found.tellings, found.overheard, found.overreached, dict(found.faults)) == ([], [], [], [], {})
    assert found.calls >= CALLS
    assert {name.split()[0] for name in found.by_what} == {"http", "sse", "mcp", "bus"}
    assert found.compared > CALLS / 10
    assert found.refused_roles > CALLS / 50
    assert await theirs.lost() == []
