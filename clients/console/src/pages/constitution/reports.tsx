/** What the graph says on the whole: which decisions paid off, and whether there is room for more this week. */

import { callTool } from "../../api/client";
import { useRead } from "../../api/use";
import { day, number, percent } from "../../format";
import { t } from "../../text";
import { TextField } from "../../ui/controls";
import { Badge, Card, Empty, Loaded, Page, Stat, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { addressOf, type Mention, named } from "./model";

interface DecisionsFound {
  decisions: { id: string; title: string; roi?: { total?: number }; decidedAt?: string; reasoning?: string }[];
  outcomes: Record<string, Mention[]>;
}

const MOST = 50;

/** The decisions of a time, the best return first, with what was done for each. */
export function Decisions() {
  const [{ since, until }, change] = useParameters();
  const found = useRead(
    (signal) => callTool<DecisionsFound>("decisions.list.v1", { limit: MOST, ...(since ? { startDate: since } : {}), ...(until ? { endDate: until } : {}) }, signal),
    [since, until],
  );
  return (
    <Page title={t("constitution.decisions")} lead={t("constitution.decisions_lead")}>
      <div class="filters">
        <TextField label={t("constitution.since")} type="date" value={since ?? ""} onChange={(event) => change({ since: event.currentTarget.value })} />
        <TextField label={t("constitution.until")} type="date" value={until ?? ""} onChange={(event) => change({ until: event.currentTarget.value })} />
      </div>
      <Card>
        <Loaded of={found}>
          {({ decisions, outcomes }) =>
            decisions.length ? (
              <Table
                label={t("constitution.decisions")}
                columns={[
                  {
                    id: "title",
                    label: t("constitution.title"),
                    by: (each) => each.title.toLowerCase(),
                    show: (each) => (
                      <div>
                        <a href={addressOf(each.id)}>{each.title}</a>
                        {each.reasoning && <p class="note">{each.reasoning}</p>}
                      </div>
                    ),
                  },
                  { id: "decided", label: t("constitution.decided"), by: (each) => each.decidedAt ?? "", show: (each) => (each.decidedAt ? <Time at={each.decidedAt} show={day} /> : "—") },
                  { id: "roi", label: t("constitution.return"), number: true, by: (each) => each.roi?.total ?? -Infinity, show: (each) => (each.roi?.total === undefined ? "—" : number(each.roi.total, 2)) },
                  {
                    id: "done",
                    label: t("constitution.done"),
                    show: (each) => (outcomes[each.id] ?? []).map((task) => <p key={task.id}><a href={addressOf(task.id)}>{task.title}</a></p>),
                  },
                ]}
                rows={decisions}
                id={(each) => each.id}
              />
            ) : (
              <Empty title={t("constitution.no_decisions")} />
            )
          }
        </Loaded>
      </Card>
    </Page>
  );
}

interface Assessed {
  startDate: string;
  endDate: string;
  capacity: { availableHours: number; scheduledHours: number; utilizationPercent: number | null; zone: "green" | "yellow" | "red" };
  tasks: { total: number; items: { id: string; title: string; status: string; effortHours?: number; dueDate?: string }[] };
  recommendations: string[];
  degraded: string[];
}

const ZONES = { green: "good", yellow: "warn", red: "bad" } as const;

/** How much of the week's hours the tasks that are due take. */
export function Workload() {
  const found = useRead((signal) => callTool<Assessed>("workload.assess.v1", { includeTaskDetails: true }, signal), []);
  return (
    <Page title={t("constitution.workload")} lead={t("constitution.workload_lead")}>
      <Loaded of={found}>
        {({ capacity, tasks, startDate, endDate, recommendations, degraded }) => (
          <>
            <div class="grid">
              <Stat
                label={t("constitution.used")}
                value={percent((capacity.utilizationPercent ?? 0) / 100)}
                note={<Badge tone={ZONES[capacity.zone]}>{t(`constitution.zone_${capacity.zone}`)}</Badge>}
              />
              <Stat label={t("constitution.scheduled")} value={t("constitution.hours", { hours: capacity.scheduledHours })} note={t("constitution.of_hours", { hours: capacity.availableHours })} />
              <Stat label={t("constitution.due_tasks")} value={number(tasks.total)} note={`${day(startDate)} – ${day(endDate)}`} />
            </div>
            {recommendations.map((each) => (
              <p key={each}>{each}</p>
            ))}
            <Card title={t("constitution.due_tasks")}>
              {tasks.items.length ? (
                <Table
                  label={t("constitution.due_tasks")}
                  columns={[
                    { id: "due", label: t("constitution.due"), by: (task) => task.dueDate ?? "", show: (task) => (task.dueDate ? day(task.dueDate) : "—") },
                    { id: "title", label: t("constitution.title"), by: (task) => task.title.toLowerCase(), show: (task) => <a href={addressOf(task.id)}>{task.title}</a> },
                    { id: "status", label: t("constitution.status"), by: (task) => task.status, show: (task) => <Badge>{named("status", task.status)}</Badge> },
                    { id: "hours", label: t("constitution.effort"), number: true, by: (task) => task.effortHours ?? -1, show: (task) => (task.effortHours === undefined ? "—" : number(task.effortHours, 1)) },
                  ]}
                  rows={tasks.items}
                  id={(task) => task.id}
                />
              ) : (
                <Empty title={t("constitution.nothing_due")} />
              )}
            </Card>
            {degraded.length > 0 && <p class="note">{t("constitution.without", { parts: degraded.join(", ") })}</p>}
          </>
        )}
      </Loaded>
    </Page>
  );
}
