"""What one tenant has in a running stack: a bit of everything, with the words and ids by which it would be known elsewhere."""

from __future__ import annotations

from uuid import uuid4

from tests.support.people import Person, Town

TOPICS = ("Halvorsen vault", "Brandvold ferry", "Quillon archive", "Osterlund reservoir")
"""What is known of it elsewhere: anybody may ask for these, and nobody else finds anything."""
_YEAR = 2024


def _word() -> str:
    return f"zq{uuid4().hex[:14]}"


class Belongings:
    """What a tenant's users have.

    Args:
        people: makes users.
    """

    def __init__(self, people: Town) -> None:
        self._people = people
        self.secrets: set[str] = set()
        self._private: set[str] = set()
        """Words and ids that nobody else may ever be told."""
        self.ids: dict[str, list[str]] = {}
        """Ids by the collection that they stand in, all of them secrets too."""
        self.tenant = ""

    async def fill(self) -> None:
        """Let the tenant's administrator, and a user beside, have something of each kind."""
        self.chief = await self._people.someone(role="admin")
        self.user = await self._people.someone(self.chief.tenant, role="maestro")
        self.tenant = self.chief.tenant
        self.ids = {name: [] for name in ("turns", "conversations", "media", "keys", "deletions", "items", "nodes")}
        for person in (self.chief, self.user):
            await self._of(person)
        listed = (await self.chief.http.get("/api/v1/keys")).json()["keys"]
        self.ids["keys"] = [key["id"] for key in listed]
        self.secrets |= {self.tenant, self.chief.user, self.user.user}
        self.secrets |= {id for ids in self.ids.values() for id in ids} | {key["prefix"] for key in listed}

    async def _of(self, person: Person) -> None:
        for topic in TOPICS:
            await person.remember(topic, f"The {topic} is held by {self._secret()} and opens with {self._secret()}.")
            self.ids["items"] += [item["id"] for item in await person.recall(topic)]
        for topic in TOPICS[:2]:
            reply = await person.reply(f"What do you know of the {topic}? I am {self._secret()}.")
            self.ids["turns"].append(reply["turn_id"])
            self.ids["conversations"].append(reply["conversation_id"])
        text = f"The contract number is {self._secret()}.".encode()
        self.ids["media"].append(await person.uploaded(f"{self._secret()}.txt", text, "text/plain"))
        await person.http.put("/api/v1/profile", json={"profile": {"nickname": self._secret(), "likes": [self._secret()]}})
        gone = await person.reply(f"Forget this: {self._secret()}.")
        deletion = await person.http.delete(f"/api/v1/conversations/{gone['conversation_id']}")
        self.ids["deletions"].append(deletion.json()["deletion_id"])
        self.ids["conversations"].append(gone["conversation_id"])
        self.ids["nodes"].append(await self._node(person))

    async def _node(self, person: Person) -> str:
        name = _word()
        self.secrets.add(name)  # who reads the tenant's graph may know it
        node = {"type": "SectorGovEntity", "id": _word(), "year": _YEAR, "level": "L1", "name": name}
        answer = await person.tool("graph_upsert", {"nodes": [node]})
        assert answer.status_code == 200, answer.text
        return str(node["id"])

    def _secret(self) -> str:
        word = _word()
        self.secrets.add(word)
        self._private.add(word)
        return word

    def private(self) -> Belongings:
        """What is its users' own, and nobody else's of the same tenant: not the tenant's nodes, and not who there is."""
        own = Belongings(self._people)
        own.tenant, own.chief, own.user = self.tenant, self.chief, self.user
        own.ids = {name: ids for name, ids in self.ids.items() if name != "nodes"}
        own.secrets = self._private | {id for ids in own.ids.values() for id in ids}
        return own

    async def lost(self) -> list[str]:
        """What is there no longer, or is another's now."""
        gone = []
        for person, turns in ((self.chief, self.ids["turns"][:2]), (self.user, self.ids["turns"][2:])):
            for turn in turns:
                if (await person.http.get(f"/api/v1/turns/{turn}")).status_code != 200:
                    gone.append(f"turn {turn}")
            for topic in TOPICS:
                found = [item["id"] for item in await person.recall(topic)]
                if not set(found) & set(self.ids["items"]):
                    gone.append(f"what is known of {topic}")
            profile = (await person.http.get("/api/v1/profile")).json()["profile"]
            if profile.get("nickname") not in self.secrets:
                gone.append("a profile")
        for person, media in zip((self.chief, self.user), self.ids["media"], strict=True):
            if (await person.http.get(f"/api/v1/media/{media}")).status_code != 200:
                gone.append(f"medium {media}")
        return gone
