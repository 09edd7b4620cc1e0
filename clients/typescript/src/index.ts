/** A client of Phronesis: memory, conversations and turns, for Node 20 and later, and for browsers. */

import type { components } from "./api.js";

type Schemas = components["schemas"];
export type NewMemory = Schemas["NewMemory"];
export type Memory = Schemas["Memory"];
export type FoundMemory = Schemas["FoundMemory"];
export type AddedMemories = Schemas["AddedMemories"];
export type FoundMemories = Schemas["FoundMemories"];
export type MemoryPage = Schemas["MemoryPage"];
export type MemoryHistory = Schemas["MemoryHistory"];
export type MemoryContext = Schemas["MemoryContext"];
export type DeletedMemories = Schemas["DeletedMemories"];
export type Erasure = Schemas["Erasure"];
export type UserPreview = Schemas["UserPreview"];
export type Reply = Schemas["Reply"];
export type AcceptedTurn = Schemas["AcceptedTurn"];
export type Turn = Schemas["Turn"];
export type Metadata = NonNullable<NewMemory["metadata"]>;
export type MemoryKind = NonNullable<Schemas["SearchGiven"]["kinds"]>[number];

/** What memories have to be, beside what they say. Times are ISO 8601 with their zone. */
export interface MemoryFilter {
  kinds?: MemoryKind[];
  conversation_id?: string;
  since?: string;
  until?: string;
  metadata?: Metadata;
}

export interface Options {
  /** Address of the gateway, such as `http://127.0.0.1:8080`. */
  baseUrl: string;
  /** A key of the gateway. */
  apiKey: string;
  /** Your own name for the user that all calls are made for; the key needs the scope `act_for_users`. */
  userId?: string;
  /** Milliseconds that one attempt may take (60,000). */
  timeout?: number;
  /** Attempts of a call that may be repeated (5). */
  attempts?: number;
}

/** For one call: the user that it is made for, and a signal that ends it. */
export interface CallOptions {
  user_id?: string;
  signal?: AbortSignal;
}

/** For a call that writes: the same key does nothing twice; one is made where none is given. */
export interface WriteOptions extends CallOptions {
  idempotency_key?: string;
}

/** The conversation that a message goes on with, a new one by default, and who answers, `dialogue` by default. */
export interface MessageOptions {
  conversation_id?: string;
  agent?: string;
}

/** Why a call was not done, as the server states it. */
export class PhronesisError extends Error {
  override readonly name = "PhronesisError";

  constructor(
    /** Such as `bad_request` or `not_found`; `unavailable` where nothing answers. */
    readonly code: string,
    readonly status: number,
    detail: string,
    /** The field at fault. */
    readonly field?: string,
    /** Seconds after which it may be tried again. */
    readonly retryAfter?: number,
  ) {
    super(detail);
  }
}

/** One event of a turn: its id where it has one, its name, and its data. */
export interface TurnEvent {
  id?: string;
  event: string;
  data: Record<string, Json>;
}

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

interface Call {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  body?: object;
  query?: Record<string, string | number | readonly string[] | undefined>;
  /** Whether it changes something: it then has an idempotency key. */
  writes?: boolean;
  options?: WriteOptions;
}

const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 5_000;
const PASSING = new Set([429, 502, 503]);

export class Phronesis {
  readonly memory = new MemoryCalls(this);
  readonly conversations = new ConversationCalls(this);
  readonly turns = new TurnCalls(this);
  readonly users = new UserCalls(this);

  constructor(private readonly options: Options) {
    if (!/^https?:\/\//.test(options.baseUrl)) {
      throw new PhronesisError("bad_request", 400, `${options.baseUrl} is no address of a gateway`, "baseUrl");
    }
  }

