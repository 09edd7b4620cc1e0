/** Where a turn or a task is, as a word with a colour. */

import type { Schemas } from "../../api/client";
import { word } from "../../text";
import { Badge } from "../../ui/layout";

export type Status = Schemas["TurnStatus"];

export const STATUSES: Status[] = ["queued", "running", "waiting", "completed", "failed", "cancelled", "parked"];
const TONES = { queued: "plain", running: "info", waiting: "warn", completed: "good", failed: "bad", cancelled: "plain", parked: "warn" } as const;

/** Whether nothing more happens to it. */
export function hasEnded(status: Status): boolean {
  return status === "completed" || status === "failed" || status === "cancelled" || status === "parked";
}

export function StatusBadge(props: { status: Status }) {
  return <Badge tone={TONES[props.status]}>{word("traces", `status_${props.status}`)}</Badge>;
}
