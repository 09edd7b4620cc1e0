"""Errors come back as classes, the same ones on every side: catch what you can act on."""

from uuid import uuid4

from phronesis import Client
from phronesis_contracts import BadRequest, NotFound, ServiceError

with Client() as client:
    try:
        client.conversations.send("hello", agent="nobody")
    except BadRequest as error:
        print(f"refused: {error.detail} (field {error.field})")

    try:
        client.turns.get(str(uuid4()))
    except NotFound as error:
        print(f"not found: {error.detail}")

    # A key makes a repeat harmless: the second call is answered with the first result.
    key = uuid4().hex
    try:
        first = client.conversations.send("hello", idempotency_key=key)
        again = client.conversations.send("hello", idempotency_key=key)
        print("one turn:", first.turn_id == again.turn_id)
    except ServiceError as error:
        print(f"failed: {error.code}")
        raise
