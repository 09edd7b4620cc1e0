/** What a call does beyond its answer, and how much is at stake, as words with a colour. */

import type { Schemas } from "../../api/client";
import { word } from "../../text";
import { Badge } from "../../ui/layout";

export type Origin = Schemas["Label"];

const EFFECTS = { read: "plain", write: "info", outbound: "warn", message: "info", spend: "warn" } as const;

export function Effect(props: { effect: Schemas["Effect"] }) {
  return <Badge tone={EFFECTS[props.effect]}>{word("work", `effect_${props.effect}`)}</Badge>;
}

export function Risk(props: { risk: string }) {
  const tone = props.risk === "high" ? "bad" : props.risk === "medium" ? "warn" : "plain";
  return <Badge tone={tone}>{word("work", `risk_${props.risk}`)}</Badge>;
}

/** Where a text comes from, with the name that a person knows it by. */
export function originOf(label: Origin): string {
  const kind = word("work", `origin_${label.kind}`);
  const name = label.name || label.id;
  return name ? `${kind} (${name})` : kind;
}
