/** One turn: what it was asked and answered, where its time and money went, and what it rests on. */

import { ExternalLink, XCircle } from "lucide-preact";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { dollars, duration, moment, number, percent } from "../../format";
import { BASE } from "../../pages";
import { t } from "../../text";
import { Button, LinkButton } from "../../ui/controls";
import { useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Facts, Loaded, Page, ProblemNote, Stat, Time } from "../../ui/layout";
import { Markdown } from "../../ui/markdown";
import { Table } from "../../ui/table";
import { secondsOf, tokensOf } from "./list";
import { Replay } from "./replay";
import { hasEnded, StatusBadge } from "./status";
import { Waterfall } from "./waterfall";

type Turn = Schemas["Turn"];
type Trace = Schemas["AnswerTrace"];

async function readTurn(id: string, signal: AbortSignal): Promise<Turn> {
  return data(api.GET("/api/v1/turns/{id}", { params: { path: { id }, query: { include: "trace" } }, signal }));
}

/** What the turn was asked: its message, or its first words where the conversation keeps no message of it yet. */
async function readQuestion(turn: Turn | undefined, signal: AbortSignal): Promise<string> {
  if (!turn) return "";
  const path = { id: turn.conversation_id };
  const { messages } = await data(api.GET("/api/v1/conversations/{id}", { params: { path, query: { limit: 200 } }, signal }));
  const said = messages.find((message) => message.turn_id === turn.turn_id && message.role === "user")?.text;
  if (said) return said;
  const { turns } = await data(api.GET("/api/v1/turns", { params: { query: { conversation_id: turn.conversation_id, limit: 200 } }, signal }));
  return turns.find((each) => each.turn_id === turn.turn_id)?.opening ?? "";
}

function Figures(props: { turn: Turn }) {
  const { turn } = props;
  const usage = turn.usage ?? turn.reply?.usage;
  const confidence = turn.trace?.confidence ?? turn.reply?.analysis?.confidence;
  return (
    <div class="stats">
      <Stat label={t("traces.status")} value={<StatusBadge status={turn.status} />} note={turn.waiting_for ? t("traces.waits_for", { service: turn.waiting_for }) : turn.agent} />
      <Stat label={t("traces.duration")} value={duration(secondsOf(turn))} note={<Time at={turn.created_at} show={moment} />} />
      <Stat
        label={t("traces.cost")}
        value={usage?.cost_usd == null ? "–" : dollars(usage.cost_usd)}
        note={t("traces.used", { tokens: tokensOf(usage), calls: usage?.model_calls ?? 0 })}
      />
      <Stat label={t("traces.confidence")} value={confidence == null ? "–" : percent(confidence)} note={turn.reply?.reasoner ?? ""} />
    </div>
  );
}

function Answer(props: { turn: Turn; question: string }) {
  const { turn } = props;
  return (
    <Card title={t("traces.said")}>
      {props.question && <blockquote class="asked">{props.question}</blockquote>}
      {turn.reply?.user_response && <Markdown text={turn.reply.user_response} />}
      {turn.reply?.degraded?.length ? <p class="note">{t("traces.degraded", { parts: turn.reply.degraded.join(", ") })}</p> : null}
      {turn.problem && <p>{turn.problem.detail || turn.problem.code}</p>}
      {!turn.reply && !turn.problem && <p class="note">{t("traces.no_answer")}</p>}
    </Card>
  );
}

function outcome(text: string) {
  return <Badge tone={text === "ok" ? "good" : "bad"}>{text}</Badge>;
}

