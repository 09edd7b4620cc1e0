"""The table of exposures: who is in which arm, decided once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from phronesis_contracts import Principal
from phronesis_contracts.experiments import EXPOSED, Exposed
from phronesis_postgres import Connection, Database, write_news

from ..domain.assignment import Standing, chosen
from ..domain.library import Running

_REMEMBERED = 50_000
"""Users whose arms are kept in memory at most, over all experiments."""
_RUNNING = "SELECT true FROM experiments WHERE tenant = $1 AND name = $2 AND status = 'running' FOR UPDATE"
_ARMS = "SELECT arm, weight, users FROM experiment_arms WHERE tenant = $1 AND experiment = $2 ORDER BY place"
_KNOWN = "SELECT experiment, arm FROM exposures WHERE tenant = $1 AND user_id = $2 AND experiment = ANY($3)"
_FRESH = "INSERT INTO exposures (tenant, experiment, user_id, arm) VALUES ($1, $2, $3, $4)"
_COUNT = "UPDATE experiment_arms SET users = users + 1 WHERE tenant = $1 AND experiment = $2 AND arm = $3"


class PostgresExposures:
    """Arms by user.

    Args:
        database: the service's schema.
        announce: called after a first exposure, whose news stands in the outbox.
    """

    def __init__(self, database: Database, announce: Callable[[], None]) -> None:
        self._database = database
        self._announce = announce
        self._remembered: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    async def arms(self, who: Principal, experiments: Sequence[Running]) -> dict[str, str]:
        """The arm of a user in each experiment. What was decided once never changes, so it is asked for once."""
        found = {one.name: arm for one in experiments if (arm := self._remembered.get((who.tenant, one.name, who.user)))}
        unknown = [one.name for one in experiments if one.name not in found]
        if not unknown:
            return found
        known = await self._known(who, unknown)
        fresh = [name for name in unknown if name not in known]
        if fresh:
            known |= await self._put(who, sorted(fresh))
            self._announce()
        for name, arm in known.items():
            self._remembered[(who.tenant, name, who.user)] = arm
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return {one.name: arm for one in experiments if (arm := (found | known).get(one.name))}

    async def _known(self, who: Principal, names: list[str]) -> dict[str, str]:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_KNOWN, who.tenant, who.user, names)
        return {row["experiment"]: row["arm"] for row in rows}

    async def _put(self, who: Principal, names: list[str]) -> dict[str, str]:
        found = {}
        async with self._database.transaction(who.tenant) as connection:
            for name in names:  # in one order for all, so that no two wait for one another
                arm = await _decided(connection, who, name)
                if arm is not None:
                    found[name] = arm
        return found


async def _decided(connection: Connection, who: Principal, experiment: str) -> str | None:
    """Put a user into an arm, unless another copy just did; `None` where the experiment was stopped."""
    if not await connection.fetchval(_RUNNING, who.tenant, experiment):
        return None
    if known := await connection.fetch(_KNOWN, who.tenant, who.user, [experiment]):
        return str(known[0]["arm"])
    arms = [Standing(row["arm"], row["weight"], row["users"]) for row in await connection.fetch(_ARMS, who.tenant, experiment)]
    arm = chosen(experiment, who.tenant, who.user, arms)
    await connection.execute(_FRESH, who.tenant, experiment, who.user, arm)
    await connection.execute(_COUNT, who.tenant, experiment, arm)
    news = Exposed(experiment=experiment, user=who.user, arm=arm)
    await write_news(connection, "instructions", who.tenant, EXPOSED, news)
    return arm
