"""The words that rules understand, and what each means; the departments; the pieces of a question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from phronesis_contracts.twin import Level

from .ontology import CATEGORIES, LEVELS, THINGS, plural

_TOKEN = re.compile(
    r"[A-Za-z]{2,6}_\d{4}_\d{4}-Q\d"  # a project's number
    r"|amber\s*[/-]\s*(?:red|green)\b"
    r"|[^\W\d_]+n['’]t\b"
    r"|['’]s\b"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+"
    r"|[^\W_]+"
    r"|(?<=\d)\s*[-–—]\s*(?=\d{4}\b)"
    r"|[£$€%&+*=<>]",
    re.I,
)
MAX_CHARS = 600
"""Characters of a question that are read; a longer one is no question that rules could answer."""


@dataclass(frozen=True)
class Token:
    """One piece, as written and folded."""

    text: str
    folded: str
    start: int
    end: int


def tokens(text: str) -> tuple[Token, ...]:
    """The pieces of `text` in order."""
    return tuple(Token(m.group(), _fold(m.group()), m.start(), m.end()) for m in _TOKEN.finditer(text))


def folded(text: str) -> tuple[str, ...]:
    """The pieces of `text`, folded."""
    return tuple(token.folded for token in tokens(text))


def _fold(text: str) -> str:
    short = text.strip().casefold().replace("’", "'")
    if short in ("–", "—"):
        return "-"
    if short.startswith("amber") and len(short) > 5:
        return "amber/red" if short.endswith("red") else "amber/green"
    return "and" if short == "&" else short


SMALL = """a an the of in on at for to from is are was were be been being has have had having do does did done there here that
this these those i me my we us our you your please just so then too also any all and or with as 's tell give get see show know
let want about into out their them they who whom which what how many much it's overall altogether total figures figure data
reported report reports recorded listed published according stand stood exactly currently list name display present provide
within among some information noor maestro held hold holds holding own owns owned run runs running manage manages managed
lead leads led belong belongs belonging responsible deliver delivers delivered delivering sit sits fall falls come came go
goes make makes made got get gets received receive obtained look looks break down been uk uk's british ones really actually
hello hi hey thanks thank say says said find""".split()
"""Words that change nothing: they may stand anywhere."""


PHRASES: dict[tuple[str, Any], str] = {
    ("count", None): "how many|number of|count|count of|the number|numbers of|total number of|size of",
    ("list", None): "list|show me|which|name|enumerate|what are|who are|give me|which of|display",
    ("howmuch", None): "how much",
    ("rated", None): "rated|rate|graded|marked|scored|given a rating of|with a rating of|having a rating of",
    (
        "dimension",
        "department",
    ): "department|departments|dept|depts|ministry in charge|delivering department|delivery department",
    ("dimension", "category"): "category|categories|type of project|kind of project|project category|project categories",
    ("dimension", "rating"): "rating|ratings|rag rating|rag ratings|rag|colour|colours|delivery confidence|"
    "delivery confidence rating|delivery confidence ratings|delivery confidence assessment|delivery confidence assessments|dca",
    ("dimension", "status"): "status|statuses|project status",
    ("dimension", "level"): "level|levels",
    ("dimension", "risk_category"): "risk category|risk categories",
    ("dimension", "risk_status"): "risk status|risk statuses",
    ("dimension", "priority_level"): "priority|priority level|priorities|priority levels",
    ("dimension", "maturity_level"): "maturity|maturity level|maturity levels",
    ("year_word", None): "year|years|financial year|financial years|fiscal year|fiscal years|reporting year|annum|period",
    ("by", None): "by|per|each|every|for each|for every|in each|of each|across|broken down by|split by|grouped by|group by|"
    "in terms of|each of the|for all the|break down by|breakdown by|breakdown of|distribution of|distributed across|by each|"
    "split|distribution by|distribution across|broken down|across the|across all|per each|distributed by|"
    "break down|distribution|breakdown",
    ("rating", "Red"): "red",
    ("rating", "Amber"): "amber|yellow",
    ("rating", "Green"): "green",
    ("rating", "Amber/Red"): "amber/red|amber red",
    ("rating", "Amber/Green"): "amber/green|amber green",
    ("rating", None): "unrated|without a rating|without rating|no rating|no published rating|without a published rating|"
    "have no rating|rating not published|missing rating|rating is missing|not published rating|rating withheld",
    ("status", "Active"): "active|ongoing|still running|under way|underway",
    ("status", "Closed"): "closed",
    ("finished", None): "finished|completed|complete|ended already|over already",
    ("status", "Planned"): "planned",
    ("value", ("risk_status", "Open")): "open",
    ("value", ("risk_status", "Mitigated")): "mitigated",
    ("value", ("risk_score", "high")): "high risk|high risks|high-risk|severe",
    ("measure", ("whole_life_cost",)): "whole life cost|whole life costs|whole-life cost|wlc|lifetime cost|lifetime costs|"
    "life cycle cost|cost|costs|costing|worth|priced at|valued at|whole life price|whole life value|cost over their whole life",
    (
        "measure",
        ("year_baseline",),
    ): "baseline|baselines|year baseline|financial year baseline|baseline budget|in year baseline|"
    "baseline of the financial year|baseline of the year",
    ("measure", ("budget", "year_baseline")): "budget|budgets",
    (
        "measure",
        ("year_forecast",),
    ): "forecast|forecasts|year forecast|financial year forecast|forecast spend|forecast spending|"
    "in year forecast|forecast of the financial year|forecast of the year|forecasted spend",
    ("measure", ("variance",)): "variance|variances|budget variance|in year variance|difference between forecast and baseline|"
    "forecast less baseline|forecast minus baseline|overspend|overspends",
    ("measure", ("progress_percentage",)): "progress|progress percentage|percentage of progress",
    ("measure", ("risk_score",)): "risk score|risk scores|score|scores",
    ("measure", ("target",)): "target|targets",
    ("measure", ("actual",)): "actual|actuals|actual value|actual values",
    ("measure", ("efficiency_score",)): "efficiency|efficiency score|efficiency scores",
    ("measure", ("budget_allocated",)): "allocated budget|budget allocated|allocated budgets|budget allocation",
    ("text", "aims"): "aims|aim|purpose|purposes",
    ("text", "rating_comment"): "rating comment|comment on the rating|reason for the rating|reasons for the rating|"
    "comment on its rating|commentary on the rating",
    ("text", "schedule_comment"): "schedule comment|comment on the schedule|schedule commentary",
    ("text", "budget_comment"): "budget comment|comment on the budget|budget commentary",
    ("why", None): "why|for what reason|how come",
    ("date", "start_date"): "start date|start dates|start|starts|started|starting|begin|begins|began|begun|beginning",
    ("date", "end_date"): "end date|end dates|end|ends|ending|finish|finishes|finishing|due to end|due to finish|"
    "expected to end|expected to finish|expected end date|planned end date|be finished|be completed|end by",
    ("trend", None): "trend|trends|over time|over the years|year by year|year on year|year over year|through the years|"
    "across the years|development|evolution|evolve|evolved|develop|developed|trajectory|in all years|all years|any year|"
    "since the beginning|in every year|from year to year|over the whole period|throughout the years|over all years|"
    "across all years|across years|timeline",
    ("annual", None): "by year|per year|each year|every year|annually|yearly|annual|per annum|for each year|in each year|"
    "for every year|of each year",
    ("change", None): "change|changed|changes|changing|differ|"
    "grow|grew|grown|rise|risen|rose|go up|go down|fallen|fall|fell|increase|increased|decrease|decreased|shrink|shrunk",
    ("change", "better"): "improve|improved|get better|got better|became better|upgraded|were upgraded",
    ("change", "worse"): "worsen|worsened|get worse|got worse|became worse|deteriorate|deteriorated|downgraded",
    ("compare", None): "compare|compared|comparison|versus|vs|compared with|compared to|comparison of|difference between|"
    "compare with|against|comparing|difference in",
    ("aggregate", "sum"): "sum|sum of|total|totals|combined|add up|added up|total up|summed|in total|altogether|sum up|"
    "total amount of|sum total of|totalled|aggregate|overall|all together",
    ("aggregate", "avg"): "average|averages|mean|on average|averaged",
    ("aggregate", "min"): "minimum",
    ("aggregate", "max"): "maximum",
    ("top", (-1, None)): "top|highest|greatest|maximum number of|the most|most|ranking of|rank|ranked",
    ("top", (1, None)): "bottom|lowest|least|fewest|the fewest",
    ("top", (-1, "size")): "largest|biggest",
    ("top", (1, "size")): "smallest",
    ("top", (-1, "whole_life_cost")): "most expensive|costliest|most costly|priciest|dearest|expensive|the most expensive",
    ("top", (1, "whole_life_cost")): "cheapest|least expensive|least costly",
    ("share", None): "what share|share|share of|percentage|percentage of|proportion|proportion of|what percentage|"
    "what proportion|fraction|fraction of|what fraction|percent|per cent|% of|%",
    ("history", None): "what became of|what has become of|became of|become of|what happened to|what happened with|"
    "what has happened to|happened to|history of|history|story of|fate of|track record of|the fate|"
    "what has happened with|course of|the story|life story of|fared|fare|happened",
    ("missing", None): "what is missing|missing|gaps|gap|what's missing|lacking|lacks|lack|not published|unpublished|absent|"
    "unknown|not known|what do we not know|what don't we know|what is not published|what is unknown|incomplete|"
    "not been published|not reported|left out|not available|unavailable|was not published|were not published|withheld|"
    "missing links|blank|aren't published|isn't published|wasn't published|hasn't been published",
    ("impact", None): "impact|impact of|impacts|effect of|effects of|affect|affects|affected|affected by|depends on|"
    "depend on|suffer|suffers|consequences of|what hangs on|influences|influence|connected to|linked to|joined to|related to|"
    "downstream of|knock-on effects of|touch|touches|rely on|relies on",
    ("detail", None): "tell me about|details of|details on|details about|details|information on|information about|describe|"
    "profile of|summary of|summarise|summarize|facts about|facts on|all about|everything about|what do we know about|"
    "what do you know about|overview of|report on|tell me more about|facts|description of|more about",
    ("joined", None): "new|joined|newly added|added|entered|first appeared|appeared for the first time|newly reported|"
    "join|newcomers|enter|appear for the first time",
    ("left", None): "left|dropped out|disappeared|vanished|no longer reported|dropped|gone|disappear|vanish|leave|drop out|"
    "no longer in the report|no longer in the portfolio|no longer appear|removed",
    ("whatif", None): "what if|suppose|supposing|imagine that|hypothetically|assume|assuming|what would happen|if we|simulate",
    (
        "odd",
        None,
    ): "never|neither|nor|unless|rather than|instead of|always|both|in both|move|moved|movement|movements|shift|shifted",
    ("future", None): "will|going to|should|might|may|shall",
    ("when", None): "when|since when|until when|by when",
    ("small", None): "could you|would you|can you|can i|could i|i would|would like|can we|could we",
    ("not", None): "not|no|without|except|excluding|other than|apart from|non|isn't|aren't|wasn't|"
    "weren't|don't|doesn't|didn't|haven't|hasn't|won't|cannot|can't|but not|ignoring|leaving out",
    ("cmp", ">"): "more than|over|above|greater than|exceeding|higher than|larger than|bigger than|exceed|exceeds|>",
    ("cmp", ">="): "at least|no less than|not less than|minimum of",
    ("cmp", "<"): "less than|under|below|fewer than|lower than|smaller than|cheaper than|<",
    ("cmp", "<="): "at most|up to|no more than|not more than|maximum of",
    ("since", None): "since|from then on|onwards|onward|starting with|starting from|starting in",
    ("before", None): "before|prior to|earlier than",
    ("after", None): "after|later than|following",
    ("until", None): "until|till|through|up until|up to and including|to the end of",
    ("between", None): "between",
    ("relative", 0): "this year|current year|newest year|latest year|most recent year|now|today|currently|at present|latest|"
    "newest|most recent|latest report|newest report|most recent report|at the moment|right now|latest data",
    ("relative", -1): "last year|previous year|the year before|prior year|preceding year|a year ago|one year ago",
    ("relative", -2): "two years ago|the year before last",
    ("relative", "first"): "first year|earliest year|oldest year|earliest report|first report",
    ("pronoun", None): "it|its|that project|this project|that programme|this programme|that one|the same project|"
    "the project in question|that scheme|this scheme",
    ("scope", None): "portfolio|the portfolio|whole portfolio|major projects portfolio|government portfolio|gmpp|"
    "government major projects portfolio|uk government|government|the government|twin|the twin|digital twin|major|"
    "government's portfolio|government's major projects portfolio|uk's major projects portfolio",
    ("followup", None): "what about|how about|and what about|and how about|same for|the same for|and for|and in|now for|"
    "and|only|just|and the same for|then|but|again",
    ("over_budget", None): "over budget|over their budget|over its budget|above baseline|overspending|above their baseline|"
    "over baseline|overspent",
    ("under_budget", None): "under budget|under their budget|below baseline|underspending|below their baseline|underspent",
    ("who", None): "who|whose|by whom",
    ("existence", None): "are there|is there|exist|exists|do we have|covered|cover|available|were there|in there",
}


SYNONYMS: dict[str, tuple[str, ...]] = {
    "Government Transformation and Service Delivery": (
        "government transformation",
        "transformation and service delivery",
        "government transformation and service delivery projects",
        "transformation",
        "service delivery",
        "gtsd",
    ),
    "ICT": ("information and communications technology", "information and communication technology"),
    "Infrastructure and Construction": ("infrastructure", "construction", "infrastructure and construction projects"),
    "Military Capability": ("military", "military capabilities"),
}


PROJECTS = ("projects", "project", "programmes", "programme", "schemes", "scheme", "major projects", "major programmes")


FOLLOWS_UP = frozenset(folded("and only just same then but again now so ok okay well also"))
"""Words that open a question which leans on the one before."""

DEPARTMENTS: dict[str, tuple[str, ...]] = {
    "BEIS": ("Department for Business, Energy and Industrial Strategy", "Business, Energy and Industrial Strategy"),
    "CO": ("Cabinet Office",),
    "DBT": ("Department for Business and Trade", "Business and Trade"),
    "DCMS": (
        "Department for Digital, Culture, Media and Sport",
        "Department for Culture, Media and Sport",
        "Culture, Media and Sport",
        "culture department",
    ),
    "DEFRA": (
        "Department for Environment, Food and Rural Affairs",
        "Department for the Environment, Food and Rural Affairs",
        "Environment, Food and Rural Affairs",
    ),
    "DESNZ": ("Department for Energy Security and Net Zero", "Energy Security and Net Zero"),
    "DFE": ("Department for Education", "Department of Education", "education department"),
    "DFID": ("Department for International Development", "International Development"),
    "DFT": ("Department for Transport", "Department of Transport", "transport department"),
    "DHSC": (
        "Department of Health and Social Care",
        "Department for Health and Social Care",
        "Department of Health",
        "Department for Health",
        "health department",
    ),
    "DLUHC": ("Department for Levelling Up, Housing and Communities", "Levelling Up, Housing and Communities"),
    "DSIT": ("Department for Science, Innovation and Technology", "Science, Innovation and Technology"),
    "DWP": ("Department for Work and Pensions", "Department of Work and Pensions", "Work and Pensions"),
    "FCDO": ("Foreign, Commonwealth and Development Office",),
    "FCO": ("Foreign and Commonwealth Office", "Foreign Office"),
    "HMLR": ("HM Land Registry", "Land Registry"),
    "HMRC": ("HM Revenue and Customs", "Her Majesty's Revenue and Customs", "His Majesty's Revenue and Customs"),
    "HMT": ("HM Treasury", "Treasury", "Her Majesty's Treasury", "His Majesty's Treasury"),
    "HO": ("Home Office",),
    "MHCLG": ("Ministry of Housing, Communities and Local Government", "housing ministry"),
    "MOD": ("Ministry of Defence", "Ministry of Defense", "defence ministry", "Department of Defence"),
    "MOJ": ("Ministry of Justice", "justice ministry", "Department of Justice"),
    "NCA": ("National Crime Agency",),
    "ONS": ("Office for National Statistics", "Office of National Statistics"),
    "VOA": ("Valuation Office Agency", "Valuation Office"),
}
"""Short name, and names in full. The short name is the one that the portfolio's rows have, in capitals."""

