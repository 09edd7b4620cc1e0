"""Message contracts of Phronesis: data only, no transport, no store."""

from .errors import (
    BadRequest,
    Busy,
    Conflict,
    Forbidden,
    Internal,
    KeyReused,
    NotFound,
    ServiceError,
    TimedOut,
    TooLarge,
    TooManyRequests,
    TurnEnded,
    Unauthorized,
    Unavailable,
    UnsupportedMedia,
)
from .messages import Event, Job, Message, Nothing, Out, Rpc
from .principal import EVERYONE, SYSTEM_TENANT, Principal, Role, Token
from .tools import Risk, Tool

__all__ = [
    "EVERYONE",
    "SYSTEM_TENANT",
    "BadRequest",
    "Busy",
    "Conflict",
    "Event",
    "Forbidden",
    "Internal",
    "Job",
    "KeyReused",
    "Message",
    "NotFound",
    "Nothing",
    "Out",
    "Principal",
    "Risk",
    "Role",
    "Rpc",
    "ServiceError",
    "TimedOut",
    "Token",
    "TooLarge",
    "TooManyRequests",
    "Tool",
    "TurnEnded",
    "Unauthorized",
    "Unavailable",
    "UnsupportedMedia",
]
