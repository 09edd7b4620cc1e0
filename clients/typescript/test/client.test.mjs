/** The client on a running stack: PHRONESIS_URL, and PHRONESIS_KEY with the scope act_for_users. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { Phronesis, PhronesisError } from "../dist/index.js";

const baseUrl = process.env.PHRONESIS_URL;
const apiKey = process.env.PHRONESIS_KEY;
const somebody = () => new Phronesis({ baseUrl, apiKey, userId: `user-${randomUUID()}` });

test("what is added is found with what was said beside it, read, corrected and deleted", async () => {
  const { memory } = somebody();
  const said = [
    { speaker: "Ada", text: "Which gate does the ferry to Skarholm leave from?", metadata: { channel: "chat", n: 1 } },
    { speaker: "Bo", text: "Number seven, and it is never on time." },
  ];
  const added = await memory.add(said, { conversation_id: "c1" });
  assert.deepEqual(added.memories.map((one) => one.status), ["created", "created"]);
  const found = await memory.search("the gate of the ferry to Skarholm", { limit: 2 });
  assert.deepEqual(found.memories.map((one) => one.speaker), ["Ada", "Bo"]);
  assert.deepEqual(found.memories[0].metadata, { channel: "chat", n: 1 });
  const id = added.memories[1].id;
  assert.equal((await memory.update(id, { text: "Number nine." })).text, "Number nine.");
  assert.deepEqual((await memory.history(id)).versions.map((one) => one.text), [said[1].text]);
  assert.match((await memory.context("ferry", { budget_tokens: 200 })).text, /Bo: Number nine\./);
  assert.deepEqual(await memory.delete(id), { ids: [id] });
  await assert.rejects(memory.get(id), (error) => error instanceof PhronesisError && error.code === "not_found");
});

test("a string is one memory, and pages hold each of them once", async () => {
  const { memory } = somebody();
  await memory.add("hello");
  await memory.add(["one", "two"]);
  const first = await memory.list({ limit: 2, kinds: ["note"] });
  const last = await memory.list({ limit: 2, cursor: first.next });
  assert.deepEqual([...first.memories, ...last.memories].map((one) => one.text).sort(), ["hello", "one", "two"]);
  assert.equal(last.next ?? null, null);
});

test("each user of a program has a memory of their own", async () => {
  const { memory } = new Phronesis({ baseUrl, apiKey });
  const [ada, bo] = [`ada-${randomUUID()}`, `Bo+${randomUUID()}@example.com`];
  await memory.add("the locker is in the hall", { user_id: ada });
  assert.equal((await memory.search("where is the locker", { user_id: ada })).memories.length, 1);
  assert.equal((await memory.search("where is the locker", { user_id: bo })).memories.length, 0);
});

test("the same key adds nothing twice", async () => {
  const { memory } = somebody();
  const key = randomUUID();
  const one = await memory.add("only once", { idempotency_key: key });
  assert.deepEqual(await memory.add("only once", { idempotency_key: key }), one);
  assert.equal((await memory.list()).memories.length, 1);
});

test("bad input is an error that names its field", async () => {
  const { memory } = somebody();
  await assert.rejects(memory.search("x", { since: "yesterday" }), (error) => error.status === 400 && error.field === "since");
});

test("a message is answered, and its turn followed to its end", async () => {
  const client = somebody();
  assert.ok((await client.conversations.send("Hello!")).user_response);
  const turn = await client.turns.submit("Hello again!");
  const names = [];
  for await (const event of client.turns.events(turn.turn_id)) names.push(event.event);
  assert.equal(names.at(-1), "done");
  assert.equal((await client.turns.get(turn.turn_id)).status, "completed");
});

test("where nothing answers it says so", async () => {
  const { memory } = new Phronesis({ baseUrl: "http://127.0.0.1:9", apiKey, attempts: 2 });
  await assert.rejects(memory.list(), (error) => error.code === "unavailable");
});
