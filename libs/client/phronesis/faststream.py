"""Phronesis in a FastStream application: a router with the contracts that a key of the bus opens.

It needs the extra `phronesis[faststream]`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from faststream.exceptions import IncorrectState
from faststream.nats import NatsBroker, NatsRouter
from faststream.security import SASLPlaintext
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout
from pydantic import ValidationError

from phronesis_contracts import Internal, Message, Rpc, ServiceError, TimedOut, Tool, Unavailable
from phronesis_contracts.orchestrator import PROGRESS, TURN, SubmitTurn, turn_id

from .models import NewBusKey

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
_PRINCIPAL = "Phronesis-Principal"
_DEADLINE = "Phronesis-Deadline"
_KEY = "Idempotency-Key"
_ERROR = "Nats-Service-Error"


def make_broker(key: NewBusKey, *, servers: Sequence[str] | None = None, **options: Any) -> NatsBroker:
    """FastStream's broker, which comes in with `key`.

    Args:
        servers: addresses of the broker, where they are others from here than those in the key.
        options: more for `NatsBroker`.
    """
    login = SASLPlaintext(username=key.nats_user, password=key.nats_password)
    return NatsBroker(list(servers or key.servers), security=login, inbox_prefix=key.inbox, **options)


class PhronesisRouter(NatsRouter):
    """The public contracts, for the user that a key acts for. Include it in the broker that came in with that key.

    Args:
        key: what `phronesis keys create --for bus --json` printed.
    """

    def __init__(self, key: NewBusKey) -> None:
        super().__init__()
        self._key = key
        self._turns = self.publisher(
            TURN.from_outside(key.tenant, key.user), headers={_PRINCIPAL: key.token}, title=TURN.subject, schema=TURN.input
        )
        self._tools: dict[str, Any] = {}

    async def ask(
        self, contract: Rpc[In, Out] | Tool[In, Out], request: In, *, timeout: float | None = None, key: str | None = None
    ) -> Out:
        """Call a tool, and wait for its answer.

        Args:
            timeout: seconds to wait, the contract's by default.
            key: idempotency key of a write: the same key again returns the first result.

        Raises:
            ServiceError: what the owner answered; `Unavailable` where nobody serves it or the broker is away; `TimedOut`
                where no answer came in time.
        """
        rpc = contract.rpc if isinstance(contract, Tool) else contract
        seconds = rpc.timeout if timeout is None else timeout
        headers = {_DEADLINE: f"{time.time() + seconds:.3f}"} | ({_KEY: key} if key else {})
        body = request.model_dump_json().encode()
        try:
            reply = await self._publisher(contract, rpc).request(body, headers=headers, timeout=seconds)
        except NoRespondersError as error:
            raise Unavailable(f"{rpc.service} is not there", retry_after=1) from error
        except (NatsTimeout, TimeoutError) as error:
            raise TimedOut(f"no answer on {rpc.subject} in time") from error
        except (NatsError, IncorrectState, OSError) as error:
            raise Unavailable("the broker is away", retry_after=1) from error
        if _ERROR in reply.headers:
            raise _parse_error(reply.body)
        try:
            return rpc.output.model_validate_json(reply.body)
        except ValidationError as error:
            raise Internal(f"the answer of {rpc.subject} does not fit its contract") from error

    async def submit(self, text: str, *, key: str | None = None, **more: Any) -> str:
        """Hand a turn in. Nothing answers: `accepted` or `refused` in its progress says what became of it.

        Args:
            key: idempotency key; hand in with the same one again where neither came within seconds.
            more: further fields of `SubmitTurn`, such as `agent` or `conversation_id`.

        Returns:
            The id of the turn.

        Raises:
            Unavailable: the broker is away.
        """
        order = SubmitTurn(idempotency_key=key or uuid4().hex, text=text, **more)
        try:
            await self._turns.publish(order.model_dump_json().encode())
        except (NatsError, IncorrectState, OSError) as error:
            raise Unavailable("the broker is away", retry_after=1) from error
        return turn_id(self._key.tenant, self._key.user, order.idempotency_key)

    def progress(self, turn: str = ">") -> Callable[[Callable[..., Any]], Any]:
        """A decorator: the function gets each `TurnProgress` of the user's turns, or of one of them."""
        return self.subscriber(PROGRESS.on(self._key.tenant, self._key.user, turn))

    def _publisher(self, contract: Rpc[Any, Any] | Tool[Any, Any], rpc: Rpc[Any, Any]) -> Any:
        subject = rpc.on(self._key.tenant)
        found = self._tools.get(subject)
        if found is None:
            title = contract.name if isinstance(contract, Tool) else rpc.subject
            found = self.publisher(subject, headers={_PRINCIPAL: self._key.token}, title=title, schema=rpc.input)
            self._tools[subject] = found
        return found


def _parse_error(body: bytes) -> ServiceError:
    try:
        return ServiceError.from_body(json.loads(body))
    except (ValueError, AttributeError):
        return Internal("an error reply that does not parse")
