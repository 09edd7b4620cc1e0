/** The parts of a page: its head, cards, tabs, and the states that data can be in. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { AlertTriangle, Inbox } from "lucide-preact";
import { useLocation } from "preact-iso";

import type { Problem } from "../api/client";
import type { Read } from "../api/use";
import { language, t, word } from "../text";
import { Button } from "./controls";

/** A page with its title and, beside it, what can be done on it. */
export function Page(props: { title: string; lead?: string; actions?: ComponentChildren; wide?: boolean; children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${props.title} · Phronesis`;
  }, [props.title]);
  return (
    <div class={props.wide ? "page wide" : "page"}>
      <div class="page-head">
        <div>
          <h1>{props.title}</h1>
          {props.lead && <p class="lead">{props.lead}</p>}
        </div>
        {props.actions && <div class="page-actions">{props.actions}</div>}
      </div>
      {props.children}
    </div>
  );
}

export function Card(props: { title?: ComponentChildren; actions?: ComponentChildren; class?: string; children: ComponentChildren }) {
  return (
    <section class={`card ${props.class ?? ""}`}>
      {(props.title || props.actions) && (
        <div class="card-head">
          {props.title && <h2>{props.title}</h2>}
          {props.actions && <div class="card-actions">{props.actions}</div>}
        </div>
      )}
      {props.children}
    </section>
  );
}

/** A figure with its name, for overviews. */
export function Stat(props: { label: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="stat">
      <div class="stat-label">{props.label}</div>
      <div class="stat-value">{props.value}</div>
      {props.note && <div class="stat-note">{props.note}</div>}
    </div>
  );
}

/** Links between the parts of an area; each has an address of its own. */
export function Tabs(props: { label: string; tabs: { href: string; label: string; count?: number }[] }) {
  const { path } = useLocation();
  const current = props.tabs
    .filter((tab) => path === tab.href || path.startsWith(`${tab.href}/`))
    .sort((one, other) => other.href.length - one.href.length)[0];
  return (
    <nav class="tabs" aria-label={props.label}>
      {props.tabs.map((tab) => (
        <a key={tab.href} href={tab.href} aria-current={tab === current ? "page" : undefined}>
          {tab.label}
          {tab.count ? <span class="count">{tab.count}</span> : null}
        </a>
      ))}
    </nav>
  );
}

/** A word for the state of something. */
export function Badge(props: { tone?: "good" | "bad" | "warn" | "info" | "plain"; children: ComponentChildren }) {
  return <span class={`badge ${props.tone ?? "plain"}`}>{props.children}</span>;
}

/** What is shown in place of a list that holds nothing: why, and what to do. */
export function Empty(props: { title: string; children?: ComponentChildren; icon?: JSX.Element }) {
  return (
    <div class="empty">
      {props.icon ?? <Inbox aria-hidden="true" />}
      <p class="empty-title">{props.title}</p>
      {props.children}
    </div>
  );
}

/** What did not work, what to do about it, and a button that tries again. */
export function ProblemNote(props: { problem: Problem; retry?: () => void }) {
  const { problem } = props;
  const advice = word("shell", `advice_${problem.code}`);
  return (
    <div class="problem" role="alert" data-code={problem.code}>
      <AlertTriangle aria-hidden="true" />
      <div>
        <p class="problem-title">{problem.message || t("shell.problem")}</p>
        {advice.startsWith("advice ") ? null : <p>{advice}</p>}
        {problem.retryAfter ? <p>{t("shell.retry_after", { seconds: Math.ceil(problem.retryAfter) })}</p> : null}
      </div>
      {props.retry && <Button onClick={props.retry}>{t("shell.retry")}</Button>}
    </div>
  );
}

/** Grey lines where data will be. */
export function Loading(props: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={t("shell.loading")}>
      {Array.from({ length: props.lines ?? 4 }, (_, line) => (
        <span key={line} />
      ))}
    </div>
  );
}

/** The browser's mark of when a page first showed data: from then on it can be used. */
const FIRST_DATA = "first-data";

/** Shows data once they are there; before, that they are loading, or why they are not there. */
export function Loaded<T>(props: { of: Pick<Read<T>, "data" | "problem" | "loading" | "reload">; lines?: number; children: (data: T) => ComponentChildren }) {
  const { data, problem, loading, reload } = props.of;
  const there = data !== undefined;
  useEffect(() => {
    if (there && !performance.getEntriesByName(FIRST_DATA).length) performance.mark(FIRST_DATA);
  }, [there]);
  return (
    <>
      {problem && <ProblemNote problem={problem} retry={reload} />}
      {there ? props.children(data) : loading && <Loading {...(props.lines ? { lines: props.lines } : {})} />}
    </>
  );
}

/** Names and values of one thing. */
export function Facts(props: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {props.of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A moment in the viewer's zone; the exact one is in its title. */
export function Time(props: { at: string; show: (iso: string) => string }) {
  const exact = new Intl.DateTimeFormat(language(), { dateStyle: "full", timeStyle: "long" }).format(new Date(props.at));
  return (
    <time dateTime={props.at} title={exact}>
      {props.show(props.at)}
    </time>
  );
}
