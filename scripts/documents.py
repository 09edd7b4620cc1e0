"""Write every generated document, or check that what is committed is what would be written.

python -m scripts.documents            write
python -m scripts.documents --check    fail where a document differs
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import (
    asyncapi,
    chart_files,
    commands,
    decisions,
    nats,
    openapi,
    readmes,
    rest,
    samples,
    schemas,
    sdk,
    services,
    sync_client,
)
from .tree import ROOT


def documents() -> dict[Path, str]:
    """Every generated document by path.

    Raises:
        schemas.Break: a contract changed in a way that its version does not allow.
    """
    found: dict[Path, str] = {}
    modules = (
        schemas,
        samples,
        asyncapi,
        openapi,
        rest,
        services,
        sdk,
        commands,
        decisions,
        readmes,
        nats,
        chart_files,
        sync_client,
    )
    for module in modules:
        found |= module.documents()
    return found


def differing(found: dict[Path, str]) -> list[Path]:
    """The documents that are missing or differ from what is committed."""
    return [path for path, text in sorted(found.items()) if not path.exists() or path.read_text() != text]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    try:
        found = documents()
    except schemas.Break as error:
        sys.exit(str(error))
    stale = differing(found)
    if check:
        if stale:
            names = "\n".join(f"  {path.relative_to(ROOT)}" for path in stale)
            sys.exit(f"These generated documents differ; run `make docs`:\n{names}")
        print(f"{len(found)} generated documents are up to date")
        return
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found[path])
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
