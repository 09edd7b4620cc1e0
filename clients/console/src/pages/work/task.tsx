/** One task: its plan by waves while it is worked on, what it asks, and what came of it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Check, CheckCheck, CircleDashed, Download, LoaderCircle, MinusCircle, XCircle } from "lucide-preact";
import { useLocation } from "preact-iso";

import { api, data, follow, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { ago, dollars, duration, moment, number, percent } from "../../format";
import { BASE } from "../../pages";
import { t, word } from "../../text";
import { Button, LinkButton, TextArea, TextField } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Badge, Card, Facts, Loaded, Page, ProblemNote, Stat, Time } from "../../ui/layout";
import { Rows, Shown } from "../../ui/chart";
import { Markdown } from "../../ui/markdown";
import { hasEnded, StatusBadge } from "../traces/status";
import { tokensOf } from "../traces/list";
import { Effect } from "./effect";
import { stepsOf } from "./tasks";

type Task = Schemas["Task"];
type Step = Schemas["TaskStep"];
type News = Partial<Pick<Step, "state" | "found" | "ms" | "code">>;

const PHASES = ["accepted", "phase", "waiting", "ended", "done"];

interface Progress {
  phase?: string;
  detail?: { step?: string; steps?: unknown[]; state?: Step["state"]; found?: string; ms?: number; code?: string | null };
}

/** A task with what its events have told since it was read. */
function useTask(id: string) {
  const task = useRead((signal) => data(api.GET("/api/v1/tasks/{id}", { params: { path: { id } }, signal })), [id]);
  const [news, setNews] = useState<Record<string, News>>({});
  const live = !!task.data && !hasEnded(task.data.status);
  const reload = useRef(task.reload);
  reload.current = task.reload;
  useEffect(() => {
    if (!live) return undefined;
    const close = follow(`/api/v1/tasks/${encodeURIComponent(id)}/events`, PHASES, (name, said) => {
      const { phase, detail } = said as Progress;
      if (name === "phase" && phase === "wave_started") {
        setNews((before) => ({ ...before, ...Object.fromEntries((detail?.steps ?? []).map((step) => [String(step), { state: "running" } as News])) }));
      } else if (name === "phase" && phase === "step_finished" && detail?.step) {
        const { step, state, found, ms, code } = detail;
        setNews((before) => ({ ...before, [step]: { ...(state ? { state } : {}), ...(ms === undefined ? {} : { ms }), found: found ?? "", code: code ?? null } }));
      } else {
        reload.current();
      }
      if (name === "done") close();
    });
    return close;
  }, [id, live]);
  const steps = (task.data?.progress?.steps ?? []).map((step) => (live && (step.state === "pending" || step.state === "running") ? { ...step, ...news[step.id] } : step));
  return { ...task, steps, live };
}

const SIGNS = { pending: CircleDashed, running: LoaderCircle, done: Check, failed: XCircle, skipped: MinusCircle };

function StepLine(props: { step: Step }) {
  const { step } = props;
  const state = step.state ?? "pending";
  const Sign = SIGNS[state];
  return (
    <li class={`plan-step ${state}`} data-state={state}>
      <Sign aria-hidden="true" />
      <div>
        <p>
          <span class="unseen">{word("work", `step_${state}`)}: </span>
          {step.description}
        </p>
        <p class="note">
          {step.tool && <span class="mono">{step.tool}</span>}
          {step.found ? ` → ${step.found}` : ""}
          {step.code ? ` — ${step.code}` : ""}
        </p>
      </div>
      <span class="note">{step.ms ? duration(step.ms / 1000) : ""}</span>
    </li>
  );
}

function Plan(props: { steps: Step[]; live: boolean; dry: boolean }) {
  const waves = [...new Set(props.steps.map((step) => step.wave))].sort((one, other) => one - other);
  const over = props.steps.filter((step) => step.state !== "pending" && step.state !== "running").length;
  return (
    <Card title={t("work.plan")}>
      <p class="note" aria-live="polite">
        {!props.steps.length ? t(props.live ? "work.planning" : "work.no_plan") : props.dry ? t("work.nothing_done") : t("work.progress", { over, all: props.steps.length })}
      </p>
      {props.steps.length > 0 && !props.dry && <progress max={props.steps.length} value={over} aria-label={t("work.plan")} />}
      <ol class="waves">
        {waves.map((wave) => (
          <li key={wave}>
            <h3>{t("work.wave", { number: wave })}</h3>
            <ul class="plan-steps">
              {props.steps
                .filter((step) => step.wave === wave)
                .map((step) => (
                  <StepLine key={step.id} step={step} />
                ))}
            </ul>
          </li>
        ))}
      </ol>
    </Card>
  );
}

