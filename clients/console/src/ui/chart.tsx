/** Charts of the closed set, drawn from rows; the same rows stand below as a table. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { Schemas } from "../api/client";
import { t } from "../text";
import type { Option } from "./chart-library";
import { Markdown } from "./markdown";

type Visualization = Schemas["Visualization"];
type Row = Record<string, unknown>;

/** Rows of a table at most; it says how many there are. */
const MOST = 200;

function field(config: Row, key: string, rows: Row[]): string {
  const name = config[key];
  if (typeof name !== "string" || !rows.some((row) => name in row)) throw new Error(key);
  return name;
}

function figure(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function label(value: unknown): string {
  return value === null || value === undefined || value === "" ? t("chat.unknown") : String(value);
}

/** What the library draws for a visualization; throws where a field is not named or not there. */
export function option(shown: Visualization, colours: string[], ink: string, line: string): Option {
  const rows = Array.isArray(shown.data) ? (shown.data as Row[]).slice(0, MOST) : [];
  const config = (shown.config ?? {}) as Row;
  const text = { color: ink };
  const axis = { axisLabel: { color: ink, hideOverlap: true }, axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line } } };
  const base = {
    color: colours,
    textStyle: text,
    tooltip: { trigger: "item", confine: true, renderMode: "richText" },
    grid: { left: 12, right: 16, top: 32, bottom: 12, containLabel: true },
    animation: false,
  };
  const category = (name: string) => ({ type: "category", data: rows.map((row) => label(row[name])), ...axis });
  const values = (name: string, more: object = {}) => ({ type: "value", name: name.replaceAll("_", " "), nameTextStyle: text, ...axis, ...more });
  const series = (type: string, name: string, more: object = {}) => ({ type, name, data: rows.map((row) => figure(row[name])), ...more });
  switch (shown.type) {
    case "column":
    case "line": {
      const [x, y] = [field(config, "xAxis", rows), field(config, "yAxis", rows)];
      const type = shown.type === "column" ? "bar" : "line";
      return { ...base, xAxis: category(x), yAxis: values(y), series: [series(type, y, { barMaxWidth: 48 })] };
    }
    case "combo": {
      const [x, bars, points] = [field(config, "xAxis", rows), field(config, "barField", rows), field(config, "lineField", rows)];
      return {
        ...base,
        legend: { textStyle: text },
        xAxis: category(x),
        yAxis: [values(bars), values(points, { splitLine: { show: false } })],
        series: [series("bar", bars, { barMaxWidth: 48 }), series("line", points, { yAxisIndex: 1 })],
      };
    }
    case "pie": {
      const [name, value] = [field(config, "labelField", rows), field(config, "valueField", rows)];
      const data = rows.map((row) => ({ name: label(row[name]), value: figure(row[value]) }));
      if (data.some((one) => (one.value ?? 0) < 0)) throw new Error(value);
      return { ...base, series: [{ type: "pie", radius: ["35%", "68%"], label: text, data }] };
    }
    case "radar": {
      const names = (Array.isArray(config["dimensions"]) ? config["dimensions"] : []).filter((one): one is string => typeof one === "string");
      if (names.length < 2) throw new Error("dimensions");
      const most = (name: string) => Math.max(1, ...rows.map((row) => figure(row[name]) ?? 0));
      const named = Object.keys(rows[0] ?? {}).find((one) => !names.includes(one));
      return {
        ...base,
        legend: { textStyle: text },
        radar: { indicator: names.map((name) => ({ name, max: most(name) })), axisName: text, splitLine: { lineStyle: { color: line } } },
        series: [{ type: "radar", data: rows.slice(0, 8).map((row) => ({ name: named ? label(row[named]) : "", value: names.map((name) => figure(row[name]) ?? 0) })) }],
      };
    }
    case "scatter":
    case "bubble": {
      const [x, y] = [field(config, "xAxis", rows), field(config, "yAxis", rows)];
      const size = shown.type === "bubble" ? field(config, "sizeMetric", rows) : undefined;
      const most = size ? Math.max(1, ...rows.map((row) => figure(row[size]) ?? 0)) : 1;
      const data = rows
        .filter((row) => figure(row[x]) !== null && figure(row[y]) !== null && (!size || figure(row[size]) !== null))
        .map((row) => ({ value: [figure(row[x]), figure(row[y])], symbolSize: size ? 8 + 36 * Math.sqrt((figure(row[size]) ?? 0) / most) : 10 }));
      return { ...base, xAxis: values(x, { nameLocation: "middle", nameGap: 28 }), yAxis: values(y), grid: { ...base.grid, bottom: 32 }, series: [{ type: "scatter", data }] };
    }
    default:
      throw new Error(shown.type);
  }
}

