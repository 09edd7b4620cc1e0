/** The turns of the viewer, and for administrators those of others: filtered by the route, and what it cannot filter by among those that are loaded. */

import { RefreshCw, ThumbsDown, ThumbsUp } from "lucide-preact";

import { api, data, type Schemas } from "../../api/client";
import { usePages, useRead } from "../../api/use";
import { ago, dollars, duration, number, startOfDay } from "../../format";
import { BASE } from "../../pages";
import { administers, useMe } from "../../session";
import { t, word } from "../../text";
import { Button, IconButton, Select, TextField } from "../../ui/controls";
import { Card, Empty, Loaded, Page, Time } from "../../ui/layout";
import { useParameters, type Parameters } from "../../ui/parameters";
import { Table, type Column } from "../../ui/table";
import { STATUSES, StatusBadge, type Status } from "./status";

type Turn = Schemas["Turn"];

const PAGE = 50;
const SECONDS = ["1", "5", "30", "120"];
const DOLLARS = ["0.001", "0.01", "0.1", "1"];

/** Seconds that a turn took, or has taken so far. */
export function secondsOf(turn: Turn): number {
  return (new Date(turn.ended_at ?? Date.now()).getTime() - new Date(turn.created_at).getTime()) / 1000;
}

export function tokensOf(usage: Schemas["Usage"] | null | undefined): number {
  return (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0);
}

/** What the turn's user thinks of its answer. */
function Rated(props: { of: Schemas["Feedback"] }) {
  const { helpful, remark } = props.of;
  return (
    <span class={helpful ? "rated note" : "rated note bad"}>
      {helpful ? <ThumbsUp role="img" aria-label={t("traces.helpful")} /> : <ThumbsDown role="img" aria-label={t("traces.unhelpful")} />}
      {remark}
    </span>
  );
}

/** The question; a link to the turn's page, which is open to its user alone. */
function Question(props: { of: Turn; mine: boolean }) {
  const { of } = props;
  const text = of.opening || t(props.mine ? "traces.no_text" : "traces.of_another");
  return (
    <span class="question">
      {props.mine ? <a href={`${BASE}/traces/${of.turn_id}`}>{text}</a> : <span>{text}</span>}
      {of.feedback && <Rated of={of.feedback} />}
    </span>
  );
}

const columns = (me: string, others: boolean): Column<Turn>[] => [
  { id: "question", label: t("traces.question"), show: (turn) => <Question of={turn} mine={!turn.user || turn.user === me} /> },
  ...(others ? [{ id: "user", label: t("traces.user"), show: (turn: Turn) => turn.user ?? "", by: (turn: Turn) => turn.user ?? "" }] : []),
  { id: "agent", label: t("traces.agent"), show: (turn) => turn.agent, by: (turn) => turn.agent },
  { id: "status", label: t("traces.status"), show: (turn) => <StatusBadge status={turn.status} />, by: (turn) => STATUSES.indexOf(turn.status) },
  { id: "begun", label: t("traces.begun"), show: (turn) => <Time at={turn.created_at} show={ago} />, by: (turn) => turn.created_at },
  { id: "duration", label: t("traces.duration"), number: true, show: (turn) => duration(secondsOf(turn)), by: secondsOf },
  { id: "tokens", label: t("traces.tokens"), number: true, show: (turn) => (turn.usage ? number(tokensOf(turn.usage)) : "–"), by: (turn) => tokensOf(turn.usage) },
  {
    id: "cost",
    label: t("traces.cost"),
    number: true,
    show: (turn) => (turn.usage?.cost_usd == null ? "–" : dollars(turn.usage.cost_usd)),
    by: (turn) => turn.usage?.cost_usd ?? 0,
  },
];