const ASKS = { no: "good", maybe: "warn", yes: "warn", refused: "bad" } as const;

/** Of a dry run: what each step would do, and whether somebody would be asked first. */
function Would(props: { task: Task }) {
  const calls = props.task.progress?.calls ?? [];
  if (!calls.length) return null;
  return (
    <Card title={t("work.would")}>
      <ul class="calls">
        {calls.map((call) => (
          <li key={call.step} class="call">
            <div class="row">
              <strong class="mono">{call.tool ?? call.step}</strong>
              {call.effect && <Effect effect={call.effect} />}
              {call.approval && <Badge tone={ASKS[call.approval]}>{word("work", `asks_${call.approval}`)}</Badge>}
            </div>
            {call.question && <p>{call.question}</p>}
            {call.reason && <p class="note">{call.reason}</p>}
            {call.arguments && Object.keys(call.arguments).length > 0 && (
              <details>
                <summary>{t("work.arguments")}</summary>
                <pre>{JSON.stringify(call.arguments, null, 2)}</pre>
              </details>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** What the task asks its owner, with the choices that it offers. */
function Question(props: { task: Task; answered: (task: Task) => void }) {
  const [answer, setAnswer] = useState("");
  const { task } = props;
  const act = useAct(async (said: string) => {
    const params = { path: { id: task.task_id }, header: once() };
    props.answered(await data(api.POST("/api/v1/tasks/{id}/answer", { params, body: { answer: said } })));
  });
  const wait = task.waiting;
  if (!wait) return null;
  if (wait.kind === "date") {
    return (
      <p class="slowest-step">
        {t("work.waits_until")} <Time at={wait.until} show={moment} />
      </p>
    );
  }
  return (
    <Card title={t("work.asks_you")} class="asking">
      <p>{wait.question}</p>
      {wait.choices?.length ? (
        <div class="row">
          {wait.choices.map((choice) => (
            <Button key={choice} busy={act.running} onClick={() => void act.run(choice)}>
              {choice}
            </Button>
          ))}
        </div>
      ) : null}
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          void act.run(answer.trim());
        }}
      >
        <TextField label={t("work.answer")} value={answer} onInput={(event) => setAnswer(event.currentTarget.value)} />
        <Button kind="primary" type="submit" disabled={!answer.trim()} busy={act.running}>
          {t("work.send_answer")}
        </Button>
      </form>
      <p class="note">
        {t("work.waits_until")} <Time at={wait.until} show={moment} />
      </p>
      {act.problem && <ProblemNote problem={act.problem} />}
    </Card>
  );
}

function Outcome(props: { task: Task; said: (task: Task) => void }) {
  const { task } = props;
  const toast = useToast();
  const [comment, setComment] = useState("");
  const act = useAct(async (accepted: boolean) => {
    props.said(await data(api.POST("/api/v1/tasks/{id}/outcome", { params: { path: { id: task.task_id } }, body: { accepted, comment } })));
    toast(t(accepted ? "work.accepted" : "work.rejected"));
  });
  const verified = task.progress?.verified;
  return (
    <Card title={t("work.outcome")}>
      {verified ? (
        <>
          <p class="row">
            <Badge tone={verified.accepted ? "good" : "bad"}>{t(verified.accepted ? "work.was_accepted" : "work.was_rejected")}</Badge>
            <span class="note">
              {word("work", `by_${verified.by}`)}, <Time at={verified.at} show={ago} />
            </span>
          </p>
          {verified.comment && <p>{verified.comment}</p>}
        </>
      ) : (
        <p class="note">{t("work.outcome_hint")}</p>
      )}
      <TextArea label={t("work.comment")} rows={2} maxLength={1000} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
      <div class="row">
        <Button busy={act.running} icon={<CheckCheck aria-hidden="true" />} onClick={() => void act.run(true)}>
          {t("work.accept")}
        </Button>
        <Button busy={act.running} icon={<XCircle aria-hidden="true" />} onClick={() => void act.run(false)}>
          {t("work.reject")}
        </Button>
      </div>
      {act.problem && <ProblemNote problem={act.problem} />}
    </Card>
  );
}

type Block = NonNullable<Schemas["TaskReport"]["blocks"]>[number];

function ReportPart(props: { of: Block }) {
  const { of } = props;
  switch (of.kind) {
    case "heading":
      return <h3>{of.text}</h3>;
    case "text":
      return <Markdown text={of.text} />;
    case "figures":
      return (
        <div class="stats">
          {of.rows.map((row) => (
            <Stat key={row.label} label={row.label} value={row.value == null ? "–" : `${typeof row.value === "number" ? number(row.value, 2) : String(row.value)} ${row.unit ?? ""}`} note={row.note ?? ""} />
          ))}
        </div>
      );
    case "table": {
      const rows = (of.rows ?? []).map((row) => Object.fromEntries(of.columns.map((column, place) => [column, row[place]])));
      return (
        <figure class="chart">
          {of.title && <figcaption>{of.title}</figcaption>}
          <Rows title={of.title || t("work.report")} rows={rows} columns={of.columns} />
        </figure>
      );
    }
    case "chart":
      return <Shown of={of.chart} />;
    case "sources":
      return (
        <details>
          <summary>{t("chat.sources", { count: of.rows.length })}</summary>
          <ol>
            {of.rows.map((row) => (
              <li key={row.id}>
                {row.title || row.id} <span class="note">{row.kind}</span>
              </li>
            ))}
          </ol>
        </details>
      );
    case "limits":
      return (
        <div class="report-limits">
          <h3>{t("work.limits")}</h3>
          <ul>
            {of.items.map((item) => (
              <li key={item}>{item}</li>
            ))}
          </ul>
        </div>
      );
  }
}

function Report(props: { task: Task }) {
  const report = props.task.progress?.report;
  if (!report) return null;
  const file = (format: string) => `/api/v1/tasks/${props.task.task_id}/report?format=${format}`;
  return (
    <Card
      title={t("work.report")}
      actions={["pdf", "html", "markdown"].map((format) => (
        <LinkButton key={format} href={file(format)} download={`report.${format === "markdown" ? "md" : format}`} target="_self" icon={<Download aria-hidden="true" />}>
          {format === "markdown" ? "Markdown" : format.toUpperCase()}
        </LinkButton>
      ))}
    >
      <div class="report">
        {report.blocks?.length ? report.blocks.map((block, place) => <ReportPart key={place} of={block} />) : <Markdown text={report.text} />}
        {!report.blocks?.length && report.charts?.map((chart, place) => <Shown key={place} of={chart} />)}
      </div>
    </Card>
  );
}

function Effects(props: { task: Task }) {
  const effects = props.task.progress?.effects ?? [];
  if (!effects.length) return null;
  return (
    <Card title={t("work.did")}>
      <ul class="calls">
        {effects.map((effect) => (
          <li key={effect.step} class="call">
            <div class="row">
              <span class="mono">{effect.tool}</span>
              {effect.state === "unknown" && <Badge tone="warn">{t("work.unknown")}</Badge>}
            </div>
            <p class="note">{effect.description}</p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function About(props: { task: Task }) {
  const { task } = props;
  const { budget, progress } = task;
  const stated: [string, string | undefined][] = [
    [t("work.agent"), task.agent],
    [t("work.begun"), moment(task.created_at)],
    [t("work.time_limit"), budget.seconds === undefined ? undefined : duration(budget.seconds)],
    [t("work.money_limit"), budget.usd == null ? undefined : dollars(budget.usd)],
    [t("work.token_limit"), budget.tokens == null ? undefined : number(budget.tokens)],
    [t("work.call_limit"), budget.tool_calls === undefined ? undefined : t("work.calls_of", { used: progress?.tool_calls ?? 0, most: budget.tool_calls })],
    [t("work.replanned"), progress?.replanned || progress?.adjusted ? t("shell.yes") : undefined],
    [t("work.strategies"), progress?.strategies?.length ? String(progress.strategies.length) : undefined],
    [t("work.due"), task.schedule ? moment(task.schedule.due) : undefined],
  ];
  return (
    <Card title={t("work.about")}>
      <Facts of={stated.filter((each): each is [string, string] => !!each[1])} />
      <div class="row">
        <a href={`${BASE}/traces/${task.task_id}`}>{t("work.trace")}</a>
        {task.schedule && <a href={`${BASE}/work/schedules`}>{t("work.schedules")}</a>}
      </div>
    </Card>
  );
}

function Figures(props: { task: Task }) {
  const { task } = props;
  const { over, all } = stepsOf(task);
  const took = (Date.parse(task.ended_at ?? new Date().toISOString()) - Date.parse(task.created_at)) / 1000;
  return (
    <div class="stats">
      <Stat label={t("work.status")} value={<StatusBadge status={task.status} />} note={task.waiting_for ? t("work.waits_for", { service: task.waiting_for }) : ""} />
      <Stat label={t("work.steps")} value={all ? t("work.steps_of", { over, all }) : "–"} note={t("work.waves", { count: task.progress?.waves ?? 0 })} />
      <Stat label={t("work.took")} value={duration(took)} note={<Time at={task.created_at} show={ago} />} />
      <Stat label={t("work.cost")} value={task.usage?.cost_usd == null ? "–" : dollars(task.usage.cost_usd)} note={t("traces.used", { tokens: tokensOf(task.usage), calls: task.usage?.model_calls ?? 0 })} />
      {task.progress?.score != null && <Stat label={t("work.score")} value={percent(task.progress.score)} note={t("work.score_hint")} />}
    </div>
  );
}

export function TaskPage(props: { id: string }) {
  const { id } = props;
  const { route } = useLocation();
  const toast = useToast();
  const task = useTask(id);
  const [asking, setAsking] = useState(false);
  const cancel = useAct(async () => {
    task.set(await data(api.DELETE("/api/v1/tasks/{id}", { params: { path: { id } } })));
    setAsking(false);
    toast(t("work.cancelled"));
  });
  const real = useAct(async (of: Task) => {
    const header = once();
    const made = await data(api.POST("/api/v1/tasks", { params: { header }, body: { goal: of.goal, agent: of.agent, budget: of.budget, dry_run: false } }));
    route(`${BASE}/work/tasks/${made.turn_id}`);
  });
  const goal = task.data?.goal ?? t("work.task");
  return (
    <Page
      title={goal.length > 140 ? `${goal.slice(0, 140)}…` : goal}
      wide
      actions={
        task.data && (
          <>
            {task.data.dry_run && (
              <Button kind="primary" busy={real.running} onClick={() => void real.run(task.data as Task)}>
                {t("work.for_real")}
              </Button>
            )}
            {task.live && (
              <Button kind="danger" icon={<XCircle aria-hidden="true" />} onClick={() => setAsking(true)}>
                {t("work.cancel")}
              </Button>
            )}
          </>
        )
      }
    >
      <nav aria-label={t("traces.path")} class="row">
        <a href={`${BASE}/work`}>{t("work.all_tasks")}</a>
        {task.data?.dry_run && <Badge>{t("work.dry_run")}</Badge>}
      </nav>
      {real.problem && <ProblemNote problem={real.problem} />}
      <Loaded of={task}>
        {(shown) => {
          const now = { ...shown, progress: { ...shown.progress, steps: task.steps } };
          return (
            <>
              <Figures task={now} />
              {shown.problem && <ProblemNote problem={Object.assign(new Error(shown.problem.detail), { status: shown.problem.status, code: shown.problem.code })} />}
              {task.live && <Question task={shown} answered={task.set} />}
              {shown.status === "waiting" && !shown.waiting && (
                <p class="slowest-step">
                  <a href={`${BASE}/work/approvals`}>{t("work.waits_approval")}</a>
                </p>
              )}
              <div class="turn-parts">
                <div class="stack">
                  <Report task={shown} />
                  <Plan steps={task.steps} live={task.live} dry={!!shown.dry_run} />
                  <Would task={shown} />
                </div>
                <div class="stack">
                  <About task={shown} />
                  <Effects task={shown} />
                  {!task.live && !shown.dry_run && <Outcome task={shown} said={task.set} />}
                </div>
              </div>
            </>
          );
        }}
      </Loaded>
      {asking && (
        <Confirm title={t("work.cancel")} act={t("work.cancel")} busy={cancel.running} problem={cancel.problem} onConfirm={() => void cancel.run()} onClose={() => setAsking(false)}>
          <p>{t("work.cancel_hint")}</p>
        </Confirm>
      )}
    </Page>
  );
}
