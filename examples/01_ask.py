"""Ask one question and read the answer with what it rests on.

Needs a local stack with the sample portfolio: `phronesis up`, then `phronesis load portfolio`.
"""

from phronesis import Client

with Client() as client:
    reply = client.conversations.send("What is the Geological Disposal Facility programme for?")

print(reply.user_response)
for source in reply.sources:
    print(f"- {source.title} ({source.type}, score {source.score:.2f})")
