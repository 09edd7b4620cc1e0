"""The languages of `content/`: how people say what is true of them and ask for it, as patterns that a program can match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from .predicates import language_files

FREE = r".+?\s+"
_UPPER = r"(?-i:[A-ZÀ-ÖØ-ÞĀ-Ž])[\w'’.&+-]*"
_TOKEN = re.compile(r"\{[^}]*\}|[\[\]()|/]|[^\s\[\](){}|/]+")


@dataclass(frozen=True)
class Form:
    """One pattern, as it is matched: of the user (`first`), of somebody else (`third`), or of nobody in particular."""

    first: re.Pattern[str]
    third: re.Pattern[str] | None


@dataclass(frozen=True)
class Told:
    """What a pattern states: predicate and object, as templates of its groups."""

    predicate: str
    value: str


@dataclass(frozen=True)
class Rule:
    """One way to state something."""

    form: Form
    told: tuple[Told, ...]
    of: str | None = None
    """Template of the subject, where it is not whoever `{I}` is."""
    negated: bool = False
    head: str | None = None
    """Class that the object's last words have to be of."""
    contains: str | None = None
    """Class of which the sentence has to hold a word."""
    carry: bool = True
    """Whether it may begin in the middle of a sentence, without its subject."""
    remembered: bool = False
    """Whether it counts only where the user asks to remember it."""


@dataclass(frozen=True)
class Complement:
    """What may follow an object: a statement of its own, or words that are no part of it."""

    of: frozenset[str]
    pattern: re.Pattern[str]
    predicate: str | None


@dataclass(frozen=True)
class Ask:
    """One way to ask for something."""

    form: Form
    predicates: tuple[str, ...]
    of: str | None
    object: str | None
    """Template of the object of a question for yes or no."""
    negated: bool
    """Whether it asks for what is not so."""
    about: str | None
    """Word that the object of what somebody has must hold."""
    soft: bool
    """Whether it may as well ask for something else."""


@dataclass(frozen=True)
class Sort:
    """A sort of answer: what asks for it, and what an answer of it holds."""

    asked: re.Pattern[str]
    holds: re.Pattern[str]

    def fits(self, question: str, text: str) -> bool:
        """Whether a text can answer a question as far as its sort goes."""
        return self.asked.search(question) is None or self.holds.search(text) is not None


@dataclass(frozen=True)
class Amends:
    """One way to correct what was said."""

    pattern: re.Pattern[str]
    lead: bool
    """Whether it counts only after a word such as `no`."""
    bare: bool
    """Whether other messages may look the same."""


@dataclass(frozen=True)
class Relation:
    """A kind of person or animal that somebody has."""

    name: str
    """The same in every language."""
    word: str
    plural: bool
    gender: str
    many: bool