function Calls(props: { trace: Trace }) {
  const { trace } = props;
  const tools = (trace.tool_calls ?? []).map((call, place) => ({ ...call, place }));
  const models = (trace.model_calls ?? []).map((call, place) => ({ ...call, place }));
  const stages = (trace.stages ?? []).map((stage, place) => ({ ...stage, place }));
  const id = (row: { place: number }) => String(row.place);
  return (
    <Card title={t("traces.calls")}>
      {!tools.length && !models.length && !stages.length && <p class="note">{t("traces.no_calls")}</p>}
      {tools.length > 0 && (
        <>
          <h3>{t("traces.tool_calls")}</h3>
          <Table
            label={t("traces.tool_calls")}
            rows={tools}
            id={id}
            columns={[
              { id: "tool", label: t("traces.tool"), show: (call) => <span class="mono">{call.name}</span> },
              {
                id: "arguments",
                label: t("traces.arguments"),
                show: (call) =>
                  Object.keys(call.arguments ?? {}).length ? (
                    <details>
                      <summary class="cut mono">{JSON.stringify(call.arguments)}</summary>
                      <pre>{JSON.stringify(call.arguments, null, 2)}</pre>
                    </details>
                  ) : (
                    "–"
                  ),
              },
              { id: "outcome", label: t("traces.outcome"), show: (call) => outcome(call.outcome) },
              { id: "took", label: t("traces.duration"), number: true, show: (call) => duration(call.ms / 1000) },
            ]}
          />
        </>
      )}
      {models.length > 0 && (
        <>
          <h3>{t("traces.model_calls")}</h3>
          <Table
            label={t("traces.model_calls")}
            rows={models}
            id={id}
            columns={[
              { id: "purpose", label: t("traces.purpose"), show: (call) => call.purpose },
              { id: "model", label: t("traces.model"), show: (call) => <span class="mono">{call.model}</span> },
              { id: "outcome", label: t("traces.outcome"), show: (call) => outcome(call.outcome) },
              { id: "in", label: t("traces.tokens_in"), number: true, show: (call) => number(call.input_tokens) },
              { id: "out", label: t("traces.tokens_out"), number: true, show: (call) => number(call.output_tokens) },
              { id: "price", label: t("traces.cost"), number: true, show: (call) => (call.cost_usd == null ? "–" : dollars(call.cost_usd)) },
              { id: "took", label: t("traces.duration"), number: true, show: (call) => duration(call.ms / 1000) },
            ]}
          />
        </>
      )}
      {stages.length > 0 && (
        <>
          <h3>{t("traces.stages")}</h3>
          <Table
            label={t("traces.stages")}
            rows={stages}
            id={id}
            columns={[
              { id: "stage", label: t("traces.stage"), show: (stage) => stage.name },
              { id: "outcome", label: t("traces.outcome"), show: (stage) => outcome(stage.outcome) },
              { id: "took", label: t("traces.duration"), number: true, show: (stage) => duration(stage.ms / 1000) },
            ]}
          />
        </>
      )}
      {trace.cut && <p class="note">{t("traces.cut")}</p>}
    </Card>
  );
}

const FEW = 12;

function Ids(props: { title: string; of: { id: string; href: string; note: string }[] }) {
  if (!props.of.length) return null;
  const line = (each: { id: string; href: string; note: string }) => (
    <li key={each.id}>
      <a href={each.href} class="mono">
        {each.id}
      </a>{" "}
      <span class="note">{each.note}</span>
    </li>
  );
  return (
    <div>
      <h3>{props.title}</h3>
      <ul class="ids">{props.of.slice(0, FEW).map(line)}</ul>
      {props.of.length > FEW && (
        <details>
          <summary>{t("traces.further", { count: props.of.length - FEW })}</summary>
          <ul class="ids">{props.of.slice(FEW).map(line)}</ul>
        </details>
      )}
    </div>
  );
}

function Sources(props: { turn: Turn }) {
  const sources = props.turn.reply?.sources ?? [];
  const trace = props.turn.trace;
  const gaps = trace?.gaps ?? [];
  const nothing = !sources.length && !gaps.length && !trace?.memories?.length && !trace?.facts?.length;
  const memory = (id: string) => `${BASE}/memory/${encodeURIComponent(id)}`;
  const node = (id: string) => `${BASE}/graph/${encodeURIComponent(id)}`;
  return (
    <Card title={t("traces.sources")}>
      {nothing && <p class="note">{t("traces.no_sources")}</p>}
      {sources.length > 0 && (
        <ul class="sources">
          {sources.map((source) => (
            <li key={source.id}>
              <strong>{source.title}</strong> <Badge>{source.type}</Badge> <span class="note">{percent(source.score)}</span>
              <p class="note">{source.snippet}</p>
            </li>
          ))}
        </ul>
      )}
      <Ids title={t("traces.memories")} of={(trace?.memories ?? []).map((each) => ({ id: each.id, href: memory(each.id), note: each.forgotten ? t("traces.forgotten") : each.kind }))} />
      <Ids title={t("traces.facts")} of={(trace?.facts ?? []).map((each) => ({ id: each.id, href: node(each.id), note: each.type ?? "" }))} />
      <Ids title={t("traces.gaps")} of={gaps.map((gap) => ({ id: gap.node, href: node(gap.node), note: [gap.type, gap.missing].filter(Boolean).join(": ") }))} />
    </Card>
  );
}

