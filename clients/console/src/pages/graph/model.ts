/** What the drawing and its lists show, from either graph: the twin, or the constitution. */

import { callTool } from "../../api/client";
import { BASE } from "../../pages";
import { language, t, word } from "../../text";

export const HOME = `${BASE}/graph`;
/** Nodes of one drawing at most. */
export const MOST = 5_000;

export interface Item {
  key: string;
  type: string;
  title: string;
  /** The layer, or the level of the twin: a column of the drawing by layers. */
  group: string;
}

export interface Edge {
  id: string;
  type: string;
  from: string;
  to: string;
}

export interface Part {
  items: Item[];
  edges: Edge[];
  /** Whether there is more than was read. */
  cut: boolean;
}

export interface Source {
  groups: readonly string[];
  types: string[];
  years: number[];
  typeName: (type: string) => string;
  groupName: (group: string) => string;
  relationName: (type: string) => string;
  address: (key: string) => string;
  find: (text: string, type: string, year: number, signal: AbortSignal) => Promise<Item[]>;
  /** A node and what is next to it. */
  around: (key: string, signal: AbortSignal) => Promise<Part>;
  /** All there is, of a type or of a year. */
  whole: (type: string, year: number, signal: AbortSignal) => Promise<Part>;
  /** The nodes and relationships of a shortest path, in its order; absent where none joins the two. */
  path: (from: string, to: string, signal: AbortSignal) => Promise<Part | undefined>;
}

/** Puts parts together; what stands in several is there once. */
export function joined(parts: Part[]): Part {
  const items = new Map<string, Item>();
  const edges = new Map<string, Edge>();
  for (const part of parts) {
    for (const item of part.items) items.set(item.key, item);
    for (const edge of part.edges) edges.set(edge.id, edge);
  }
  const inside = [...edges.values()].filter((edge) => items.has(edge.from) && items.has(edge.to));
  return { items: [...items.values()], edges: inside, cut: parts.some((part) => part.cut) };
}

const LAYERS = ["foundation", "vision", "strategy", "tactics", "execution", "track", "mind"];

interface Node {
  id: string;
  type: string;
  layer: string;
  title: string;
}

interface Relationship {
  id: string;
  type: string;
  fromId: string;
  toId: string;
}

interface Subgraph {
  nodes: Node[];
  relationships: Relationship[];
  truncated: boolean;
}

/** The words of the constitution's catalogue for a name of its registry. */
function named(kind: string, name: string): string {
  const key = `${kind}_${name}`;
  const found = word("constitution", key);
  return found === key.replaceAll("_", " ") ? name.replaceAll("_", " ").toLowerCase() : found;
}

/** The types of the constitution of which there are nodes. */
export async function readTypes(signal: AbortSignal): Promise<string[]> {
  const { types } = await callTool<{ types: { type: string; count: number }[] }>("schema.inventory.v1", {}, signal);
  return types.filter((type) => type.count).map((type) => type.type);
}

const item = (node: Node): Item => ({ key: node.id, type: node.type, title: node.title, group: node.layer });
const edge = (link: Relationship): Edge => ({ id: link.id, type: link.type, from: link.fromId, to: link.toId });

