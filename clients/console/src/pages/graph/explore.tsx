/** The explorer: a search, a drawing that grows from what was found, paths, and lists of the same nodes and relationships. */

import { useMemo, useRef, useState } from "preact/hooks";
import { Search } from "lucide-preact";

import type { Problem } from "../../api/client";
import { useRead } from "../../api/use";
import { number } from "../../format";
import { t } from "../../text";
import { Button, LinkButton, Select, TextField } from "../../ui/controls";
import { Badge, Card, Empty, Loaded, Loading, ProblemNote } from "../../ui/layout";
import { useParameters, type Parameters } from "../../ui/parameters";
import { Table } from "../../ui/table";
import { Mark, marksOf } from "./marks";
import { type Edge, type Item, joined, type Part, type Source } from "./model";

/** What draws is loaded when there is something to draw. */
const loadCanvas = async () => (await import("./graph-canvas")).default;
/** Nodes whose neighbours are shown at the same time, and rows of a list until more are asked for. */
const OPEN = 30;
const ROWS = 25;

type Change = (changes: Parameters, replace?: boolean) => void;

/** Keys as the address holds them: each escaped, with commas between. */
const listed = (text: string | undefined) => (text ? text.split(",").map(decodeURIComponent) : []);
const written = (keys: string[]) => keys.map(encodeURIComponent).join(",");

