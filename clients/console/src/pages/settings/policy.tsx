/** What agents may do because of texts that are not the user's: rules, hosts, versions. */

import { Plus, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, usePages, useRead } from "../../api/use";
import { number } from "../../format";
import { administers, useMe } from "../../session";
import { t, word } from "../../text";
import { Button, IconButton, Select, TextArea, TextField } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Badge, Card, Facts, Loaded, ProblemNote } from "../../ui/layout";
import { Table } from "../../ui/table";
import { When } from "./parts";

type Held = Schemas["PolicyVersion"];
type Rule = Schemas["ActionRule"];
const ORIGINS = ["user", "instructions", "memory", "person", "document", "picture", "recording", "tool", "outside", "web", "client", "unknown"] as const;
const EFFECTS = ["read", "write", "outbound", "message", "spend"] as const;
const RULINGS = ["allow", "ask", "refuse"] as const;
const TONES = { allow: "good", ask: "warn", refuse: "bad" } as const;
const DAY = 86_400;

export function Policy() {
  const me = useMe();
  const toast = useToast();
  const [round, setRound] = useState(0);
  const [open, setOpen] = useState<"edit" | number>();
  const policy = useRead((signal) => data(api.GET("/api/v1/action-policy", { signal })), []);
  const may = administers(me.role);
  const put = async (body: Schemas["ActionPolicyGiven"]) => {
    const done = await data(api.PUT("/api/v1/action-policy", { body, params: { header: once() } }));
    policy.set(done);
    setRound((before) => before + 1);
    setOpen(undefined);
    return done;
  };
  const version = policy.data?.policy.version ?? 0;
  const restore = useAct(async (restores: number) => {
    await put({ replaces: version, restores } as Schemas["ActionPolicyGiven"]);
    toast(t("settings.policy_restored", { version: restores }));
  });
  return (
    <>
      <Card
        title={t("settings.policy_now")}
        actions={may && policy.data && <Button onClick={() => setOpen("edit")}>{t("shell.edit")}</Button>}
      >
        <Loaded of={policy}>{(held) => <Shown of={held} />}</Loaded>
        {!may && <p class="note">{t("settings.only_admins")}</p>}
      </Card>
      {may && <Versions current={version} round={round} onRestore={setOpen} />}
      {open === "edit" && policy.data && <Edit held={policy.data} put={put} onClose={() => setOpen(undefined)} />}
      {typeof open === "number" && (
        <Confirm title={t("settings.policy_restore", { version: open })} act={t("settings.restore")} busy={restore.running} problem={restore.problem} onConfirm={() => void restore.run(open)} onClose={() => setOpen(undefined)}>
          <p>{t("settings.policy_restore_text", { version: open })}</p>
        </Confirm>
      )}
    </>
  );
}

function Shown(props: { of: Held }) {
  const { policy, changed_at: at, changed_by: by } = props.of;
  return (
    <>
      <Facts
        of={[
          [t("settings.version"), policy.version ? number(policy.version) : t("settings.policy_packaged")],
          ...(at ? ([[t("settings.changed"), <>{<When at={at} />} {by}</>]] as [string, preact.ComponentChildren][]) : []),
          [t("settings.egress"), policy.egress?.length ? policy.egress.join(", ") : t("shell.none")],
          [t("settings.approval_days"), number((policy.approval_seconds ?? 0) / DAY, 2)],
        ]}
      />
      <h3>{t("settings.rules")}</h3>
      {policy.rules?.length ? <RuleTable rules={policy.rules} /> : null}
      <p class="note">{t("settings.rules_default")}</p>
    </>
  );
}

function RuleTable(props: { rules: Rule[] }) {
  return (
    <Table
      label={t("settings.rules")}
      rows={props.rules}
      id={(rule) => `${rule.origin} ${rule.effect}`}
      columns={[
        { id: "origin", label: t("settings.origin"), show: (rule) => word("settings", `origin_${rule.origin}`), by: (rule) => rule.origin },
        { id: "effect", label: t("settings.effect"), show: (rule) => word("settings", `effect_${rule.effect}`), by: (rule) => rule.effect },
        { id: "ruling", label: t("settings.ruling"), show: (rule) => <Badge tone={TONES[rule.ruling]}>{word("settings", `ruling_${rule.ruling}`)}</Badge>, by: (rule) => rule.ruling },
      ]}
    />
  );
}

function options(area: string, values: readonly string[]) {
  return values.map((value) => ({ value, label: word("settings", `${area}_${value}`) }));
}

