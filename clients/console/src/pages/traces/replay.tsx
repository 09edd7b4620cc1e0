/** A turn run again on its record, beside the first run. */

import { useState } from "preact/hooks";
import { RotateCcw } from "lucide-preact";

import { api, callTool, data, type Schemas } from "../../api/client";
import { useAct, useRead } from "../../api/use";
import { dollars, number, percent } from "../../format";
import { useMe } from "../../session";
import { t } from "../../text";
import { Button, Select } from "../../ui/controls";
import { Diff } from "../../ui/diff";
import { Badge, Card, ProblemNote } from "../../ui/layout";
import { mayEdit } from "../instructions/rights";
import type { ReleaseList } from "../instructions/tools";

type Replayed = Schemas["Replayed"];
type Side = Schemas["ReplaySide"];

function Sides(props: { of: Replayed }) {
  const { before, after } = props.of;
  const rows: [string, (side: Side) => string][] = [
    [t("traces.release"), (side) => side.release ?? ""],
    [t("traces.confidence"), (side) => (side.confidence == null ? "–" : percent(side.confidence))],
    [t("traces.model_calls"), (side) => number(side.model_calls ?? 0)],
    [t("traces.tokens"), (side) => number((side.input_tokens ?? 0) + (side.output_tokens ?? 0))],
    [t("traces.cost"), (side) => (side.cost_usd == null ? "–" : dollars(side.cost_usd))],
    [t("traces.tool_calls"), (side) => (side.tool_calls ?? []).join("\n") || "–"],
    [t("traces.gaps"), (side) => (side.gaps ?? []).join("\n") || "–"],
  ];
  return (
    <table class="sides">
      <thead>
        <tr>
          <td />
          <th scope="col">{t("traces.first_run")}</th>
          <th scope="col">{t("traces.replay")}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, show]) => {
          const [left, right] = [show(before), show(after)];
          return (
            <tr key={name} class={left === right ? undefined : "differs"}>
              <th scope="row">{name}</th>
              <td>{left}</td>
              <td>{right}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Result(props: { of: Replayed }) {
  const { of } = props;
  const lacking = [...(of.forgotten ?? []), ...(of.changed ?? []), ...(of.unrecorded ?? []).map((call) => call.name)];
  return (
    <div class="stack" aria-live="polite">
      <p>{of.same ? <Badge tone="good">{t("traces.same")}</Badge> : <Badge tone="warn">{t("traces.not_same")}</Badge>}</p>
      {of.problem && <p>{t("traces.replay_problem", { code: of.problem })}</p>}
      <Sides of={of} />
      {of.diff && <Diff label={t("traces.answers")} patch={of.diff} before={t("traces.first_run")} after={t("traces.replay")} />}
      {lacking.length > 0 && <p class="note">{t("traces.lacking", { what: lacking.join(", ") })}</p>}
    </div>
  );
}

export function Replay(props: { turn: Schemas["Turn"] }) {
  const me = useMe();
  const [release, setRelease] = useState("");
  const releases = useRead(async (signal) => (mayEdit(me) ? callTool<ReleaseList>("list_releases", {}, signal) : undefined), []);
  const [found, setFound] = useState<Replayed>();
  const act = useAct(async () => {
    const body = release === "" ? {} : { withInstructions: Number(release) };
    setFound(await data(api.POST("/api/v1/turns/{id}/replay", { params: { path: { id: props.turn.turn_id } }, body })));
  });
  const options = [
    { value: "", label: t("traces.same_texts") },
    { value: "0", label: t("traces.shipped_texts") },
    ...(releases.data?.releases ?? []).map((each) => ({ value: String(each.number), label: t("traces.release_number", { number: each.number, note: each.note }) })),
  ];
  return (
    <Card title={t("traces.replay_title")}>
      <p class="note">{t("traces.replay_hint")}</p>
      <div class="filters">
        <Select label={t("traces.instructions")} value={release} options={options} onChange={(event) => setRelease(event.currentTarget.value)} />
        <Button busy={act.running} icon={<RotateCcw aria-hidden="true" />} onClick={() => void act.run()}>
          {t("traces.run_again")}
        </Button>
      </div>
      {act.problem && <ProblemNote problem={act.problem} />}
      {found && <Result of={found} />}
    </Card>
  );
}
