"""The one tree of errors that crosses the bus.

    ServiceError              code                 status
    ├─ BadRequest             bad_request          400   input did not parse, or breaks a rule
    │  └─ TooLarge            too_large            413
    │  └─ UnsupportedMedia    unsupported_media    415
    ├─ Unauthorized           unauthorized         401   no principal, or one that does not verify
    ├─ BudgetExceeded         budget_exceeded      402   a limit of tokens or money is reached; a repeat alone does not help
    ├─ Forbidden              forbidden            403   a principal that may not do this
    ├─ NotFound               not_found            404   unknown, or not the caller's: the same answer
    │  └─ Retired             retired              410   a tool that a later version of it has taken the place of
    ├─ Conflict               conflict             409
    │  └─ KeyReused           idempotency_key_reused     an idempotency key with another body
    │  └─ TurnEnded           turn_ended                 the turn has its end already
    ├─ TooManyRequests        too_many_requests    429
    ├─ Unavailable            unavailable          503   nobody serves it, or its store is down
    │  └─ Busy                busy                       a queue or a tenant's share is full
    │  └─ ModelUnavailable    model_unavailable          the language model is down, and there is nothing to say without it
    │     └─ ModelRateLimited model_rate_limited         the language model's provider is asked too often
    ├─ TimedOut               timed_out            504   the deadline passed first
    │  └─ ExpiredWaiting      expired_waiting            a turn expired while it waited for what did not answer
    └─ Internal               internal             500   anything else; its text stays in the service

`code` is API and never changes its meaning; `detail` is for people. A class registers its code when it is defined, so
`ask()` raises the same class on the other side. Two classes with one code fail at import.
"""

from __future__ import annotations

from typing import Any, ClassVar

_by_code: dict[str, type[ServiceError]] = {}


class ServiceError(Exception):
    """An error with a stable code.

    Args:
        detail: one sentence for people; carries no secret and no text of a store.
        field: the input field at fault, as a dotted path, where there is one.
        retry_after: seconds after which a repeat may succeed, where that is known.
    """

    code: ClassVar[str] = "service_error"
    status: ClassVar[int] = 500
    dependency: str | None = None
    """The service or store that did not answer, where whoever asked it knows that. It is no part of a reply."""

    def __init_subclass__(cls) -> None:
        code = cls.__dict__.get("code")
        if code is None:
            raise TypeError(f"{cls.__name__} has no code of its own")
        if code in _by_code:
            raise TypeError(f"{cls.__name__} and {_by_code[code].__name__} share the code {code!r}")
        _by_code[code] = cls

    def __init__(self, detail: str = "", *, field: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.detail = detail or self.code.replace("_", " ")
        self.field = field
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """The error as it stands in a reply: `code`, `status`, `detail`, and `field` and `retry_after` where set."""
        body: dict[str, Any] = {"code": self.code, "status": self.status, "detail": self.detail}
        if self.field is not None:
            body["field"] = self.field
        if self.retry_after is not None:
            body["retry_after"] = self.retry_after
        return body

    @staticmethod
    def from_body(body: dict[str, Any]) -> ServiceError:
        """The error that `body` states. A code that is not known here becomes the class of its status, or `Internal`."""
        cls = _by_code.get(str(body.get("code")))
        if cls is None:
            status = body.get("status")
            cls = next((c for c in _by_code.values() if c.status == status and c.__bases__ == (ServiceError,)), Internal)
        return cls(str(body.get("detail", "")), field=body.get("field"), retry_after=body.get("retry_after"))


def codes() -> dict[str, type[ServiceError]]:
    """Every registered code with its class."""
    return dict(_by_code)


class BadRequest(ServiceError):
    """The input did not parse, or breaks a stated rule; `field` names where."""

    code = "bad_request"
    status = 400


class TooLarge(BadRequest):
    """The input is over a stated limit of size."""

    code = "too_large"
    status = 413


class UnsupportedMedia(BadRequest):
    """A media type that is not supported, or content that is not what it claims to be."""

    code = "unsupported_media"
    status = 415


class Unauthorized(ServiceError):
    """No principal, or one that does not verify."""

    code = "unauthorized"
    status = 401


class BudgetExceeded(ServiceError):
    """A limit of tokens or money is reached: no model is called until its window ends, or an admin raises it."""

    code = "budget_exceeded"
    status = 402


class Forbidden(ServiceError):
    """The principal may not do this."""

    code = "forbidden"
    status = 403


class NotFound(ServiceError):
    """There is no such thing for this caller."""

    code = "not_found"
    status = 404


class Retired(NotFound):
    """There was such a tool, and there is a later version of it; the text names that one."""

    code = "retired"
    status = 410


class Conflict(ServiceError):
    """The state does not allow it."""

    code = "conflict"
    status = 409


class KeyReused(Conflict):
    """An idempotency key came again with another body."""

    code = "idempotency_key_reused"


class TurnEnded(Conflict):
    """The turn has ended already."""

    code = "turn_ended"


class TooManyRequests(ServiceError):
    """The caller is over its rate, or holds too many streams open."""

    code = "too_many_requests"
    status = 429


class Unavailable(ServiceError):
    """Nobody serves it, or its store is down; a repeat may succeed."""

    code = "unavailable"
    status = 503


class Busy(Unavailable):
    """A queue or a tenant's share is full; a repeat may succeed."""

    code = "busy"


class ModelUnavailable(Unavailable):
    """The language model does not answer, and there is nothing to say without it; a repeat may succeed."""

    code = "model_unavailable"


class ModelRateLimited(ModelUnavailable):
    """The language model's provider is asked too often; a repeat may succeed."""

    code = "model_rate_limited"


class TimedOut(ServiceError):
    """The deadline passed before an answer came."""

    code = "timed_out"
    status = 504


class ExpiredWaiting(TimedOut):
    """A turn expired while it waited for a service or a store that did not answer; its text names that one."""

    code = "expired_waiting"


class Internal(ServiceError):
    """Anything else. Its cause is in the log of the service that failed, and nowhere else."""

    code = "internal"
    status = 500
