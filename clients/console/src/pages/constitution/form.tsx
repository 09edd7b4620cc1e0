/** The form of a node, made from what the registry declares of its type. */

import { useState } from "preact/hooks";

import { callTool, type Problem } from "../../api/client";
import { useAct } from "../../api/use";
import { t } from "../../text";
import { Button, Select, TextArea, TextField } from "../../ui/controls";
import { ProblemNote } from "../../ui/layout";
import { addressOf, named, type Node, type NodeType } from "./model";

const COMMON = ["title", "summary", "description"];
const LONG = new Set(["summary", "description", "narrative", "statement", "rationale", "reasoning", "content", "pattern", "response"]);
const GUARDRAIL = "constitution.guardrail";
const NUMBERS: Record<string, { min?: number; max?: number; step: string }> = {
  number: { step: "any" },
  share: { step: "any", min: 0, max: 1 },
  hours: { step: "any", min: 0 },
  priority: { step: "1", min: 1, max: 5 },
  roi: { step: "any" },
};

type Filled = Record<string, string>;

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.join("\n");
  if (typeof value === "object") return String((value as { total?: number }).total ?? "");
  return String(value);
}

function valueOf(kind: string | undefined, text: string): unknown {
  if (!text.trim()) return null;
  if (kind === "texts") return text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (kind === "roi") return { total: Number(text) };
  return kind && kind in NUMBERS ? Number(text) : text.trim();
}

function filledOf(type: NodeType, node?: Node): Filled {
  const names = [...COMMON, "status", ...Object.keys(type.properties)];
  return { ...Object.fromEntries(names.map((name) => [name, textOf(node?.[name])])), status: node?.status ?? type.statuses[0] ?? "" };
}

/** Why a rule stopped the write, which rule it was, and the field in which it is named or overridden. */
function Refused(props: { problem: Problem; value: string; change: (value: string) => void }) {
  const { problem } = props;
  const rules = [...problem.message.matchAll(/(?:guardrail|principle) ([A-Za-z0-9][\w.:-]*)/g)].map((found) => found[1] ?? "");
  const known = [...new Set(rules.filter((id) => problem.message.includes(`${id} (`)))];
  const override = problem.field === "override";
  return (
    <div class="refused">
      <div class="problem" role="alert" data-code={problem.code}>
        <div>
          <p class="problem-title">{t(override ? "constitution.blocked" : "constitution.refused")}</p>
          <p>{problem.message}</p>
          {known.map((id) => (
            <p key={id}>
              <a href={addressOf(id)} target="_blank">
                {t("constitution.open_rule", { id })}
              </a>
            </p>
          ))}
        </div>
      </div>
      <TextField
        label={t(override ? "constitution.override" : "constitution.acknowledge")}
        hint={t(override ? "constitution.override_hint" : "constitution.acknowledge_hint")}
        value={props.value}
        autocomplete="off"
        onInput={(event) => props.change(event.currentTarget.value)}
      />
    </div>
  );
}

function Input(props: { name: string; kind: string; value: string; error?: string | undefined; change: (value: string) => void }) {
  const { name, kind } = props;
  const wired = { label: named("field", name), value: props.value, error: props.error };
  if (LONG.has(name) || kind === "texts") {
    const hint = kind === "texts" ? { hint: t("constitution.one_a_line") } : {};
    return <TextArea {...wired} {...hint} rows={3} maxLength={20000} onInput={(event) => props.change(event.currentTarget.value)} />;
  }
  const limits = kind in NUMBERS ? { type: "number", ...NUMBERS[kind] } : { type: "text", maxLength: name === "title" ? 500 : 20000 };
  const hint = kind === "date" ? { hint: t("constitution.date_hint") } : {};
  return <TextField {...wired} {...hint} {...limits} required={name === "title"} onInput={(event) => props.change(event.currentTarget.value)} />;
}

/** A form that creates a node of a type, or changes the one that is given.
 *
 * @param saved told with the node as it is now, and the fields that changed.
 */
export function NodeForm(props: { type: NodeType; node?: Node; saved: (node: Node, changed: string[]) => void; close?: () => void }) {
  const { type, node } = props;
  const [before] = useState(() => filledOf(type, node));
  const [filled, setFilled] = useState(before);
  const [rule, setRule] = useState("");
  const [request] = useState(() => crypto.randomUUID());
  const act = useAct(async () => {
    const kinds = type.properties;
    const changed = Object.keys(filled).filter((name) => filled[name]?.trim() !== before[name]?.trim() || (!node && filled[name]?.trim()));
    const given: Record<string, unknown> = Object.fromEntries(changed.map((name) => [name, valueOf(kinds[name], filled[name] ?? "")]));
    const refusal = act.problem?.code === GUARDRAIL && rule.trim() ? act.problem.field : undefined;
    if (refusal === "override") given.override = rule.trim();
    else if (refusal) given.acknowledge = rule.split(",").map((id) => id.trim()).filter(Boolean);
    const whose = node ? { id: node.id, ...(node.version ? { version: node.version } : {}) } : { requestId: request };
    const done = await callTool<{ node: Node; changed: string[] }>(`${type.type}.${node ? "update" : "create"}.v1`, { ...given, ...whose });
    props.saved(done.node, done.changed);
  });
  const problem = act.problem;
  const input = (name: string, kind = "text") => (
    <Input
      key={name}
      name={name}
      kind={kind}
      value={filled[name] ?? ""}
      error={problem?.field === name ? problem.message : undefined}
      change={(value) => setFilled((now) => ({ ...now, [name]: value }))}
    />
  );
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void act.run();
      }}
    >
      {COMMON.map((name) => input(name))}
      {Object.entries(type.properties).map(([name, kind]) => input(name, kind))}
      <Select
        label={named("field", "status")}
        value={filled.status ?? ""}
        options={type.statuses.map((each) => ({ value: each, label: named("status", each) }))}
        onChange={(event) => {
          const { value } = event.currentTarget;
          setFilled((now) => ({ ...now, status: value }));
        }}
      />
      {problem && (problem.code === GUARDRAIL ? <Refused problem={problem} value={rule} change={setRule} /> : <ProblemNote problem={problem} />)}
      <div class="dialog-actions">
        {props.close && <Button onClick={props.close}>{t("shell.cancel")}</Button>}
        <Button kind="primary" type="submit" busy={act.running}>
          {t("shell.save")}
        </Button>
      </div>
    </form>
  );
}
