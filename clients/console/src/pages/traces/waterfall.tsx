/** A turn's steps over time: each row opens to what the service noted of it. */

import { t } from "../../text";
import { duration, percent } from "../../format";
import { Select } from "../../ui/controls";
import { Card, Empty } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import type { Schemas } from "../../api/client";
import { nameOf, slowest, steps, type Step } from "./spans";

const MOST = 1000;
const LONGER = ["1", "10", "100"];

function time(ms: number): string {
  return ms < 1 ? "< 1 ms" : duration(ms / 1000);
}

function Row(props: { step: Step; whole: number; slow: boolean; open: boolean; toggle: () => void }) {
  const { step, whole } = props;
  const { span } = step;
  const share = (ms: number) => `${Math.min(100, (ms / whole) * 100)}%`;
  const noted = Object.entries(span.attributes ?? {});
  const state = span.error ? "failed" : props.slow ? "slowest" : "";
  return (
    <li class={`step ${state}`} data-name={span.name}>
      <button type="button" class="step-row" aria-expanded={props.open} onClick={props.toggle}>
        <span class="step-name" style={{ paddingLeft: `${Math.min(step.depth, 10) * 12}px` }}>
          <span>{span.name}</span>
          {props.slow && <span class="badge warn">{t("traces.slowest")}</span>}
          {span.error && <span class="badge bad">{t("traces.status_failed")}</span>}
        </span>
        <span class="step-service">{span.service}</span>
        <span class="step-track" aria-hidden="true">
          <span class="step-bar" style={{ left: share(step.start), width: `max(2px, ${share(step.ms)})` }} />
        </span>
        <span class="step-time">{time(step.ms)}</span>
      </button>
      {props.open && (
        <dl class="facts step-facts">
          <div>
            <dt>{t("traces.begins")}</dt>
            <dd>{time(step.start)}</dd>
          </div>
          <div>
            <dt>{t("traces.own_time")}</dt>
            <dd>{time(step.own)}</dd>
          </div>
          {span.error && (
            <div>
              <dt>{t("traces.error")}</dt>
              <dd>{span.error}</dd>
            </div>
          )}
          {noted.map(([name, value]) => (
            <div key={name}>
              <dt class="mono">{name}</dt>
              <dd class="mono">{typeof value === "string" ? value : JSON.stringify(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </li>
  );
}

/** One sentence on where the time went. */
export function SlowestStep(props: { steps: Step[] }) {
  const step = slowest(props.steps);
  if (!step) return null;
  const during = props.steps.filter((each) => !each.after);
  const whole = Math.max(...during.map((each) => each.start + each.ms));
  return (
    <p class="slowest-step">
      {t("traces.slowest_step", { step: nameOf(step.span), service: step.span.service, time: time(step.own), whole: time(whole), share: percent(whole ? step.own / whole : 0) })}
    </p>
  );
}

/** Where the time went by what the turn's own record holds, once the steps are forgotten. */
function SlowestCall(props: { recorded: Schemas["AnswerTrace"] | null | undefined; seconds: number }) {
  const tools = (props.recorded?.tool_calls ?? []).map((call) => ({ name: call.name, ms: call.ms }));
  const models = (props.recorded?.model_calls ?? []).map((call) => ({ name: call.model, ms: call.ms }));
  const [call] = [...tools, ...models].sort((one, other) => other.ms - one.ms);
  if (!call) return null;
  return <p class="slowest-step">{t("traces.slowest_call", { call: call.name, time: time(call.ms), whole: duration(props.seconds) })}</p>;
}

/**
 * @param recorded the record of the turn's answer, for when no service remembers its steps.
 * @param seconds that the whole turn took.
 */
export function Waterfall(props: { trace: Schemas["TurnTrace"]; recorded: Schemas["AnswerTrace"] | null | undefined; seconds: number }) {
  const [{ span, longer = "" }, change] = useParameters();
  const all = steps(props.trace.spans ?? []);
  if (!all.length) {
    return (
      <Card title={t("traces.waterfall")}>
        <SlowestCall recorded={props.recorded} seconds={props.seconds} />
        <Empty title={t("traces.no_spans")}>
          <p>{t("traces.no_spans_hint")}</p>
        </Empty>
      </Card>
    );
  }
  const [during, after] = [all.filter((step) => !step.after), all.filter((step) => step.after)];
  const slow = slowest(all);
  const rows = (of: Step[]) => {
    const whole = Math.max(0.001, ...of.map((step) => step.start + step.ms));
    const seen = of.filter((step) => step.ms >= Number(longer)).slice(0, MOST);
    return (
      <ol class="waterfall">
        {seen.map((step) => {
          const { span_id } = step.span;
          return <Row key={span_id} step={step} whole={whole} slow={step === slow} open={span === span_id} toggle={() => change({ span: span === span_id ? "" : span_id })} />;
        })}
      </ol>
    );
  };
  return (
    <Card
      title={t("traces.waterfall")}
      actions={
        <Select
          label={t("traces.longer")}
          hidden
          value={longer}
          options={[{ value: "", label: t("traces.all_steps") }, ...LONGER.map((ms) => ({ value: ms, label: t("traces.at_least", { value: time(Number(ms)) }) }))]}
          onChange={(event) => change({ longer: event.currentTarget.value })}
        />
      }
    >
      <SlowestStep steps={all} />
      {props.trace.missing?.length ? <p class="note">{t("traces.missing", { services: props.trace.missing.join(", ") })}</p> : null}
      {rows(during)}
      {all.length > MOST && <p class="note">{t("traces.first_steps", { count: MOST })}</p>}
      {after.length > 0 && (
        <details>
          <summary>{t("traces.after", { count: after.length })}</summary>
          {rows(after)}
        </details>
      )}
    </Card>
  );
}
