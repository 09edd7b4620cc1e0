import type { Me } from "../../session";

/** Whether somebody may read and change the texts: administrators, and keys that may act as the editor. */
export function mayEdit(me: Me): boolean {
  return me.role === "owner" || me.role === "admin" || me.agents.includes("editor");
}
