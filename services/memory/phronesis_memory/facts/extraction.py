"""Statements from a user's own sentences, by the patterns of their language. What is asked, supposed or quoted is none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from phronesis_contracts.facts import FactKind, Statement

from ..words.analysis import stems
from .language import Complement, Language, Rule, expand, fill, language_of, noun_of, restore
from .predicates import IS, NOTED, predicate_of
from .wording import USER, sentence_of

MAX_STATEMENTS = 20
"""Statements of one message."""
_LOOK_AT = 8_000
"""Characters of a message that are looked at."""
_SHORT = 600
"""Characters of a message in which names stand for people whom the user tells of."""
_CLAUSE = 400
"""Characters of a clause that are looked at: patterns with several gaps take longer the longer it is."""
_LONGEST = 200
"""Characters of an object; a longer one is a story, and no fact."""
_NAME = 3
"""Words of a name that is written without capitals, at most."""
_LEAST, _FEWEST, _MOST = 2, 3, 40
"""Words of a sentence that is kept as it was said."""
_SHORTLY = 8
"""Words of a sentence that may say no more than what its speaker is about to do."""
_UNSAID = 2
"""Words of a sentence that no statement has, from which on the sentence is kept as well."""
_SAID_ALREADY = 0.5
"""The share of a sentence's words that statements have to hold for it to need no note."""
_BY_RULE = 0.9
"""How sure a rule is: it takes the words as they stand."""
_QUOTED = re.compile(r'"[^"]{0,400}"|“[^”]{0,400}”|„[^“”]{0,400}[“”]|«[^»]{0,400}»')
_BREAK = re.compile(r"(?<=[.!?])[\"”“]?\s+|\n+|;\s+")
_CUT = frozenset({",", ";", "-", "–", "—"})


@dataclass(frozen=True)
class Found:
    """What one clause states, before it is put into words."""

    predicate: str
    object: str
    subject: str = USER
    negated: bool = False


@dataclass
class _Message:
    """What is known of a message while its sentences are read."""

    language: Language
    person: str = ""
    """Whom a pronoun stands for: the last of the user's people that was named."""
    gender: str = ""
    noun: str = ""
    """What “one” stands for: the last of the user's things that was named."""
    remembered: bool = False
    short: bool = True
    """Whether it is short enough to be told: what a longer one says of others is likely to be a text that was pasted."""


def extract_statements(text: str, language: str | Language | None = None) -> tuple[Statement, ...]:
    """What a user states in a message about themselves and those around them, in the order of the message.

    Args:
        language: its code, such as `en`; without one the language is told by its words.
    """
    spoken = language_of(text, language)
    message = _Message(spoken, short=len(text) <= _SHORT)
    found: list[Found] = []
    for sentence in sentences(_unquoted(text[:_LOOK_AT]), spoken):
        if _ends_reading(sentence, spoken):
            break
        found.extend(_read_sentence(sentence, message))
    made = (_statement(one, spoken) for one in dict.fromkeys(found))
    return tuple([one for one in made if one is not None][:MAX_STATEMENTS])


def _unquoted(text: str) -> str:
    """A text without quotations of more than one sentence: cut into sentences, they would seem to be the speaker's own."""
    return _QUOTED.sub(lambda one: "“”" if _BREAK.search(one[0].strip('"“”„«»')) else one[0], text)


_PARTICIPLE = 4
"""Letters of a word that may be a verb of what happened."""
_CONTINUING = 5
"""The same of one that may be what is being done; of five, it may be “bring”."""
_BEGINNING, _SUBJECT = 5, 3
"""Words in which a sentence that is not of the speaker has a verb that only its ending shows, or names somebody of theirs."""


