/** What starts tasks by itself: by the clock in the viewer's zone, or by an event. */

import { useState } from "preact/hooks";
import { Pause, Play, Plus, Trash2 } from "lucide-preact";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { ago, moment, number } from "../../format";
import { BASE } from "../../pages";
import { language, t, word } from "../../text";
import { Button, IconButton, Select, TextArea, TextField } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded, ProblemNote, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table, type Column } from "../../ui/table";
import { AgentChoice, DEFAULT_AGENT } from "./tasks";

type Schedule = Schemas["Schedule"];
type Given = Schemas["ScheduleGiven"];

const MOST = 50;
const EVERY = ["minutes", "hours", "day", "weekdays", "week", "month", "cron", "node_changed", "file_arrived"] as const;
type Every = (typeof EVERY)[number];

export function viewersZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

async function add(given: Partial<Given> | Record<string, unknown>): Promise<void> {
  const header = once();
  // The types of the route tell events and times apart more finely than the form does; the server says what does not fit.
  await data(api.POST("/api/v1/schedules", { params: { header }, body: given as never }));
}

interface Times {
  every: Every;
  /** How many minutes or hours apart. */
  step: string;
  /** `HH:MM`. */
  at: string;
  /** 0 for Sunday to 6. */
  weekday: string;
  /** Day of the month. */
  day: string;
  cron: string;
}

/** The five fields of a cron expression for what was chosen. */
export function cronOf(times: Times): string {
  const [hour, minute] = times.at.split(":").map(Number);
  const clock = `${minute ?? 0} ${hour ?? 0}`;
  switch (times.every) {
    case "minutes":
      return `*/${Number(times.step) || 30} * * * *`;
    case "hours":
      return `${minute ?? 0} */${Number(times.step) || 1} * * *`;
    case "day":
      return `${clock} * * *`;
    case "weekdays":
      return `${clock} * * 1-5`;
    case "week":
      return `${clock} * * ${times.weekday}`;
    case "month":
      return `${clock} ${times.day} * *`;
    default:
      return times.cron.trim();
  }
}

function weekdays(): { value: string; label: string }[] {
  const name = new Intl.DateTimeFormat(language(), { weekday: "long", timeZone: "UTC" });
  // 2023-01-01 was a Sunday; weeks are listed from Monday.
  return [1, 2, 3, 4, 5, 6, 0].map((day) => ({ value: String(day), label: name.format(new Date(Date.UTC(2023, 0, 1 + day))) }));
}

function WhenFields(props: { times: Times; change: (changes: Partial<Times>) => void }) {
  const { times, change } = props;
  const { every } = times;
  const text = (name: keyof Times, label: string, more: Record<string, unknown> = {}) => (
    <TextField label={label} value={times[name]} onInput={(event) => change({ [name]: event.currentTarget.value })} {...more} />
  );
  return (
    <div class="filters">
      <Select
        label={t("work.every")}
        value={every}
        options={EVERY.map((each) => ({ value: each, label: word("work", `every_${each}`) }))}
        onChange={(event) => change({ every: event.currentTarget.value as Every })}
      />
      {every === "minutes" && text("step", t("work.step_minutes"), { type: "number", min: 5, max: 59 })}
      {every === "hours" && text("step", t("work.step_hours"), { type: "number", min: 1, max: 23 })}
      {every === "week" && <Select label={t("work.weekday")} value={times.weekday} options={weekdays()} onChange={(event) => change({ weekday: event.currentTarget.value })} />}
      {every === "month" && text("day", t("work.day"), { type: "number", min: 1, max: 31 })}
      {(every === "day" || every === "weekdays" || every === "week" || every === "month") && text("at", t("work.at"), { type: "time" })}
      {every === "cron" && text("cron", t("work.cron"), { placeholder: "0 8 * * 1", class: "input mono" })}
    </div>
  );
}

