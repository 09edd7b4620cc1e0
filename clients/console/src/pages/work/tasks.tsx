/** The viewer's tasks, and the form that starts one. */

import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { Plus } from "lucide-preact";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { ago, duration, number } from "../../format";
import { BASE } from "../../pages";
import { t, word } from "../../text";
import { Button, Select, TextArea, TextField } from "../../ui/controls";
import { Dialog } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded, ProblemNote, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table, type Column } from "../../ui/table";
import { STATUSES, StatusBadge, type Status } from "../traces/status";

type Task = Schemas["Task"];

const PAGE = 50;
const MOST = 200;

/** Steps that need no more work, and all steps of the plan as it stands. */
export function stepsOf(task: Task): { over: number; all: number } {
  const steps = task.progress?.steps ?? [];
  return { over: steps.filter((step) => step.state !== "pending" && step.state !== "running").length, all: steps.length };
}

const columns = (): Column<Task>[] => [
  {
    id: "goal",
    label: t("work.goal"),
    show: (task) => (
      <span>
        <a href={`${BASE}/work/tasks/${task.task_id}`}>{task.goal}</a> {task.dry_run && <Badge>{t("work.dry_run")}</Badge>} {task.schedule && <Badge>{t("work.scheduled")}</Badge>}
      </span>
    ),
  },
  { id: "agent", label: t("work.agent"), show: (task) => task.agent, by: (task) => task.agent },
  {
    id: "status",
    label: t("work.status"),
    show: (task) => (task.waiting?.kind === "date" ? <Badge tone="info">{t("work.waits_date")}</Badge> : <StatusBadge status={task.status} />),
    by: (task) => STATUSES.indexOf(task.status),
  },
  {
    id: "steps",
    label: t("work.steps"),
    show: (task) => (stepsOf(task).all ? t("work.steps_of", { ...stepsOf(task) }) : "–"),
    by: (task) => stepsOf(task).all,
  },
  { id: "begun", label: t("work.begun"), show: (task) => <Time at={task.created_at} show={ago} />, by: (task) => task.created_at },
  {
    id: "took",
    label: t("work.took"),
    number: true,
    show: (task) => (task.ended_at ? duration((Date.parse(task.ended_at) - Date.parse(task.created_at)) / 1000) : "–"),
    by: (task) => (task.ended_at ? Date.parse(task.ended_at) - Date.parse(task.created_at) : 0),
  },
];

/** A field for an agent's name. */
export function AgentChoice(props: { value: string; change: (agent: string) => void }) {
  const agents = useRead(() => data(api.GET("/api/v1/agents")), []);
  const known = agents.data?.agents ?? [];
  const names = known.some((agent) => agent.name === props.value) ? known.map((agent) => agent.name) : [props.value, ...known.map((agent) => agent.name)];
  const hint = known.find((agent) => agent.name === props.value)?.description;
  return (
    <Select
      label={t("work.agent")}
      {...(hint ? { hint } : {})}
      value={props.value}
      options={names.map((name) => ({ value: name, label: name }))}
      onChange={(event) => props.change(event.currentTarget.value)}
    />
  );
}

export const DEFAULT_AGENT = "nova";

function Start(props: { close: () => void }) {
  const { route } = useLocation();
  const [goal, setGoal] = useState("");
  const [agent, setAgent] = useState(DEFAULT_AGENT);
  const [minutes, setMinutes] = useState("15");
  const [dollars, setDollars] = useState("");
  const act = useAct(async (dry: boolean) => {
    const budget = { seconds: Math.round(Number(minutes || 15) * 60), tool_calls: 100, ...(dollars ? { usd: Number(dollars) } : {}) };
    const header = once();
    const made = await data(api.POST("/api/v1/tasks", { params: { header }, body: { goal, agent, budget, dry_run: dry } }));
    route(`${BASE}/work/tasks/${made.turn_id}`);
  });
  const fault = (field: string) => (act.problem?.field?.endsWith(field) ? act.problem.message : undefined);
  return (
    <Dialog
      title={t("work.start_title")}
      onClose={props.close}
      actions={
        <>
          <Button disabled={!goal.trim()} busy={act.running} onClick={() => void act.run(true)}>
            {t("work.show_plan")}
          </Button>
          <Button kind="primary" disabled={!goal.trim()} busy={act.running} onClick={() => void act.run(false)}>
            {t("work.start")}
          </Button>
        </>
      }
    >
      <p class="note">{t("work.start_hint")}</p>
      <TextArea autofocus label={t("work.goal")} rows={4} maxLength={4000} value={goal} error={fault("goal")} onInput={(event) => setGoal(event.currentTarget.value)} />
      <AgentChoice value={agent} change={setAgent} />
      <div class="filters">
        <TextField label={t("work.minutes")} type="number" min="1" max="240" value={minutes} error={fault("seconds")} onInput={(event) => setMinutes(event.currentTarget.value)} />
        <TextField label={t("work.dollars")} type="number" min="0" step="any" value={dollars} error={fault("usd")} placeholder={t("work.no_limit")} onInput={(event) => setDollars(event.currentTarget.value)} />
      </div>
      {act.problem && !fault("goal") && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

export function TaskList() {
  const [{ status, start, limit = String(PAGE) }, change] = useParameters();
  const query = { limit: Math.min(MOST, Number(limit) || PAGE), ...(status ? { status: status as Status } : {}) };
  const tasks = useRead(async (signal) => (await data(api.GET("/api/v1/tasks", { params: { query }, signal }))).tasks, [status, limit], 10);
  const begin = () => (
    <Button kind="primary" icon={<Plus aria-hidden="true" />} onClick={() => change({ start: "1" })}>
      {t("work.start_title")}
    </Button>
  );
  return (
    <Card>
      <div class="spread">
        <div class="filters">
          <Select
            label={t("work.status")}
            value={status ?? ""}
            options={[{ value: "", label: t("shell.all") }, ...STATUSES.map((each) => ({ value: each, label: word("traces", `status_${each}`) }))]}
            onChange={(event) => change({ status: event.currentTarget.value, limit: "" })}
          />
        </div>
        {!!(status || tasks.data?.length) && begin()}
      </div>
      <Loaded of={tasks} lines={6}>
        {(rows) =>
          rows.length ? (
            <>
              <p class="note" aria-live="polite">
                {t("work.shown", { count: rows.length, shown: number(rows.length) })}
              </p>
              <Table
                label={t("work.tasks")}
                columns={columns()}
                rows={rows}
                id={(task) => task.task_id}
                more={rows.length === query.limit && query.limit < MOST ? () => change({ limit: String(query.limit + PAGE) }) : undefined}
              />
            </>
          ) : (
            <Empty title={t(status ? "work.no_such_tasks" : "work.no_tasks")}>
              <p>{t("work.no_tasks_hint")}</p>
              {!status && begin()}
            </Empty>
          )
        }
      </Loaded>
      {start && <Start close={() => change({ start: "" })} />}
    </Card>
  );
}