def note_the_rest(text: str, stated: Sequence[Statement], language: str | Language | None = None) -> tuple[Statement, ...]:
    """Sentences of which no statement says what is most of them, kept as they were said, so that they can be found again.

    Args:
        stated: what `extract_statements` found in the same text.
    """
    spoken = language_of(text, language)
    if len(text) > _SHORT:
        return ()
    held = set(stems(" ".join(f"{one.subject} {one.predicate} {one.object} {one.text}" for one in stated)))
    found = []
    for sentence in sentences(_unquoted(text), spoken):
        if _ends_reading(sentence, spoken):
            break
        plain = _plain(sentence, spoken)
        if _is_told(sentence, plain, spoken) and not _is_held(plain, expand(sentence, spoken), held, spoken):
            found.append(Found(NOTED, restore(_plain(sentence, spoken, expanded=False))))
    made = (_statement(one, spoken) for one in dict.fromkeys(found))
    return tuple(one for one in made if one is not None)[:MAX_STATEMENTS]


def _is_told(sentence: str, plain: str, language: Language) -> bool:
    """Whether a sentence tells something of the user's own world: no question, order, supposition or report."""
    words, said = plain.casefold().split(), sentence.casefold().rstrip(" .!").split()
    if (
        len(words) < _LEAST
        or sentence.rstrip(" \"'”").endswith("?")
        or not _FEWEST <= max(len(words), len(said)) <= _MOST
        or said[-1] in language.words("polite")
    ):
        return False
    if language.any_of("labels").match(f"{expand(sentence, language)} "):
        return True
    if language.holds("wishes", plain) and ":" not in sentence and not set(language.words("asking")) & set(words[:_FEWEST]):
        return not language.any_of("tasks").match(plain)
    other = ("openers", "tasks", "hypothetical", "requests", "opinions")
    if not _leaves_out_who(words, language):
        asks = set(language.words("asking")) & {*words[:_FEWEST], *words[-2:]}  # new ones in 2023, how many
        if asks or any(language.any_of(key).match(plain) for key in other):
            return False
    if _is_reported(plain, language) and not language.holds("advice", plain):
        return False
    own = {*language.words("first"), *language.words("my"), *language.words("me")}
    if own & set(words) or _goes_on(words, language):
        return len(words) > _SHORTLY or not language.any_of("passing").match(f"{plain} ")
    if words[0] in language.words("points") and not any(word[0].isdigit() for word in words):
        return False  # whoever reads it alone does not know what it points to
    verbs = {*language.words("auxiliaries"), *language.words("modals"), *language.words("happened")}
    happened = any(
        len(word) > _PARTICIPLE
        and (word[0].islower() or not language.nouns_capital)
        and word.casefold().endswith(language.words("participles"))
        and before.casefold() not in (*language.words("articles"), *language.words("definite"))
        for before, word in pairwise(["", *plain.split()[:_BEGINNING]])
    )
    counted = any(one.endswith("'s") and after[:1].isdigit() for one, after in pairwise(words))  # Fintan's 8
    definite = words[0] in {*language.words("articles"), *language.words("definite")}
    comma = next((at for at, word in enumerate(words) if word.endswith(",")), len(words))
    first = words if definite else [word.rstrip(",") for word in words[: max(comma + 1, _BEGINNING)]]
    return (
        bool(verbs & set(first))
        or happened
        or counted
        or _lists(sentence)
        or any(word in language.relations for word in words[:_SUBJECT])
    )


_LISTS = re.compile(r"[^,:?]{3,40}: \S[^:?]*?\d[^:?]*?,[^:?]*?\d[^?]*")


def _lists(sentence: str) -> bool:
    """Whether a sentence is a list of things with their days or figures: birthdays: Ada 4 February, Milo 22 July."""
    return _LISTS.fullmatch(sentence) is not None


def _leaves_out_who(words: Sequence[str], language: Language) -> bool:
    """Whether a sentence begins with its verb because the “I” before it was left out: was told to rest."""
    return words[0] in language.words("auxiliaries") and words[1].endswith(language.words("participles"))


