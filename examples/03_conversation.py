"""Hold a conversation: the second question only makes sense because the first one was asked."""

from phronesis import Client

with Client() as client:
    first = client.conversations.send("What is the Geological Disposal Facility programme for?")
    print(first.user_response, "\n")
    second = client.conversations.send("How was its delivery confidence rated, and why?", conversation_id=first.conversation_id)
    print(second.user_response, "\n")
    for message in client.conversations.get(first.conversation_id).messages:
        print(f"{message.seq}. {message.role}: {message.text.splitlines()[0][:80]}")
