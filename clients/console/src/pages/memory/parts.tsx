/** Parts that several pages of memory show. */

import { Search, Trash2 } from "lucide-preact";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { Schemas } from "../../api/client";
import { moment, number } from "../../format";
import type { Me } from "../../session";
import { t, word } from "../../text";
import { Button, TextField } from "../../ui/controls";
import { Badge, Page, Time } from "../../ui/layout";
import { type Parameters, useParameters } from "../../ui/parameters";

export const ROOT = "/console/memory";
export type Memory = Schemas["Memory"];
export type Metadata = Record<string, string | number | boolean | null>;
type Label = Schemas["Label"];
/** What may be done with one memory or fact. */
export type Act = "correct" | "forget";

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
  // Two ids may have one name, such as a thing in two of its years.
  const named = new Map(labels.map((label) => [`${word("memory", `origin_${label.kind}`)}${label.name ? `: ${label.name}` : ""}`, label]));
  return (
    <span class="memory-origins">
      {[...named].map(([words, label]) => {
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

/** A field for what is looked for, which the address keeps as `q`, with the filters below it. */
export function SearchForm(props: { hint: string; others?: () => Parameters; children?: ComponentChildren }) {
  const [{ q = "" }, change] = useParameters();
  const [text, setText] = useState(q);
  useEffect(() => setText(q), [q]);
  return (
    <form
      class="memory-search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        change({ ...props.others?.(), q: text.trim() }, false);
      }}
    >
      <div class="memory-query">
        <TextField label={t("memory.query")} hidden type="search" maxLength={4000} placeholder={props.hint} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <Button kind="primary" type="submit" icon={<Search aria-hidden="true" />}>
          {t("shell.search")}
        </Button>
      </div>
      {props.children}
    </form>
  );
}

/** A page of one memory or fact, which may be corrected and forgotten by who may write. */
export function OnePage(props: { title: string; back: { href: string; label: string }; may: boolean; correct: JSX.Element; open: (act: Act) => void; children: ComponentChildren }) {
  const acts = (
    <>
      <Button icon={props.correct} onClick={() => props.open("correct")}>
        {t("memory.correct")}
      </Button>
      <Button kind="danger" icon={<Trash2 aria-hidden="true" />} onClick={() => props.open("forget")}>
        {t("memory.forget")}
      </Button>
    </>
  );
  return (
    <Page title={props.title} actions={props.may && acts}>
      <p>
        <a href={props.back.href}>{props.back.label}</a>
      </p>
      {props.children}
    </Page>
  );
}

export interface ScorePart {
  name: string;
  help: string;
  value: number;
  share: number;
}

/** A score that opens to its parts. */
export function Score(props: { total: string; parts: ScorePart[]; open?: boolean; children?: ComponentChildren }) {
  return (
    <details class="score" open={props.open}>
      <summary>
        <span class="score-total">{props.total}</span> {t("memory.why")}
      </summary>
      <dl>
        {props.parts.map((part) => (
          <Part key={part.name} {...part} />
        ))}
      </dl>
      {props.children}
    </details>
  );
}

/** The score as a whole, and its parts by their names; words are told against the best result. */
export function partsOf(score: number, why: Record<string, unknown>, names: readonly string[], best: number): ScorePart[] {
  const parts = names.flatMap((name) => {
    const value = why[name];
    if (typeof value !== "number") return [];
    const help = word("memory", `why_${name}_help`);
    return [{ name: word("memory", `why_${name}`), help, value, share: name === "text" ? value / (best || 1) : value }];
  });
  return [{ name: t("memory.score"), help: t("memory.score_help"), value: score, share: score }, ...parts];
}

/** One part of a score, as a bar and a figure. `share` is 0 to 1; what has no upper bound is told against the best. */
function Part(props: ScorePart) {
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
