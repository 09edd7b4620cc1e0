/** Calls of the gateway's public routes, with the cookie of the session. */

import createClient, { type Middleware } from "openapi-fetch";

import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** Why a call was not done, as the server states it (RFC 9457). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly field?: string,
    /** Seconds after which it is worth another try. */
    readonly retryAfter?: number,
  ) {
    super(detail);
  }
}

/** Name of the event at the window that tells that nobody is signed in any more. */
export const SIGNED_OUT = "signed-out";

async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as Partial<Schemas["Problem"]>;
  const detail = body.detail ?? response.statusText;
  return new Problem(response.status, body.code ?? "internal", detail, body.field ?? undefined, body.retry_after ?? undefined);
}

/** Throws a `Problem` in place of every answer that is none of success, so that `data` is always there. */
const failing: Middleware = {
  async onResponse({ response }) {
    if (response.ok) return undefined;
    if (response.status === 401) window.dispatchEvent(new Event(SIGNED_OUT));
    throw await problemOf(response);
  },
  onError() {
    return new Problem(0, "unavailable", "The gateway does not answer.");
  },
};

export const api = createClient<paths>({ baseUrl: "" });
api.use(failing);

/** The data of an answer; a `Problem` was thrown where there is none. */
export async function data<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

/** Calls a tool by its name, and gives its result. `T` is what the caller knows of it. */
export async function callTool<T>(name: string, given: Record<string, unknown> = {}, signal?: AbortSignal): Promise<T> {
  return (await send("POST", `/api/v1/tools/${name}`, given, signal)) as T;
}

/** Sends JSON to a route of the console itself or of a tool. */
export async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
  const response = await fetch(path, {
    method,
    signal: signal ?? null,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "unavailable", "The gateway does not answer.");
  });
  if (!response.ok) {
    if (response.status === 401 && !path.startsWith("/console/")) window.dispatchEvent(new Event(SIGNED_OUT));
    throw await problemOf(response);
  }
  return response.status === 204 ? undefined : response.json();
}

/** Follows a stream of events until it ends or `close` is called. The browser reconnects by itself and says what it has seen.
 *
 * @param names the events to hear.
 * @returns close.
 */
export function follow(path: string, names: string[], heard: (name: string, data: unknown) => void): () => void {
  const source = new EventSource(path);
  for (const name of names) {
    source.addEventListener(name, (event) => heard(name, JSON.parse((event as MessageEvent<string>).data)));
  }
  return () => source.close();
}

/** Headers for a write that can be sent again without being done twice. */
export function once(): { "Idempotency-Key": string } {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return { "Idempotency-Key": [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("") };
}