function Found(props: { source: Source; query: string; type: string; year: number; shown: string[]; add: (key: string) => void }) {
  const { source } = props;
  const found = useRead((signal) => source.find(props.query, props.type, props.year, signal), [source, props.query, props.type, props.year]);
  return (
    <div aria-live="polite">
      <Loaded of={found} lines={2}>
        {(items) =>
          items.length ? (
            <ul class="hits">
              {items.map((item) => (
                <li key={item.key}>
                  <button type="button" class="hit" disabled={props.shown.includes(item.key)} onClick={() => props.add(item.key)}>
                    <span>{item.title}</span>
                    <span class="note">
                      {source.typeName(item.type)} · {source.groupName(item.group)}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
          ) : (
            <p class="note">{t("graph.nothing_found")}</p>
          )
        }
      </Loaded>
    </div>
  );
}

function Selected(props: { source: Source; item: Item; open: string[]; from: Item | undefined; change: Change }) {
  const { source, item, open, from, change } = props;
  const isOpen = open.includes(item.key);
  return (
    <Card title={item.title} class="selected">
      <div class="row">
        <Badge>{source.typeName(item.type)}</Badge>
        <span class="note">{source.groupName(item.group)}</span>
      </div>
      <div class="row">
        <LinkButton kind="primary" href={source.address(item.key)}>
          {t("graph.open_page")}
        </LinkButton>
        {isOpen ? (
          <Button onClick={() => change({ open: written(open.filter((key) => key !== item.key)) })}>{t("graph.collapse")}</Button>
        ) : (
          <Button disabled={open.length >= OPEN} onClick={() => change({ open: written([...open, item.key]) })}>
            {t("graph.expand")}
          </Button>
        )}
        <Button onClick={() => change({ from: item.key, to: "" })}>{t("graph.path_from")}</Button>
        {from && from.key !== item.key && <Button onClick={() => change({ to: item.key })}>{t("graph.path_to", { title: from.title })}</Button>}
      </div>
    </Card>
  );
}

function Path(props: { source: Source; from: Item | undefined; to: string | undefined; path: Part | undefined | null; problem: Problem | undefined; change: Change; select: (key: string) => void }) {
  const { source, from, path } = props;
  return (
    <Card title={t("graph.path")} actions={<Button kind="quiet" onClick={() => props.change({ from: "", to: "" })}>{t("graph.path_clear")}</Button>}>
      <div aria-live="polite" class="stack tight">
        {props.problem && <ProblemNote problem={props.problem} />}
        {!props.to && <p class="note">{t("graph.path_choose", { title: from?.title ?? "" })}</p>}
        {props.to && path === null && <p>{t("graph.no_path")}</p>}
        {path && (
          <ol class="steps">
            {path.items.map((item, place) => {
              const edge = path.edges[place - 1];
              return (
                <li key={item.key}>
                  {edge && <span class="note">{edge.to === item.key ? t("graph.step_out", { relationship: source.relationName(edge.type) }) : t("graph.step_in", { relationship: source.relationName(edge.type) })}</span>}
                  <button type="button" class="link" onClick={() => props.select(item.key)}>
                    {item.title}
                  </button>
                  <span class="note"> {source.typeName(item.type)}</span>
                </li>
              );
            })}
          </ol>
        )}
      </div>
    </Card>
  );
}

function Lists(props: { source: Source; part: Part; open: string[]; selected: string | undefined; change: Change }) {
  const { source, part, open, change } = props;
  const [most, setMost] = useState(ROWS);
  const [text, setText] = useState("");
  const titles = useMemo(() => new Map(part.items.map((item) => [item.key, item.title])), [part.items]);
  const degrees = useMemo(() => {
    const found = new Map<string, number>();
    for (const { from, to } of part.edges) for (const key of [from, to]) found.set(key, (found.get(key) ?? 0) + 1);
    return found;
  }, [part.edges]);
  const fits = (title: string | undefined) => (title ?? "").toLowerCase().includes(text.trim().toLowerCase());
  const items = part.items.filter((item) => fits(item.title)).sort((one, other) => (degrees.get(other.key) ?? 0) - (degrees.get(one.key) ?? 0));
  const edges = part.edges.filter((edge) => fits(titles.get(edge.from)) || fits(titles.get(edge.to)));
  const name = (key: string) => (
    <button type="button" class="link" aria-pressed={props.selected === key} onClick={() => change({ sel: key })}>
      {titles.get(key)}
    </button>
  );
  const more = (length: number) => (length > most ? () => setMost(most + 4 * ROWS) : undefined);
  return (
    <>
      <div class="filters">
        <TextField label={t("graph.filter_lists")} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </div>
      <Card title={t("graph.nodes", { count: items.length })} class="node-list">
        <Table
          label={t("graph.nodes", { count: items.length })}
          rows={items.slice(0, most)}
          id={(item) => item.key}
          more={more(items.length)}
          columns={[
            { id: "title", label: t("graph.title"), show: (item) => name(item.key) },
            { id: "type", label: t("graph.type"), show: (item) => source.typeName(item.type) },
            { id: "group", label: t("graph.group"), show: (item) => <span class="unbroken">{source.groupName(item.group)}</span> },
            { id: "degree", label: t("graph.degree"), number: true, show: (item) => number(degrees.get(item.key) ?? 0) },
            {
              id: "act",
              label: t("shell.actions"),
              show: (item) =>
                open.includes(item.key) ? null : (
                  <Button kind="quiet" disabled={open.length >= OPEN} aria-label={t("graph.expand_of", { title: item.title })} onClick={() => change({ open: written([...open, item.key]), sel: item.key })}>
                    {t("graph.expand")}
                  </Button>
                ),
            },
          ]}
        />
      </Card>
      <Card title={t("graph.relationships", { count: edges.length })} class="edge-list">
        <Table
          label={t("graph.relationships", { count: edges.length })}
          rows={edges.slice(0, most)}
          id={(edge: Edge) => edge.id}
          more={more(edges.length)}
          columns={[
            { id: "from", label: t("graph.from"), show: (edge) => name(edge.from) },
            { id: "relation", label: t("graph.relationship"), show: (edge) => source.relationName(edge.type) },
            { id: "to", label: t("graph.to"), show: (edge) => name(edge.to) },
          ]}
        />
      </Card>
    </>
  );
}

export function Explore(props: { of: "twin" | "constitution"; source: Source }) {
  const { source } = props;
  const [parameters, change] = useParameters();
  const { q = "", type = "", from, to, sel, all, view } = parameters;
  const open = listed(parameters.open);
  const year = Number(parameters.year) || (source.years.at(-1) ?? 0);
  const [text, setText] = useState(q);
  const known = useRef(new Map<string, Part>());
  const canvas = useRead(loadCanvas, []);
  const whole = useRead(async (signal) => (all ? source.whole(type, year, signal) : undefined), [source, all, all ? type : "", all ? year : ""]);
  const path = useRead(async (signal) => (from && to ? ((await source.path(from, to, signal)) ?? null) : undefined), [source, from, to]);
  const start = useRead(async (signal) => (from ? (await source.around(from, signal)).items.find((item) => item.key === from) : undefined), [source, from]);
  const around = useRead(
    (signal) =>
      Promise.all(
        open.map(async (key) => {
          const found = known.current.get(key) ?? (await source.around(key, signal));
          known.current.set(key, found);
          return found;
        }),
      ),
    [source, parameters.open],
  );
  const part = useMemo(() => {
    const found = joined([...(whole.data ? [whole.data] : []), ...(around.data ?? []), ...(path.data ? [path.data] : [])]);
    if (!type || all) return found;
    const kept = new Set([...open, ...(path.data?.items ?? []).map((item) => item.key)]);
    const items = found.items.filter((item) => item.type === type || kept.has(item.key));
    const keys = new Set(items.map((item) => item.key));
    return { ...found, items, edges: found.edges.filter((edge) => keys.has(edge.from) && keys.has(edge.to)) };
  }, [whole.data, around.data, path.data, type, all]);
  const strong = useMemo(() => new Set([...(path.data?.items ?? []).map((item) => item.key), ...(path.data?.edges ?? []).map((edge) => edge.id)]), [path.data]);
  const selected = part.items.find((item) => item.key === sel);
  const marks = marksOf(part.items);
  const loading = whole.loading || around.loading || path.loading;
  const problem = whole.problem ?? around.problem ?? (part.items.length ? undefined : (path.problem ?? start.problem));
  // Columns need room for their titles.
  const layout = view ?? (props.of === "constitution" && window.innerWidth > 900 ? "layers" : "free");
  const drawn = { items: part.items, edges: part.edges, groups: source.groups, groupName: source.groupName, selected: selected?.key, strong, relationName: source.relationName };
  return (
    <div class="explorer">
      <Card class="seeker">
        <form
          class="filters"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            change({ q: text.trim() }, false);
          }}
        >
          <TextField label={t(props.of === "twin" ? "graph.search_twin" : "graph.search_constitution")} type="search" maxLength={300} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <Select label={t("graph.type")} value={type} options={[{ value: "", label: t("shell.all") }, ...source.types.map((each) => ({ value: each, label: source.typeName(each) }))]} onChange={(event) => change({ type: event.currentTarget.value })} />
          {source.years.length > 0 && (
            <Select label={t("graph.year")} value={String(year)} options={source.years.map((each) => ({ value: String(each), label: String(each) }))} onChange={(event) => change({ year: event.currentTarget.value })} />
          )}
          <Button kind="primary" type="submit" icon={<Search aria-hidden="true" />}>
            {t("shell.search")}
          </Button>
        </form>
        {q && <Found key={`${q} ${type} ${year}`} source={source} query={q} type={type} year={year} shown={open} add={(key) => change({ open: written([...open, key].slice(-OPEN)), sel: key })} />}
      </Card>
      {problem && <ProblemNote problem={problem} />}
      {part.items.length ? (
        <>
          <div class="spread">
            <p class="note" role="status">
              {loading ? t("shell.loading") : t("graph.figures", { nodes: part.items.length, relationships: part.edges.length })} {part.cut && t("graph.cut")}
            </p>
            <div class="row">
              <Button aria-pressed={layout === "free"} onClick={() => change({ view: "free" })}>{t("graph.view_free")}</Button>
              <Button aria-pressed={layout === "layers"} onClick={() => change({ view: "layers" })}>{t("graph.view_layers")}</Button>
              <Button kind="quiet" onClick={() => change({ open: "", all: "", from: "", to: "", sel: "" })}>{t("graph.clear")}</Button>
            </div>
          </div>
          <div class={layout === "layers" ? "stage broad" : "stage"}>
            <div class="stage-drawing">
              <Loaded of={canvas}>
                {(GraphCanvas) => (
                  <GraphCanvas
                    {...drawn}
                    layout={layout === "layers" ? "layers" : "free"}
                    label={t("graph.drawing", { nodes: part.items.length, relationships: part.edges.length })}
                    select={(key) => change({ sel: key })}
                    open={(key) => !open.includes(key) && change({ open: written([...open, key].slice(-OPEN)), sel: key })}
                  />
                )}
              </Loaded>
              <ul class="legend" aria-label={t("graph.legend")}>
                {[...marks].map(([name, place]) => (
                  <li key={name}>
                    <Mark place={place} /> {source.typeName(name)}
                  </li>
                ))}
              </ul>
              <p class="note">{t("graph.hint")}</p>
            </div>
            <div class="stage-side stack">
              {selected ? <Selected source={source} item={selected} open={open} from={start.data} change={change} /> : <Card title={t("graph.none_selected")}><p class="note">{t("graph.none_selected_hint")}</p></Card>}
              {from && <Path source={source} from={start.data} to={to} path={path.data} problem={path.problem} change={change} select={(key) => change({ sel: key })} />}
            </div>
          </div>
          <Lists source={source} part={part} open={open} selected={selected?.key} change={change} />
        </>
      ) : loading ? (
        <Loading />
      ) : (
        <Card>
          <Empty title={t("graph.empty")}>
            <p>{t("graph.empty_hint")}</p>
            <Button onClick={() => change({ all: "1" })}>{source.years.length ? t("graph.all_of_year", { year: String(year) }) : t("graph.all")}</Button>
          </Empty>
        </Card>
      )}
    </div>
  );
}
