"""The driver's errors as ours. No text of the store leaves: it may hold data."""

from __future__ import annotations

import logging

from neo4j.exceptions import ConstraintError, DriverError, Neo4jError, TransientError

from phronesis_contracts import Internal, ServiceError, TimedOut, Unavailable

log = logging.getLogger(__name__)

TOO_LONG = "Neo.ClientError.Transaction.TransactionTimedOut"
_NOT_OURS = ("Neo.ClientError.Security.", "Neo.ClientError.Database.")


class translated:
    """Makes the driver's errors ours. No text of the store leaves: it may hold data."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case None | ServiceError():
                return
            case TimeoutError():
                raise TimedOut("the graph store did not answer in time") from error
            case TransientError() | ConstraintError():
                raise Unavailable("the graph store is busy with the same nodes", retry_after=1) from error
            case Neo4jError() if (error.code or "").startswith(TOO_LONG):
                raise TimedOut("the graph store did not answer in time") from error
            case Neo4jError() if (error.code or "").startswith(_NOT_OURS):
                log.error("the graph store refuses us: %s", error.code)
                raise Unavailable("the graph store does not let the service in", retry_after=5) from error
            case Neo4jError():
                log.error("the graph store did not take a statement: %s", error.code)
                raise Internal("the graph store did not take a statement") from error
            case DriverError() | OSError():
                raise Unavailable("the graph store does not answer", retry_after=1) from error
