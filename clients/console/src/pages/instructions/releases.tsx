/** The tenant's releases: which is active, how two of them differ, and the way back to one. */

import { useState } from "preact/hooks";

import { callTool } from "../../api/client";
import { useRead } from "../../api/use";
import { moment, number } from "../../format";
import { t } from "../../text";
import { Button, Select } from "../../ui/controls";
import { Confirm } from "../../ui/dialog";
import { Badge, Card, Loaded, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { useActivate } from "./activate";
import { Changes } from "./changes";
import type { InstructionDiff, ReleaseInfo, ReleaseList } from "./tools";

type Row = Omit<ReleaseInfo, "created_at"> & { created_at: string | null };

function nameOf(release: number): string {
  return release ? t("instructions.release_number", { number: release }) : t("instructions.shipped");
}

function Compare(props: { rows: Row[] }) {
  const active = props.rows.find((row) => row.active)?.number ?? 0;
  const [{ before = "0", after = String(active), tag }, change] = useParameters();
  const diff = useRead((signal) => callTool<InstructionDiff>("diff_instructions", { before: Number(before), after: Number(after) }, signal), [before, after]);
  const options = props.rows.map((row) => ({ value: String(row.number), label: row.note ? `${nameOf(row.number)} · ${row.note}` : nameOf(row.number) }));
  return (
    <Card title={t("instructions.compare")}>
      <div class="filters">
        <Select label={t("shell.before")} value={before} options={options} onChange={(event) => change({ before: event.currentTarget.value })} />
        <Select label={t("shell.after")} value={after} options={options} onChange={(event) => change({ after: event.currentTarget.value })} />
        {tag && (
          <Button kind="quiet" onClick={() => change({ tag: "" })}>
            {t("instructions.every_text")}
          </Button>
        )}
      </div>
      <div aria-live="polite">
        <Loaded of={diff}>
          {(found) => <Changes of={found.changes.filter((each) => !tag || each.tag === tag)} before={nameOf(found.before)} after={nameOf(found.after)} />}
        </Loaded>
      </div>
    </Card>
  );
}

export function Releases() {
  const [asking, setAsking] = useState<Row>();
  const list = useRead((signal) => callTool<ReleaseList>("list_releases", {}, signal), []);
  const { rollback } = useActivate(() => list.reload());
  return (
    <Loaded of={list}>
      {({ releases }) => {
        const active = releases.find((each) => each.active)?.number ?? 0;
        const shipped: Row = { number: 0, active: active === 0, texts: 0, note: t("instructions.shipped_note"), by: "", created_at: null };
        const rows: Row[] = [...releases, shipped];
        return (
          <>
            <Card title={t("instructions.releases")}>
              <Table
                label={t("instructions.releases")}
                rows={rows}
                id={(row) => String(row.number)}
                columns={[
                  {
                    id: "number",
                    label: t("instructions.release"),
                    show: (row) => (
                      <span class="row">
                        {nameOf(row.number)} {row.active && <Badge tone="good">{t("instructions.active")}</Badge>}
                      </span>
                    ),
                    by: (row) => row.number,
                  },
                  { id: "note", label: t("instructions.note"), show: (row) => row.note || "–" },
                  { id: "by", label: t("instructions.by"), show: (row) => row.by || "–" },
                  { id: "when", label: t("instructions.when"), show: (row) => (row.created_at ? <Time at={row.created_at} show={moment} /> : "–"), by: (row) => row.created_at ?? "" },
                  { id: "texts", label: t("instructions.own_texts"), show: (row) => number(row.texts), by: (row) => row.texts },
                  {
                    id: "act",
                    label: t("shell.actions"),
                    show: (row) => (row.active ? "–" : <Button onClick={() => setAsking(row)}>{t("instructions.make_active")}</Button>),
                  },
                ]}
              />
            </Card>
            <Compare key={active} rows={rows} />
            {asking && (
              <Confirm
                title={t("instructions.make_active")}
                act={t("instructions.make_active")}
                busy={rollback.running}
                problem={rollback.problem}
                onConfirm={() => void rollback.run(asking.number, active).then((now) => now && setAsking(undefined))}
                onClose={() => setAsking(undefined)}
              >
                <p>{t("instructions.make_active_hint", { release: nameOf(asking.number) })}</p>
              </Confirm>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
