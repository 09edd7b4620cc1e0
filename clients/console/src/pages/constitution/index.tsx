/** The constitution: its layers with their nodes, a search by meaning, the page of a node, and forms for new ones. */

import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { Plus, Search } from "lucide-preact";

import { callTool } from "../../api/client";
import { usePages, useRead } from "../../api/use";
import { ago } from "../../format";
import { BASE } from "../../pages";
import { useMe } from "../../session";
import { t } from "../../text";
import { Button, LinkButton, Select, TextField } from "../../ui/controls";
import { useToast } from "../../ui/dialog";
import { Badge, Card, Empty, Loaded, Page, Tabs, Time } from "../../ui/layout";
import { useParameters } from "../../ui/parameters";
import { Table, type Column } from "../../ui/table";
import { NodeForm } from "./form";
import { addressOf, HOME, type Inventory, type Layer, LAYERS, mayWrite, named, type Node, readInventory, search, STATUSES } from "./model";
import { NodePage, toneOf } from "./node";
import { Decisions, Workload } from "./reports";

const PAGE = 50;

function columns(withLayer: boolean): Column<Node>[] {
  return [
    {
      id: "title",
      label: named("field", "title"),
      by: (node) => node.title.toLowerCase(),
      show: (node) => (
        <div>
          <a href={addressOf(node.id)}>{node.title}</a>
          {node.summary && <div class="note clamped">{node.summary}</div>}
        </div>
      ),
    },
    ...(withLayer ? [{ id: "layer", label: t("constitution.layer"), by: (node: Node) => LAYERS.indexOf(node.layer), show: (node: Node) => <span class="unbroken">{named("layer", node.layer)}</span> }] : []),
    { id: "type", label: t("constitution.type"), by: (node) => named("type", node.type), show: (node) => <span class="unbroken">{named("type", node.type)}</span> },
    { id: "status", label: named("field", "status"), by: (node) => node.status ?? "", show: (node) => node.status && <span><Badge tone={toneOf(node.status)}>{named("status", node.status)}</Badge></span> },
    { id: "changed", label: t("constitution.changed"), by: (node) => node.updatedAt ?? "", show: (node) => node.updatedAt && <Time at={node.updatedAt} show={ago} /> },
  ];
}

function SearchField(props: { query: string; seek: (query: string) => void }) {
  const [text, setText] = useState(props.query);
  return (
    <form
      class="seek"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        props.seek(text.trim());
      }}
    >
      <TextField label={t("constitution.search")} type="search" maxLength={500} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <Button type="submit" icon={<Search aria-hidden="true" />}>
        {t("shell.search")}
      </Button>
    </form>
  );
}

