"""Whose wish a call is: the user's own, or that of a text that the agent has read.

What an agent reads is data, and may not ask for anything. So a call with an effect that was decided on with untrusted texts at
hand is the user's own only where two things hold: a planner that was shown the user's words alone wants the same tool called,
and every argument is drawn from those words, from that planner's own call, or is the id of a thing that the user named. Rules
that read nothing but those words may make a call for each thing of a set that the words describe, while the platform's own
records are all that was read: exactly that call, and what it keeps is trusted no more than what it was taken from.
Keeping a planner from what it must not read follows CaMeL (Debenedetti et al., 2025), the labels FIDES (Costa et al., 2025).
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from phronesis_contracts import Effect, Label, Message, OriginKind, ServiceError, Tool, merge_labels, untrusted
from phronesis_contracts.media import HttpFetched
from phronesis_contracts.tools import schema_of_input

from ..conversations.history import NO_SUMMARY
from ..models.reasoner import TurnContext, Wish, Wisher, Wishes
from ..outside_tools.schemas import OutsideArguments
from .cognition.thought import NO_THOUGHT
from .text import STOP_WORDS, is_content, stem, words

log = logging.getLogger(__name__)

_NAMES = ("title", "name", "key", "label", "summary")
_NAMED, _PRIVATE = 2_000, 20_000
"""Things, and words of private texts, that are kept of what a turn reads."""
_LONGEST_NAME, _CALLED = 300, 8
"""Characters of a name, and names of one thing, that are looked at."""
_TELLING = 4
"""Letters from which on a word may give something away."""
_OF_ADDRESSES = frozenset({"http", "https", "html"})
_OF_SPEAKER = frozenset({"user"})
"""What a model calls whoever says “I”."""
_NEGATIONS = frozenset(
    """no not never none nor neither nobody nothing cannot without don't doesn't didn't isn't aren't wasn't won't can't
    nicht nie niemals kein keine keinen keinem keiner ohne""".split()
)
_NO_DENIAL = re.compile(r"\b(?:don't|do not|never|nicht) (?:forget|hesitate|vergessen)\b")
_DENIES = 2
"""Words before others in which a negation turns their sense."""
_SCHEME = re.compile(r"^https?://")
_ADDRESS = re.compile(r"://|@|\w/\w|\w\.\w")
"""What an address, or a part of one, has: its words in another order lead elsewhere."""
_SENTENCE = re.compile(r"[.!?;\n]+")
_NUMBER = re.compile(r"(?<![\w.])-?(\d+(?:[.,]\d+)*)\s*(%|percent)?")
_SAID = 20_000
"""Characters of the user's words in a conversation that arguments may be drawn from, the newest."""


