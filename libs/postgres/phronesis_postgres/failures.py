"""What a driver's error means to a service: the database is away, or does not let it in; anything else is a bug."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from phronesis_contracts import ServiceError, Unavailable

log = logging.getLogger(__name__)

GONE = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # seen on a connection whose server died while it was idle
    asyncpg.OperatorInterventionError,  # shut down, starting, cancelled, crashed
    asyncpg.InsufficientResourcesError,  # connections, memory, disk
    asyncpg.PostgresSystemError,
    asyncpg.PostgresIOError,
    asyncpg.ReadOnlySQLTransactionError,  # the primary has become a replica
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    OSError,
    TimeoutError,
)
_NOT_OURS = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the driver inside the block leave it as ours.

    Raises:
        Unavailable: the database is down, refuses, or does not answer in time.
    """
    try:
        yield
    except ServiceError:
        raise
    except _NOT_OURS as error:
        log.error("the database does not let the service in: %s", error.sqlstate)
        raise Unavailable("the database does not let the service in", retry_after=5) from error
    except GONE as error:
        raise Unavailable("the database does not answer", retry_after=1) from error