function Found(props: { query: string }) {
  const found = useRead((signal) => search(props.query, signal), [props.query]);
  return (
    <Card title={t("constitution.found", { query: props.query })}>
      <Loaded of={found}>
        {(nodes) =>
          nodes.length ? (
            <Table label={t("constitution.found", { query: props.query })} columns={columns(true)} rows={nodes} id={(node) => node.id} />
          ) : (
            <Empty title={t("constitution.nothing_found")}>
              <p>{t("constitution.nothing_found_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

function LayerCard(props: { layer: Layer; inventory: Inventory | undefined }) {
  const { layer } = props;
  const me = useMe();
  const [{ status = "active", type = "" }, change] = useParameters();
  const types = (props.inventory?.types ?? []).filter((each) => each.layer === layer);
  const nodes = usePages(
    async (cursor, signal) => {
      const given = { status, limit: PAGE, ...(type ? { types: [type] } : {}), ...(cursor ? { cursor } : {}) };
      const page = await callTool<{ items: Node[]; nextCursor: string | null }>(`${layer}.list.v1`, given, signal);
      return { items: page.items, next: page.nextCursor };
    },
    [layer, status, type],
  );
  return (
    <Card
      title={named("layer", layer)}
      actions={
        mayWrite(me, layer) &&
        types[0] && (
          <LinkButton href={`${HOME}/new?type=${type || types[0].type}`} icon={<Plus aria-hidden="true" />}>
            {t("constitution.new")}
          </LinkButton>
        )
      }
    >
      <p class="note">{t(`constitution.about_${layer}`)}</p>
      <div class="filters">
        <Select
          label={t("constitution.type")}
          value={type}
          options={[{ value: "", label: t("shell.all") }, ...types.map((each) => ({ value: each.type, label: `${named("type", each.type)} (${each.count})` }))]}
          onChange={(event) => change({ type: event.currentTarget.value })}
        />
        <Select
          label={named("field", "status")}
          value={status}
          options={STATUSES.map((each) => ({ value: each, label: named("status", each) }))}
          onChange={(event) => change({ status: event.currentTarget.value })}
        />
      </div>
      <Loaded of={nodes}>
        {(rows) =>
          rows.length ? (
            <Table label={named("layer", layer)} columns={columns(false)} rows={rows} id={(node) => node.id} more={nodes.more} />
          ) : (
            <Empty title={t("constitution.empty")}>
              <p>{t("constitution.empty_hint")}</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

function New() {
  const { route } = useLocation();
  const toast = useToast();
  const [{ type = "" }, change] = useParameters();
  const inventory = useRead(readInventory, []);
  return (
    <Page title={t("constitution.new_of", { type: named("type", type) })} lead={t("constitution.new_lead")}>
      <Loaded of={inventory}>
        {({ types }) => {
          const found = types.find((each) => each.type === type);
          const siblings = types.filter((each) => each.layer === (found?.layer ?? "foundation"));
          return (
            <Card>
              <Select
                label={t("constitution.type")}
                value={type}
                options={siblings.map((each) => ({ value: each.type, label: named("type", each.type) }))}
                onChange={(event) => change({ type: event.currentTarget.value })}
              />
              {found && (
                <NodeForm
                  key={type}
                  type={found}
                  close={() => route(`${HOME}/${found.layer}`)}
                  saved={(node) => {
                    toast(t("constitution.created"));
                    route(addressOf(node.id));
                  }}
                />
              )}
            </Card>
          );
        }}
      </Loaded>
    </Page>
  );
}

function Browse(props: { layer: Layer }) {
  const inventory = useRead(readInventory, []);
  const { route } = useLocation();
  const [{ q = "" }] = useParameters();
  const count = (layer: Layer) => (inventory.data?.types ?? []).reduce((sum, each) => sum + (each.layer === layer ? each.count : 0), 0);
  return (
    <Page
      title={t("shell.constitution")}
      lead={t("constitution.lead")}
      wide
      actions={
        <>
          <LinkButton href={`${HOME}/decisions`}>{t("constitution.decisions")}</LinkButton>
          <LinkButton href={`${HOME}/workload`}>{t("constitution.workload")}</LinkButton>
          <LinkButton href={`${BASE}/graph/constitution?all=1`}>{t("constitution.draw")}</LinkButton>
        </>
      }
    >
      <SearchField key={q} query={q} seek={(query) => route(query ? `${HOME}?q=${encodeURIComponent(query)}` : HOME)} />
      <Tabs label={t("constitution.layers")} tabs={LAYERS.map((layer) => ({ href: `${HOME}/${layer}`, label: named("layer", layer), count: count(layer) }))} />
      {q ? <Found query={q} /> : <LayerCard key={props.layer} layer={props.layer} inventory={inventory.data} />}
    </Page>
  );
}

export default function Constitution() {
  const { path, query, route } = useLocation();
  const [part = "", id] = path.slice(HOME.length + 1).split("/");
  const bare = !part && !query.q;
  useEffect(() => {
    if (bare) route(`${HOME}/${LAYERS[0]}`, true);
  }, [bare]);
  if (part === "nodes" && id) return <NodePage key={id} id={decodeURIComponent(id)} />;
  if (part === "new") return <New />;
  if (part === "decisions") return <Decisions />;
  if (part === "workload") return <Workload />;
  return <Browse layer={LAYERS.find((layer) => layer === part) ?? LAYERS[0]} />;
}