def _goes_on(words: Sequence[str], language: Language) -> bool:
    """Whether a sentence tells what is being done, or is done: learning Welsh with an app; the kitchen's being redone."""
    endings, states = language.words("continuing"), {*language.words("continuing_states")}
    begins = len(words) > _FEWEST and len(words[0]) > _CONTINUING and bool(endings) and words[0].endswith(endings)
    goes = any(one == "'s" and after in states for one, after in pairwise(words[: _BEGINNING + 1]))
    return begins or goes


def _plain(sentence: str, language: Language, *, expanded: bool = True) -> str:
    """A sentence without what opens and ends it, and without the words that ask to remember it."""
    text = expand(sentence.rstrip(" .!"), language) if expanded else " ".join(sentence.rstrip(" .!").split())
    plain = without_leads(f"{text} ", language)
    order = language.any_of("remember").match(plain)
    return _trimmed(plain[order.end() :].lstrip(" ,:") if order else plain, language) if expanded else plain


def _is_held(plain: str, whole: str, held: Set[str], language: Language) -> bool:
    """Whether most words of a sentence are held, and every name and number of the whole of it."""
    small = {
        *language.marks,
        *language.words("first"),
        *language.words("my"),
        *language.words("articles"),
        *language.words("naming"),
    }
    words = [word for word in plain.split() if word.casefold() not in small]
    own = {stem for word in words for stem in stems(word)}
    numbers = [word for word in (*words[1:], *whole.split()) if word[0].isdigit()]
    names = [word for word in words[1:] if word[0].isupper() and not language.nouns_capital]
    exact = {stem for word in (*numbers, *names) for stem in stems(word)}
    return exact <= held and len(held & own) >= _SAID_ALREADY * len(own) and len(own - held) < _UNSAID


def sentences(text: str, language: Language) -> Iterator[str]:
    """The sentences of a text, without list marks, each with the sign that ends it."""
    plain = text.replace("\x00", " ")
    start = 0
    short = language.words("abbreviations")
    months = language.words("months")
    for end in _BREAK.finditer(plain):
        before = plain[start : end.start()].rstrip()
        last = before.split()[-1].rstrip(".").casefold() if before.split() else ""
        following = plain[end.end() :].split(maxsplit=1)
        if before.endswith(".") and "\n" not in end[0]:
            if last in short or (last.isdigit() and following and following[0].casefold().strip(".,") in months):
                continue
        start, one = end.end(), before
        if one.strip(" -*>•"):
            yield one.strip().lstrip("-*>• ")
    if rest := plain[start:].strip().lstrip("-*>• "):
        yield rest


def _ends_reading(sentence: str, language: Language) -> bool:
    """Whether a message is somebody else's from this sentence on: a story, a role, or a text to work on."""
    plain = without_leads(expand(sentence, language) + " ", language)
    if language.any_of("fiction").match(plain) or _gives_roles(plain, language):
        return True
    return bool(language.any_of("tasks").match(plain)) and (":" in sentence or '"' in sentence)


def _gives_roles(plain: str, language: Language) -> bool:
    """Whether a sentence says who is who in a play: you are the captain, I am the cook."""
    given = language.any_of("you_are").match(plain)
    later = plain[given.end() :].casefold().split() if given else []
    return any(before.endswith(",") and after in language.words("first") for before, after in pairwise(later))


def without_leads(text: str, language: Language) -> str:
    """A sentence without the words that only open it."""
    lead = language.any_of("leads")
    while found := lead.match(text):
        rest = text[found.end() :].lstrip(" ,:!.")
        if not rest:
            break
        text = rest
    return text


