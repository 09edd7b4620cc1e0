/** Changes of texts that are tried on some users: their arms, and what came of each with its uncertainty. */

import { useState } from "preact/hooks";
import { Plus, Trash2 } from "lucide-preact";

import { callTool } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { moment, number, percent } from "../../format";
import { t, word } from "../../text";
import { Button, IconButton, Select, TextArea, TextField } from "../../ui/controls";
import { Confirm, Dialog, useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded, ProblemNote, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Interval } from "../work/interval";
import type { ArmResult, Experiment, ExperimentReport, InstructionShown, Interval as Bounds } from "./tools";

const CONFIDENCES = ["0.9", "0.95", "0.99"];

/** The scale that holds all bounds: of shares 0 to 1, of differences the same on both sides of 0. */
function scaleOf(all: Bounds[], around: boolean): [number, number] {
  const most = Math.max(around ? 0 : 1, ...all.flatMap((each) => [Math.abs(each.low), Math.abs(each.high)]));
  return around || all.some((each) => each.low < 0) ? [-most, most] : [0, most];
}

function Metric(props: { name: string; arms: ArmResult[] }) {
  const means = props.arms.flatMap((arm) => (arm.mean ? [arm.mean] : []));
  const differences = props.arms.flatMap((arm) => (arm.against_first ? [arm.against_first] : []));
  const shares = means.every((mean) => mean.low >= 0 && mean.high <= 1);
  const show = (value: number) => (shares ? percent(value, 1) : number(value, 2));
  const apart = (value: number) => (shares ? t("instructions.points", { value: number(value * 100, 1) }) : number(value, 2));
  const bar = (of: Bounds, [from, to]: [number, number], write: (value: number) => string) => (
    <Interval estimate={of.estimate} low={of.low} high={of.high} from={from} to={to} show={write} />
  );
  return (
    <section class="stack tight" aria-label={props.name}>
      <h3>{props.name}</h3>
      {props.arms.map((arm) => (
        <div key={arm.arm} class="arm">
          <div class="spread">
            <strong>{arm.arm}</strong>
            <span class="note">{t("instructions.arm_users", { users: arm.users, exposed: arm.exposed })}</span>
          </div>
          {arm.mean ? bar(arm.mean, scaleOf(means, false), show) : <p class="note">{t("instructions.too_few")}</p>}
          {arm.against_first && (
            <div>
              <p class="note">{t("instructions.against_first")}</p>
              {bar(arm.against_first, scaleOf(differences, true), apart)}
              <p class="note">
                {arm.against_first.low > 0 ? t("instructions.higher") : arm.against_first.high < 0 ? t("instructions.lower") : t("instructions.not_shown")}
              </p>
            </div>
          )}
        </div>
      ))}
    </section>
  );
}

function Report(props: { name: string; round: number }) {
  const [{ confidence = "0.95" }, change] = useParameters();
  const report = useRead((signal) => callTool<ExperimentReport>("report_experiment", { name: props.name, confidence: Number(confidence) }, signal), [props.name, confidence, props.round]);
  return (
    <Loaded of={report}>
      {(found) =>
        found.metrics.length ? (
          <>
            <div class="filters">
              <Select
                label={t("instructions.confidence")}
                value={confidence}
                options={CONFIDENCES.map((each) => ({ value: each, label: percent(Number(each)) }))}
                onChange={(event) => change({ confidence: event.currentTarget.value })}
              />
            </div>
            {found.metrics.map((each) => (
              <Metric key={each.metric} name={each.metric} arms={each.arms} />
            ))}
          </>
        ) : (
          <p class="note">{t("instructions.no_outcomes")}</p>
        )
      }
    </Loaded>
  );
}

function Record(props: { name: string; done: () => void }) {
  const toast = useToast();
  const [user, setUser] = useState("");
  const [metric, setMetric] = useState("");
  const [value, setValue] = useState("");
  const act = useAct(async () => {
    const { arms } = await callTool<{ arms: Record<string, string> }>("record_outcome", { user, metric, value: Number(value), experiment: props.name });
    const arm = arms[props.name];
    toast(arm ? t("instructions.recorded", { arm }) : t("instructions.in_no_arm", { user }));
    props.done();
  });
  return (
    <details>
      <summary>{t("instructions.record")}</summary>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          void act.run();
        }}
      >
        <TextField label={t("instructions.user")} required value={user} onInput={(event) => setUser(event.currentTarget.value)} />
        <TextField label={t("instructions.metric")} required pattern="[a-z0-9][a-z0-9_\-]*" placeholder="helpful" value={metric} onInput={(event) => setMetric(event.currentTarget.value)} />
        <TextField label={t("instructions.value")} type="number" step="any" required placeholder="1" value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        <Button type="submit" busy={act.running}>
          {t("instructions.record_one")}
        </Button>
      </form>
      {act.problem && <ProblemNote problem={act.problem} />}
    </details>
  );
}

interface ArmDraft {
  name: string;
  weight: string;
  tag: string;
  text: string;
}