class Origins:
    """What a turn has read so far: where it comes from, what it names, and which of its words are nobody else's business."""

    def __init__(self) -> None:
        self.labels: tuple[Label, ...] = ()
        self.said = ""
        """The user's own words in this conversation."""
        self.turn: TurnContext | None = None
        self.wishes: dict[str, tuple[Wish, ...]] = {}
        """What the planner that reads the user's words alone wants called, by the tool that it was asked about."""
        self._ids: dict[str, str] = {}
        """Ids that an event put into a goal, with what stands for each in its owner's words."""
        self._chosen: dict[str, list[Mapping[str, Any]]] = {}
        """Arguments of the calls that rules make for each thing of a set which the user's words describe, by their tool."""
        self._doubted: set[str] = set()
        """Tools whose calls a person decides on, whatever the user says meanwhile."""
        self._unread: list[tuple[str, Any]] = []
        self._names: dict[str, tuple[str, ...]] = {}
        self._private: dict[str, set[str]] = {}
        """Words of what was read, by the outside server that they came from; most come from none."""

    @property
    def untrusted(self) -> tuple[Label, ...]:
        """Where what was read comes from that may ask for nothing."""
        return untrusted(self.labels)

    def begin(self, turn: TurnContext, labels: Iterable[Label], ids: Mapping[str, str] | None = None) -> None:
        """Take over a turn's context.

        Args:
            turn: with the user's own words.
            labels: of the conversation so far.
            ids: what the user's words name by a placeholder, with that placeholder. As a whole an id is as good as said; the
                words in it are not.
        """
        self._ids = dict(ids or {})
        earlier = [message.text for message in turn.history if message.role == "user"]
        self.said, self.turn = "\n".join([turn.user_text, *reversed(earlier)])[:_SAID], turn
        client = turn.client
        theirs = client is not None and (client.instructions or client.steps or client.tools)
        answers = [message.text for message in turn.history if message.role != "user"]
        self.read([*labels, *([Label(kind=OriginKind.CLIENT)] if theirs else [])], turn.profile, turn.media_text, answers)

    def hear(self, text: str) -> None:
        """Take over what the user says while the turn is under way; what they want called is asked anew from then on."""
        self.said = f"{text}\n{self.said}"[:_SAID]
        self.wishes.clear()
        self._chosen.clear()
        if self.turn is not None:
            self.turn = replace(self.turn, user_text=f"{self.turn.user_text}\n{text}")

    def choose(self, tool: str, calls: Iterable[Mapping[str, Any]]) -> None:
        """Note the arguments of calls that rules, which read the user's words alone, make for each thing of a set."""
        self._chosen.setdefault(tool, []).extend(calls)

    def doubt(self, tool: str) -> None:
        """Note that calls of a tool go through a set that what was read may have chosen: a person decides on each of them."""
        self._chosen.pop(tool, None)
        self._doubted.add(tool)
        self.wishes[tool] = ()

    def read(self, labels: Iterable[Label], *values: Any) -> None:
        """Note what was read. `values`: messages, JSON, or texts."""
        came = tuple(labels)
        self.labels = merge_labels(self.labels, came)
        server = came[0].id if len(came) == 1 and came[0].kind is OriginKind.OUTSIDE else ""
        self._unread.extend((server, value) for value in values if value)

    def _take_in(self) -> None:
        """Look through what was read. Only a call with an effect needs to know, and most turns make none."""
        unread, self._unread = self._unread, []
        for server, value in unread:
            given = value.model_dump(mode="json", by_alias=True) if isinstance(value, Message) else value
            for id, names in _named(given):
                if len(self._names) < _NAMED:
                    self._names[id] = tuple(dict.fromkeys((*self._names.get(id, ()), *names)))[:_CALLED]
            kept = self._private.setdefault(server, set())
            for text in _leaves(given):
                if isinstance(text, str) and len(kept) < _PRIVATE:
                    kept.update(word for word in words(normalise(text[:_SAID])) if server or len(word) >= _TELLING)

    def gives_away(self, arguments: Any) -> bool:
        """Whether arguments hold words of what was read that neither the user nor the untainted planner said."""
        self._take_in()
        known = set(words(normalise(unquote(self._asked())))) | _OF_ADDRESSES
        secret = set[str]().union(*self._private.values())
        given = {word for value in _leaves(arguments) for word in words(normalise(unquote(str(value))))}
        return not (given & secret) <= known

    def draws(self, tool: Tool[Any, Any], arguments: Mapping[str, Any]) -> bool:
        """Whether each argument of a call is drawn from the user's words or from the untainted planner's call of the tool."""
        if tool.name in self._doubted or not self.wishes.get(tool.name):
            return False
        self._take_in()
        own = self._with_placeholders(arguments)
        return _is_drawn(own, self._asked(tool.name), self.said, _property_names(tool), self._names)

    def chose(self, tool: Tool[Any, Any], arguments: Mapping[str, Any]) -> bool:
        """Whether rules make exactly this call for a thing of a set, with nothing but the platform's own records read by then.

        It is the user's own wish then, though a title in it is not their word: nothing that leaves the tenant or reaches others
        is chosen so, and no address that the user did not say.
        """
        calls = self._chosen.get(tool.name)
        if tool.name in self._doubted or not calls or not self.wishes.get(tool.name) or effect_of(tool) is not Effect.WRITE:
            return False
        if any(label.kind is not OriginKind.TOOL for label in self.untrusted):
            return False
        if not any(_as_stated(tool, one) == arguments for one in calls):
            return False
        said = normalise(self.said)
        texts = (normalise(text) for text in _leaves(arguments) if isinstance(text, str))
        return not any(_ADDRESS.search(text) and text not in said for text in texts)

    def returns(self, tool: Tool[Any, Any], arguments: Mapping[str, Any], server: str) -> bool:
        """Whether a call tells an outside server nothing but the user's words and its own."""
        self._take_in()
        own = " ".join(self._private.get(server, ()))
        return _is_drawn(arguments, f"{self._asked(tool.name)}\n{own}", self.said, _property_names(tool), {})

    def splits_ids(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arguments hold words of an id that an event put into the goal, and not the whole id."""
        parts = {word for id in self._ids for word in words(normalise(id))} - set(words(normalise(self.said)))
        own = self._with_placeholders(arguments)
        return any(parts & set(words(normalise(str(value)))) for value in _every(own))

    def holds_ids(self, value: Any) -> bool:
        """Whether an id that an event put into the goal stands in a value, whose words may then be others' choice."""
        return any(normalise(id) in normalise(str(one)) for one in _every(value) for id in self._ids)

    def _with_placeholders(self, value: Any, key: str = "") -> Any:
        """A value with the placeholders of the user's words in place of the ids. `key`: the field that it stands in."""
        if not self._ids:
            return value
        if isinstance(value, str):
            if value in self._ids and not _is_id(key):
                return value  # an id can be made to look like any value
            for id in sorted(self._ids, key=len, reverse=True):
                value = re.sub(rf"(?<![\w-]){re.escape(id)}(?![\w-])", self._ids[id], value)
            return value
        if isinstance(value, Mapping):
            return {name: self._with_placeholders(member, str(name)) for name, member in value.items()}
        return [self._with_placeholders(member, key) for member in value] if isinstance(value, list | tuple) else value

    def _asked(self, tool: str | None = None) -> str:
        """The user's words, with what the untainted planner made of them. `tool`: for this tool alone."""
        wishes = [wish for name, some in self.wishes.items() if tool in (None, name) for wish in some]
        return "\n".join([self.said, *(" ".join(map(str, _every(wish.arguments))) for wish in wishes)])


def normalise(text: str) -> str:
    """A text without what tricks the eye: compatible forms are one, and signs without width are gone."""
    if text.isascii():
        return text.casefold()
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in folded if sign.isascii() or unicodedata.category(sign) != "Cf")