ONLY_IN_CAPITALS = frozenset({"CO", "HO"})
"""Short names that are ordinary words in small letters."""


@dataclass(frozen=True)
class Meaning:
    """What a phrase means: its kind, and the value of that kind."""

    kind: str
    value: Any = None


@cache
def phrases() -> dict[tuple[str, ...], tuple[Meaning, ...]]:
    """Every phrase, as folded words, with the meanings that it may have; the first is the usual one."""
    found: dict[tuple[str, ...], tuple[Meaning, ...]] = {}

    def add(phrase: str, meaning: Meaning) -> None:
        key = folded(phrase)
        if key and meaning not in found.get(key, ()):
            found[key] = (*found.get(key, ()), meaning)

    for (kind, value), listed in PHRASES.items():
        for phrase in listed.split("|"):
            add(phrase, Meaning(kind, value))
    for name, longer in DEPARTMENTS.items():
        for phrase in (name, *longer):
            add(phrase, Meaning("department", name))
    for name in CATEGORIES:
        for phrase in (name, *SYNONYMS[name]):
            add(phrase, Meaning("category", name))
    for noun in PROJECTS:
        add(noun, Meaning("type", ("EntityProject", Level.L3)))
    _add_things(add)
    for word in SMALL:
        add(word.rstrip("?"), Meaning("small"))
    return found


def _add_things(add: Any) -> None:
    for type, thing in THINGS.items():
        for noun in (thing.plural, thing.singular, *thing.also):
            if type != "EntityProject":
                level = LEVELS[thing.levels.index(noun)] if noun in thing.levels else None
                level = level or (LEVELS[2] if thing.singular == thing.levels[2] and noun == thing.plural else None)
                add(noun, Meaning("type", (type, level)))
        for level, noun in zip(LEVELS, thing.levels, strict=True):
            for word in (noun, plural(noun)):
                add(word, Meaning("type", (type, level)))


def longest() -> int:
    """Words of the longest phrase."""
    return max(map(len, phrases()))


def in_capitals_only(name: str, written: str) -> bool:
    """Whether a department's short name is meant, and not an ordinary word."""
    return name not in ONLY_IN_CAPITALS or written == name or len(written) > 2