function Make(props: { close: () => void; made: () => void }) {
  const toast = useToast();
  const [goal, setGoal] = useState("");
  const [agent, setAgent] = useState(DEFAULT_AGENT);
  const [zone, setZone] = useState(viewersZone());
  const [times, setTimes] = useState<Times>({ every: "week", step: "1", at: "08:00", weekday: "1", day: "1", cron: "" });
  const [type, setType] = useState("");
  const byEvent = times.every === "node_changed" || times.every === "file_arrived";
  const act = useAct(async () => {
    const when: Partial<Given> = byEvent ? { on: { event: times.every, ...(type ? { type } : {}) } as NonNullable<Given["on"]> } : { cron: cronOf(times), time_zone: zone };
    await add({ goal, agent, enabled: true, ...when });
    toast(t("work.schedule_made"));
    props.made();
    props.close();
  });
  const fault = (field: string) => (act.problem?.field?.endsWith(field) ? act.problem.message : undefined);
  return (
    <Dialog
      title={t("work.new_schedule")}
      onClose={props.close}
      actions={
        <>
          <Button onClick={props.close}>{t("shell.cancel")}</Button>
          <Button kind="primary" disabled={!goal.trim()} busy={act.running} onClick={() => void act.run()}>
            {t("work.make_schedule")}
          </Button>
        </>
      }
    >
      <TextArea
        autofocus
        label={t("work.goal")}
        {...(byEvent ? { hint: t("work.event_hint", { word: times.every === "node_changed" ? "{node}" : "{file}" }) } : {})}
        rows={3}
        maxLength={4000}
        value={goal}
        error={fault("goal")}
        onInput={(event) => setGoal(event.currentTarget.value)}
      />
      <AgentChoice value={agent} change={setAgent} />
      <WhenFields times={times} change={(changes) => setTimes({ ...times, ...changes })} />
      {byEvent ? (
        <TextField label={t("work.event_type")} hint={t("work.event_type_hint")} value={type} error={fault("type")} onInput={(event) => setType(event.currentTarget.value)} />
      ) : (
        <TextField
          label={t("work.zone")}
          list="zones"
          hint={t("work.cron_is", { cron: cronOf(times) || "–" })}
          value={zone}
          error={fault("time_zone") ?? fault("cron")}
          onInput={(event) => setZone(event.currentTarget.value)}
        />
      )}
      <datalist id="zones">
        {Intl.supportedValuesOf("timeZone").map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

/** When a schedule starts runs, as a person says it where the expression is a simple one. */
function whenOf(schedule: Schedule): string {
  if (schedule.on) return [word("work", `every_${schedule.on.event}`), schedule.on.type, schedule.on.property, schedule.on.value].filter(Boolean).join(" · ");
  const plain = /^(\d+) (\d+) \* \* (\*|1-5|[0-6])$/.exec(schedule.cron);
  const zone = schedule.time_zone === viewersZone() ? "" : ` (${schedule.time_zone})`;
  if (!plain) return `${schedule.cron}${zone}`;
  const [, minute = "", hour = "", day = ""] = plain;
  const named = day === "*" ? t("work.every_day") : day === "1-5" ? t("work.every_weekdays") : (weekdays().find((each) => each.value === day)?.label ?? day);
  return `${named}, ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}${zone}`;
}

export function Schedules() {
  const toast = useToast();
  const [{ make }, change] = useParameters();
  const [asking, setAsking] = useState<Schedule>();
  const schedules = useRead(async (signal) => (await data(api.GET("/api/v1/schedules", { params: { query: { limit: MOST } }, signal }))).schedules, [], 30);
  const turn = useAct(async (schedule: Schedule, enabled: boolean) => {
    const params = { path: { id: schedule.schedule_id }, header: once() };
    await data(api.PATCH("/api/v1/schedules/{id}", { params, body: { enabled } }));
    toast(t(enabled ? "work.resumed" : "work.paused"), () => void turn.run(schedule, !enabled));
    schedules.reload();
  });
  const again = useAct(async (schedule: Schedule) => {
    const { goal, agent, budget, enabled, cron, time_zone, on } = schedule;
    const when = on ? { on } : { cron, time_zone };
    await add({ goal, agent, budget, enabled, ...when });
    schedules.reload();
  });
  const remove = useAct(async (schedule: Schedule) => {
    await data(api.DELETE("/api/v1/schedules/{id}", { params: { path: { id: schedule.schedule_id } } }));
    setAsking(undefined);
    toast(t("work.schedule_deleted"), () => void again.run(schedule));
    schedules.reload();
  });
  const begin = (kind: "primary" | "plain") => (
    <Button kind={kind} icon={<Plus aria-hidden="true" />} onClick={() => change({ make: "1" })}>
      {t("work.new_schedule")}
    </Button>
  );
  const columns: Column<Schedule>[] = [
    {
      id: "goal",
      label: t("work.goal"),
      show: (each) => (
        <div>
          {each.goal}
          {each.paused && <p class="field-error">{each.paused.detail || each.paused.code}</p>}
        </div>
      ),
      by: (each) => each.goal,
    },
    { id: "when", label: t("work.when"), show: whenOf },
    {
      id: "next",
      label: t("work.next"),
      show: (each) => (each.next_runs?.[0] ? <Time at={each.next_runs[0]} show={moment} /> : each.enabled ? "–" : <Badge tone="warn">{t("work.is_paused")}</Badge>),
      by: (each) => each.next_runs?.[0] ?? "~",
    },
    {
      id: "last",
      label: t("work.last"),
      show: (each) =>
        each.last_task ? (
          <a href={`${BASE}/work/tasks/${each.last_task}`}>{each.last_due ? <Time at={each.last_due} show={ago} /> : t("work.task")}</a>
        ) : (
          "–"
        ),
    },
    { id: "runs", label: t("work.runs"), show: (each) => number(each.runs ?? 0), by: (each) => each.runs ?? 0 },
    {
      id: "act",
      label: t("shell.actions"),
      show: (each) => (
        <span class="row">
          <IconButton
            label={t(each.enabled ? "work.pause" : "work.resume")}
            icon={each.enabled ? <Pause aria-hidden="true" /> : <Play aria-hidden="true" />}
            onClick={() => void turn.run(each, !each.enabled)}
          />
          <IconButton label={t("shell.delete")} icon={<Trash2 aria-hidden="true" />} onClick={() => setAsking(each)} />
        </span>
      ),
    },
  ];
  const problem = turn.problem ?? again.problem;
  return (
    <Card>
      <div class="spread">
        <p class="note">{t("work.schedules_hint", { zone: viewersZone() })}</p>
        {begin("primary")}
      </div>
      {problem && <ProblemNote problem={problem} />}
      <Loaded of={schedules}>
        {(rows) =>
          rows.length ? (
            <Table label={t("work.schedules")} columns={columns} rows={rows} id={(each) => each.schedule_id} />
          ) : (
            <Empty title={t("work.no_schedules")}>
              <p>{t("work.no_schedules_hint")}</p>
              {begin("plain")}
            </Empty>
          )
        }
      </Loaded>
      {make && <Make close={() => change({ make: "" })} made={schedules.reload} />}
      {asking && (
        <Confirm title={t("work.delete_schedule")} act={t("shell.delete")} busy={remove.running} problem={remove.problem} onConfirm={() => void remove.run(asking)} onClose={() => setAsking(undefined)}>
          <p>{t("work.delete_schedule_hint")}</p>
          <p class="asked">{asking.goal}</p>
        </Confirm>
      )}
    </Card>
  );
}