def effect_of(tool: Tool[Any, Any]) -> Effect:
    """What a call does beyond its answer; every call of an outside server leaves the tenant."""
    return Effect.OUTBOUND if issubclass(tool.rpc.input, OutsideArguments) else tool.effect


def labels_of(tool: Tool[Any, Any], answer: Message | None) -> tuple[Label, ...]:
    """Where what a tool gave comes from, its problems too. Members of an answer may say it for themselves, by a typed field."""
    if issubclass(tool.rpc.input, OutsideArguments):
        return (outside_label(tool),)
    if isinstance(answer, HttpFetched):
        return (Label(kind=OriginKind.WEB, name=(urlsplit(answer.url).hostname or "")[:300]),)
    found = tuple(_stated(answer))
    return merge_labels(found) if found else (Label(kind=OriginKind.TOOL, id=tool.name[:200]),)


def stated_arguments(request: Message) -> dict[str, Any]:
    """What a call says, without the defaults that its contract fills in."""
    return request.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _as_stated(tool: Tool[Any, Any], arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments as a call with them says them; `None` where they are none of the tool's."""
    try:
        return stated_arguments(tool.rpc.input.model_validate(arguments))
    except ValidationError:
        return None


def outside_label(tool: Tool[Any, Any]) -> Label:
    """The server of an outside tool, whose results and descriptions are its own words."""
    return Label(kind=OriginKind.OUTSIDE, id=tool.name.split(".")[1] if tool.name.count(".") > 1 else tool.name[:200])


class Wishing(Protocol):
    """What is needed of a turn in hand to ask which calls the user's words want."""

    @property
    def origins(self) -> Origins:
        """What it has read."""

    @property
    def reasoner(self) -> object:
        """What works on it."""

    async def wish(self, reasoner: Wisher, turn: TurnContext, tools: tuple[str, ...], step: str) -> Wishes | None:
        """The untainted planner's answer; `None` where it gave none."""


async def ask_wishes(running: Wishing, tools: Sequence[Tool[Any, Any]], step: str) -> None:
    """Ask a planner that reads the user's words alone which of the tools they want called, once for each tool of a turn.

    Where no planner answers, nothing is wished for: the calls then need a person. `step`: its name in the journal.
    """
    origins, reasoner = running.origins, running.reasoner
    wanted = [tool for tool in dict.fromkeys(tools) if tool.name not in origins.wishes]
    if not wanted or origins.turn is None:
        return
    found: Wishes | None = None
    if isinstance(reasoner, Wisher) and origins.said.strip():
        try:
            found = await running.wish(reasoner, _untainted(origins.turn), tuple(map(_described, wanted)), step)
        except ServiceError as error:
            log.warning("the wishes of the message could not be had: %s", error.code)
    calls = found.calls if found else ()
    for tool in wanted:
        origins.wishes[tool.name] = tuple(wish for wish in calls if wish.tool == tool.name)


def _untainted(turn: TurnContext) -> TurnContext:
    """The turn as far as it is the user's own words, and the tenant's instructions."""
    return replace(
        turn,
        profile={},
        history=tuple(replace(message, attached=()) for message in turn.history if message.role == "user"),
        final_input=turn.user_text,
        media_text="",
        summary=NO_SUMMARY,
        thought=NO_THOUGHT,
        client=None,
    )


def _described(tool: Tool[Any, Any]) -> str:
    """A tool as the planner is shown it. What an outside server says of its own is not the tenant's word, and left out."""
    schema = _schema(tool)
    if issubclass(tool.rpc.input, OutsideArguments):
        told = {name: one.get("type") for name, one in schema.get("properties", {}).items() if isinstance(one, dict)}
        return json.dumps({"tool": tool.name, "arguments": told})
    shown = schema_of_input(schema).get("properties", {})
    return json.dumps({"tool": tool.name, "does": tool.description, "arguments": shown}, ensure_ascii=False)


@cache
def _schema(tool: Tool[Any, Any]) -> dict[str, Any]:
    kind = tool.rpc.input
    return kind.schema_ if issubclass(kind, OutsideArguments) else kind.model_json_schema()


def _is_drawn(arguments: Any, drawn: str, said: str, known: frozenset[str], names: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether all that arguments hold was said.

    Args:
        drawn: what they may be drawn from.
        said: the user's own words in it.
        known: names of fields that the tool has.
        names: what things are called, by their id.
    """
    lines = _NO_DENIAL.sub(" ", normalise(drawn))
    text = " ".join(lines.split())
    stems, numbers = _stems(text, every=True) | _OF_SPEAKER, _numbers(text)
    sentences = [(_stems(one, every=True), bool(_NEGATIONS & set(words(one)))) for one in _SENTENCE.split(lines)]

    def holds(value: Any) -> bool:
        if value is None or value == "" or value is False:
            return True
        if value is True:
            return "true" in stems
        if not isinstance(value, str):
            return float(value) in numbers
        plain = _SCHEME.sub("", " ".join(normalise(value).split()))
        found = re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text) if len(plain) > 2 or plain in stems else None
        if found and not _NEGATIONS & set(words(text[: found.start()])[-_DENIES:]):
            return True
        parts = {stem(word) for word in words(plain) if word not in STOP_WORDS}
        if _ADDRESS.search(plain) or not words(plain) or not parts <= stems:
            return False
        # The same words with the opposite sense are not what was said.
        _, denied = max(sentences, key=lambda one: len(one[0] & parts), default=(frozenset(), False))
        return denied == bool(_NEGATIONS & set(words(plain)))

    pairs = list(_pairs(arguments))
    things = [value for key, value in pairs if isinstance(value, str) and _is_id(key) and value in names and not holds(value)]
    spoken = tuple(word for word in words(text) if len(word) >= _TELLING)

    def names_field(key: str) -> bool:
        # The same field may be called by a compound of the word: nickname for name.
        return holds(key) or (key.isalpha() and (key.casefold().endswith(spoken) or key.casefold().startswith(spoken)))

    keys = (key for key in _keys(arguments) if key not in known)
    rest = (value for key, value in pairs if value not in things or not _is_id(key))
    return all(map(names_field, keys)) and all(map(holds, rest)) and _are_named(things, normalise(said), names)


def _are_named(things: Sequence[str], said: str, names: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the things are those that the words fit best, one after the other, each by words that no other was named by.

    Args:
        said: the user's own words, as `normalise` gives them.
        names: what things are called, by their id.
    """
    left, wanted = said, list(dict.fromkeys(things))
    while wanted:
        stems = _stems(left)
        fits = {id: max(_fit(name, left, stems) for name in own) for id, own in names.items()}
        best = max(fits.values())
        found = next((id for id in wanted if any(best) and fits[id] == best), None)
        if found is None:
            return False
        used = frozenset[str]().union(*map(_stems, names[found]))
        left = " ".join(word for word in words(left) if stem(word) not in used)
        wanted.remove(found)
    return True


def _fit(name: str, said: str, stems: frozenset[str]) -> tuple[int, int]:
    """How well words fit a name: how many words it has where it was said whole, and how many of them were said."""
    own = words(name)
    whole = len(own) if len(own) > 1 and f" {' '.join(own)} " in f" {' '.join(words(said))} " else 0
    return whole, len(_stems(name) & stems)


def _numbers(text: str) -> frozenset[float]:
    """The numbers in a text; of a percentage the fraction too."""
    found = set[float]()
    for match in _NUMBER.finditer(text):
        plain = match[1].replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", match[1]) else match[1].replace(",", ".")
        if plain.count(".") < 2:
            value = float(plain)
            found |= {value, value / 100} if match[2] else {value}
    return frozenset(found)


def _property_names(tool: Tool[Any, Any]) -> frozenset[str]:
    return frozenset(_properties(_schema(tool)))


def _properties(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties" and isinstance(value, dict):
                yield from value
            yield from _properties(value)
    elif isinstance(schema, list):
        for member in schema:
            yield from _properties(member)


def _is_id(key: str) -> bool:
    """Whether a field holds what things are known by."""
    return key.casefold() in ("id", "key", "ids") or key.endswith(("_id", "Id", "_ids", "Ids"))


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield str(key)
            yield from _keys(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _keys(member)


def _pairs(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Each single value, with the name of the field that it stands in."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _pairs(member, str(name))
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _pairs(member, key)
    else:
        yield key, value


def _every(value: Any) -> Iterator[Any]:
    yield from _keys(value)
    yield from _leaves(value)


def _leaves(value: Any) -> Iterator[Any]:
    return (one for _, one in _pairs(value))


def _stems(text: str, *, every: bool = False) -> frozenset[str]:
    """The stems of a normal text: of the words that name something, or of all."""
    return frozenset(stem(word) for word in words(text) if every or is_content(word))


def _named(value: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The things in an answer: what may stand for an id, and what they are called."""
    if isinstance(value, dict):
        names = [normalise(str(value[name])[:_LONGEST_NAME]) for name in _NAMES if isinstance(value.get(name), str)]
        for key, id in value.items():
            if isinstance(id, str) and _is_id(key):
                yield id, (normalise(id), *names)
        for member in value.values():
            yield from _named(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _named(member)


def _stated(value: Any) -> Iterator[Label]:
    """Labels that the members of an answer carry in fields of their own: a text or a free object can state none."""
    if isinstance(value, Label):
        yield value
    elif isinstance(value, Message):
        for name in type(value).model_fields:
            yield from _stated(getattr(value, name))
    elif isinstance(value, tuple):
        for member in value:
            yield from _stated(member)
