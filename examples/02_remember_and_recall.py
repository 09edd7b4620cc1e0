"""Put facts into long-term memory, find one by its meaning, and use it in an answer.

The `external_id` makes running this twice harmless: the same id again replaces the item.
"""

from phronesis import Client
from phronesis_contracts.memory import RememberItem

FACTS = [
    RememberItem(external_id="example-mug", text="The blue mug on the third floor belongs to Ada."),
    RememberItem(external_id="example-train", text="The last train to Leeds leaves at 22:40 from platform 5."),
]

with Client() as client:
    for item in client.memory.remember(FACTS).items:
        print(f"{item.external_id}: {item.status}")
    for found in client.memory.recall("When can I still get a train to Leeds?", limit=3).items:
        print(f"{found.score:.2f}  {found.text}  {found.why}")