function About(props: { turn: Turn }) {
  const { turn } = props;
  const trace = turn.trace;
  const stated: [string, string | number | null | undefined][] = [
    [t("traces.intent"), trace?.intent],
    [t("traces.mode"), trace?.mode],
    [t("traces.tier"), trace?.tier],
    [t("traces.tone"), trace?.tone],
    [t("traces.decision"), trace?.decision],
    [t("traces.release"), trace?.release],
    [t("traces.arms"), Object.entries(trace?.arms ?? {}).map(([name, arm]) => `${name}: ${arm}`).join(", ")],
    [t("traces.attempts"), turn.attempts > 1 ? turn.attempts : null],
    [t("traces.turn_id"), turn.turn_id],
    [t("traces.trace_id"), turn.trace_id],
  ];
  return (
    <Card title={t("traces.about")}>
      <Facts of={stated.filter(([, value]) => value != null && value !== "").map(([name, value]) => [name, String(value)])} />
      {trace?.plan?.length ? (
        <>
          <h3>{t("traces.plan")}</h3>
          <ol>{trace.plan.map((line, place) => <li key={place}>{line}</li>)}</ol>
        </>
      ) : null}
    </Card>
  );
}

export function TurnPage(props: { id: string }) {
  const { id } = props;
  const toast = useToast();
  const turn = useRead((signal) => readTurn(id, signal), [id]);
  const spans = useRead((signal) => data(api.GET("/api/v1/turns/{id}/trace", { params: { path: { id } }, signal })), [id]);
  const question = useRead((signal) => readQuestion(turn.data, signal), [turn.data?.conversation_id]);
  const stop = useAct(async () => {
    await data(api.DELETE("/api/v1/turns/{id}", { params: { path: { id } } }));
    toast(t("traces.stopped"));
    turn.reload();
  });
  const retry = useAct(async () => {
    const made = await data(api.POST("/api/v1/turns/{id}/retry", { params: { path: { id }, header: once() } }));
    location.assign(`${BASE}/traces/${made.turn_id}`);
  });
  const state = turn.data;
  const title = question.data?.trim() || (state ? t("traces.turn_of", { agent: state.agent }) : t("traces.turn"));
  return (
    <Page
      title={title.length > 120 ? `${title.slice(0, 120)}…` : title}
      wide
      actions={
        state && (
          <>
            <LinkButton href={`${BASE}/chat/${state.conversation_id}`} icon={<ExternalLink aria-hidden="true" />}>
              {t("traces.conversation")}
            </LinkButton>
            {!hasEnded(state.status) && (
              <Button kind="danger" icon={<XCircle aria-hidden="true" />} busy={stop.running} onClick={() => void stop.run()}>
                {t("traces.stop")}
              </Button>
            )}
            {(state.status === "failed" || state.status === "parked") && (
              <Button busy={retry.running} onClick={() => void retry.run()}>
                {t("traces.again")}
              </Button>
            )}
          </>
        )
      }
    >
      <nav aria-label={t("traces.path")}>
        <a href={`${BASE}/traces`}>{t("traces.all_turns")}</a>
      </nav>
      {(stop.problem ?? retry.problem) && <ProblemNote problem={(stop.problem ?? retry.problem)!} />}
      <Loaded of={turn}>
        {(shown) => (
          <>
            <Figures turn={shown} />
            {shown.status === "waiting" && shown.approval_id && (
              <p class="slowest-step">
                <a href={`${BASE}/work/approvals`}>{t("traces.waits_approval")}</a>
              </p>
            )}
            <Loaded of={spans}>{(trace) => <Waterfall trace={trace} recorded={shown.trace} seconds={secondsOf(shown)} />}</Loaded>
            <div class="turn-parts">
              <div class="stack">
                <Answer turn={shown} question={question.data ?? ""} />
                {shown.trace ? <Calls trace={shown.trace} /> : <Empty title={t("traces.no_trace")} />}
              </div>
              <div class="stack">
                <About turn={shown} />
                <Sources turn={shown} />
              </div>
            </div>
            {hasEnded(shown.status) && shown.status !== "cancelled" && <Replay turn={shown} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}