function Start(props: { close: () => void; started: () => void }) {
  const toast = useToast();
  const [name, setName] = useState("");
  const [arms, setArms] = useState<ArmDraft[]>([
    { name: "control", weight: "50", tag: "", text: "" },
    { name: "changed", weight: "50", tag: "", text: "" },
  ]);
  const set = (place: number, changes: Partial<ArmDraft>) => setArms((before) => before.map((arm, each) => (each === place ? { ...arm, ...changes } : arm)));
  const load = useAct(async (place: number, tag: string) => set(place, { text: (await callTool<InstructionShown>("show_instruction", { tag })).content }));
  const act = useAct(async () => {
    const given = arms.map((arm) => ({ name: arm.name, weight: Number(arm.weight), ...(arm.tag ? { texts: { [arm.tag]: arm.text } } : {}) }));
    await callTool<Experiment>("start_experiment", { name, arms: given });
    toast(t("instructions.started", { name }));
    props.started();
    props.close();
  });
  return (
    <Dialog
      title={t("instructions.new_experiment")}
      onClose={props.close}
      actions={
        <>
          <Button onClick={props.close}>{t("shell.cancel")}</Button>
          <Button kind="primary" disabled={!name} busy={act.running} onClick={() => void act.run()}>
            {t("instructions.start")}
          </Button>
        </>
      }
    >
      <p class="note">{t("instructions.start_hint")}</p>
      <TextField autofocus label={t("instructions.name")} placeholder="tone" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      {arms.map((arm, place) => (
        <fieldset key={place} class="arm-draft">
          <legend>{t(place ? "instructions.arm_number" : "instructions.first_arm", { number: place + 1 })}</legend>
          <div class="filters">
            <TextField label={t("instructions.arm_name")} value={arm.name} onInput={(event) => set(place, { name: event.currentTarget.value })} />
            <TextField label={t("instructions.weight")} type="number" min="1" max="1000" value={arm.weight} onInput={(event) => set(place, { weight: event.currentTarget.value })} />
            {place > 1 && <IconButton label={t("shell.delete")} icon={<Trash2 aria-hidden="true" />} onClick={() => setArms(arms.filter((_, each) => each !== place))} />}
          </div>
          {place > 0 && (
            <>
              <div class="filters">
                <TextField label={t("instructions.tag")} placeholder="dialogue/router" value={arm.tag} onInput={(event) => set(place, { tag: event.currentTarget.value })} />
                <Button disabled={!arm.tag} busy={load.running} onClick={() => void load.run(place, arm.tag)}>
                  {t("instructions.load_text")}
                </Button>
              </div>
              <TextArea label={t("instructions.text_instead")} rows={5} class="input mono" value={arm.text} onInput={(event) => set(place, { text: event.currentTarget.value })} />
            </>
          )}
        </fieldset>
      ))}
      {arms.length < 8 && (
        <Button icon={<Plus aria-hidden="true" />} onClick={() => setArms([...arms, { name: `arm${arms.length}`, weight: "50", tag: "", text: "" }])}>
          {t("instructions.add_arm")}
        </Button>
      )}
      {(act.problem ?? load.problem) && <ProblemNote problem={(act.problem ?? load.problem)!} />}
    </Dialog>
  );
}

export function Experiments() {
  const toast = useToast();
  const [{ start }, change] = useParameters();
  const [asking, setAsking] = useState<Experiment>();
  const [round, setRound] = useState(0);
  const list = useRead((signal) => callTool<{ experiments: Experiment[] }>("list_experiments", {}, signal), []);
  const stop = useAct(async (of: Experiment) => {
    await callTool("stop_experiment", { name: of.name });
    setAsking(undefined);
    toast(t("instructions.stopped", { name: of.name }));
    list.reload();
  });
  const begin = (kind: "primary" | "plain") => (
    <Button kind={kind} icon={<Plus aria-hidden="true" />} onClick={() => change({ start: "1" })}>
      {t("instructions.new_experiment")}
    </Button>
  );
  return (
    <>
      <div class="spread">
        <p class="note">{t("instructions.experiments_hint")}</p>
        {begin("primary")}
      </div>
      <Loaded of={list}>
        {({ experiments }) =>
          experiments.length ? (
            experiments.map((each) => (
              <Card
                key={each.name}
                title={
                  <span class="row">
                    {each.name} <Badge tone={each.status === "running" ? "info" : "plain"}>{word("instructions", `experiment_${each.status}`)}</Badge>
                  </span>
                }
                actions={
                  each.status === "running" && (
                    <Button kind="danger" onClick={() => setAsking(each)}>
                      {t("instructions.stop")}
                    </Button>
                  )
                }
              >
                <p class="note">
                  {t("instructions.since")} <Time at={each.started_at} show={moment} />
                  {each.stopped_at && (
                    <>
                      {" "}
                      {t("instructions.until")} <Time at={each.stopped_at} show={moment} />
                    </>
                  )}
                </p>
                <ul class="ids">
                  {each.arms.map((arm) => (
                    <li key={arm.name}>
                      <strong>{arm.name}</strong> <span class="note">{t("instructions.arm_line", { weight: arm.weight, users: arm.users })}</span> <span class="mono">{arm.tags.join(", ")}</span>
                    </li>
                  ))}
                </ul>
                <Report name={each.name} round={round} />
                {each.status === "running" && <Record name={each.name} done={() => setRound((before) => before + 1)} />}
              </Card>
            ))
          ) : (
            <Card>
              <Empty title={t("instructions.no_experiments")}>{begin("plain")}</Empty>
            </Card>
          )
        }
      </Loaded>
      {start && <Start close={() => change({ start: "" })} started={list.reload} />}
      {asking && (
        <Confirm title={t("instructions.stop")} act={t("instructions.stop")} busy={stop.running} problem={stop.problem} onConfirm={() => void stop.run(asking)} onClose={() => setAsking(undefined)}>
          <p>{t("instructions.stop_hint", { name: asking.name })}</p>
        </Confirm>
      )}
    </>
  );
}