def _read_sentence(sentence: str, message: _Message) -> list[Found]:
    language = message.language
    asked = sentence.rstrip(" \"'”").endswith("?")
    if language.any_of("tasks").match(f"{expand(sentence, language)} "):
        return []
    quoted = _QUOTED.sub(lambda one: " " if len(one[0].split()) > 2 else one[0].strip('"“”„«»'), sentence)
    plain = f"{expand(quoted.rstrip(' .!?'), language)} "
    opened = without_leads(plain, language)
    told = language.any_of("remember").match(opened) or language.any_of("remember").match(plain)
    body = (opened if told and told.string is opened else plain)[told.end() :].lstrip(" ,:") if told else opened
    message.remembered = told is not None
    if told is None and ((quoted != sentence and not plain.strip()) or _is_reported(plain, language)):
        return []
    clauses = _clauses(without_leads(body, language), message)
    if asked and told is None:
        clauses = clauses[:-1] if clauses and language.any_of("openers").match(clauses[-1]) else []
    found: list[Found] = []
    for clause in clauses:
        if language.any_of("hypothetical").match(clause):
            break
        found.extend(_read_clause(clause, message))
    noted = told is not None and (told[0].split()[-1].casefold() in language.words("note_after") or _lists(body.strip()))
    if noted and not found and body.strip():
        found.append(Found(NOTED, restore(body)))
    return found


def _is_reported(text: str, language: Language) -> bool:
    found = re.search(rf"(?:^|\s)(?:{language.any_of('reported').pattern})", text, re.IGNORECASE)
    before = text[: found.start()].split() if found else []
    return found is not None and (not before or before[-1].casefold() not in language.words("first"))


def _clauses(text: str, message: _Message) -> list[str]:
    """A sentence cut where something else is stated; a clause without its subject is given that of the one before."""
    language = message.language
    words = text.split()
    joins = frozenset(language.words("conjunctions")) | _CUT
    found: list[str] = []
    start, subject = 0, ""
    carried = _carries(" ".join(words) + " ", language)
    position = 1
    while position < len(words):
        if words[position - 1].casefold() not in joins or words[position].casefold() in joins:
            position += 1
            continue
        rest = " ".join(words[position:])[:_CLAUSE] + " "
        subject_here = _opening(rest, carried, language, message)
        if subject_here is None:
            position += 1
            continue
        end = position
        while end > start and words[end - 1].casefold() in joins:
            end -= 1
        found.append(f"{subject}{' '.join(words[start:end])} ")
        start, subject = position, subject_here
        carried = _carries(subject + rest, language) or carried
        position += 1
    found.append(f"{subject}{' '.join(words[start:])} ")
    return [one for one in found if one.strip()]


def _carries(clause: str, language: Language) -> tuple[str, ...]:
    """What may stand for the subject of the next clause: this one's, with its auxiliary and without."""
    for pattern in (language.subject, language.other):
        if found := re.match(pattern, clause, re.IGNORECASE):
            after = clause[found.end() :].split(maxsplit=1)
            auxiliary = after[0] if after and after[0].casefold() in language.words("auxiliaries") else ""
            groups = found.groupdict()
            plain = clause[: found.end("whose")] + " " if groups.get("whose") else found[0]
            return tuple(one for one in (f"{plain}{auxiliary} " if auxiliary else "", plain) if one)
    return ()


def _opening(rest: str, carried: Sequence[str], language: Language, message: _Message) -> str | None:
    """The subject that a clause lacks where these words open one, empty where it has its own; `None` where they do not."""
    if language.any_of("hypothetical").match(rest) or language.any_of("openers").match(rest):
        return ""
    own = without_leads(rest, language)
    if any(_opens(rule, own, message) for rule in language.rules):
        return ""
    for subject in carried:
        if any(rule.carry and _opens(rule, subject + rest, message) for rule in language.rules):
            return subject
    return None


def _opens(rule: Rule, text: str, message: _Message) -> bool:
    if rule.remembered and not message.remembered:
        return False
    for pattern in (rule.form.first, rule.form.third):
        if pattern is not None and (found := pattern.match(text)):
            if "things" in pattern.groupindex:
                return bool(re.match(_counted(message.language), text[found.start("things") :], re.IGNORECASE))
            return rule.head is None or bool(message.language.heads(rule.head).match(text[found.start("what") :]))
    return False