@dataclass(frozen=True)
class Language:
    """One language, from its file."""

    name: str
    raw: Mapping[str, Any] = field(hash=False, compare=False)

    def words(self, key: str) -> tuple[str, ...]:
        """A list of words of the file, without capitals."""
        return tuple(str(one).casefold() for one in self.raw.get(key) or ())

    @cached_property
    def marks(self) -> frozenset[str]:
        return frozenset(self.words("marks"))

    @property
    def nouns_capital(self) -> bool:
        """Whether every noun has a capital, so that a capital marks no name."""
        return "nouns_capital" in self.raw

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """The relations by each of their forms."""
        found: dict[str, Relation] = {}
        for name, told in self.raw["relations"].items():
            word = told["forms"][0]
            for plural, forms in ((False, told["forms"]), (True, told.get("plural", ()))):
                for form in forms:
                    found[form.casefold()] = Relation(name, word, plural, told.get("gender", ""), "many" in told)
        return found

    def word_for(self, relation: str) -> Relation | None:
        """The relation of that name in this language."""
        return next((one for one in self.relations.values() if one.name == relation), None)

    @cached_property
    def nouns(self) -> dict[str, str]:
        """Predicates by the nouns that stand for them."""
        return {noun.casefold(): predicate for predicate, nouns in self.raw["nouns"].items() for noun in nouns}

    def any_of(self, key: str) -> re.Pattern[str]:
        """One of the phrases of a list, with the space after it."""
        return _any_of(self, key)

    @cached_property
    def subject(self) -> str:
        """A regular expression of what stands for the user."""
        return f"(?:{_either(self.words('first'))})" + r"\s+"

    @cached_property
    def rel(self) -> str:
        return _either(self.relations)

    @cached_property
    def name_words(self) -> str:
        links = _either(self.raw["name_links"])
        no = _either(self.words("no_names"))
        return rf"(?!(?:{no})\s){_UPPER}\s+(?:(?:(?:{links})\s+)?{_UPPER}\s+){{0,4}}"

    @cached_property
    def other(self) -> str:
        """A regular expression of what stands for somebody else."""
        mine = _either(self.words("my"))
        pronouns = _either(self.raw["pronouns"])
        several = rf"{self.name_words}(?:(?:{_either(self.words('lists'))})\s+{self.name_words})?"
        named = rf"(?:,\s+)?(?P<their>{several})(?:,\s+)?"
        return (
            rf"(?:(?:{mine})\s+(?:[\w-]+\s+)??(?P<whose>{self.rel})\s+(?:{named})?"
            rf"|(?P<they>{self.name_words})|(?P<pronoun>{pronouns})\s+)"
        )

    def class_words(self, name: str) -> str:
        """A regular expression of a word of a class, which ends in a space."""
        told = self.raw["classes"][name]
        among, without = (told["any"], told.get("except", ())) if isinstance(told, dict) else (told, ())
        no = rf"(?!(?:{_either(without)})\s)" if without else ""
        return rf"{no}(?:{_either(among)})\s+"

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(self._rule(told) for told in self.raw["statements"])

    def _rule(self, told: Mapping[str, Any]) -> Rule:
        parts = told.get("facts") or [told]
        return Rule(
            form=self.form(told["say"], told.get("person")),
            told=tuple(Told(one["is"], one.get("value", "{things}" if one["is"] == "things" else "{what}")) for one in parts),
            of=told.get("of"),
            negated="not" in told,
            head=told.get("head"),
            contains=told.get("contains"),
            carry=told.get("carry") != "false",
            remembered="remembered" in told,
        )

    def form(self, say: str, person: str | None = None) -> Form:
        """A pattern of the file, compiled."""
        first = re.compile(_Compiler(self, "first").compile(say), re.IGNORECASE)
        if "{I}" not in say or person == "first":
            return Form(first, None)
        return Form(first, re.compile(_Compiler(self, "third").compile(say), re.IGNORECASE))

    @cached_property
    def complements(self) -> tuple[Complement, ...]:
        return tuple(
            Complement(frozenset(told["of"]), self.form(told["say"]).first, told.get("is"))
            for told in self.raw.get("complements") or ()
        )

    @cached_property
    def asks(self) -> tuple[Ask, ...]:
        return tuple(
            Ask(
                self.form(told["say"], told.get("person")),
                tuple(told["of"]) if isinstance(told["of"], list) else (told["of"],),
                told.get("whose"),
                told.get("value"),
                "not" in told,
                told.get("about"),
                "soft" in told,
            )
            for told in self.raw.get("questions") or ()
        )

    @cached_property
    def sorts(self) -> tuple[Sort, ...]:
        return tuple(_sort(told) for told in (self.raw.get("sorts") or {}).values())

    @cached_property
    def amends(self) -> tuple[Amends, ...]:
        return tuple(
            Amends(self.form(told["say"]).first, "lead" in told, "lead" in told or "bare" in told)
            for told in self.raw.get("corrections") or ()
        )

    def holds(self, key: str, text: str) -> bool:
        """Whether a text holds one of the phrases of a list."""
        return re.search(rf"(?:^|\s)(?:{self.any_of(key).pattern})", f"{text} ", re.IGNORECASE) is not None

    def without(self, key: str, text: str) -> str:
        """A text without the phrases of a list."""
        return re.sub(rf"(?<=\s)(?:{self.any_of(key).pattern})", "", f" {text} ", flags=re.IGNORECASE).strip()

    def heads(self, name: str) -> re.Pattern[str]:
        """Up to four words of which the last are of a class."""
        return _heads(self, name)

    def contains(self, name: str) -> re.Pattern[str]:
        """A word of a class, anywhere."""
        return re.compile(rf"(?:^|\s){self.class_words(name)}", re.IGNORECASE)


def _sort(told: Mapping[str, Any]) -> Sort:
    holds = [rf"\b(?:{_either(told['words'])})\b"]
    if "digits" in told:
        holds.append(r"\d")
    if "name" in told:
        holds.append(rf"(?<=\S )(?!I\b){_UPPER}")
    return Sort(re.compile(rf"\b(?:{_either(told['asked'])})\b", re.IGNORECASE), re.compile("|".join(holds), re.IGNORECASE))


@cache
def _any_of(language: Language, key: str) -> re.Pattern[str]:
    phrases = sorted(map(str, language.raw.get(key) or ()), key=len, reverse=True)
    joined = "|".join(_Compiler(language, "first").compile(one) for one in phrases) or "(?!)"
    return re.compile(re.sub(r"\?P<\w+>", "?:", joined), re.IGNORECASE)


@cache
def _heads(language: Language, name: str) -> re.Pattern[str]:
    of = _either(language.words("of"))
    return re.compile(rf"(?:[\w/&-]+\s+){{0,3}}?{language.class_words(name)}(?:(?:{of})\s+{FREE})?", re.IGNORECASE)


def _either(words: Iterable[object]) -> str:
    ready = [re.escape(str(one)).replace(r"\ ", r"\s+").replace(r"\*", r"[\w-]*") for one in words]
    return "|".join(sorted(ready, key=len, reverse=True)) or "(?!)"


