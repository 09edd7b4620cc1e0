"""A reading process: jobs on stdin, answers on stdout, one after the other, until stdin ends.

It says `ready` first. A job is a line of JSON (`Job`, and `size`), then `size` bytes. An answer is a line of JSON, then as
many bytes as it says.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
from importlib import import_module
from typing import IO, Any

from .confine import confine, limited
from .jobs import READY, Answer, Job, Refused

_OUT_OF_MEMORY = ("bad_alloc", "bad allocation", "Failed to allocate", "Insufficient memory", "OutOfMemory")


def _answer(job: Job, data: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        answer: Answer = import_module(f".{job.name}", __package__).read(data, job)
    except MemoryError:
        return {"error": "memory"}, b""
    except Refused as refused:
        return {"error": refused.args[0]}, b""
    except Exception as error:  # whatever a parser raises at hostile content is an answer, and its words may quote the content
        return {"error": "memory" if any(sign in str(error) for sign in _OUT_OF_MEMORY) else "unreadable"}, b""
    return {"engine": answer.engine, **answer.facts}, answer.body


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Where jobs come from and answers go to, out of the way of libraries that print or ask."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    return source, sink


def main() -> None:
    """The program; its arguments are its memory in bytes, and the module whose models it loads before it says `ready`."""
    confine(int(sys.argv[1]))
    logging.disable()
    source, sink = _pipes()
    for name in sys.argv[2:]:
        import_module(f".{name}", __package__).warm()
    sink.write(READY)
    sink.flush()
    while line := source.readline():
        told = json.loads(line)
        data = source.read(told.pop("size"))
        job = Job(**told)
        with limited(job.seconds, job.cpu):
            head, body = _answer(job, data)
        sink.write(json.dumps({**head, "size": len(body)}).encode() + b"\n" + body)
        sink.flush()
        del data, body
        gc.collect()
    os._exit(0)  # no time for the clean-up of parsers


if __name__ == "__main__":
    main()