function Edit(props: { held: Held; put: (body: Schemas["ActionPolicyGiven"]) => Promise<Held>; onClose: () => void }) {
  const { policy } = props.held;
  const toast = useToast();
  const [rules, setRules] = useState<Rule[]>(policy.rules ?? []);
  const [egress, setEgress] = useState((policy.egress ?? []).join("\n"));
  const [days, setDays] = useState(String((policy.approval_seconds ?? DAY) / DAY));
  const change = (at: number, part: Partial<Rule>) => setRules(rules.map((rule, index) => (index === at ? { ...rule, ...part } : rule)));
  const act = useAct(async () => {
    const body = { replaces: policy.version ?? 0, rules, egress: egress.split(/\s+/).filter(Boolean), approval_seconds: Number(days) * DAY };
    const done = await props.put(body);
    toast(t("settings.saved"), () => void props.put({ ...body, replaces: done.policy.version ?? 0, rules: policy.rules ?? [], egress: policy.egress ?? [], approval_seconds: policy.approval_seconds ?? 7 * DAY }));
  });
  return (
    <Dialog
      title={t("settings.policy_edit")}
      onClose={props.onClose}
      actions={
        <>
          <Button onClick={props.onClose}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} onClick={() => void act.run()}>
            {t("shell.save")}
          </Button>
        </>
      }
    >
      <h3>{t("settings.rules")}</h3>
      <p class="note">{t("settings.rules_default")}</p>
      {rules.map((rule, at) => (
        <div key={at} class="settings-rule">
          <Select label={t("settings.origin")} value={rule.origin} options={options("origin", ORIGINS)} onChange={(event) => change(at, { origin: event.currentTarget.value as Rule["origin"] })} />
          <Select label={t("settings.effect")} value={rule.effect} options={options("effect", EFFECTS)} onChange={(event) => change(at, { effect: event.currentTarget.value as Rule["effect"] })} />
          <Select label={t("settings.ruling")} value={rule.ruling} options={options("ruling", RULINGS)} onChange={(event) => change(at, { ruling: event.currentTarget.value as Rule["ruling"] })} />
          <IconButton label={`${t("settings.remove")} ${at + 1}`} icon={<Trash2 aria-hidden="true" />} onClick={() => setRules(rules.filter((_, index) => index !== at))} />
        </div>
      ))}
      <div>
        <Button icon={<Plus aria-hidden="true" />} onClick={() => setRules([...rules, { origin: "web", effect: "outbound", ruling: "refuse" }])}>
          {t("settings.rule_add")}
        </Button>
      </div>
      <TextArea label={t("settings.egress")} hint={t("settings.egress_hint")} rows={3} value={egress} onInput={(event) => setEgress(event.currentTarget.value)} />
      <TextField label={t("settings.approval_days")} type="number" min={0.01} max={90} step="any" value={days} onInput={(event) => setDays(event.currentTarget.value)} />
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

function Versions(props: { current: number; round: number; onRestore: (version: number) => void }) {
  const pages = usePages(
    async (before, signal) => {
      const query = { limit: 20, ...(before && { before: Number(before) }) };
      const { versions } = await data(api.GET("/api/v1/action-policy/versions", { params: { query }, signal }));
      const last = versions.at(-1)?.policy.version ?? 0;
      return { items: versions, next: versions.length === 20 && last > 1 ? String(last) : null };
    },
    [props.round],
  );
  return (
    <Card title={t("settings.versions")}>
      <Loaded of={pages}>
        {(versions) =>
          versions.length ? (
            <Table
              label={t("settings.versions")}
              rows={versions}
              id={(each) => String(each.policy.version)}
              more={pages.more}
              columns={[
                { id: "version", label: t("settings.version"), show: (each) => number(each.policy.version ?? 0) },
                { id: "at", label: t("settings.changed"), show: (each) => each.changed_at && <When at={each.changed_at} /> },
                { id: "by", label: t("settings.by"), show: (each) => each.changed_by },
                { id: "what", label: t("settings.rules"), show: (each) => t("settings.rules_count", { count: each.policy.rules?.length ?? 0 }) },
                {
                  id: "act",
                  label: t("shell.actions"),
                  show: (each) =>
                    each.policy.version === props.current ? (
                      <Badge tone="good">{t("settings.active")}</Badge>
                    ) : (
                      <Button kind="quiet" aria-label={`${t("settings.restore")} ${each.policy.version}`} onClick={() => props.onRestore(each.policy.version ?? 0)}>
                        {t("settings.restore")}
                      </Button>
                    ),
                },
              ]}
            />
          ) : (
            <p class="note">{t("settings.no_versions")}</p>
          )
        }
      </Loaded>
    </Card>
  );
}