  /** @internal */
  async call<T>(call: Call): Promise<T> {
    const headers = this.headers(call.options);
    if (call.body !== undefined) headers.set("Content-Type", "application/json");
    if (call.writes) headers.set("Idempotency-Key", call.options?.idempotency_key ?? crypto.randomUUID());
    const init: RequestInit = { method: call.method, headers };
    if (call.body !== undefined) init.body = JSON.stringify(call.body);
    const attempts = this.options.attempts ?? 5;
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await this.fetch(this.url(call), init, call.options?.signal);
        if (response.ok) return (await response.json()) as T;
        throw await problemOf(response);
      } catch (error) {
        const problem = error instanceof PhronesisError ? error : unreachable(error, this.options.baseUrl);
        if (call.options?.signal?.aborted || !PASSING.has(problem.status) || attempt >= attempts) throw problem;
        await pause(Math.max((problem.retryAfter ?? 0) * 1_000, pauseBefore(attempt)), call.options?.signal);
      }
    }
  }

  /** The events of a turn until its end, over broken connections. @internal */
  async *events(turn: string, options?: CallOptions): AsyncGenerator<TurnEvent> {
    let last: string | undefined;
    const attempts = this.options.attempts ?? 5;
    for (let broken = 0; broken < attempts; ) {
      const headers = this.headers(options);
      headers.set("Accept", "text/event-stream");
      if (last !== undefined) headers.set("Last-Event-ID", last);
      try {
        const url = `${this.base}/api/v1/turns/${encodeURIComponent(turn)}/events`;
        const response = await fetch(url, { headers, ...(options?.signal ? { signal: options.signal } : {}) });
        if (!response.ok) throw await problemOf(response);
        for await (const event of read(response)) {
          broken = 0;
          last = event.id ?? last;
          yield event;
          if (event.event === "done") return;
        }
      } catch (error) {
        const problem = error instanceof PhronesisError ? error : unreachable(error, this.options.baseUrl);
        if (options?.signal?.aborted || !PASSING.has(problem.status)) throw problem;
      }
      broken++;
      await pause(pauseBefore(broken), options?.signal);
    }
    throw new PhronesisError("unavailable", 503, `the events of turn ${turn} cannot be read any more`);
  }

  private get base(): string {
    return this.options.baseUrl.replace(/\/+$/, "");
  }

  private url(call: Call): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) query.append(name, String(one));
    }
    return `${this.base}${call.path}${query.size ? `?${query}` : ""}`;
  }

  private headers(options?: CallOptions): Headers {
    const headers = new Headers({ Authorization: `Bearer ${this.options.apiKey}` });
    const user = options?.user_id ?? this.options.userId;
    if (user !== undefined) headers.set("Phronesis-User", user);
    return headers;
  }

  private async fetch(url: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
    const limit = AbortSignal.timeout(this.options.timeout ?? 60_000);
    return fetch(url, { ...init, signal: signal ? AbortSignal.any([limit, signal]) : limit });
  }
}

/** What a user told, and what was said in conversations. */
class MemoryCalls {
  constructor(private readonly client: Phronesis) {}

  /** Remember texts, or messages of a conversation: up to 500, all or none. `wait` until they are found by their meaning too. */
  add(
    memories: string | NewMemory | readonly (string | NewMemory)[],
    options: WriteOptions & { conversation_id?: string; wait?: boolean } = {},
  ): Promise<AddedMemories> {
    const several = typeof memories === "string" || !Array.isArray(memories) ? [memories] : memories;
    const given = several.map((one) => (typeof one === "string" ? { text: one } : one));
    const body = { memories: given, ...present({ conversation_id: options.conversation_id, wait: options.wait }) };
    return this.client.call({ method: "POST", path: "/api/v1/memory", body, writes: true, options });
  }

  /** Find what memory holds on a question, best first; what has nothing to do with it is left out. */
  search(
    query: string,
    options: CallOptions & MemoryFilter & { limit?: number; as_of?: string } = {},
  ): Promise<FoundMemories> {
    const body = { query, ...filter(options), ...present({ limit: options.limit, as_of: options.as_of }) };
    return this.client.call({ method: "POST", path: "/api/v1/memory/search", body, options });
  }

  /** A block of text for a prompt, with what memory holds on a question, and its sources. */
  context(query: string, options: CallOptions & MemoryFilter & { budget_tokens?: number } = {}): Promise<MemoryContext> {
    const body = { query, ...filter(options), ...present({ budget_tokens: options.budget_tokens }) };
    return this.client.call({ method: "POST", path: "/api/v1/memory/context", body, options });
  }

  /** A page of memories, the newest first; `cursor` is `next` of the page before. */
  list(
    options: CallOptions & Omit<MemoryFilter, "metadata"> & { limit?: number; cursor?: string } = {},
  ): Promise<MemoryPage> {
    const { kinds, conversation_id, since, until, limit, cursor } = options;
    const query = { kind: kinds, conversation_id, since, until, limit, cursor };
    return this.client.call({ method: "GET", path: "/api/v1/memory", query, options });
  }

  /** One memory, by its id or your own. */
  get(id: string, options: CallOptions = {}): Promise<Memory> {
    return this.client.call({ method: "GET", path: at(id), options });
  }

  /** Correct a memory; what it said before stays in its history. `expires_at`: when it is to be forgotten, or `never`. */
  update(
    id: string,
    change: { text?: string; metadata?: Metadata; expires_at?: string },
    options: WriteOptions = {},
  ): Promise<Memory> {
    return this.client.call({ method: "PATCH", path: at(id), body: change, writes: true, options });
  }

  /** A memory, and what it said before it was changed. */
  history(id: string, options: CallOptions = {}): Promise<MemoryHistory> {
    return this.client.call({ method: "GET", path: `${at(id)}/history`, options });
  }

  /** Delete a memory for good, with its history. */
  delete(id: string, options: WriteOptions = {}): Promise<DeletedMemories> {
    return this.client.call({ method: "DELETE", path: at(id), writes: true, options });
  }
}

