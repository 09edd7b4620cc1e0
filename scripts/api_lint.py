"""Lint the OpenAPI document with Redocly CLI and Spectral, by every rule that they recommend.

python -m scripts.api_lint               fail where one of them finds an error or a warning; skip both without npm
python -m scripts.api_lint --required    fail without npm too

Both are npm packages, pinned by the lock in `scripts/node` and installed there once.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys

from .openapi import PATH
from .tree import ROOT

NODE = ROOT / "scripts" / "node"
_LOCK = NODE / "package-lock.json"
_INSTALLED = NODE / "node_modules" / ".package-lock.json"
_SECONDS = 120
"""That one linter may take; npm, which downloads both, three times as long."""


def lint() -> dict[str, str]:
    """What each linter complains of, by its name; empty where neither does."""
    # Redocly knows what it is to pass over by the document's path from its own folder.
    document = f"../../{PATH.relative_to(ROOT)}"
    programs = {
        "redocly": ["lint", "--config", "redocly.yaml", "--format", "stylish", document],
        "spectral": ["lint", "--ruleset", ".spectral.yaml", "--fail-severity", "warn", "--quiet", document],
    }
    running = {
        name: subprocess.Popen(
            [NODE / "node_modules" / ".bin" / name, *arguments], cwd=NODE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for name, arguments in programs.items()
    }
    told = {name: process.communicate(timeout=_SECONDS)[0].decode() for name, process in running.items()}
    return {name: told[name] for name, process in running.items() if process.returncode}


def install() -> None:
    """Install what the lock says, where that is not there yet. No script of a package is run.

    Raises:
        subprocess.CalledProcessError: npm did not get it.
    """
    if not _INSTALLED.exists() or _INSTALLED.stat().st_mtime < _LOCK.stat().st_mtime:
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(npm, cwd=NODE, check=True, timeout=3 * _SECONDS)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--required", action="store_true", help="fail where npm is missing")
    required = parser.parse_args().required
    if shutil.which("npm") is None:
        reason = "the OpenAPI document is not linted: that takes Node 20.19 or newer with npm"
        sys.exit(reason if required else print(reason))
    install()
    if complaints := lint():
        sys.exit("\n".join(f"{name}:\n{text}" for name, text in complaints.items()))
    print("the OpenAPI document passes Redocly CLI and Spectral")


if __name__ == "__main__":
    main()
