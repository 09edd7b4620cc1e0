/** Parts that several pages of memory show. */

import type { Schemas } from "../../api/client";
import { moment, number } from "../../format";
import type { Me } from "../../session";
import { t, word } from "../../text";
import { Badge, Time } from "../../ui/layout";

export const ROOT = "/console/memory";
export type Memory = Schemas["Memory"];
export type Metadata = Record<string, string | number | boolean | null>;
type Label = Schemas["Label"];

/** Whether somebody may change what is remembered. */
export function mayWrite(me: Me): boolean {
  return me.role !== "reader" && (!me.scopes.includes("phronesis:read") || me.scopes.includes("phronesis:write"));
}

const TONES = { fact: "good", note: "info", concept: "warn", message: "plain", episode: "plain" } as const;

export function Kind(props: { kind: string }) {
  return <Badge tone={TONES[props.kind as keyof typeof TONES] ?? "plain"}>{word("memory", `kind_${props.kind}`)}</Badge>;
}

/** Where something comes from, in words; a document is a link to what came of it. */
export function Origins(props: { labels: Label[] | undefined }) {
  const labels = (props.labels ?? []).filter((label) => label.kind !== "unknown");
  if (!labels.length) return <span class="note">{t("memory.origin_unknown")}</span>;
  return (
    <span class="memory-origins">
      {labels.map((label) => {
        const words = `${word("memory", `origin_${label.kind}`)}${label.name ? `: ${label.name}` : ""}`;
        const source = label.id || label.name;
        return label.kind === "document" && source ? (
          <a key={words} href={`${ROOT}/documents?source=${encodeURIComponent(source)}`}>
            {words}
          </a>
        ) : (
          <span key={words}>{words}</span>
        );
      })}
    </span>
  );
}

export function MetadataList(props: { of: Metadata | undefined }) {
  const entries = Object.entries(props.of ?? {});
  if (!entries.length) return <span class="note">{t("shell.none")}</span>;
  return (
    <ul class="memory-metadata">
      {entries.map(([name, value]) => (
        <li key={name}>
          <span class="note">{name}</span> {String(value)}
        </li>
      ))}
    </ul>
  );
}

/** One part of a score, as a bar and a figure. `share` is 0 to 1; what has no upper bound is told against the best. */
export function Part(props: { name: string; help: string; value: number; share: number }) {
  return (
    <div class="score-part">
      <dt title={props.help}>{props.name}</dt>
      <dd>
        <span class="score-bar" aria-hidden="true">
          <span style={{ width: `${Math.max(0, Math.min(1, props.share)) * 100}%` }} />
        </span>
        <span class="score-value">{number(props.value, 3)}</span>
      </dd>
    </div>
  );
}

/** A list of counts, such as what a service would remove. */
export function Counts(props: { of: Record<string, Record<string, number>> | undefined; none?: string }) {
  const rows = Object.entries(props.of ?? {}).flatMap(([service, counts]) =>
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([what, count]) => ({ service, what, count })),
  );
  if (!rows.length) return <p class="note">{props.none ?? t("memory.nothing_held")}</p>;
  return (
    <ul class="memory-counts">
      {rows.map((row) => (
        <li key={`${row.service}.${row.what}`}>
          <strong>{number(row.count)}</strong> {word("memory", `count_${row.what}`).replace(/^count /, "")} <span class="note">{row.service}</span>
        </li>
      ))}
    </ul>
  );
}

export function When(props: { at: string }) {
  return <Time at={props.at} show={moment} />;
}

/** The beginning of a day in the viewer's zone, or of the day behind it, as a moment. */
export function dayStart(date: string, after = 0): string {
  const at = new Date(`${date}T00:00`);
  at.setDate(at.getDate() + after);
  return at.toISOString();
}

/** What a call says to be done for another user, where the key may; nothing for the viewer themselves. */
export function asUser(user: string | undefined): { headers?: { "Phronesis-User": string } } {
  return user ? { headers: { "Phronesis-User": user } } : {};
}