export function constitution(types: string[]): Source {
  return {
    groups: LAYERS,
    types,
    years: [],
    typeName: (type) => named("type", type),
    groupName: (group) => named("layer", group),
    relationName: (type) => named("relationship", type),
    address: (id) => `${BASE}/constitution/nodes/${encodeURIComponent(id)}`,
    find: async (query, type, _, signal) => {
      const given = { query, topK: 25, minSimilarity: 0.2, ...(type ? { types: [type] } : {}) };
      const { results } = await callTool<{ results: { node: Node }[] }>("semantic.search.v1", given, signal);
      return results.map((hit) => item(hit.node));
    },
    around: async (key, signal) => {
      const found = await callTool<Subgraph>("discuss_subgraph_nodes", { ids: [key], depth: 1, limit: 200 }, signal);
      return { items: found.nodes.map(item), edges: found.relationships.map(edge), cut: found.truncated };
    },
    whole: async (type, _, signal) => {
      const parts: Part[] = [];
      let cursor: string | null = null;
      do {
        const given: Record<string, unknown> = { limit: 2_000, ...(type ? { types: [type] } : {}), ...(cursor ? { cursor } : {}) };
        const page: { nodes: Node[]; relationships: Relationship[]; nextCursor: string | null } = await callTool("graph.getAll.v1", given, signal);
        parts.push({ items: page.nodes.map(item), edges: page.relationships.map(edge), cut: false });
        cursor = page.nextCursor;
      } while (cursor && parts.reduce((sum, part) => sum + part.items.length, 0) < MOST);
      const found = joined(parts);
      return { ...found, cut: !!cursor };
    },
    path: async (from, to, signal) => {
      type Step = { nodeId: string; type: string; title: string; relationship?: string; direction?: string };
      const { path } = await callTool<{ path: Step[] }>("graph.shortest_path.v1", { fromId: from, toId: to }, signal);
      if (path.length < 2) return undefined;
      const whole = await callTool<Subgraph>("discuss_subgraph_nodes", { ids: path.map((step) => step.nodeId), depth: 0 }, signal);
      const byId = new Map(whole.nodes.map((node) => [node.id, item(node)]));
      const items = path.map((step) => byId.get(step.nodeId) ?? { key: step.nodeId, type: step.type, title: step.title, group: "" });
      const edges = path.slice(1).map((step, place): Edge => {
        const before = path[place]?.nodeId ?? "";
        const [source, target] = step.direction === "in" ? [step.nodeId, before] : [before, step.nodeId];
        const link = whole.relationships.find((each) => each.fromId === source && each.toId === target && each.type === step.relationship);
        return { id: link?.id ?? `${source} ${target}`, type: step.relationship ?? "", from: source, to: target };
      });
      return { items, edges, cut: false };
    },
  };
}

export interface TwinType {
  name: string;
  words: Record<string, string[]>;
  properties: { name: string; kind: string; unit: string | null; words: Record<string, string[]> }[];
}

export interface Vocabulary {
  years: number[];
  ontology: {
    types: TwinType[];
    relationships: { name: string; sources: string[]; forward: Record<string, string[]> }[];
    chains: { name: string; steps: string[][]; words: Record<string, string[]> }[];
  };
}

export interface Reference {
  type: string;
  id: string;
  year: number;
}

interface Link {
  node: string;
  relationship: string;
  forward: boolean;
  type: string;
  id: string;
  name: string;
  level: string;
}

const LEVELS = ["L1", "L2", "L3"];
/** Nodes that one call is asked about, and relationships that it may give. */
const PAGE = 500;
const LINKS = 2_000;
/** Steps of the longest path that is looked for in the twin. */
const STEPS = 5;

export const keyOf = (of: Reference) => `${of.type}/${of.id}/${of.year}`;

/** What a key (`type/id/year`) names; an id may hold strokes. */
export function referenceOf(key: string): Reference {
  const [first, last] = [key.indexOf("/"), key.lastIndexOf("/")];
  return { type: key.slice(0, first), id: key.slice(first + 1, last), year: Number(key.slice(last + 1)) };
}

/** What people call a name of the ontology, in the viewer's language where the ontology has it. */
export function called(words: Record<string, string[]> | undefined, name: string): string {
  const found = words?.[language()]?.[0] ?? words?.en?.[0] ?? name.replaceAll("_", " ").toLowerCase();
  return found.charAt(0).toUpperCase() + found.slice(1);
}

export function readVocabulary(signal: AbortSignal): Promise<Vocabulary> {
  return callTool<Vocabulary>("twin_vocabulary", { limit: 1 }, signal);
}

export function twinAddress(key: string): string {
  const { type, id, year } = referenceOf(key);
  return `${HOME}/${encodeURIComponent(type)}/${encodeURIComponent(id)}/${year}`;
}

/** @param forward only relationships that lead from the nodes. */
export function readLinks(keys: string[], signal: AbortSignal, forward?: true): Promise<{ links: Link[]; truncated: boolean }> {
  return callTool("twin_links", { keys, limit: LINKS, ...(forward ? { forward } : {}) }, signal);
}

function partOf(links: Link[], cut: boolean): Part {
  const year = (key: string) => referenceOf(key).year;
  const other = (link: Link) => keyOf({ type: link.type, id: link.id, year: year(link.node) });
  return {
    items: links.map((link) => ({ key: other(link), type: link.type, title: link.name, group: link.level })),
    edges: links.map((link) => {
      const [from, to] = link.forward ? [link.node, other(link)] : [other(link), link.node];
      return { id: `${from} ${link.relationship} ${to}`, type: link.relationship, from, to };
    }),
    cut,
  };
}

