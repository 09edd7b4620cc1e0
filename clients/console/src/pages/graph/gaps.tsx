/** What is missing in the twin: nodes of a type are held against a year, a relationship or a chain. */

import { callTool } from "../../api/client";
import { usePages } from "../../api/use";
import { t, word } from "../../text";
import { Select } from "../../ui/controls";
import { Badge, Card, Empty, Loaded } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { called, keyOf, type Reference, twin, twinAddress, type Vocabulary } from "./model";

export interface Gap {
  question: string;
  type: string;
  missing_step: string;
  because: string;
}

interface Question {
  id: string;
  node: Reference;
  level: string;
  relationship?: string;
  chain?: string;
}

const PAGE = 200;
const LEVELS = ["L1", "L2", "L3"];
const TONES: Record<string, "warn" | "bad" | "info"> = { TemporalGap: "info", LevelMismatch: "warn", ChainBreak: "bad", DirectRelationshipMissing: "bad" };

export function GapType(props: { type: string }) {
  return <Badge tone={TONES[props.type] ?? "plain"}>{word("graph", `gap_${props.type}`)}</Badge>;
}

export function readGaps(questions: Question[], signal: AbortSignal): Promise<{ gaps: Gap[] }> {
  return callTool("diagnose_gaps", { questions }, signal);
}

interface Found extends Gap {
  name: string;
  node: Reference;
}

/** The gaps of one page of nodes, with how many were asked about. */
async function diagnose(type: string, year: number, level: string, asked: string, after: string | undefined, signal: AbortSignal): Promise<{ items: Found[]; next: string | null }> {
  // Whether a thing is there in a year is asked of what is there in any.
  const years = asked ? { years: [year] } : {};
  const given = { type, level, ...years, measure: "list", limit: PAGE, ...(after ? { after } : {}) };
  const { rows, next } = await callTool<{ rows: { id: string; name: string }[]; next: string | null }>("survey_twin", given, signal);
  const names = new Map(rows.map((row) => [row.id, row.name]));
  const [kind, name = ""] = asked.split(":");
  const about = kind === "chain" ? { chain: name } : kind === "relationship" ? { relationship: name } : {};
  const nodes = [...names.keys()].map((id): Reference => ({ type, id, year }));
  if (!nodes.length) return { items: [], next: null };
  const { gaps } = await readGaps(nodes.map((node, place) => ({ id: String(place), node, level, ...about })), signal);
  return { items: gaps.map((gap) => ({ ...gap, node: nodes[Number(gap.question)] as Reference, name: names.get(nodes[Number(gap.question)]?.id ?? "") ?? "" })), next };
}

export function Gaps(props: { vocabulary: Vocabulary }) {
  const { ontology, years } = props.vocabulary;
  const source = twin(props.vocabulary);
  const [parameters, change] = useParameters();
  const type = ontology.types.find((each) => each.name === parameters.type)?.name ?? "EntityProject";
  const known = ontology.types.some((each) => each.name === type) ? type : (ontology.types[0]?.name ?? "");
  const year = Number(parameters.year) || (years.at(-1) ?? 0);
  const level = LEVELS.includes(parameters.level ?? "") ? (parameters.level as string) : "L3";
  const asked = parameters.ask ?? "";
  const chains = ontology.chains.filter(({ steps }) => steps.some((types, place) => place % 2 === 0 && place < steps.length - 1 && types.includes(known)));
  const found = usePages((cursor, signal) => diagnose(known, year, level, asked, cursor, signal).then(({ items, next }) => ({ items, next })), [known, year, level, asked]);
  const rows = [...new Map((found.data ?? []).map((gap) => [keyOf(gap.node), gap])).values()];
  return (
    <Card title={t("graph.gaps_title")}>
      <p class="note">{t("graph.gaps_lead")}</p>
      <div class="filters">
        <Select label={t("graph.type")} value={known} options={ontology.types.map((each) => ({ value: each.name, label: source.typeName(each.name) }))} onChange={(event) => change({ type: event.currentTarget.value, ask: "" })} />
        <Select label={t("graph.group")} value={level} options={LEVELS.map((each) => ({ value: each, label: source.groupName(each) }))} onChange={(event) => change({ level: event.currentTarget.value })} />
        <Select label={t("graph.year")} value={String(year)} options={years.map((each) => ({ value: String(each), label: String(each) }))} onChange={(event) => change({ year: event.currentTarget.value })} />
        <Select
          label={t("graph.question")}
          value={asked}
          options={[
            { value: "", label: t("graph.ask_year") },
            ...chains.map((chain) => ({ value: `chain:${chain.name}`, label: t("graph.ask_chain", { chain: called(chain.words, chain.name) }) })),
            ...ontology.relationships.filter((each) => each.sources.includes(known)).map((each) => ({ value: `relationship:${each.name}`, label: t("graph.ask_relationship", { relationship: source.relationName(each.name) }) })),
          ]}
          onChange={(event) => change({ ask: event.currentTarget.value })}
        />
      </div>
      <Loaded of={found}>
        {() =>
          rows.length ? (
            <>
              <p role="status">{t("graph.gaps_found", { count: rows.length })}</p>
              <Table
                label={t("graph.gaps_title")}
                rows={rows}
                id={(gap) => keyOf(gap.node)}
                more={found.more}
                columns={[
                  { id: "node", label: t("graph.title"), by: (gap) => gap.name.toLowerCase(), show: (gap) => <a href={twinAddress(keyOf(gap.node))}>{gap.name}</a> },
                  { id: "gap", label: t("graph.gap"), by: (gap) => gap.type, show: (gap) => <span><GapType type={gap.type} /></span> },
                  { id: "missing", label: t("graph.missing_step"), by: (gap) => gap.missing_step, show: (gap) => <span class="mono">{gap.missing_step}</span> },
                  { id: "because", label: t("graph.because"), show: (gap) => gap.because },
                ]}
              />
            </>
          ) : (
            <Empty title={t("graph.no_gaps")}>
              <p>{t("graph.no_gaps_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}
