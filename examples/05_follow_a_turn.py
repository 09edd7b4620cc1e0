"""Hand a message in, follow its turn while it runs, then see which messages the services exchanged for it."""

import asyncio

from phronesis import AsyncClient


async def main() -> None:
    async with AsyncClient() as client:
        turn = await client.turns.submit("Which projects does the Ministry of Justice run?")
        async for event in client.turns.events(turn.turn_id):
            print(event.kind, event.data.get("phase", ""))
        ended = await client.turns.get(turn.turn_id)
        print(ended.status, ended.reply.user_response if ended.reply else ended.problem)
        for span in (await client.turns.trace(turn.turn_id)).spans:
            print(f"{span.service:<13}{(span.end_ns - span.start_ns) / 1e6:7.1f} ms  {span.name}")


asyncio.run(main())
