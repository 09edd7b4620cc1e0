/** The constitutional graph as its pages read it: nodes, relationships, what the registry declares, and who may change what. */

import { callTool } from "../../api/client";
import { BASE } from "../../pages";
import type { Me } from "../../session";
import { word } from "../../text";

export const HOME = `${BASE}/constitution`;
export const LAYERS = ["foundation", "vision", "strategy", "tactics", "execution", "track", "mind"] as const;
export type Layer = (typeof LAYERS)[number];
export const STATUSES = ["active", "archived", "deprecated"];

export interface Node {
  id: string;
  type: string;
  layer: Layer;
  title: string;
  status?: string;
  summary?: string;
  description?: string;
  createdAt?: string;
  updatedAt?: string;
  version?: number;
  properties?: Record<string, unknown>;
  provenance?: Record<string, unknown>;
  [property: string]: unknown;
}

export interface Relationship {
  id: string;
  type: string;
  fromId: string;
  toId: string;
}

export interface Mention {
  id: string;
  type: string;
  title: string;
}

export interface NodeType {
  type: string;
  layer: Layer;
  /** The kind of each typed property by its name. */
  properties: Record<string, string>;
  statuses: string[];
  count: number;
}

export interface Inventory {
  types: NodeType[];
  relationshipTypes: { type: string; declared: boolean; ends: { from: string[]; to: string[]; meaning: string }[] }[];
}

export interface Subgraph {
  nodes: Node[];
  relationships: Relationship[];
  truncated: boolean;
}

/** Agents beside the administrators that may write each layer, as the server has it; a refusal is its own. */
const WRITERS: Record<Layer, string[]> = {
  foundation: ["maestro"],
  vision: ["maestro"],
  strategy: ["maestro", "decisions"],
  tactics: ["maestro", "execute"],
  execution: ["maestro", "execute", "decisions"],
  track: ["maestro", "execute"],
  mind: ["maestro", "mind"],
};

/** Whether somebody may change nodes of a layer: what they may not, no page offers. */
export function mayWrite(me: Me, layer: Layer): boolean {
  if (me.role === "reader") return false;
  return me.role === "owner" || me.role === "admin" || (me.agents ?? []).some((agent) => WRITERS[layer].includes(agent));
}

export function addressOf(id: string): string {
  return `${HOME}/nodes/${encodeURIComponent(id)}`;
}

/** What people call a name of the registry; `prefix` is `type`, `layer`, `relationship`, `status` or `field`. */
export function named(prefix: string, name: string): string {
  const key = `${prefix}_${name}`;
  const found = word("constitution", key);
  if (found !== key.replaceAll("_", " ")) return found;
  const spaced = name.replaceAll("_", " ").replace(/([a-z])(?=[A-Z])/g, "$1 ").toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

export function readInventory(signal: AbortSignal): Promise<Inventory> {
  return callTool<Inventory>("schema.inventory.v1", {}, signal);
}

export function readAround(id: string, signal?: AbortSignal, depth = 1): Promise<Subgraph> {
  return callTool<Subgraph>("discuss_subgraph_nodes", { ids: [id], depth, limit: 100 }, signal);
}

export async function search(query: string, signal?: AbortSignal): Promise<Node[]> {
  const given = { query, topK: 25, minSimilarity: 0.2 };
  const found = await callTool<{ results: { node: Node; score: number }[] }>("semantic.search.v1", given, signal);
  return found.results.map((hit) => hit.node);
}
