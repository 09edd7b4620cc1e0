/** What model calls used, and the limits that hold for them. */

import { Plus } from "lucide-preact";
import { useState } from "preact/hooks";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { day, dollars, number, percent, short } from "../../format";
import { administers, useMe } from "../../session";
import { t, word } from "../../text";
import { Button, Select, TextField } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Card, Empty, Loaded, ProblemNote, Stat } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { Bar } from "./parts";

const BY = ["day", "agent", "user", "model", "purpose"] as const;
type By = (typeof BY)[number];
type Sum = Schemas["UsageSum"];
type Limit = Schemas["LimitState"];

const tokensOf = (sum: Sum) => sum.input_tokens + sum.output_tokens;

export function Usage() {
  return (
    <>
      <Used />
      <Limits />
    </>
  );
}

function Used() {
  const [chosen, change] = useParameters();
  const by = BY.find((each) => each === chosen.by) ?? "day";
  const { since, until } = chosen;
  const measure = chosen.measure === "tokens" ? "tokens" : "usd";
  const usage = useRead(
    (signal) => data(api.GET("/api/v1/usage", { params: { query: { by: [by], ...(since && { since }), ...(until && { until }) } }, signal })),
    [by, since, until],
  );
  return (
    <Card title={t("settings.used")}>
      <div class="filters settings-filters">
        <Select label={t("settings.by_what")} value={by} options={BY.map((value) => ({ value, label: word("settings", `by_${value}`) }))} onChange={(event) => change({ by: event.currentTarget.value })} />
        <TextField label={t("settings.since")} type="date" value={since ?? usage.data?.since ?? ""} onChange={(event) => change({ since: event.currentTarget.value })} />
        <TextField label={t("settings.until")} type="date" value={until ?? usage.data?.until ?? ""} onChange={(event) => change({ until: event.currentTarget.value })} />
        <Select
          label={t("settings.measure")}
          value={measure}
          options={["usd", "tokens"].map((value) => ({ value, label: word("settings", `measure_${value}`) }))}
          onChange={(event) => change({ measure: event.currentTarget.value })}
        />
      </div>
      <Loaded of={usage}>
        {({ sums, cut }) =>
          sums.length ? (
            <>
              <Totals of={sums} />
              <Chart of={sums} by={by} measure={measure} />
              {cut && <p class="note">{t("settings.cut")}</p>}
              <UsageTable of={sums} by={by} />
            </>
          ) : (
            <Empty title={t("settings.no_usage")}>
              <p>{t("settings.no_usage_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

function Totals(props: { of: Sum[] }) {
  const total = (count: (sum: Sum) => number) => props.of.reduce((all, sum) => all + count(sum), 0);
  const unpriced = total((sum) => sum.unpriced);
  return (
    <div class="settings-stats">
      <Stat label={t("settings.cost")} value={dollars(total((sum) => sum.cost_usd))} note={unpriced ? t("settings.unpriced", { count: unpriced }) : undefined} />
      <Stat label={t("settings.tokens")} value={short(total(tokensOf))} />
      <Stat label={t("settings.calls")} value={number(total((sum) => sum.calls))} />
    </div>
  );
}

function nameOf(sum: Sum, by: By): string {
  const value = sum[by] ?? "";
  return by === "day" && value ? day(`${value}T12:00:00`) : value || "–";
}

/** A column for each day, or a bar for each of the largest sums; the table below says the same in figures. */
function Chart(props: { of: Sum[]; by: By; measure: "usd" | "tokens" }) {
  const value = (sum: Sum) => (props.measure === "usd" ? sum.cost_usd : tokensOf(sum));
  const words = (sum: Sum) => (props.measure === "usd" ? dollars(value(sum)) : short(value(sum)));
  const most = Math.max(...props.of.map(value), 0) || 1;
  const label = `${t("settings.used")}: ${word("settings", `by_${props.by}`)}`;
  if (props.by === "day") {
    const days = [...props.of].sort((one, other) => (one.day ?? "").localeCompare(other.day ?? "")).slice(-62);
    return (
      <figure class="settings-columns" aria-label={label}>
        <div>
          {days.map((sum) => (
            <span key={sum.day} title={`${nameOf(sum, "day")}: ${words(sum)}`} style={{ height: `${(value(sum) / most) * 100}%` }} />
          ))}
        </div>
        <figcaption class="note">
          <span>{days[0] && nameOf(days[0], "day")}</span>
          <span>{t("settings.most", { most: props.measure === "usd" ? dollars(most) : short(most) })}</span>
          <span>{days.length > 1 && nameOf(days[days.length - 1]!, "day")}</span>
        </figcaption>
      </figure>
    );
  }
  const shown = [...props.of].sort((one, other) => value(other) - value(one)).slice(0, 12);
  return (
    <ul class="settings-chart" aria-label={label}>
      {shown.map((sum) => (
        <li key={nameOf(sum, props.by)}>
          <span class="settings-chart-name">{nameOf(sum, props.by)}</span>
          <Bar share={value(sum) / most} />
          <span class="settings-chart-value">{words(sum)}</span>
        </li>
      ))}
    </ul>
  );
}

function UsageTable(props: { of: Sum[]; by: By }) {
  const { by } = props;
  return (
    <Table
      label={t("settings.used")}
      rows={props.of}
      id={(sum) => sum[by] ?? ""}
      columns={[
        { id: "name", label: word("settings", `by_${by}`), show: (sum) => nameOf(sum, by), by: (sum) => sum[by] ?? "" },
        { id: "usd", label: t("settings.cost"), show: (sum) => dollars(sum.cost_usd), by: (sum) => sum.cost_usd, number: true },
        { id: "calls", label: t("settings.calls"), show: (sum) => number(sum.calls), by: (sum) => sum.calls, number: true },
        { id: "in", label: t("settings.input"), show: (sum) => number(sum.input_tokens), by: (sum) => sum.input_tokens, number: true },
        { id: "cached", label: t("settings.cached"), show: (sum) => number(sum.cached_tokens), by: (sum) => sum.cached_tokens, number: true },
        { id: "out", label: t("settings.output"), show: (sum) => number(sum.output_tokens), by: (sum) => sum.output_tokens, number: true },
      ]}
    />
  );
}

const forWhom = (limit: Limit) => [limit.agent && t("settings.limit_agent", { agent: limit.agent }), limit.user && t("settings.limit_user", { user: limit.user })].filter(Boolean).join(", ") || t("settings.limit_all");

function Limits() {
  const me = useMe();
  const toast = useToast();
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Limit>();
  const limits = useRead(async (signal) => (await data(api.GET("/api/v1/limits", { signal }))).limits, []);
  const put = async (body: Schemas["SetLimit"]) => {
    limits.set((await data(api.PUT("/api/v1/limits", { body, params: { header: once() } }))).limits);
  };
  const remove = useAct(async ({ agent, user, window, tokens, usd }: Limit) => {
    await put({ agent, user, window });
    setRemoving(undefined);
    toast(t("settings.limit_removed"), () => void put({ agent, user, window, tokens, usd }));
  });
  const may = administers(me.role);
  return (
    <Card
      title={t("settings.limits")}
      actions={
        may && (
          <Button icon={<Plus aria-hidden="true" />} onClick={() => setAdding(true)}>
            {t("settings.limit_set")}
          </Button>
        )
      }
    >
      <p class="note">{t("settings.limits_hint")}</p>
      <Loaded of={limits}>
        {(rows) =>
          rows.length ? (
            <Table
              label={t("settings.limits")}
              rows={rows}
              id={(limit) => `${limit.window} ${limit.agent} ${limit.user}`}
              columns={[
                { id: "for", label: t("settings.limit_for"), show: forWhom },
                { id: "window", label: t("settings.window"), show: (limit) => word("settings", `window_${limit.window}`) },
                { id: "tokens", label: t("settings.tokens"), show: (limit) => <Reached used={limit.used_tokens} most={limit.tokens} show={short} /> },
                { id: "usd", label: t("settings.cost"), show: (limit) => <Reached used={limit.used_usd} most={limit.usd} show={dollars} /> },
                {
                  id: "act",
                  label: t("shell.actions"),
                  show: (limit) =>
                    may && (
                      <Button kind="quiet" aria-label={`${t("settings.remove")} ${forWhom(limit)}`} onClick={() => setRemoving(limit)}>
                        {t("settings.remove")}
                      </Button>
                    ),
                },
              ]}
            />
          ) : (
            <p>{t("settings.no_limits")}</p>
          )
        }
      </Loaded>
      {!may && <p class="note">{t("settings.only_admins")}</p>}
      {adding && <SetLimit put={put} onClose={() => setAdding(false)} />}
      {removing && (
        <Confirm title={t("settings.limit_remove")} act={t("settings.remove")} busy={remove.running} problem={remove.problem} onConfirm={() => void remove.run(removing)} onClose={() => setRemoving(undefined)}>
          <p>{t("settings.limit_remove_text", { whom: forWhom(removing) })}</p>
        </Confirm>
      )}
    </Card>
  );
}

function Reached(props: { used: number; most: number | null | undefined; show: (value: number) => string }) {
  const { used, most } = props;
  if (most === null || most === undefined) return <>–</>;
  const share = most ? used / most : 1;
  return (
    <span class="settings-reached">
      <span>
        {props.show(used)} / {props.show(most)} <span class="note">{percent(share)}</span>
      </span>
      <Bar share={share} tone={share >= 1 ? "bad" : share >= 0.8 ? "warn" : undefined} />
    </span>
  );
}

function SetLimit(props: { put: (body: Schemas["SetLimit"]) => Promise<void>; onClose: () => void }) {
  const toast = useToast();
  const [window, setWindow] = useState("month");
  const [agent, setAgent] = useState("");
  const [user, setUser] = useState("");
  const [tokens, setTokens] = useState("");
  const [usd, setUsd] = useState("");
  const act = useAct(async () => {
    await props.put({
      window: window as "day" | "month",
      ...(agent.trim() && { agent: agent.trim() }),
      ...(user.trim() && { user: user.trim() }),
      ...(tokens && { tokens: Number(tokens) }),
      ...(usd && { usd: Number(usd) }),
    });
    toast(t("settings.limit_done"));
    props.onClose();
  });
  return (
    <Dialog
      title={t("settings.limit_set")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} disabled={!tokens && !usd} onClick={() => void act.run()}>
            {t("shell.save")}
          </Button>
        </>
      }
    >
      <div class="settings-two">
        <Select
          label={t("settings.window")}
          value={window}
          options={["day", "month"].map((value) => ({ value, label: word("settings", `window_${value}`) }))}
          onChange={(event) => setWindow(event.currentTarget.value)}
        />
        <TextField label={t("settings.by_agent")} hint={t("settings.all_if_empty")} value={agent} onInput={(event) => setAgent(event.currentTarget.value)} />
        <TextField label={t("settings.user")} hint={t("settings.all_if_empty")} value={user} onInput={(event) => setUser(event.currentTarget.value)} />
        <TextField label={t("settings.tokens")} type="number" min={0} value={tokens} onInput={(event) => setTokens(event.currentTarget.value)} />
        <TextField label={t("settings.usd")} type="number" min={0} step="0.01" value={usd} onInput={(event) => setUsd(event.currentTarget.value)} />
      </div>
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}