def _counted(language: Language) -> str:
    """What things that somebody has begin with."""
    return rf"(?:\d+|{'|'.join(_either_of(language, key) for key in ('numbers', 'articles', 'my'))})\s"


def _read_clause(clause: str, message: _Message) -> list[Found]:
    language = message.language
    text = _trimmed(without_leads(clause, language)[:_CLAUSE], language)
    for rule in language.rules:
        if rule.remembered and not message.remembered:
            continue
        for pattern in (rule.form.first, rule.form.third):
            if pattern is None or (match := pattern.fullmatch(text)) is None:
                continue
            if (found := _of_match(rule, match, message)) is not None:
                return found
    return _things(text, USER, message, bare=False)


def _trimmed(text: str, language: Language) -> str:
    tail = re.compile(rf"(?:,\s+)?(?<=\s)(?:{language.any_of('tails').pattern})$", re.IGNORECASE)
    while True:
        shorter = tail.sub("", text).rstrip(" ,.!") + " "
        if shorter == text or not shorter.strip():
            return text
        text = shorter


def _of_match(rule: Rule, match: re.Match[str], message: _Message) -> list[Found] | None:
    """What a rule that matches states; `None` where it does not hold after all."""
    language = message.language
    groups: dict[str, str | None] = {name: value.strip(" ,") if value else value for name, value in match.groupdict().items()}
    subject, found = _subject(rule, groups, message)
    made: list[Found] | None
    if subject is None or (rule.contains and not language.contains(rule.contains).search(match[0])):
        return None
    negated = rule.negated or bool(groups.get("no"))
    for told in rule.told:
        value = fill(told.value, groups)
        if told.predicate == "things":
            made = _things(f"{value} ", subject, message, bare=True, negated=negated)
            if not made:
                return None
            found.extend(made)
            continue
        predicate = _predicate(told.predicate, groups, value, message)
        if predicate is None:
            return None
        made = _objects(predicate, value, subject, rule, message, negated=negated)
        if made is None:
            return None
        found.extend(made)
    return found


def _subject(rule: Rule, groups: dict[str, str | None], message: _Message) -> tuple[str | None, list[Found]]:
    """Whom a match is about, and what its subject states by itself: `my wife Anna works here` names the wife."""
    language = message.language
    if rule.of is not None:
        named = fill(rule.of, groups)
        relation = language.relations.get(named.casefold())
        return (_of_user(relation.name) if relation else named), []
    if whose := groups.get("whose"):
        relation = language.relations[" ".join(whose.casefold().split())]
        message.person, message.gender = _of_user(relation.name), relation.gender
        names = _listed(groups.get("their") or "", language)
        return message.person, [Found(f"{relation.name}{IS}", restore(name)) for name in names]
    if (name := groups.get("they")) and not message.short:
        return None, []
    if name:
        relation = language.relations.get(name.casefold())
        return (_of_user(relation.name) if relation else name), []
    if pronoun := groups.get("pronoun"):
        gender = language.raw["pronouns"][pronoun.casefold()]
        return (message.person if message.person and message.gender in ("", gender) else None), []
    return USER, []


def _of_user(relation: str) -> str:
    return f"{USER}'s {relation}"


def _predicate(template: str, groups: dict[str, str | None], value: str, message: _Message) -> str | None:
    """The predicate that a template names; `None` where its noun or object says nothing that lasts."""
    language = message.language
    if template == "{rel} is":
        return f"{language.relations[' '.join((groups['rel'] or '').casefold().split())].name}{IS}"
    if template != "{noun}":
        return fill(template, groups).casefold()
    plain = noun_of(groups["noun"] or "", language)
    if plain.split()[-1] in language.words("stand_ins") and message.noun:
        plain = " ".join((*plain.split()[:-1], *message.noun.split()[len(plain.split()) - 1 :]))
    message.noun = plain
    if plain in language.words("idle") or plain.split()[-1] in language.words("idle"):
        return None
    if re.match(rf"(?:{language.any_of('vague').pattern})", f"{value} ", re.IGNORECASE):
        return None
    relation = language.relations.get(plain)
    if relation is not None:
        return f"{relation.name}{IS}" if re.fullmatch(language.name_words, f"{value} ", re.IGNORECASE) else None
    if known := language.nouns.get(plain):
        return known if known not in ("works at", "plans", "drives") or known == "works at" else f"{plain}{IS}"
    return f"{plain}{IS}"


