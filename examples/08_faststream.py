"""An outside system on the bus, written with FastStream: it calls tools, hands a turn in, and follows it.

    pip install "phronesis[faststream]"
    phronesis keys create --for bus --tenant local --user example --agent noor --json > outside.json
    python examples/08_faststream.py outside.json

Without a file it makes itself a key on the stack of this machine.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from faststream import FastStream

from phronesis.faststream import PhronesisRouter, make_broker
from phronesis.models import NewBusKey
from phronesis_contracts import ServiceError
from phronesis_contracts.memory import RECALL_TOOL, REMEMBER_TOOL, Recall, Remember, RememberItem
from phronesis_contracts.orchestrator import TURN_GET_TOOL, TurnProgress, TurnRef

CREATE = [sys.executable, "-m", "phronesis", "keys", "create", "--for", "bus", "--json"]
CREATE += ["--tenant", "local", "--user", "example", "--agent", "noor", "--days", "1"]

key = NewBusKey.model_validate_json(Path(sys.argv[1]).read_text() if sys.argv[1:] else subprocess.check_output(CREATE))
broker = make_broker(key, logger=None)
phronesis = PhronesisRouter(key)
app = FastStream(broker, logger=None)
ended = asyncio.Event()


@phronesis.progress()
async def shown(progress: TurnProgress) -> None:
    """Each line of each turn of the user."""
    print(progress.kind, progress.phase or "")
    if progress.kind in ("ended", "refused"):
        ended.set()


broker.include_router(phronesis)


@app.after_startup
async def work() -> None:
    """What the system does with Phronesis."""
    fact = RememberItem(external_id="example-key", text="The key of the archive hangs behind the green door.")
    await phronesis.ask(REMEMBER_TOOL, Remember(items=(fact,)), key=uuid4().hex)
    try:
        await phronesis.ask(RECALL_TOOL, Recall.model_construct(query=""))
    except ServiceError as refused:
        print(f"refused: {refused.code} {refused.field}")
    for item in (await phronesis.ask(RECALL_TOOL, Recall(query="Where is the key of the archive?"))).items:
        print(f"{item.score:.2f}  {item.text}")
    turn = await phronesis.submit("Where does the key of the archive hang?", agent="noor")
    async with asyncio.timeout(60):
        await ended.wait()
    found = await phronesis.ask(TURN_GET_TOOL, TurnRef(turn_id=turn))
    print(found.status, found.reply.user_response if found.reply else found.problem)
    app.exit()


asyncio.run(app.run())