function Filters(props: { given: Parameters; change: (changes: Parameters) => void }) {
  const { given, change } = props;
  const me = useMe();
  const agents = useRead(() => data(api.GET("/api/v1/agents")), []);
  const admin = administers(me.role);
  const users = useRead(async (signal) => (admin ? (await data(api.GET("/api/v1/users", { params: { query: { limit: 200 } }, signal }))).users : []), [admin]);
  const others = new Set((users.data ?? []).map((each) => each.user).filter((each) => each !== me.user));
  if (given.user && given.user !== "*") others.add(given.user);
  const names = (agents.data?.agents ?? []).map((agent) => agent.name);
  const all = { value: "", label: t("shell.all") };
  const choices = (name: string, label: string, options: { value: string; label: string }[]) => (
    <Select label={label} value={given[name] ?? ""} options={[all, ...options]} onChange={(event) => change({ [name]: event.currentTarget.value })} />
  );
  const day = (name: string, label: string) => <TextField type="date" label={label} value={given[name] ?? ""} onChange={(event) => change({ [name]: event.currentTarget.value })} />;
  return (
    <div class="filters turn-filters" role="search" aria-label={t("traces.filters")}>
      {admin && (
        <Select
          label={t("traces.user")}
          value={given.user ?? ""}
          options={[{ value: "", label: t("traces.mine") }, { value: "*", label: t("traces.everybody") }, ...[...others].map((value) => ({ value, label: value }))]}
          onChange={(event) => change({ user: event.currentTarget.value })}
        />
      )}
      {choices("agent", t("traces.agent"), names.map((name) => ({ value: name, label: name })))}
      {choices("status", t("traces.status"), STATUSES.map((each) => ({ value: each, label: word("traces", `status_${each}`) })))}
      {choices("helpful", t("traces.feedback"), [
        { value: "true", label: t("traces.helpful") },
        { value: "false", label: t("traces.unhelpful") },
      ])}
      {day("since", t("traces.since"))}
      {day("until", t("traces.until"))}
      {choices("slower", t("traces.slower"), SECONDS.map((each) => ({ value: each, label: t("traces.at_least", { value: duration(Number(each)) }) })))}
      {choices("dearer", t("traces.dearer"), DOLLARS.map((each) => ({ value: each, label: t("traces.at_least", { value: dollars(Number(each)) }) })))}
    </div>
  );
}

export function TurnList() {
  const [given, change] = useParameters();
  const me = useMe();
  const { agent, status, since, until, conversation, helpful, user } = given;
  const turns = usePages(
    async (before, signal) => {
      const query = {
        limit: PAGE,
        ...(agent ? { agent } : {}),
        ...(status ? { status: status as Status } : {}),
        ...(since ? { since: startOfDay(since) } : {}),
        ...(until ? { until: startOfDay(until, 1) } : {}),
        ...(conversation ? { conversation_id: conversation } : {}),
        ...(helpful ? { helpful: helpful === "true" } : {}),
        ...(user ? { user } : {}),
        ...(before ? { before } : {}),
      };
      const { turns } = await data(api.GET("/api/v1/turns", { params: { query }, signal }));
      return { items: turns, next: turns.length === PAGE ? turns[PAGE - 1]?.turn_id : null };
    },
    [agent, status, since, until, conversation, helpful, user],
  );
  const [slower, dearer] = [Number(given.slower ?? 0), Number(given.dearer ?? 0)];
  const shown = (rows: Turn[]) => rows.filter((turn) => secondsOf(turn) >= slower && (turn.usage?.cost_usd ?? 0) >= dearer);
  const filtered = [agent, status, since, until, conversation, helpful, user, given.slower, given.dearer].some(Boolean);
  const clear = () => change({ agent: "", status: "", since: "", until: "", conversation: "", helpful: "", user: "", slower: "", dearer: "" });
  return (
    <Page
      title={t("shell.traces")}
      lead={t("traces.lead")}
      actions={<IconButton label={t("traces.refresh")} icon={<RefreshCw aria-hidden="true" />} onClick={turns.reload} />}
      wide
    >
      <Card>
        <Filters given={given} change={change} />
        {filtered && (
          <div class="row">
            {conversation && <span class="note">{t("traces.one_conversation")}</span>}
            <Button kind="quiet" onClick={clear}>
              {t("traces.clear")}
            </Button>
          </div>
        )}
      </Card>
      <Loaded of={turns} lines={8}>
        {(rows) => {
          const found = shown(rows);
          return (
            <Card>
              <p class="note" aria-live="polite">
                {t("traces.shown", { count: found.length, more: !!turns.more })}
              </p>
              {found.length || turns.more ? (
                <Table label={t("shell.traces")} columns={columns(me.user, !!user)} rows={found} id={(turn) => turn.turn_id} more={turns.more} />
              ) : (
                <Empty title={t(filtered ? "traces.none_found" : "traces.none")}>
                  {filtered ? <Button onClick={clear}>{t("traces.clear")}</Button> : <p>{t("traces.none_hint")}</p>}
                </Empty>
              )}
            </Card>
          );
        }}
      </Loaded>
    </Page>
  );
}