def _objects(predicate: str, value: str, subject: str, rule: Rule, message: _Message, *, negated: bool) -> list[Found] | None:
    """The objects of one predicate, and what stands after them as a statement of its own."""
    language = message.language
    value, more = _complemented(predicate, value, subject, message)
    if rule.head and not language.heads(rule.head).fullmatch(f"{value} "):
        return None
    joined = predicate_of(predicate).list
    found = []
    for one in _joined(value, language) if joined else [value]:
        thing, denied = _stripped(predicate, one, language)
        if thing:
            found.extend(_named(Found(predicate, thing, subject, negated != denied), language))
    return [*found, *more] if found else None


def _named(one: Found, language: Language) -> list[Found]:
    """The statement itself; of a name, as far as it is one. That of the user's wife is kept as who she is."""
    own = f"{USER}'s "
    if one.predicate != "called":
        return [one]
    name = re.match(language.name_words, f"{one.object} ".replace(",", " ,"))
    if name is None and len(one.object.split()) > _NAME:
        return []
    called = restore(name[0]) if name else one.object
    if one.subject.startswith(own):
        return [Found(f"{one.subject.removeprefix(own)}{IS}", called, USER, one.negated)]
    return [Found(one.predicate, called, one.subject, one.negated)]


def _complemented(predicate: str, value: str, subject: str, message: _Message) -> tuple[str, list[Found]]:
    language = message.language
    words = value.split()
    for at in range(1, len(words)):
        rest = " ".join(words[at:]) + " "
        for one in language.complements:
            if predicate in one.of and (match := one.pattern.fullmatch(rest)):
                return " ".join(words[:at]), _of_complement(one, match, subject, message)
    return value, []


def _of_complement(one: Complement, match: re.Match[str], subject: str, message: _Message) -> list[Found]:
    if one.predicate is None:
        return []
    if one.predicate == "things":
        return _things(f"{match['things']}", subject, message, bare=False)
    rest, more = _complemented(one.predicate, match["what"].strip(), subject, message)
    thing, _ = _stripped(one.predicate, rest, message.language)
    return [Found(one.predicate, thing, subject), *more] if thing else more


def _listed(value: str, language: Language) -> list[str]:
    joins = "|".join(re.escape(one).replace(r"\ ", r"\s+") for one in sorted(language.words("lists"), key=len, reverse=True))
    parts = re.split(rf"\s*,\s+(?:(?:{joins})\s+)?|\s+(?:{joins})\s+", f"{value} ")
    return [one.strip() for one in parts if one.strip()]


def _joined(value: str, language: Language) -> list[str]:
    """The things of a list. Behind commas alone only the first is sure to be one; none is, behind a clause."""
    parts = _listed(value, language)
    closed = any(f" {one} " in f" {value} " for one in language.words("lists"))
    end = next((at for at, one in enumerate(parts) if _verb_in(one, language) is not None), len(parts))
    return parts[: max(1, end)] if closed else parts[:1]


def _stripped(predicate: str, value: str, language: Language) -> tuple[str, bool]:
    """An object without what does not belong to it, and whether it is denied."""
    trims = language.any_of("trims").pattern
    text = re.split(rf"(?:,\s+)?(?<=\s)(?:{trims})", f" {value} ", maxsplit=1, flags=re.IGNORECASE)[0]
    text = _trimmed(f"{text.strip()} ", language).strip()
    denied = False
    told: dict[str, list[str]] = language.raw.get("strip") or {}
    deny = language.words("denials")
    changed = True
    while changed:
        changed = False
        for word in sorted(told.get(predicate, ()), key=len, reverse=True):
            if text.casefold().startswith(f"{word} "):
                text, changed = text[len(word) + 1 :], True
        for word in deny:
            if predicate_of(predicate).list and text.casefold().startswith(f"{word} "):
                text, denied, changed = text[len(word) + 1 :], True, True
    return restore(text), denied


