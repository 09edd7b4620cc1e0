/** The audit trail: who changed what in the tenant, and what was refused to whom. */

import { RefreshCw } from "lucide-preact";

import { api, data, type Schemas } from "../../api/client";
import { usePages } from "../../api/use";
import { startOfDay } from "../../format";
import { t } from "../../text";
import { Button, IconButton, Select, TextField } from "../../ui/controls";
import { Dialog } from "../../ui/dialog";
import { Badge, Card, Empty, Facts, Loaded } from "../../ui/layout";
import { type Parameters, useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { ROOT, When } from "./parts";

type Entry = Schemas["AuditEntry"];

const PAGE = 50;
const FILTERS = ["user", "action", "outcome", "text", "since", "until"] as const;
const SHOWN = 3;

/** The first arguments of an entry, in one line. */
function summary(entry: Entry): string {
  const said = Object.entries(entry.arguments ?? {})
    .filter(([name, value]) => name !== "id" && value !== null)
    .slice(0, SHOWN);
  return said.map(([name, value]) => `${name.replaceAll("_", " ")}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(" · ");
}

function Outcome(props: { of: Entry }) {
  const done = props.of.outcome === "done";
  return (
    <span class="settings-badges">
      <Badge tone={done ? "good" : "bad"}>{t(done ? "settings.outcome_done" : "settings.outcome_refused")}</Badge>
      {props.of.code && <span class="note">{props.of.code.replaceAll("_", " ")}</span>}
    </span>
  );
}

function Who(props: { of: Entry }) {
  const { who, role, acted_by: by } = props.of;
  return (
    <span class="settings-stack">
      <span>{who}</span>
      <span class="note">{by ? t("settings.acted_by", { role, by }) : role}</span>
    </span>
  );
}

/** What was done, as a link to all that is known of it. */
function Action(props: { of: Entry; given: Parameters }) {
  const address = new URLSearchParams({ ...(props.given as Record<string, string>), entry: String(props.of.id) });
  return (
    <a class="settings-code" href={`${ROOT}/audit?${address.toString()}`}>
      {props.of.action}
    </a>
  );
}

export function Audit() {
  const [given, change] = useParameters();
  const entries = usePages(
    async (before, signal) => {
      const query = {
        limit: PAGE,
        ...(given.user ? { user: given.user } : {}),
        ...(given.action ? { action: given.action } : {}),
        ...(given.outcome ? { outcome: given.outcome as "done" | "refused" } : {}),
        ...(given.text ? { text: given.text } : {}),
        ...(given.since ? { since: startOfDay(given.since) } : {}),
        ...(given.until ? { until: startOfDay(given.until, 1) } : {}),
        ...(before ? { before: Number(before) } : {}),
      };
      const page = await data(api.GET("/api/v1/audit", { params: { query }, signal }));
      return { items: page.entries, next: page.next ? String(page.next) : null };
    },
    FILTERS.map((name) => given[name]),
  );
  const filtered = FILTERS.some((name) => given[name]);
  const clear = () => change(Object.fromEntries(FILTERS.map((name) => [name, ""])));
  const open = entries.data?.find((each) => String(each.id) === given.entry);
  return (
    <Card
      title={t("settings.audit")}
      actions={<IconButton label={t("settings.refresh")} icon={<RefreshCw aria-hidden="true" />} onClick={entries.reload} />}
    >
      <div class="filters settings-filters" role="search" aria-label={t("settings.filter")}>
        <TextField label={t("shell.search")} type="search" maxLength={200} value={given.text ?? ""} onChange={(event) => change({ text: event.currentTarget.value })} />
        <TextField label={t("settings.user")} maxLength={200} value={given.user ?? ""} onChange={(event) => change({ user: event.currentTarget.value })} />
        <TextField label={t("settings.action")} placeholder="keys." maxLength={200} value={given.action ?? ""} onChange={(event) => change({ action: event.currentTarget.value })} />
        <Select
          label={t("settings.outcome")}
          value={given.outcome ?? ""}
          options={[
            { value: "", label: t("shell.all") },
            { value: "done", label: t("settings.outcome_done") },
            { value: "refused", label: t("settings.outcome_refused") },
          ]}
          onChange={(event) => change({ outcome: event.currentTarget.value })}
        />
        <TextField label={t("settings.since")} type="date" value={given.since ?? ""} onChange={(event) => change({ since: event.currentTarget.value })} />
        <TextField label={t("settings.until")} type="date" value={given.until ?? ""} onChange={(event) => change({ until: event.currentTarget.value })} />
      </div>
      <Loaded of={entries} lines={8}>
        {(rows) => (
          <>
            <div class="row">
              <p class="note" aria-live="polite">
                {t("settings.audit_shown", { count: rows.length, more: !!entries.more })}
              </p>
              {filtered && (
                <Button kind="quiet" onClick={clear}>
                  {t("settings.clear")}
                </Button>
              )}
            </div>
            {rows.length || entries.more ? (
              <Table
                label={t("settings.audit")}
                rows={rows}
                id={(entry) => String(entry.id)}
                more={entries.more}
                columns={[
                  { id: "at", label: t("settings.when"), show: (entry) => <span class="settings-nowrap"><When at={entry.at} /></span> },
                  { id: "who", label: t("settings.user"), show: (entry) => <Who of={entry} /> },
                  { id: "action", label: t("settings.action"), show: (entry) => <Action of={entry} given={given} /> },
                  { id: "outcome", label: t("settings.outcome"), show: (entry) => <Outcome of={entry} /> },
                  { id: "with", label: t("settings.audit_with"), show: (entry) => <span class="settings-line note">{summary(entry) || "–"}</span> },
                ]}
              />
            ) : (
              <Empty title={t(filtered ? "settings.audit_none_found" : "settings.audit_none")}>
                {filtered ? <Button onClick={clear}>{t("settings.clear")}</Button> : <p>{t("settings.audit_none_hint")}</p>}
              </Empty>
            )}
          </>
        )}
      </Loaded>
      {open && (
        <Dialog side title={open.action} onClose={() => change({ entry: "" })}>
          <Facts
            of={[
              [t("settings.when"), <When at={open.at} />],
              [t("settings.user"), <Who of={open} />],
              [t("settings.outcome"), <Outcome of={open} />],
              [t("settings.audit_service"), open.service],
              [t("settings.audit_number"), String(open.id)],
            ]}
          />
          <h3>{t("settings.audit_with")}</h3>
          {Object.keys(open.arguments ?? {}).length ? (
            <pre class="settings-text" tabIndex={0}>{JSON.stringify(open.arguments, null, 2)}</pre>
          ) : (
            <p class="note">{t("settings.audit_without")}</p>
          )}
        </Dialog>
      )}
    </Card>
  );
}
