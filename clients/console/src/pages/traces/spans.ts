/** The spans of a trace as a tree, and which step of it took the time. */

import type { Schemas } from "../../api/client";

export type Span = Schemas["Span"];

export interface Step {
  span: Span;
  /** How many spans are above it. */
  depth: number;
  /** Milliseconds since the first span began. */
  start: number;
  /** Milliseconds that it took. */
  ms: number;
  /** Milliseconds of it in which no step below it was at work. */
  own: number;
  /** Whether it belongs to what is done once the answer is there, such as learning from it. */
  after: boolean;
}

const NS = 1e6;

/** Milliseconds of `[from, to]` that none of the intervals covers. */
function uncovered(from: number, to: number, intervals: [number, number][]): number {
  let free = 0;
  let reached = from;
  for (const [start, end] of intervals.sort((one, other) => one[0] - other[0])) {
    if (start > reached) free += Math.min(start, to) - reached;
    reached = Math.max(reached, Math.min(end, to));
  }
  return Math.max(0, free + Math.max(0, to - reached)) / NS;
}

/** Every span once, each behind the one that began it, those of one parent by their start.
 *
 * A span whose parent is not known stands at the top, and so does the first of spans that name each other.
 */
export function steps(spans: Span[]): Step[] {
  const known = [...new Map(spans.map((span) => [span.span_id, span])).values()].sort((one, other) => one.start_ns - other.start_ns);
  const began = known[0]?.start_ns ?? 0;
  const ids = new Set(known.map((span) => span.span_id));
  const below = new Map<string, Span[]>();
  for (const span of known) if (span.parent_id && ids.has(span.parent_id)) below.set(span.parent_id, [...(below.get(span.parent_id) ?? []), span]);
  const placed = new Set<string>();
  const found: Step[] = [];
  const place = (span: Span, depth: number, after: boolean) => {
    if (placed.has(span.span_id)) return;
    placed.add(span.span_id);
    const children = below.get(span.span_id) ?? [];
    const late = after || span.name.startsWith("follow ");
    found.push({
      span,
      depth,
      start: (span.start_ns - began) / NS,
      ms: Math.max(0, span.end_ns - span.start_ns) / NS,
      own: uncovered(span.start_ns, span.end_ns, children.map((child) => [child.start_ns, child.end_ns])),
      after: late,
    });
    for (const child of children) place(child, depth + 1, late);
  };
  // Whatever no root leads to is left over for the second round.
  for (const span of known) if (!span.parent_id || !ids.has(span.parent_id)) place(span, 0, false);
  for (const span of known) place(span, 0, false);
  return found;
}

/** The step in which most of the time before the answer went by, itself and not what it waited for. */
export function slowest(all: Step[]): Step | undefined {
  return all.filter((step) => !step.after).reduce<Step | undefined>((best, step) => (best && best.own >= step.own ? best : step), undefined);
}

/** What a step is called: the tool or the model that it is about where there is one, without the word for its direction. */
export function nameOf(span: Span): string {
  const attributes = (span.attributes ?? {}) as Record<string, unknown>;
  const named = attributes["gen_ai.tool.name"] ?? attributes["gen_ai.request.model"];
  return typeof named === "string" && named ? named : span.name;
}
