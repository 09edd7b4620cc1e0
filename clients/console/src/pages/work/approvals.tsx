/** Calls that wait for a person: what each would do and why somebody is asked, and the standing grants. */

import { useState } from "preact/hooks";
import { Ban, Check, Inbox, ShieldCheck } from "lucide-preact";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { ago, moment } from "../../format";
import { BASE } from "../../pages";
import { t, word } from "../../text";
import { Button, Select, TextField } from "../../ui/controls";
import { Confirm, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Facts, Loaded, ProblemNote, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { Effect, originOf, Risk } from "./effect";

type Approval = Schemas["Approval"];
type Grant = Schemas["Grant"];
type Scope = Schemas["ApprovalScope"];

const STATUSES: Schemas["ApprovalStatus"][] = ["pending", "granted", "refused", "expired", "cancelled"];
const TONES = { pending: "warn", granted: "good", refused: "bad", expired: "plain", cancelled: "plain" } as const;
const MOST = 100;

function Answer(props: { of: Approval; answered: (approval: Approval) => void }) {
  const { of } = props;
  const toast = useToast();
  const [note, setNote] = useState("");
  const [asking, setAsking] = useState<Scope>();
  const act = useAct(async (decision: Schemas["Decision"], scope: Scope) => {
    const params = { path: { id: of.approval_id }, header: once() };
    const done = await data(api.POST("/api/v1/approvals/{id}", { params, body: { decision, note, scope } }));
    setAsking(undefined);
    toast(t(decision === "approve" ? "work.approved" : "work.declined", { tool: of.tool }));
    props.answered(done);
  });
  const approve = (scope: Scope) => (of.irreversible || scope === "rule" ? setAsking(scope) : void act.run("approve", scope));
  const wider = (of.scopes ?? []).filter((scope) => scope !== "once");
  return (
    <>
      <TextField label={t("work.note")} hint={t("work.note_hint")} maxLength={1000} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
      <div class="row">
        <Button kind="primary" busy={act.running} icon={<Check aria-hidden="true" />} onClick={() => approve("once")}>
          {t("work.approve_once")}
        </Button>
        {wider.map((scope) => (
          <Button key={scope} busy={act.running} icon={<ShieldCheck aria-hidden="true" />} onClick={() => approve(scope)}>
            {word("work", `approve_${scope}`)}
          </Button>
        ))}
        <Button kind="danger" busy={act.running} icon={<Ban aria-hidden="true" />} onClick={() => void act.run("refuse", "once")}>
          {t("work.decline")}
        </Button>
      </div>
      {act.problem && !asking && <ProblemNote problem={act.problem} />}
      {asking && (
        <Confirm title={word("work", `approve_${asking}`)} act={word("work", `approve_${asking}`)} busy={act.running} problem={act.problem} onConfirm={() => void act.run("approve", asking)} onClose={() => setAsking(undefined)}>
          <p>{of.irreversible ? t("work.irreversible_hint", { tool: of.tool }) : t("work.rule_hint", { tool: of.tool })}</p>
        </Confirm>
      )}
    </>
  );
}

function Call(props: { of: Approval; answered: (approval: Approval) => void }) {
  const { of } = props;
  const because = of.because ?? [];
  const stated: [string, string | undefined][] = [
    [t("work.why"), of.reason],
    [t("work.origin"), because.length ? because.map(originOf).join("; ") : t("work.by_risk")],
    [t("work.hosts"), of.host],
    [t("work.wanted_by"), t("work.for_user", { agent: of.agent, user: of.user })],
    [t("work.said"), of.note],
  ];
  return (
    <article class="card approval" aria-label={of.tool} data-id={of.approval_id}>
      <div class="card-head">
        <h3 class="mono">{of.action ? `${of.tool} · ${of.action}` : of.tool}</h3>
        <div class="row">
          {of.effect && <Effect effect={of.effect} />}
          <Risk risk={of.risk} />
          {of.irreversible && <Badge tone="bad">{t("work.irreversible")}</Badge>}
          {of.status !== "pending" && <Badge tone={TONES[of.status]}>{word("work", `approval_${of.status}`)}</Badge>}
        </div>
      </div>
      <Facts of={stated.filter((each): each is [string, string] => !!each[1])} />
      <div>
        <h4 class="small">{t("work.arguments")}</h4>
        <pre>{JSON.stringify(of.arguments, null, 2)}</pre>
      </div>
      <p class="note row">
        <span>
          {t("work.asked")} <Time at={of.created_at} show={ago} />
          {of.status === "pending" && (
            <>
              {" · "}
              {t("work.runs_out")} <Time at={of.expires_at} show={ago} />
            </>
          )}
          {of.answered_at && (
            <>
              {" · "}
              {t("work.answered_by", { user: of.answered_by ?? "" })} <Time at={of.answered_at} show={ago} />
            </>
          )}
        </span>
        <a href={`${BASE}/traces/${of.turn_id}`}>{t("work.trace")}</a>
        <a href={`${BASE}/chat/${of.conversation_id}`}>{t("work.conversation")}</a>
      </p>
      {of.status === "pending" && <Answer of={of} answered={props.answered} />}
    </article>
  );
}

function Grants(props: { round: number }) {
  const toast = useToast();
  const [asking, setAsking] = useState<Grant>();
  const grants = useRead(async (signal) => (await data(api.GET("/api/v1/approval-grants", { params: { query: { limit: MOST } }, signal }))).grants, [props.round]);
  const act = useAct(async (grant: Grant) => {
    await data(api.DELETE("/api/v1/approval-grants/{id}", { params: { path: { id: grant.grant_id } } }));
    setAsking(undefined);
    toast(t("work.withdrawn", { tool: grant.tool }));
    grants.reload();
  });
  return (
    <Card title={t("work.grants")}>
      <p class="note">{t("work.grants_hint")}</p>
      <Loaded of={grants}>
        {(rows) =>
          rows.length ? (
            <Table
              label={t("work.grants")}
              rows={rows}
              id={(grant) => grant.grant_id}
              columns={[
                { id: "tool", label: t("work.tool"), show: (grant) => <span class="mono">{grant.tool}</span>, by: (grant) => grant.tool },
                { id: "effect", label: t("work.effect"), show: (grant) => <Effect effect={grant.effect} /> },
                { id: "origins", label: t("work.origin"), show: (grant) => grant.kinds.map((kind) => word("work", `origin_${kind}`)).join(", ") || "–" },
                { id: "hosts", label: t("work.hosts"), show: (grant) => grant.host || "–" },
                {
                  id: "reach",
                  label: t("work.reach"),
                  show: (grant) => (grant.conversation_id ? <a href={`${BASE}/chat/${grant.conversation_id}`}>{t("work.one_conversation")}</a> : t("work.everywhere")),
                },
                { id: "since", label: t("work.since"), show: (grant) => <Time at={grant.created_at} show={moment} />, by: (grant) => grant.created_at },
                {
                  id: "act",
                  label: t("shell.actions"),
                  show: (grant) => (
                    <Button kind="danger" onClick={() => setAsking(grant)}>
                      {t("work.withdraw")}
                    </Button>
                  ),
                },
              ]}
            />
          ) : (
            <p>{t("work.no_grants")}</p>
          )
        }
      </Loaded>
      {asking && (
        <Confirm title={t("work.withdraw")} act={t("work.withdraw")} busy={act.running} problem={act.problem} onConfirm={() => void act.run(asking)} onClose={() => setAsking(undefined)}>
          <p>{t("work.withdraw_hint", { tool: asking.tool })}</p>
        </Confirm>
      )}
    </Card>
  );
}

export function Approvals(props: { answered: () => void }) {
  const [{ status = "pending" }, change] = useParameters();
  const [round, setRound] = useState(0);
  const query = { limit: MOST, ...(status === "all" ? {} : { status: status as Schemas["ApprovalStatus"] }) };
  const approvals = useRead(async (signal) => (await data(api.GET("/api/v1/approvals", { params: { query }, signal }))).approvals, [status], 10);
  const answered = () => {
    approvals.reload();
    props.answered();
    setRound((before) => before + 1);
  };
  return (
    <>
      <div class="filters">
        <Select
          label={t("work.status")}
          value={status}
          options={[...STATUSES.map((each) => ({ value: each as string, label: word("work", `approval_${each}`) })), { value: "all", label: t("shell.all") }]}
          onChange={(event) => change({ status: event.currentTarget.value })}
        />
      </div>
      <Loaded of={approvals}>
        {(rows) => (
          <section class="stack" aria-label={t("work.approvals")}>
            <h2 class="unseen">{t("work.approvals")}</h2>
            <p class={rows.length ? "note" : "unseen"} aria-live="polite">
              {t("work.approvals_shown", { count: rows.length })}
            </p>
            {rows.map((each) => (
              <Call key={each.approval_id} of={each} answered={answered} />
            ))}
            {!rows.length && (
              <Card>
                <Empty title={t(status === "pending" ? "work.nothing_waits" : "work.no_approvals")} icon={<Inbox aria-hidden="true" />}>
                  <p>{t("work.nothing_waits_hint")}</p>
                </Empty>
              </Card>
            )}
          </section>
        )}
      </Loaded>
      <Grants round={round} />
    </>
  );
}