/** A table of rows; what a row lacks is a dash and never zero. */
export function Rows(props: { title: string; rows: Row[]; columns?: unknown }) {
  const shown = props.rows.slice(0, MOST);
  const given = Array.isArray(props.columns) ? props.columns.filter((one): one is string => typeof one === "string") : [];
  const fields = given.length ? given : [...new Set(shown.flatMap((row) => Object.keys(row)))];
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={props.title}>
      <table class="table">
        <thead>
          <tr>
            {fields.map((name) => (
              <th key={name} scope="col" class={shown.some((row) => typeof row[name] === "number") ? "number" : undefined}>
                {name.replaceAll("_", " ")}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row, at) => (
            <tr key={at}>
              {fields.map((name) => (
                <td key={name} data-label={name.replaceAll("_", " ")} class={typeof row[name] === "number" ? "number" : undefined}>
                  {cell(row[name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {props.rows.length > MOST && <p class="note">{t("chat.first_rows", { shown: MOST, all: props.rows.length })}</p>}
    </div>
  );
}

function cell(value: unknown): string {
  if (value === null || value === undefined || value === "") return "—";
  if (typeof value === "boolean") return t(value ? "shell.yes" : "shell.no");
  // Below ten thousand a whole number may be a year.
  if (typeof value === "number") return Number.isInteger(value) && Math.abs(value) < 10_000 ? String(value) : value.toLocaleString(document.documentElement.lang, { maximumFractionDigits: 2 });
  if (Array.isArray(value)) return value.map(cell).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function colourOf(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export function Chart(props: { shown: Visualization }) {
  const box = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let ended = false;
    let clear = () => {};
    const draw = async () => {
      const { create } = await import("./chart-library");
      if (ended || !box.current) return;
      clear();
      const colours = Array.from({ length: 8 }, (_, at) => colourOf(`--c${at + 1}`));
      try {
        clear = create(box.current, option(props.shown, colours, colourOf("--ink-soft"), colourOf("--line")));
      } catch {
        setFailed(true);
      }
    };
    void draw();
    const again = () => void draw();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const theme = new MutationObserver(again);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    dark.addEventListener("change", again);
    return () => {
      ended = true;
      clear();
      theme.disconnect();
      dark.removeEventListener("change", again);
    };
  }, [props.shown]);
  const rows = Array.isArray(props.shown.data) ? (props.shown.data as Row[]) : [];
  return (
    <figure class="chart" data-type={props.shown.type}>
      <figcaption>{props.shown.title}</figcaption>
      {failed ? <p class="note">{t("chat.not_drawn")}</p> : <div class="drawing" ref={box} role="img" aria-label={props.shown.title} />}
      <details open={failed}>
        <summary>{t("chat.figures")}</summary>
        <Rows title={props.shown.title} rows={rows} />
      </details>
    </figure>
  );
}

/** A visualization as its type wants it: drawn, as a table, or as the text that it is. */
export function Shown(props: { of: Visualization }) {
  const { type, title, data, config } = props.of;
  if (type === "html") return <Markdown html text={typeof data === "string" ? data : ""} />;
  if (type !== "table") return <Chart shown={props.of} />;
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <Rows title={title} rows={Array.isArray(data) ? (data as Row[]) : []} columns={config?.["columns"]} />
    </figure>
  );
}
