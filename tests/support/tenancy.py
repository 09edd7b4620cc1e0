"""Making random calls as another tenant, many at once, and looking at every answer for what is not the caller's."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from time import monotonic
from uuid import uuid4

import httpx
import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from phronesis_contracts import TooManyRequests
from phronesis_contracts.catalog import TOOLS
from tests.support import mcp
from tests.support.belongings import Belongings
from tests.support.people import Person, Town
from tests.support.personas import Persona
from tests.support.random_calls import Calls, Shot

ROLE = Persona.NOOR
"""Of the system on the bus."""
ROLES = ("noor", "maestro", "admin", "curator")
NEIGHBOURS = ("noor", "discuss", "editor")
"""Of other users of the first tenant."""
AT_ONCE = 64
_TRIES = 20
_VARYING = re.compile(
    r'"(trace_id|created_at|began_at|ended_at|expires_at|retry_after)": ?("[^"]*"|[0-9.]+)|"id": ?"[0-9a-f-]{36}"'
    r'|"ratelimit": "(?:[^"\\]|\\.)*"'
)
_FORBIDDEN = re.compile(r'"code\\?": ?\\?"forbidden\\?"')
"""How a refusal says so, by HTTP or as text inside an answer of MCP."""
_PRINCIPAL = "Phronesis-Principal"


@dataclass
class Found:
    """What came of the calls."""

    calls: int = 0
    by_what: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Seconds that the answers to an operation took, all together."""
    by_status: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    """Calls whose answer was held against the answer to an id that is nobody's."""
    leaks: list[str] = field(default_factory=list)
    tellings: list[str] = field(default_factory=list)
    """Answers that tell an id of somebody's from one of nobody's."""
    faults: Counter[str] = field(default_factory=Counter)
    """Answers of status 500, by operation."""
    overheard: list[str] = field(default_factory=list)
    """Messages of the bus that came where none of theirs may."""
    overreached: list[str] = field(default_factory=list)
    """Tools that answered a caller whose rights do not open them, or looked at the call before they refused it."""
    refused_roles: int = 0
    """Tools that refused a caller whose rights do not open them, with `forbidden`."""

    @property
    def seen(self) -> list[str]:
        """What should not have been seen or done."""
        return [*self.leaks, *self.tellings, *self.overheard, *self.overreached]


@dataclass(frozen=True)
class Answer:
    """What was answered."""

    status: int
    text: str

    def blurred(self, *ids: str) -> tuple[int, str]:
        """The answer without what differs from call to call."""
        text = self.text
        for id in ids:
            text = text.replace(id, "ID")
        return self.status, _VARYING.sub("", text)


class Listener:
    """An outside system of one's own tenant on the bus, with its ears wherever the broker lets it."""

    def __init__(self, credentials: dict[str, str], tenant: str, theirs: Belongings) -> None:
        self._made = credentials
        self._theirs = theirs
        self.tenant = tenant
        self.nats = Client()
        self.heard: list[str] = []
        # The broker says nothing to who asks what it may not: nobody waits for that.
        self._may = {tool.rpc.on(tenant) for tool in TOOLS.values() if ROLE.may(tool)}

    async def start(self, url: str) -> None:
        """Connect, and listen to everything that there is."""

        async def refused(error: Exception) -> None:
            return None

        async def heard(msg: Msg) -> None:
            self.heard.append(f"{msg.subject}: {msg.data[:200]!r}")

        login = {"user": self._made["nats_user"], "password": self._made["nats_password"]}
        await self.nats.connect(url, inbox_prefix=self._made["inbox"], error_cb=refused, **login)
        other = self._theirs.tenant
        subjects = (">", f"out.{other}.>", f"evt.{other}.>", f"rpc.{other}.>", f"job.{other}.>", "_INBOX.>", "$JS.>", "$KV.>")
        for subject in (*subjects, f"out.*.*.v1.turn.{self._theirs.user.user}.>"):
            await self.nats.subscribe(subject, cb=heard)
        await self.nats.flush()

    async def ask(self, shot: Shot) -> Answer:
        """The answer to a question; to one on a subject of theirs none is waited for, and one that comes is overheard."""
        headers = {_PRINCIPAL: self._made["token"]}
        body = json.dumps(shot.body).encode()
        if shot.target not in self._may:
            await self.nats.publish(shot.target, body, reply=f"{self._made['inbox']}.never", headers=headers)
            return Answer(0, "")
        try:
            reply = await self.nats.request(shot.target, body, timeout=15, headers=headers)
        except (NatsError, nats.errors.TimeoutError) as error:
            return Answer(504, type(error).__name__)
        status = (reply.headers or {}).get("Nats-Service-Error-Code", "200")
        return Answer(int(status), reply.data.decode())


