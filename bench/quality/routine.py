"""Routine turns: status, absences, bookings and small costs of every team, week after week, as a busy memory is full of them.

They are near neighbours of each other and of all other turns: the same team in another week, the same person elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

SEED = 7
WEEKS = 40
TEAMS = {
    "Kestrel warehouse": ("Priya", "Femi", "Ollie", "Stowell"),
    "Larkfield booking": ("Dr Anand", "Marta", "Joel", "the booking vendor"),
    "payroll": ("Gudrun", "Bastian", "Wiebke", "Norvane"),
    "Millbrook kitchen": ("Ashby", "Carys", "Dev", "Hollis"),
    "mobile app": ("Mirela", "Jonas", "Kofi", "the translation agency"),
    "museum show": ("Tobias", "Lene", "Marc", "the printer in Vilnius"),
    "wind park": ("Sami", "Noor", "Glyn", "Carrow"),
    "hiring": ("Aoife", "Ruth", "Idris", "the agency"),
    "data centre": ("Hal", "Oksana", "Pim", "Fenwick"),
    "festival": ("Dora", "Luis", "Ravel", "Hobday"),
    "library": ("Anselm", "Petra", "Joy", "the tag vendor"),
    "bakery": ("Maud", "Ilse", "Ben", "Hedley's"),
    "bus pilot": ("Rosa", "Timur", "Ewan", "the charger firm"),
}
_TURNS = (
    (
        "Status of {team} for week {week}: {done} of {all} tasks done, {open} risks open, budget at {share} percent.",
        "Filed. That is {change} tasks {way} than the week before; {person} has the risks on the list.",
    ),
    (
        "{person} is away from {day} to {day2} in week {week}, who stands in at {team}?",
        "{other} does, as the last time; mails are forwarded.",
    ),
    (
        "{supplier} will deliver {days} days late, says the mail to {team} in week {week}.",
        "The plan has a buffer of {buffer} days there. I moved the date and told {person}.",
    ),
    (
        "{team}: may we spend {sum} on {thing}? {person} asks since Monday.",
        "Up to {limit} the lead decides alone, so {other} can sign that.",
    ),
    (
        "Please book a room for the {team} meeting in week {week}, {people} people, {day} at {hour}.",
        "The {room} room is booked; {person} brings the agenda.",
    ),
)


def turns() -> Iterator[tuple[str, str, str]]:
    """Id, user's text and reply of each routine turn; the same ones at every run."""
    rng = random.Random(SEED)
    for team, (first, second, third, supplier) in TEAMS.items():
        for week in range(1, WEEKS + 1):
            for number in sorted(rng.sample(range(len(_TURNS)), 3)):
                said, answered = _TURNS[number]
                person, other = rng.sample((first, second, third), 2)
                words = _words(rng) | {"team": team, "week": week, "person": person, "other": other, "supplier": supplier}
                yield f"routine-{team.replace(' ', '-')}-{week}-{number}", said.format(**words), answered.format(**words)


def _words(rng: random.Random) -> dict[str, object]:
    whole = rng.randint(20, 60)
    return {
        "done": rng.randint(5, whole),
        "all": whole,
        "open": rng.randint(1, 9),
        "share": rng.randint(20, 110),
        "change": rng.randint(1, 6),
        "way": rng.choice(("more", "fewer")),
        "day": rng.choice(("Monday", "Tuesday", "Wednesday")),
        "day2": rng.choice(("Thursday", "Friday")),
        "days": rng.randint(2, 30),
        "buffer": rng.randint(1, 20),
        "sum": rng.randint(40, 4_000),
        "limit": rng.choice((500, 1_000, 5_000)),
        "thing": rng.choice(("new screens", "training", "a rented van", "printing", "licences", "tools", "catering", "travel")),
        "people": rng.randint(4, 14),
        "hour": rng.choice(("9:30", "11:00", "14:00", "16:15")),
        "room": rng.choice(("green", "large", "corner", "second floor")),
    }