interface Row {
  id: string;
  name: string;
  year: number;
  level: string;
}

const rowItem = (type: string, row: Row): Item => ({ key: keyOf({ type, id: row.id, year: row.year }), type, title: row.name, group: row.level });

async function self(key: string, signal: AbortSignal): Promise<Item[]> {
  const { type, id, year } = referenceOf(key);
  const given = { type, years: [year], where: [{ property: "id", value: id }], measure: "list", show: ["level"] };
  return (await callTool<{ rows: Row[] }>("survey_twin", given, signal)).rows.map((row) => rowItem(type, row));
}

async function listed(type: string, year: number, most: number, signal: AbortSignal): Promise<{ items: Item[]; cut: boolean }> {
  const items: Item[] = [];
  let after: string | null = null;
  do {
    const given: Record<string, unknown> = { type, years: [year], measure: "list", show: ["level"], limit: PAGE, ...(after ? { after } : {}) };
    const page: { rows: Row[]; next: string | null } = await callTool("survey_twin", given, signal);
    items.push(...page.rows.map((row) => rowItem(type, row)));
    after = page.next;
  } while (after && items.length < most);
  return { items: items.slice(0, most), cut: !!after };
}

/** Walks from one node until the other is reached, a step further in each round. */
async function twinPath(from: string, to: string, signal: AbortSignal): Promise<Part | undefined> {
  const items = new Map((await self(from, signal)).map((each) => [each.key, each]));
  const came = new Map<string, Edge>();
  let edge = [from];
  for (let step = 0; step < STEPS && edge.length; step++) {
    const found = await readLinks(edge.slice(0, PAGE), signal);
    const part = partOf(found.links, false);
    const next: string[] = [];
    part.items.forEach((other, place) => {
      if (items.has(other.key)) return;
      items.set(other.key, other);
      came.set(other.key, part.edges[place] as Edge);
      next.push(other.key);
    });
    if (items.has(to)) break;
    edge = next;
  }
  if (!came.has(to)) return undefined;
  const path: Part = { items: [], edges: [], cut: false };
  for (let at = to; ; ) {
    path.items.unshift(items.get(at) as Item);
    const last = came.get(at);
    if (!last) return path;
    path.edges.unshift(last);
    at = last.from === at ? last.to : last.from;
  }
}

export function twin(vocabulary: Vocabulary): Source {
  const { types, relationships } = vocabulary.ontology;
  return {
    groups: LEVELS,
    types: types.map((type) => type.name),
    years: vocabulary.years,
    typeName: (name) => called(types.find((type) => type.name === name)?.words, name),
    groupName: (level) => t("graph.level", { level: level.slice(1) }),
    relationName: (name) => called(relationships.find((each) => each.name === name)?.forward, name),
    address: twinAddress,
    find: async (text, type, year, signal) => {
      type Entity = { type: string; id: string; name: string; level: string; years: number[] };
      const given = { text, year, limit: 25, ...(type ? { types: [type] } : {}) };
      const { entities } = await callTool<{ entities: Entity[] }>("find_entities", given, signal);
      return entities.map((each) => ({ key: keyOf({ type: each.type, id: each.id, year: each.years.includes(year) ? year : (each.years.at(-1) ?? year) }), type: each.type, title: each.name, group: each.level }));
    },
    around: async (key, signal) => {
      const [own, found] = await Promise.all([self(key, signal), readLinks([key], signal)]);
      const part = partOf(found.links, found.truncated);
      return { ...part, items: [...own, ...part.items] };
    },
    whole: async (type, year, signal) => {
      const items: Item[] = [];
      let cut = false;
      for (const name of type ? [type] : types.map((each) => each.name)) {
        if (items.length >= MOST) break;
        const found = await listed(name, year, MOST - items.length, signal);
        items.push(...found.items);
        cut ||= found.cut;
      }
      const parts: Part[] = [{ items, edges: [], cut }];
      for (let start = 0; start < items.length; start += PAGE) {
        const found = await readLinks(items.slice(start, start + PAGE).map((each) => each.key), signal, true);
        parts.push({ ...partOf(found.links, found.truncated), items: [] });
      }
      return joined(parts);
    },
    path: twinPath,
  };
}
