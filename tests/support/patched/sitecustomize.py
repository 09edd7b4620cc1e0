"""For the media service of a test's stack: every name of a host leads to one server here, which writes down what came.

A stack whose environment has this folder in `PYTHONPATH` and a port in `PHRONESIS_TEST_WEB` fetches from there.
"""

import os
import sys

PORT = os.environ.get("PHRONESIS_TEST_WEB")

if PORT and "phronesis_media" in sys.orig_argv:
    from phronesis_media.fetching import web

    class Loopback:
        async def addresses(self, host):  # type: ignore[no-untyped-def]
            return ("127.0.0.1",)

    class LoggedWeb(web.PublicWeb):
        def __init__(self, resolver, *, seconds):  # type: ignore[no-untyped-def]
            ports = dict.fromkeys(("http", "https"), int(PORT or 0))
            super().__init__(Loopback(), seconds=seconds, allowed=lambda address: True, ports=ports)

    web.PublicWeb = LoggedWeb  # type: ignore[misc]