class Stranger:
    """Somebody of another tenant, or of the same one, who calls whatever there is.

    Args:
        people: who it calls as, with what each may act as.
        theirs: what it wants.
        listener: its system on the bus, if there is a bus.
        neighbours: other users of the first tenant, of whom each fourth call is made.
    """

    def __init__(
        self,
        people: list[tuple[Person, Persona]],
        theirs: Belongings,
        listener: Listener | None,
        neighbours: list[tuple[Person, Persona]],
    ) -> None:
        self._people = people
        self._theirs = theirs
        self._listener = listener
        self._neighbours = neighbours
        self.found = Found()

    async def call(self, calls: int, seed: int, told: Callable[[Found], None] = lambda found: None) -> Found:
        """Make so many calls, `AT_ONCE` at a time.

        Args:
            calls: how many.
            seed: of their choice.
            told: called after each thousand.
        """
        made = Calls(seed, self._theirs, self._listener.tenant if self._listener else None)
        private = self._theirs.private()
        of_neighbours = Calls(seed + 1, private, None)

        next_thousand = itertools.count(1_000, 1_000)
        due = next(next_thousand)

        async def worker(number: int) -> None:
            nonlocal due
            while self.found.calls < calls:
                if number % 4:
                    await self._shoot(made.next(), self._theirs, *self._people[number % len(self._people)])
                else:
                    who = self._neighbours[number // 4 % len(self._neighbours)]
                    await self._shoot(of_neighbours.next(), private, *who)
                if self.found.calls >= due:
                    due = next(next_thousand)
                    told(self.found)

        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(worker(number))
        if self._listener:
            await self._listener.nats.flush()
            self.found.overheard += self._listener.heard
        return self.found

    async def _shoot(self, shot: Shot, theirs: Belongings, by: Person, persona: Persona) -> None:
        answer = await self._answer(shot, by)
        self._look(shot, answer, theirs.secrets)
        self._hold_to_rights(shot, answer, persona)
        if shot.names is not None and answer.status not in (429, 503, 504):
            nobodys = str(uuid4()) if "-" in shot.names else uuid4().hex[: len(shot.names)]
            control = await self._answer(shot.instead(nobodys), by)
            self.found.compared += 1
            if control.status not in (429, 503, 504) and answer.blurred(shot.names) != control.blurred(nobodys):
                self.found.tellings.append(f"{shot.face} {shot.what}: {answer} is not {control}"[:1_000])

    def _hold_to_rights(self, shot: Shot, answer: Answer, persona: Persona) -> None:
        tool = TOOLS.get(shot.what.removeprefix("tool ")) if shot.face in ("http", "mcp") else None
        if tool is None or persona.may(tool):
            return
        done = answer.status < 300 and (shot.face == "http" or '"isError":false' in answer.text.replace(" ", ""))
        if done:
            self.found.overreached.append(f"{shot.face} {shot.what} as {persona}: {answer.text[:300]}")
        elif _FORBIDDEN.search(answer.text):
            self.found.refused_roles += 1
        elif answer.status not in (429, 503, 504):  # rights are looked at before anything else of a call
            self.found.overreached.append(f"{shot.face} {shot.what} as {persona} is not refused: {answer.text[:300]}")

    def _look(self, shot: Shot, answer: Answer, secrets: set[str]) -> None:
        if answer.status == 500:
            self.found.faults[f"{shot.face} {shot.what}"] += 1
        said = shot.said
        for secret in secrets:
            if secret in answer.text and secret not in said:
                self.found.leaks.append(f"{shot.face} {shot.what}: {answer.text[:300]}")

    async def _answer(self, shot: Shot, by: Person) -> Answer:
        for _ in range(_TRIES):
            answer = await self._once(shot, by)
            if answer.status != TooManyRequests.status:
                break
            await asyncio.sleep(1)  # the caller's share of the rate is used up: that call was not looked at
        return answer

    async def _once(self, shot: Shot, by: Person) -> Answer:
        began = monotonic()
        match shot.face:
            case "bus":
                assert self._listener is not None
                answer = await self._listener.ask(shot)
            case "mcp":
                answer = await self._by_mcp(shot, by)
            case _:
                answer = await self._by_http(shot, by)
        self.found.calls += answer.status != TooManyRequests.status
        self.found.by_what[f"{shot.face} {shot.what}"] += 1
        self.found.seconds[f"{shot.face} {shot.what}"] += monotonic() - began
        self.found.by_status[f"{shot.face} {answer.status or 'unanswered'}"] += 1
        return answer

    async def _by_http(self, shot: Shot, by: Person) -> Answer:
        if shot.upload is not None:
            answer = await by.http.post(shot.target, files={"file": ("contract.txt", shot.upload, "text/plain")})
        else:
            stated = {"json": shot.body} if shot.body is not None else {}
            answer = await by.http.request(shot.method, shot.target, params=shot.query, headers=shot.headers, **stated)
        return Answer(answer.status_code, _shown(answer))

    async def _by_mcp(self, shot: Shot, by: Person) -> Answer:
        body = mcp.message("tools/call", {"name": shot.target, "arguments": shot.body})
        answer = await by.http.post(mcp.PATH, json=body, headers=mcp.headers_of(body))
        return Answer(answer.status_code, _shown(answer))


def _shown(answer: httpx.Response) -> str:
    """Everything that an answer shows, headers with it."""
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id", "content-length")}
    return f"{answer.text} {json.dumps(headers)}"


@contextlib.asynccontextmanager
async def stranger(people: Town, theirs: Belongings) -> AsyncIterator[Stranger]:
    """A stranger to what is `theirs`, with a user of each role and a system on the bus, and neighbours of those whom it belongs
    to, for the length of a block.
    """
    first = await people.someone(role=ROLES[0])
    others = [first, *[await people.someone(first.tenant, role=role) for role in ROLES[1:]]]
    neighbours = [await people.someone(theirs.tenant, role=role) for role in NEIGHBOURS]
    made = await people.owner.http.post(
        "/api/v1/keys/bus", json={"tenant": first.tenant, "user": first.user, **ROLE.stated, "days": 1}
    )
    assert made.status_code == 201, made.text
    listener = Listener(made.json(), first.tenant, theirs)
    await listener.start(made.json()["servers"][0])
    try:
        them = list(zip(others, map(Persona, ROLES), strict=True))
        yield Stranger(them, theirs, listener, list(zip(neighbours, map(Persona, NEIGHBOURS), strict=True)))
    finally:
        await listener.nats.close()
