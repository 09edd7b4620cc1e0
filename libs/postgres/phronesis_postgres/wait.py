"""Wait until a service's schema is as new as its package: what runs in front of the service where nothing else orders them.

python -m phronesis_postgres.wait memory

It asks as the service, with the service's own role, and ends as soon as it may start.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

import psycopg

from .schemas import is_current
from .settings import PostgresSettings

log = logging.getLogger(__name__)

_LIMIT, _PAUSE, _CONNECT = 600.0, 2.0, 5
"""Seconds to wait in all, between two looks, and for a connection. Whoever started this starts it again after the first."""


class NotReached(Exception):
    """The schema was not brought up to date in time."""


def wait(settings: PostgresSettings, service: str, *, limit: float = _LIMIT, pause: float = _PAUSE) -> None:
    """Return when the schema of `service` is as new as its package.

    Args:
        settings: where the database is, and who asks.
        service: whose schema.
        limit: seconds to wait at most.
        pause: seconds between two looks.

    Raises:
        NotReached: it was not in time.
    """
    until, said = time.monotonic() + limit, ""
    while True:
        state = _look(settings, service)
        if state is None:
            return
        if state != said:
            log.info("%s waits: %s", service, state)
            said = state
        if time.monotonic() + pause > until:
            raise NotReached(f"{service}: {state}")
        time.sleep(pause)


def _look(settings: PostgresSettings, service: str) -> str | None:
    """What there is to wait for; `None` where there is nothing."""
    try:
        dsn, password = settings.dsn.get_secret_value(), settings.password()
        with psycopg.connect(dsn, password=password, connect_timeout=_CONNECT, autocommit=True) as session:
            return None if is_current(session, service) else "its schema is older than it"
    except psycopg.OperationalError:
        return "the database does not let it in"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    service = parser.parse_args().service
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    try:
        wait(PostgresSettings(), service)
    except NotReached as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
