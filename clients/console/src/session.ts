/** Who is signed in. The key is sent once and kept nowhere: a cookie that no script can read holds the session. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";

import { api, data, send, type Schemas } from "./api/client";

export type Me = Schemas["Me"];

const SESSION = "/console/session";

/** Who is signed in; throws a `Problem` with the status 401 where nobody is. */
export function readMe(): Promise<Me> {
  return data(api.GET("/api/v1/me"));
}

export async function signIn(key: string): Promise<void> {
  await send("POST", SESSION, { key });
}

/** Ends the session, or every session of the user. */
export async function signOut(everywhere = false): Promise<void> {
  await send("DELETE", everywhere ? `${SESSION}?everywhere=true` : SESSION);
}

export const Signed = createContext<Me | undefined>(undefined);

/** Who is signed in, inside of the pages. */
export function useMe(): Me {
  const me = useContext(Signed);
  if (!me) throw new Error("nobody is signed in");
  return me;
}

/** Whether somebody looks after their tenant. */
export function administers(role: string): boolean {
  return role === "owner" || role === "admin";
}