def _things(text: str, subject: str, message: _Message, *, bare: bool, negated: bool = False) -> list[Found]:
    """People, animals and things that somebody has, from a list of them: each by name, or by number.

    Args:
        bare: whether things that are no relation count too.
    """
    language = message.language
    found: list[Found] = []
    latest = ""
    count = _either_of(language, "numbers") + "|" + _either_of(language, "articles")
    mine = _either_of(language, "my")
    pattern = re.compile(
        rf"(?:(?P<count>\d+|{count})\s+|(?P<mine>{mine})\s+)?(?P<many>(?:\d+|{_either_of(language, 'numbers')})\s+)?"
        rf"(?:(?:{language.class_words('adjective')}))*(?P<rel>{language.rel})\s+"
        rf"(?:(?:{_either_of(language, 'naming')})\s+)?(?P<names>{language.name_words})?",
        re.IGNORECASE,
    )
    for item in _listed(text, language):
        if latest and re.fullmatch(language.name_words, f"{item} ", re.IGNORECASE) and subject == USER:
            found.append(Found(f"{latest}{IS}", restore(item)))
            continue
        match = pattern.fullmatch(f"{item} ")
        if match is None:
            if not bare:
                return []
            denied = item.split()[0].casefold() in language.words("denials")
            if (thing := _possession(item, language)) is None:
                return found
            thing = thing.split(maxsplit=1)[1] if denied else thing
            found.append(Found("has", thing, subject, negated or denied))
            continue
        relation = language.relations[" ".join(match["rel"].casefold().split())]
        latest = relation.name
        message.person, message.gender = _of_user(latest), relation.gender
        name = restore(match["names"] or "")
        if name and subject == USER:
            found.append(Found(f"{relation.name}{IS}", name))
        if (match["count"] or match["many"]) and (not name or relation.plural):
            said = item.split(match["names"].strip(), 1)[0] if name else item
            denied = (match["count"] or "").casefold() in language.words("denials")
            found.append(Found("has", restore(said), subject, negated or denied))
    return found


def _possession(item: str, language: Language) -> str | None:
    text, _ = _stripped("has", item, language)
    words = text.split()
    if not words or len(words) > 8:
        return None
    known = frozenset((*language.words("articles"), *language.words("numbers"), *language.words("my")))
    if words[0].casefold() not in known and not words[0].isdigit():
        return None
    rest = " ".join(words[1:]).casefold()
    idle = language.words("idle")
    if not rest or any(re.search(rf"(?:^|\s){re.escape(one)}(?:\s|$)", rest) for one in idle):
        return None
    return text


def _either_of(language: Language, key: str) -> str:
    words = sorted(language.words(key), key=len, reverse=True)
    return "|".join(re.escape(one).replace(r"\ ", r"\s+") for one in words) or "(?!)"


def _statement(found: Found, language: Language) -> Statement | None:
    thing = found.object.strip()
    if found.predicate != NOTED:
        thing = _without_the_rest(thing, language)
    if not thing or thing.casefold() in language.words("empty") or len(thing) > _LONGEST or len(found.predicate) > 100:
        return None
    if found.predicate != NOTED and (
        _is_no_object(thing, found.predicate, language, negated=found.negated) or _names_somebody(found.predicate, language)
    ):
        return None
    known = predicate_of(found.predicate)
    statement = Statement(
        kind=_kind(found, known.kind),
        subject=found.subject[:200],
        predicate=found.predicate,
        object=thing,
        text="-",
        negated=found.negated,
        confidence=_BY_RULE,
    )
    return statement.model_copy(update={"text": sentence_of(statement, language)[:2_000]})


