/** Counts and sums over nodes of one type of the twin, by a property and a year; what is not published is counted apart. */

import { callTool } from "../../api/client";
import { useRead } from "../../api/use";
import { number } from "../../format";
import { t, word } from "../../text";
import { Select } from "../../ui/controls";
import { Card, Empty, Loaded } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { called, twin, type Vocabulary } from "./model";

const LEVELS = ["L1", "L2", "L3"];
const MEASURES = ["count", "sum", "avg", "median", "min", "max"];
const MOST = 200;

interface Row {
  group: string | number | null;
  value: number | null;
  known?: number;
  unknown?: number;
}

export function Survey(props: { vocabulary: Vocabulary }) {
  const { ontology, years } = props.vocabulary;
  const source = twin(props.vocabulary);
  const [parameters, change] = useParameters();
  const type = ontology.types.find((each) => each.name === (parameters.type ?? "EntityProject")) ?? ontology.types[0];
  const properties = type?.properties ?? [];
  const numbers = properties.filter((each) => each.kind === "number" || each.kind === "integer" || each.kind === "float");
  const by = properties.some((each) => each.name === parameters.by) ? (parameters.by as string) : "year";
  const of = numbers.find((each) => each.name === parameters.of) ?? numbers[0];
  const measure = of && MEASURES.includes(parameters.measure ?? "") ? (parameters.measure as string) : "count";
  const { year = "", level = "L3" } = parameters;
  const found = useRead(
    (signal) => {
      const given = {
        type: type?.name,
        measure,
        group_by: [{ property: by }],
        limit: MOST,
        order: by === "year" ? "group" : "-value",
        ...(LEVELS.includes(level) ? { level } : {}),
        ...(year ? { years: [Number(year)] } : {}),
        ...(measure === "count" ? {} : { of: of?.name }),
      };
      return callTool<{ rows: Row[]; total: number }>("survey_twin", given, signal);
    },
    [type?.name, measure, by, of?.name, year, level],
  );
  const unit = measure === "count" ? "" : (of?.unit ?? "");
  const pick = (label: string, name: string, value: string, options: [string, string][]) => (
    <Select label={label} value={value} options={options.map(([each, text]) => ({ value: each, label: text }))} onChange={(event) => change({ [name]: event.currentTarget.value })} />
  );
  return (
    <Card title={t("graph.survey")}>
      <p class="note">{t("graph.survey_lead")}</p>
      <div class="filters">
        {pick(t("graph.type"), "type", type?.name ?? "", ontology.types.map((each) => [each.name, source.typeName(each.name)]))}
        {pick(t("graph.group"), "level", level, [["all", t("shell.all")], ...LEVELS.map((each): [string, string] => [each, source.groupName(each)])])}
        {pick(t("graph.year"), "year", year, [["", t("shell.all")], ...years.map((each): [string, string] => [String(each), String(each)])])}
        {pick(t("graph.by"), "by", by, [["year", t("graph.year")], ...properties.map((each): [string, string] => [each.name, called(each.words, each.name)])])}
        {pick(t("graph.measure"), "measure", measure, (of ? MEASURES : ["count"]).map((each) => [each, word("graph", `measure_${each}`)]))}
        {measure !== "count" && of && pick(t("graph.of"), "of", of.name, numbers.map((each) => [each.name, called(each.words, each.name)]))}
      </div>
      <Loaded of={found}>
        {({ rows, total }) =>
          rows.length ? (
            <>
              <p role="status">{t("graph.surveyed", { total })}</p>
              <Table
                label={t("graph.survey")}
                rows={rows}
                id={(row) => String(row.group)}
                columns={[
                  { id: "group", label: by === "year" ? t("graph.year") : called(properties.find((each) => each.name === by)?.words, by), by: (row) => row.group ?? "", show: (row) => String(row.group ?? t("graph.unknown")) },
                  { id: "value", label: word("graph", `measure_${measure}`), number: true, by: (row) => row.value ?? -Infinity, show: (row) => (row.value === null ? t("graph.unknown") : `${number(row.value, 2)} ${unit}`) },
                  { id: "unknown", label: t("graph.unpublished"), number: true, by: (row) => row.unknown ?? 0, show: (row) => number(row.unknown ?? 0) },
                ]}
              />
            </>
          ) : (
            <Empty title={t("graph.nothing_surveyed")}>
              <p>{t("graph.no_gaps_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}
