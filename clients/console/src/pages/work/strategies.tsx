/** What was learnt from tasks whose result was verified, and whether it helps. */

import { useState } from "preact/hooks";
import { Pencil, Trash2 } from "lucide-preact";

import { api, data, once, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { ago, number, percent } from "../../format";
import { BASE } from "../../pages";
import { t, word } from "../../text";
import { Button, IconButton, Select, TextArea } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded, ProblemNote, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Interval } from "./interval";

type Strategy = Schemas["KeptStrategy"];
type Arm = Schemas["ArmEffect"];

const STATES: Schemas["StrategyState"][] = ["active", "unverified", "retired"];
const TONES = { active: "good", unverified: "warn", retired: "plain" } as const;
const PAGE = 25;
const MOST = 200;

function ArmLine(props: { arm: Arm; label: string }) {
  const { arm } = props;
  return (
    <div class="arm">
      <div class="spread">
        <strong>{props.label}</strong>
        <span class="note">{t("work.arm_figures", { tasks: arm.tasks ?? 0, verified: arm.verified ?? 0, accepted: arm.accepted ?? 0, steps: arm.steps == null ? "–" : number(arm.steps, 1) })}</span>
      </div>
      {arm.share == null ? <p class="note">{t("work.no_share")}</p> : <Interval estimate={arm.share} low={arm.low ?? 0} high={arm.high ?? 1} from={0} to={1} show={percent} />}
    </div>
  );
}

function EffectOfAll() {
  const effect = useRead((signal) => data(api.GET("/api/v1/strategies/effect", { signal })), []);
  return (
    <Card title={t("work.effect_title")}>
      <Loaded of={effect}>
        {(found) => (
          <>
            <p>{word("work", `difference_${found.difference}`)}</p>
            <ArmLine arm={found.used} label={t("work.arm_used")} />
            <ArmLine arm={found.held_out} label={t("work.arm_held_out")} />
          </>
        )}
      </Loaded>
    </Card>
  );
}

function Edit(props: { of: Strategy; close: () => void; changed: () => void }) {
  const [goal, setGoal] = useState(props.of.goal);
  const [approach, setApproach] = useState(props.of.approach);
  const [avoid, setAvoid] = useState(props.of.avoid ?? "");
  const act = useAct(async () => {
    const params = { path: { id: props.of.id }, header: once() };
    await data(api.PATCH("/api/v1/strategies/{id}", { params, body: { goal, approach, avoid } }));
    props.changed();
    props.close();
  });
  return (
    <Dialog
      title={t("work.edit_strategy")}
      onClose={props.close}
      actions={
        <>
          <Button onClick={props.close}>{t("shell.cancel")}</Button>
          <Button kind="primary" busy={act.running} onClick={() => void act.run()}>
            {t("shell.save")}
          </Button>
        </>
      }
    >
      <TextArea autofocus label={t("work.found_for")} rows={2} maxLength={2000} value={goal} onInput={(event) => setGoal(event.currentTarget.value)} />
      <TextArea label={t("work.approach")} rows={6} maxLength={4000} value={approach} onInput={(event) => setApproach(event.currentTarget.value)} />
      <TextArea label={t("work.avoid")} rows={3} maxLength={4000} value={avoid} onInput={(event) => setAvoid(event.currentTarget.value)} />
      {act.problem && <ProblemNote problem={act.problem} />}
    </Dialog>
  );
}

export function Strategies() {
  const toast = useToast();
  const [{ state, limit = String(PAGE) }, change] = useParameters();
  const [editing, setEditing] = useState<Strategy>();
  const [asking, setAsking] = useState<Strategy>();
  const query = { limit: Math.min(MOST, Number(limit) || PAGE), ...(state ? { state: state as Schemas["StrategyState"] } : {}) };
  const strategies = useRead(async (signal) => (await data(api.GET("/api/v1/strategies", { params: { query }, signal }))).strategies ?? [], [state, limit]);
  const retire = useAct(async (of: Strategy, retired: boolean) => {
    const params = { path: { id: of.id }, header: once() };
    await data(api.PATCH("/api/v1/strategies/{id}", { params, body: { retired } }));
    toast(t(retired ? "work.retired" : "work.unretired"), () => void retire.run(of, !retired));
    strategies.reload();
  });
  const remove = useAct(async (of: Strategy) => {
    await data(api.DELETE("/api/v1/strategies/{id}", { params: { path: { id: of.id } } }));
    setAsking(undefined);
    toast(t("work.strategy_deleted"));
    strategies.reload();
  });
  return (
    <>
      <EffectOfAll />
      <div class="filters">
        <Select
          label={t("work.state")}
          value={state ?? ""}
          options={[{ value: "", label: t("shell.all") }, ...STATES.map((each) => ({ value: each as string, label: word("work", `strategy_${each}`) }))]}
          onChange={(event) => change({ state: event.currentTarget.value, limit: "" })}
        />
      </div>
      {retire.problem && <ProblemNote problem={retire.problem} />}
      <Loaded of={strategies}>
        {(rows) => (
          <>
            {rows.map((each) => (
              <Card
                key={each.id}
                title={each.goal}
                actions={
                  <>
                    <IconButton label={t("shell.edit")} icon={<Pencil aria-hidden="true" />} onClick={() => setEditing(each)} />
                    <Button busy={retire.running} onClick={() => void retire.run(each, each.state !== "retired")}>
                      {t(each.state === "retired" ? "work.unretire" : "work.retire")}
                    </Button>
                    <IconButton label={t("shell.delete")} icon={<Trash2 aria-hidden="true" />} onClick={() => setAsking(each)} />
                  </>
                }
              >
                <div class="row">
                  <Badge tone={TONES[each.state]}>{word("work", `strategy_${each.state}`)}</Badge>
                  <span class="note">{t("work.evidence", { accepted: each.accepted ?? 0, rejected: each.rejected ?? 0, score: percent(each.score) })}</span>
                </div>
                <p>{each.approach}</p>
                {each.avoid && (
                  <p class="note">
                    {t("work.avoid")}: {each.avoid}
                  </p>
                )}
                <p class="note row">
                  <a href={`${BASE}/work/tasks/${each.task_id}`}>{t("work.learnt_from")}</a>
                  <Time at={each.created_at} show={ago} />
                  {each.tools_used?.length ? <span class="mono">{each.tools_used.join(", ")}</span> : null}
                </p>
              </Card>
            ))}
            {rows.length === query.limit && query.limit < MOST && <Button onClick={() => change({ limit: String(query.limit + PAGE) })}>{t("shell.more")}</Button>}
            {!rows.length && (
              <Card>
                <Empty title={t("work.no_strategies")}>
                  <p>{t("work.no_strategies_hint")}</p>
                </Empty>
              </Card>
            )}
          </>
        )}
      </Loaded>
      {editing && <Edit of={editing} close={() => setEditing(undefined)} changed={strategies.reload} />}
      {asking && (
        <Confirm title={t("work.delete_strategy")} act={t("shell.delete")} busy={remove.running} problem={remove.problem} onConfirm={() => void remove.run(asking)} onClose={() => setAsking(undefined)}>
          <p>{t("work.delete_strategy_hint")}</p>
          <p class="asked">{asking.goal}</p>
        </Confirm>
      )}
    </>
  );
}
