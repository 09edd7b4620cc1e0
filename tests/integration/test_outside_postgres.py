"""A database that is not the stack's own: migrating makes the services' roles there, and each service comes as its own."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from pydantic import SecretStr

from phronesis_local.layout import DataDir
from phronesis_local.parts import OWNERS, Parts, addresses
from phronesis_local.settings import LocalSettings
from phronesis_postgres import Database, PostgresSettings
from tests.support.servers import PostgresServer


async def _never(name: str) -> bool | None:
    return None


async def test_each_service_reaches_an_outside_database_by_a_role_and_a_password_of_its_own(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with postgres.fresh_schema(*OWNERS) as given:
        settings = LocalSettings.model_validate({"POSTGRES_DSN": postgres.owner(given).dsn})
        data = DataDir(tmp_path)
        data.create()
        parts = Parts(data, settings, addresses(settings))
        program = parts.migration(OWNERS)
        environment = {**program.environment, "POSTGRES_DSN": postgres.owner(given).dsn.get_secret_value()}
        migrating = await asyncio.create_subprocess_exec(*program.command, env=environment)
        assert await migrating.wait() == 0
        passwords = set()
        for service in OWNERS:
            told = parts.service(service, _never).environment
            where = PostgresSettings(dsn=SecretStr(told["POSTGRES_DSN"]), password_file=Path(told["POSTGRES_PASSWORD_FILE"]))
            passwords.add(where.password())
            async with Database.open(where, service) as database, database.connection("acme") as connection:
                assert await connection.fetchval("SELECT current_user") == f"phronesis_{service}"
        assert len(passwords) == len(OWNERS)


async def test_the_way_back_is_asked_for_twice(postgres: PostgresServer) -> None:
    async with postgres.fresh_schema("memory") as given:
        environment = {"POSTGRES_DSN": postgres.owner(given).dsn.get_secret_value()}
        back = ("--down", "memory", "--to", "0003-passages")
        said, code = await _migrate(environment, *back)
        assert ("0005-tenants: Loses no data" in said, "Nothing is done yet" in said, code) == (True, True, 1)
        said, code = await _migrate(environment, *back, "--accept-loss")
        assert ("Nothing is done yet" in said, code) == (False, 0)
        assert await _migrate(environment, *back) == ("Nothing to undo.\n", 0)


async def _migrate(environment: dict[str, str], *arguments: str) -> tuple[str, int | None]:
    command = (sys.executable, "-m", "phronesis_postgres.migrate", *arguments)
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE)
    said, _ = await process.communicate()
    return said.decode(), process.returncode
