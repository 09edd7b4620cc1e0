"""Make random calls of wrong tenants, users and roles against a stack of its own, and write what came of them.

python -m tests.tenancy                    a hundred thousand calls
python -m tests.tenancy --calls 5000       fewer
python -m tests.tenancy --seed 7           other ones
python -m tests.tenancy --no-report        leave docs/generated/isolation.md as it is
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from phronesis_local.parts import SERVICES
from tests.support.belongings import Belongings
from tests.support.people import town
from tests.support.production import SERVERS, prepare
from tests.support.stack import running
from tests.support.tenancy import AT_ONCE, Found, stranger

REPORT = Path(__file__).resolve().parents[2] / "docs" / "generated" / "isolation.md"
ENVIRONMENT = {
    "GROQ_API_KEY": "",
    "ORCHESTRATOR_MODEL_URL": "",
    # The rate of a key would refuse most of the calls before they are looked at.
    "GATEWAY_REQUESTS_PER_SECOND": "1000000",
    "GATEWAY_BURST": "1000000",
    "GATEWAY_TENANT_REQUESTS_PER_SECOND": "1000000",
    "GATEWAY_TENANT_BURST": "1000000",
    "GATEWAY_MAX_REQUESTS_PER_TENANT": "1000000",
}


async def run(calls: int, seed: int) -> tuple[Found, list[str], float]:
    """What came of the calls, what was lost, and the seconds that the calls took."""
    with tempfile.TemporaryDirectory(prefix="tenancy-") as folder:
        async with running(Path(folder) / "data", (*SERVERS, *SERVICES), ENVIRONMENT) as stack:
            async with town(stack.data.url.read_text().strip(), stack.data.key.read_text().strip()) as people:
                await people.ready()
                theirs = Belongings(people)
                await theirs.fill()
                began = monotonic()

                def told(found: Found) -> None:
                    rate = found.calls / (monotonic() - began)
                    print(f"{found.calls} calls, {rate:.0f} a second, {len(found.leaks)} leaks", flush=True)

                async with stranger(people, theirs) as other:
                    found = await other.call(calls, seed, told)
                seconds = monotonic() - began
                return found, await theirs.lost(), seconds


def report(found: Found, lost: list[str], seconds: float, seed: int) -> str:
    """The report."""
    lines = [
        "# Random calls of wrong tenants, users and roles",
        "",
        f"Written by `python -m tests.tenancy --calls {found.calls} --seed {seed}` on {datetime.now(UTC):%Y-%m-%d}.",
        "",
        "One tenant has turns, conversations, facts, media, profiles, keys, deletions and nodes of the graph. Users of",
        "another tenant, one of each of four roles, and an external system of that tenant on the bus call every operation with",
        f"the first tenant's ids, names and words, {AT_ONCE} calls at a time. Every answer, headers included, is searched for",
        "each of the first tenant's secrets that the call itself did not contain. A call that names one foreign id is",
        "repeated with an id that is nobody's, and the two answers have to be the same. The external system subscribes to",
        "every subject that it can name. A fourth of the calls is made by other users of the first tenant, for what is its",
        "users' own. A tool that a caller's role and agents do not open has to refuse. At the end all data of the first",
        "tenant has to be unchanged.",
        "",
        "| | |",
        "| --- | --- |",
        f"| calls | {found.calls} |",
        f"| seconds | {seconds:.0f}, so {found.calls / seconds:.0f} calls a second |",
        f"| answers compared with the answer to an id of nobody's | {found.compared} |",
        f"| answers with a secret | {len(found.leaks)} |",
        f"| answers that distinguish a foreign id from one of nobody's | {len(found.tellings)} |",
        f"| tools that refused a caller without the rights | {found.refused_roles} |",
        f"| tools that answered one | {len(found.overreached)} |",
        f"| messages of the first tenant received on the bus | {len(found.overheard)} |",
        f"| things lost or changed | {len(lost)} |",
        f"| answers of status 500 | {sum(found.faults.values())} |",
        "",
        "| interface and status | answers |",
        "| --- | ---: |",
        *(f"| {name} | {count} |" for name, count in sorted(found.by_status.items())),
        "",
        "| interface and operation | calls | ms each |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {count} | {1000 * found.seconds[name] / count:.0f} |" for name, count in sorted(found.by_what.items())),
        "",
        *(
            f"- {line}"
            for line in [*found.leaks, *found.tellings, *found.overheard, *found.overreached, *lost, *map(str, found.faults)][
                :50
            ]
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-report", action="store_true")
    given = parser.parse_args()
    prepare()
    found, lost, seconds = asyncio.run(run(given.calls, given.seed))
    text = report(found, lost, seconds, given.seed)
    if not given.no_report:
        REPORT.write_text(text)
    print(text)
    if found.seen or lost or found.faults:
        sys.exit("not clean")


if __name__ == "__main__":
    main()