class _Compiler:
    """Makes one regular expression of a pattern. Every part of it ends in the space that follows a word."""

    def __init__(self, language: Language, person: str) -> None:
        self._language, self._person = language, person
        self._tokens: list[str] = []

    def compile(self, say: str) -> str:
        self._tokens = _TOKEN.findall(say)[::-1]
        return self._choice("")

    def _choice(self, end: str) -> str:
        persons: list[list[str]] = [[""]]
        while self._tokens:
            token = self._tokens.pop()
            if token == end:
                break
            if token == "|":
                persons[-1].append("")
            elif token == "/":
                persons.append([""])
            else:
                persons[-1][-1] += self._one(token)
        chosen = persons[0] if self._person == "first" or len(persons) == 1 else [one for each in persons for one in each]
        return chosen[0] if len(chosen) == 1 and not end else f"(?:{'|'.join(chosen)})"

    def _one(self, token: str) -> str:
        if token == "(":
            return self._choice(")")
        if token == "[":
            return f"(?:{self._choice(']')})?"
        if token.startswith("{"):
            return self._variable(token[1:-1])
        return re.escape(token) + r"\s+"

    def _variable(self, name: str) -> str:
        of = self._language
        if name == "I":
            return of.subject if self._person == "first" else of.other
        if name in ("no", "no?"):
            group = rf"(?P<no>{_either(of.words('negations'))})\s+"
            return group if name == "no" else f"(?:{group})?"
        if name == "my":
            return rf"(?:{_either(of.words('my'))})\s+"
        if name == "rel":
            return rf"(?:[\w-]+\s+)??(?P<rel>{of.rel})\s+"
        if name == "noun":
            return r"(?P<noun>(?:[\w'’-]+\s+){1,4}?)"
        if name == "Name":
            return f"(?P<Name>{of.name_words})"
        if name == "names":
            joined = rf"(?:,\s+(?:{_either(of.words('lists'))})\s+|,\s+|(?:{_either(of.words('lists'))})\s+)"
            return f"(?P<names>{of.name_words}(?:{joined}{of.name_words}){{0,6}})"
        if name == "number":
            return rf"(?P<number>\d{{1,3}}|{_either(of.words('numbers'))})\s+"
        if ":" in name:
            group, among = name.split(":", 1)
            return rf"(?P<{group}>{_either(among.split('|'))})\s+"
        plain = name.removesuffix("+")
        if plain in of.raw["classes"]:
            before = r"(?:[\w/&-]+\s+){0,3}?" if name.endswith("+") else ""
            inner = before + of.class_words(plain)
            return f"(?P<{plain}>{inner})" if plain != "adv" else inner
        return f"(?P<{plain}>{FREE})"


@cache
def languages() -> dict[str, Language]:
    """Every language that has a file, by its code."""
    return {raw["language"]: Language(raw["language"], raw) for raw in language_files()}


def prepare() -> None:
    """Compile every pattern of every language, which takes about a second, before the first message comes."""
    for language in languages().values():
        _ = language.rules, language.complements, language.asks, language.amends
        for key in (
            "leads",
            "tails",
            "remember",
            "openers",
            "tasks",
            "requests",
            "opinions",
            "fiction",
            "hypothetical",
            "reported",
            "trims",
            "question_leads",
            "question_tails",
        ):
            language.any_of(key)


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def language_of(text: str, told: str | Language | None = None) -> Language:
    """The language of a text: `told` where it has a file, else the one whose common words it has most of."""
    if isinstance(told, Language):
        return told
    known = languages()
    if told is not None and (found := known.get(told.split("-")[0].casefold())):
        return found
    words = [word.casefold() for word in _WORD.findall(text[:2_000])]
    return max(known.values(), key=lambda one: (sum(word in one.marks for word in words), one.name == "en"))


def expand(text: str, language: Language) -> str:
    """A sentence as patterns are matched with it: straight quotes, no contractions, one space round every sign and word."""
    plain = re.sub(r"\([^()]{0,80}\)", " ", text.replace("’", "'").replace("‘", "'"))
    short: dict[str, str] = language.raw.get("expansions") or {}
    words = []
    for word in re.sub(r"(?<!\d)([,:;])|([,:;])(?!\d)|([()])", r" \1\2 ", plain).split():
        bare = word.casefold()
        if bare in short:
            full = short[bare]
            words.append(full)
        elif bare.endswith("'s") and len(bare) > 2:
            words.extend((word[:-2], word[-2:]))
        else:
            words.append(word)
    return " ".join(words)


def noun_of(text: str, language: Language) -> str:
    """A noun as predicates are named: without capitals, in one spelling."""
    spellings: dict[str, str] = language.raw.get("spellings") or {}
    return " ".join(spellings.get(word, word) for word in restore(text).casefold().split())


def restore(text: str) -> str:
    """Words as they are written, from what `expand` made of them."""
    return re.sub(r"\s+('s\b|[,:;])", r"\1", " ".join(text.split())).strip(' ,.:;"“”')


def fill(template: str, groups: Mapping[str, str | None]) -> str:
    """A template with its groups put in."""
    return " ".join(re.sub(r"\{(\w+)\}", lambda one: groups.get(one[1]) or "", template).split())