/** All that is held of a user of your program; it takes an administrator's key, or the user's. */
class UserCalls {
  constructor(private readonly client: Phronesis) {}

  /** What an erasure would remove, by service and kind. */
  previewErasure(user_id: string, options: CallOptions = {}): Promise<UserPreview> {
    const call = { method: "DELETE", path: `/api/v1/users/${encodeURIComponent(user_id)}`, options } as const;
    return this.client.call({ ...call, query: { dry_run: "true" } });
  }

  /** Erase all that is held of a user. It goes on after this, as `erasure` tells; the user's keys end at once. */
  erase(user_id: string, options: CallOptions = {}): Promise<Erasure> {
    return this.client.call({ method: "DELETE", path: `/api/v1/users/${encodeURIComponent(user_id)}`, options });
  }

  /** How far an erasure is; once it is complete, its proof. */
  erasure(erasure_id: string, options: CallOptions = {}): Promise<Erasure> {
    return this.client.call({ method: "GET", path: `/api/v1/erasures/${encodeURIComponent(erasure_id)}`, options });
  }
}

/** Talking to an agent. */
class ConversationCalls {
  constructor(private readonly client: Phronesis) {}

  /** Send a message and wait for the reply. A turn that has not ended in time is an error `timed_out`; it goes on. */
  async send(text: string, options: WriteOptions & MessageOptions = {}): Promise<Reply> {
    const call = { method: "POST", path: "/api/v1/conversations/messages", writes: true, options } as const;
    const reply = await this.client.call<Reply | AcceptedTurn>({ ...call, body: message(text, options) });
    if ("user_response" in reply) return reply;
    throw new PhronesisError("timed_out", 504, `turn ${reply.turn_id} has not ended yet; it goes on`);
  }
}

/** Turns that were accepted. */
class TurnCalls {
  constructor(private readonly client: Phronesis) {}

  /** Hand in a message and return once its turn is accepted. */
  submit(text: string, options: WriteOptions & MessageOptions = {}): Promise<AcceptedTurn> {
    return this.client.call({ method: "POST", path: "/api/v1/turns", body: message(text, options), writes: true, options });
  }

  /** The state of a turn, with its reply or its problem once it has ended. */
  get(turn_id: string, options: CallOptions = {}): Promise<Turn> {
    return this.client.call({ method: "GET", path: `/api/v1/turns/${encodeURIComponent(turn_id)}`, options });
  }

  /** The events of a turn until its end: its progress, pieces of the reply, and `done`. */
  events(turn_id: string, options: CallOptions = {}): AsyncGenerator<TurnEvent> {
    return this.client.events(turn_id, options);
  }
}

function message(text: string, { conversation_id, agent }: MessageOptions): object {
  return { current_message_text: text, ...present({ conversation_id, agent }) };
}

function at(id: string): string {
  return `/api/v1/memory/${encodeURIComponent(id)}`;
}

function present<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function filter({ kinds, conversation_id, since, until, metadata }: MemoryFilter): Partial<MemoryFilter> {
  return present({ kinds, conversation_id, since, until, metadata }) as Partial<MemoryFilter>;
}

async function problemOf(response: Response): Promise<PhronesisError> {
  const after = Number(response.headers.get("Retry-After") ?? "");
  try {
    const body = (await response.json()) as { code: string; detail: string; field?: string; retry_after?: number };
    return new PhronesisError(body.code, response.status, body.detail, body.field ?? undefined, body.retry_after ?? after);
  } catch {
    return new PhronesisError("unavailable", response.status, `the server answered HTTP ${response.status}`, undefined, after);
  }
}

function unreachable(error: unknown, url: string): PhronesisError {
  const late = error instanceof Error && error.name === "TimeoutError";
  return new PhronesisError(late ? "timed_out" : "unavailable", 503, late ? `${url} did not answer in time` : `nothing answers at ${url}`);
}

function pauseBefore(attempt: number): number {
  return (0.5 + Math.random() / 2) * Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1));
}

function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason as Error)), { once: true });
  });
}

/** The events in a response, as they come. */
async function* read(response: Response): AsyncGenerator<TurnEvent> {
  if (response.body === null) return;
  let text = "";
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split(/\r?\n\r?\n/);
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parse(block);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    await reader.cancel();
  }
}

function parse(block: string): TurnEvent | undefined {
  const fields: Record<string, string[]> = {};
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name !== undefined) (fields[name] ??= []).push(value ?? "");
  }
  if (fields.data === undefined) return undefined;
  const found: TurnEvent = {
    event: fields.event?.[0] ?? "message",
    data: JSON.parse(fields.data.join("\n")) as Record<string, Json>,
  };
  if (fields.id?.[0]) found.id = fields.id[0];
  return found;
}
