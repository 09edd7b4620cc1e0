"""Two tenants, and two users of one, see nothing of each other."""

from __future__ import annotations

import pytest

from tests.support.people import Person, Town

pytestmark = pytest.mark.timeout(300)

SECRET = "The Halvorsen vault opens with the code copper-lantern-{n}."


@pytest.mark.req("D-143", "D-165")
@pytest.mark.parametrize("together", [False, True])
async def test_nothing_of_one_user_is_found_by_another(everybody: Town, together: bool) -> None:
    one = await everybody.someone()
    other = await everybody.someone(one.tenant if together else None)
    for number, person in enumerate((one, other)):
        await person.remember("Halvorsen vault", SECRET.format(n=f"{number}{person.user}"))
    for number, person in enumerate((one, other)):
        own = SECRET.format(n=f"{number}{person.user}")
        assert [item["text"] for item in await person.recall("Halvorsen vault copper lantern code")] == [own]
        reply = await person.reply("What is the Halvorsen vault?")
        assert [source["title"] for source in reply["sources"]] == ["Halvorsen vault"]
        assert f"{number}{person.user}" in reply["user_response"]
        assert await own_turns(person) == [reply["turn_id"]]


async def own_turns(person: Person) -> list[str]:
    """Ids of the turns that a user sees."""
    return [one["turn_id"] for one in await person.turns()]
