"""For the media service of a test's stack: every name of a host leads to one server here, which writes down what came.

A stack whose environment has this folder in `PYTHONPATH` and a port in `PHRONESIS_TEST_WEB` fetches from there. The module is
patched as it is imported: a service may have been forked from a process that imported this file before.
"""

import os
import sys
from importlib.util import find_spec

PORT = os.environ.get("PHRONESIS_TEST_WEB")
PATCHED = "phronesis_media.fetching.web"


class Loopback:
    async def addresses(self, host):  # type: ignore[no-untyped-def]
        return ("127.0.0.1",)


def patch(web):  # type: ignore[no-untyped-def]
    class LoggedWeb(web.PublicWeb):  # type: ignore[misc]
        def __init__(self, resolver, *, seconds):  # type: ignore[no-untyped-def]
            ports = dict.fromkeys(("http", "https"), int(PORT or 0))
            super().__init__(Loopback(), seconds=seconds, allowed=lambda address: True, ports=ports)

    web.PublicWeb = LoggedWeb


class Finder:
    """Finds the module as ever, and has it patched once it has run."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != PATCHED:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):  # type: ignore[no-untyped-def]
            run(module)
            patch(module)

        spec.loader.exec_module = exec_module
        return spec


if PORT:
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