_PLACES = ("works at", "works in", "lives in", "is from", "born in")
_WORDS_OF_A_THING = 8
"""Words of an object that is a thing or a value; what is longer runs on into something else."""
_NAMES_A_LIST = re.compile(r":(?!\d)")


def _is_no_object(thing: str, predicate: str, language: Language, *, negated: bool) -> bool:
    """Whether what stands for an object is a clause, a list behind a colon, a time, or has another thing behind it.

    The sentence is kept as it was said then.
    """
    words = thing.casefold().split()
    if words[0] in {*language.words("points"), *language.words("no_things"), *language.words("going_on")}:
        return True  # I don't want it stolen; no idea why; I collect pens and run a quiz
    if words[0] in language.words("my") or (predicate == "has" and words[0] in language.words("the")):
        return predicate_of(predicate).thing  # has our daughter Frieda; who keeps the house
    if predicate_of(predicate).kind is FactKind.PREFERENCE and words[0].isdigit():
        return True  # I like it, 3 hours a day
    if negated and predicate == "has" and not any(word in language.relations for word in words):
        return True  # my knee is bad, so no jumping
    if len(words) > (_WORDS_OF_A_THING if predicate_of(predicate).thing or predicate.endswith(IS) else _MOST):
        return True
    clause = words[0] in language.words("subjects") or _verb_in(thing, language) is not None
    timed = predicate in _PLACES and (words[0] in language.words("when_openings") or words[-1] in language.words("ago"))
    if predicate == "works at" and words[0] in language.words("no_employers"):
        return True  # at night
    another = any(one.endswith(",") and after in language.words("my") for one, after in pairwise(words))
    return clause or timed or another or _NAMES_A_LIST.search(thing) is not None


def _names_somebody(predicate: str, language: Language) -> bool:
    """Whether an open predicate is a relation with a name behind it: `sister maren is`."""
    noun = predicate.removesuffix(IS)
    first, _, rest = noun.partition(" ")
    return bool(rest) and noun != predicate and first in language.relations and noun not in language.relations


def _verb_in(thing: str, language: Language) -> int | None:
    """The first word of an object that belongs to a clause of its own: a verb, or somebody who does something."""
    words = thing.split()
    verbs = {*language.words("auxiliaries"), *language.words("modals")}
    who = {*language.words("subjects"), *language.words("me")}
    for at, word in enumerate(words):
        counted = at > 0 and words[at - 1][0].isdigit()  # 4 may; 10 am
        if word.casefold() in who or (word in verbs and not counted):
            return at
    return None


def _before_comma(thing: str) -> str:
    """An object up to the comma behind which something else is told; a place may go on: Oxford, Ohio; Mill Lane 3, York."""
    first, *more = thing.split(", ")
    for one in more:
        if not (one[:1].isupper() or one[:1].isdigit()):
            break
        first = f"{first}, {one}"
    return first


def _without_the_rest(thing: str, language: Language) -> str:
    """An object without the clause that goes on behind it: a Skoda, and it needs a service."""
    joins = {*language.words("conjunctions"), *language.words("lists")}
    words = _before_comma(thing).split()
    end = _verb_in(" ".join(words), language) or len(words)
    going = {*language.words("going_on"), *language.words("happened")}
    for at in range(1, end):
        if words[at].casefold() in going and (words[at - 1].casefold() in joins or words[at - 1].endswith(",")):
            end = at
            break
    if end == len(words):
        return " ".join(words)
    while end and not words[end - 1].endswith(",") and words[end - 1].casefold() not in joins:
        end -= 1
    while end and words[end - 1].casefold() in joins:
        end -= 1
    return " ".join(words[:end]).rstrip(" ,") or thing


def _kind(found: Found, kind: FactKind) -> FactKind:
    if found.subject == USER:
        return kind
    if found.predicate == "is" and not found.subject.startswith(f"{USER}'s "):
        return FactKind.ENTITY
    return FactKind.RELATION
