"""Send a PDF along with a question that is answered in it."""

from pathlib import Path

from phronesis import Client

NOTE = Path(__file__).parent / "portfolio_note.pdf"

with Client() as client:
    media = client.media.upload(NOTE)
    print(f"{media.name}: {media.type}, {media.size} bytes")
    reply = client.conversations.send("When and in which room is the budget review meeting?", media=[media.id])

print(reply.user_response)
