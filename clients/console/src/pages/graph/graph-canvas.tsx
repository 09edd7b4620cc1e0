/** A drawing of a graph: laid out by forces or by layers, panned and zoomed by pointer, wheel and keys.
 *
 * It is drawn on a plain canvas. Measured without a GPU, 5,000 nodes and 8,000 edges: 52 to 59 frames a second here,
 * 1.3 by WebGL (sigma).
 */

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";
import { useEffect, useRef } from "preact/hooks";
import { Maximize, Minus, Plus } from "lucide-preact";

import { t } from "../../text";
import { IconButton } from "../../ui/controls";
import { colourOf, marksOf, shapeOf } from "./marks";
import type { Edge, Item } from "./model";

interface Place {
  x: number;
  y: number;
}

interface View extends Place {
  zoom: number;
}

/** What a node of the drawing by layers takes up: its mark and its title. */
interface Box {
  column: number;
  left: number;
  right: number;
  y: number;
}

/** The boxes of the drawing by layers, by key; none where they would not stand clear of each other. */
interface Boxes {
  high: number;
  of: Map<string, Box>;
  /** For each column, the heights at which a line runs between its boxes. */
  gaps: { left: number; right: number; at: number[] }[];
}

/** Lines and shapes at a zoom, as far from the middle as they are. */
interface Scene {
  boxes: Boxes | undefined;
  drawn: Drawn;
  places: Map<string, Place>;
  zoom: number;
  at: Map<string, Place>;
  plain: Path2D;
  marked: Path2D;
  strong: Path2D;
  nodes: Map<number, Path2D>;
}

export interface Drawn {
  items: Item[];
  edges: Edge[];
  groups: readonly string[];
  groupName: (group: string) => string;
  layout: "free" | "layers";
  selected: string | undefined;
  /** Ids of relationships, and keys of nodes, that are drawn strongly: a path. */
  strong: Set<string>;
  relationName: (type: string) => string;
}

/** Relationships up to which each is named and has its head drawn. */
const FEW = 60;
/** Distance of the rows of the drawing by layers; that of its columns follows from the canvas. */
const DOWN = 42;
/** Pixels between two columns, in which lines climb, and the greatest and least height of a box. */
const GUTTER = 34;
const [TALLEST, LOWEST] = [38, 20];
/** Nodes whose titles come before all others. */
const HUBS = 16;
/** Pixels of the longest line of a title. */
const LINE = 210;

/** A path of the shape of a kind of node: circle, square, diamond or triangle. */
function trace(path: Path2D | CanvasRenderingContext2D, shape: number, x: number, y: number, size: number): void {
  if (shape === 0) {
    path.moveTo(x + size, y);
    path.arc(x, y, size, 0, 2 * Math.PI);
  } else if (shape === 1) path.rect(x - size * 0.85, y - size * 0.85, size * 1.7, size * 1.7);
  else {
    path.moveTo(x, y - size * 1.2);
    path.lineTo(x + size * 1.15, y + (shape === 2 ? 0 : size * 0.9));
    if (shape === 2) path.lineTo(x, y + size * 1.2);
    path.lineTo(x - size * 1.15, y + (shape === 2 ? 0 : size * 0.9));
    path.closePath();
  }
}

/** A column for each layer that holds something, its nodes ordered by the mean place of what they are joined to.
 *
 * @param shape width of the canvas by its height, which the whole has then too.
 */
function byLayers(drawn: Drawn, shape: number): Map<string, Place> {
  const near = new Map<string, string[]>();
  for (const { from, to } of drawn.edges) {
    near.set(from, [...(near.get(from) ?? []), to]);
    near.set(to, [...(near.get(to) ?? []), from]);
  }
  const columns = [...drawn.groups, ""].map((group) => drawn.items.filter((item) => item.group === group || (!group && !drawn.groups.includes(item.group))).map((item) => item.key)).filter((column) => column.length);
  const place = new Map<string, number>();
  const settle = (column: string[]) => column.forEach((key, at) => place.set(key, at / column.length));
  columns.forEach(settle);
  for (let sweep = 0; sweep < 6; sweep++) {
    for (const column of sweep % 2 ? columns : [...columns].reverse()) {
      const mean = new Map(
        column.map((key) => {
          const others = near.get(key) ?? [key];
          return [key, others.reduce((sum, other) => sum + (place.get(other) ?? 0), 0) / others.length];
        }),
      );
      column.sort((one, other) => (mean.get(one) ?? 0) - (mean.get(other) ?? 0));
      settle(column);
    }
  }
  const tallest = Math.max(8, ...columns.map((column) => column.length)) * DOWN;
  const across = (tallest * shape) / Math.max(1, columns.length);
  return new Map(columns.flatMap((column, at) => column.map((key, down): [string, Place] => [key, { x: at * across, y: ((down + 0.5) * tallest) / column.length }])));
}

/** Boxes around the nodes of a drawing by layers, where there is room for them. */
function boxesOf(at: Map<string, Place>): Boxes | undefined {
  const lines = [...new Set([...at.values()].map(({ x }) => x))].sort((one, other) => one - other);
  const apart = lines.length > 1 ? (lines[1] as number) - (lines[0] as number) : LINE + GUTTER;
  const columns = lines.map((line) => [...at].filter(([, { x }]) => x === line).sort(([, one], [, other]) => one.y - other.y));
  const rows = columns.flatMap((column) => column.slice(1).map(([, place], above) => place.y - (column[above]?.[1].y ?? 0)));
  const high = Math.min(TALLEST, Math.min(...rows, 2 * TALLEST) - 10);
  const wide = Math.min(LINE, apart - GUTTER);
  if (high < LOWEST || wide < 90) return undefined;
  const of = new Map<string, Box>();
  const gaps = columns.map((column, place) => {
    const left = (lines[place] as number) - 14;
    for (const [key, { y }] of column) of.set(key, { column: place, left, right: left + wide, y });
    const ys = column.map(([, { y }]) => y);
    const at = ys.slice(1).map((y, above) => (y + (ys[above] ?? y)) / 2);
    return { left, right: left + wide, at: [(ys[0] ?? 0) - high, ...at, (ys.at(-1) ?? 0) + high] };
  });
  return { high, of, gaps };
}

/** Adds a line between two boxes that runs through none: it climbs between the columns, and crosses a column between its boxes.
 *
 * @param turn tells apart the lines that cross in the same place.
 * @returns where the line comes from at its end, and its end.
 */
function thread(path: Path2D, boxes: Boxes, from: Box, to: Box, turn: number): [Place, Place] {
  if (from.column === to.column) {
    const out = from.left - GUTTER / 2 - (turn % 4) * 3;
    path.moveTo(from.left, from.y);
    path.bezierCurveTo(out, from.y, out, to.y, to.left, to.y);
    return [{ x: out, y: to.y }, { x: to.left, y: to.y }];
  }
  const on = to.column > from.column;
  const [start, end] = [on ? from.right : from.left, on ? to.left : to.right];
  let last = { x: start, y: from.y };
  const climb = (x: number, y: number) => {
    const middle = (last.x + x) / 2;
    path.bezierCurveTo(middle, last.y, middle, y, x, y);
    last = { x, y };
  };
  path.moveTo(start, from.y);
  for (let column = from.column + (on ? 1 : -1); column !== to.column; column += on ? 1 : -1) {
    const gap = boxes.gaps[column];
    if (!gap) continue;
    const wanted = from.y + ((to.y - from.y) * ((gap.left + gap.right) / 2 - start)) / (end - start);
    const y = gap.at.reduce((best, each) => (Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best)) + (turn % 3) * 3 - 3;
    climb(on ? gap.left : gap.right, y);
    last = { x: on ? gap.right : gap.left, y };
    path.lineTo(last.x, y);
  }
  climb(end, to.y);
  return [{ x: on ? end - 1 : end + 1, y: to.y }, last];
}

/** What draws on one canvas, from its first frame until it is closed. */
class Drawing {
  private context: CanvasRenderingContext2D;
  private drawn: Drawn = { items: [], edges: [], groups: [], layout: "free", groupName: (group) => group, selected: undefined, strong: new Set(), relationName: (type) => type };
  private places = new Map<string, Place>();
  private degrees = new Map<string, number>();
  private marks = new Map<string, number>();
  private view: View = { x: 0, y: 0, zoom: 1 };
  private fits = true;
  private frame = 0;
  private frames = 0;
  private moved = 0;
  private graph: Graph | undefined;
  private left = 0;
  private colours: Record<string, string> = {};
  private scene: Scene | undefined;

  constructor(private canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d") as CanvasRenderingContext2D;
  }

  show(drawn: Drawn): void {
    const same = drawn.items === this.drawn.items && drawn.edges === this.drawn.edges && drawn.layout === this.drawn.layout;
    this.drawn = drawn;
    if (!same) this.layOut();
    this.ask();
  }

  private layOut(): void {
    const { items, edges, layout } = this.drawn;
    this.marks = marksOf(items);
    this.degrees = new Map(items.map((item) => [item.key, 0]));
    for (const { from, to } of edges) for (const key of [from, to]) this.degrees.set(key, (this.degrees.get(key) ?? 0) + 1);
    this.left = 0;
    this.fits = true;
    if (layout === "layers") {
      this.graph = undefined;
      this.places = byLayers(this.drawn, this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight));
      return;
    }
    const graph = new Graph({ multi: true, allowSelfLoops: true });
    // New nodes begin beside one that has its place, or on a spiral: the same graph is laid out in the same way.
    const near = new Map<string, Place>();
    for (const { from, to } of edges) {
      const [source, target] = [this.places.get(from), this.places.get(to)];
      if (source) near.set(to, source);
      if (target) near.set(from, target);
    }
    items.forEach((item, place) => {
      const [angle, far] = [place * 2.39996, 12 * Math.sqrt(place + 1)];
      const known = this.places.get(item.key);
      const from = near.get(item.key) ?? { x: 0, y: 0 };
      const size = this.radius(item.key) + 4;
      graph.addNode(item.key, known ? { ...known, size } : { x: from.x + far * Math.cos(angle), y: from.y + far * Math.sin(angle), size });
    });
    for (const { from, to } of edges) graph.addEdge(from, to);
    this.graph = graph;
    this.left = items.length < 2 ? 0 : items.length < 500 ? 400 : items.length < 2_000 ? 150 : 80;
    this.keep();
  }

  private keep(): void {
    const places = new Map<string, Place>();
    this.graph?.forEachNode((key, at) => places.set(key, { x: at.x as number, y: at.y as number }));
    this.places = places;
  }

  /** A part of the layout in each frame, so that the page answers meanwhile. */
  private settle(): void {
    if (!this.graph || this.left <= 0) return;
    const many = this.graph.order;
    const iterations = Math.min(this.left, many < 500 ? 25 : many < 2_000 ? 6 : 2);
    this.left -= iterations;
    const settings = { ...forceAtlas2.inferSettings(many), adjustSizes: many < 500, gravity: many < 500 ? 0.6 : 1, scalingRatio: many < 500 ? 60 : 20, slowDown: 2 };
    forceAtlas2.assign(this.graph, { iterations, settings });
    this.keep();
  }

  private radius(key: string): number {
    return 5 + Math.min(9, Math.sqrt(this.degrees.get(key) ?? 0) * 1.4);
  }

  private size(key: string): number {
    const many = this.drawn.items.length;
    const share = many > 1_500 ? 0.35 : many > 150 ? 0.6 : 1;
    return this.radius(key) * Math.min(1, share * Math.max(1, Math.sqrt(this.view.zoom)));
  }

  fit(): void {
    this.fits = true;
    this.ask();
  }

  zoom(by: number, at?: Place): void {
    const middle = at ?? { x: this.canvas.clientWidth / 2, y: this.canvas.clientHeight / 2 };
    const zoom = Math.max(0.01, Math.min(8, this.view.zoom * by));
    const grown = zoom / this.view.zoom;
    this.view = { zoom, x: middle.x - (middle.x - this.view.x) * grown, y: middle.y - (middle.y - this.view.y) * grown };
    this.fits = false;
    this.ask(true);
  }

  pan(x: number, y: number): void {
    this.view = { ...this.view, x: this.view.x + x, y: this.view.y + y };
    this.fits = false;
    this.ask(true);
  }

  /** The node at a place of the canvas. */
  at(x: number, y: number): string | undefined {
    let found: string | undefined;
    let best = 10;
    for (const [key, box] of this.scene?.boxes?.of ?? []) {
      const inside = x >= box.left + this.view.x && x <= box.right + this.view.x;
      if (inside && Math.abs(y - box.y - this.view.y) <= (this.scene?.boxes?.high ?? 0) / 2) return key;
    }
    for (const [key, place] of this.places) {
      const far = Math.hypot(place.x * this.view.zoom + this.view.x - x, place.y * this.view.zoom + this.view.y - y) - this.size(key);
      if (far < best) [found, best] = [key, far];
    }
    return found;
  }

  /** Draws in the next frame. Labels of a large graph are left out while it moves. */
  ask(moving = false): void {
    if (moving) this.moved = performance.now();
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    this.frame = -1;
  }

  private colour(name: string): string {
    if (!this.colours[name]) {
      // The tokens are `light-dark(…)`, which only an element's own colour resolves.
      const before = this.canvas.style.color;
      this.canvas.style.color = `var(--${name})`;
      this.colours[name] = getComputedStyle(this.canvas).color;
      this.canvas.style.color = before;
    }
    return this.colours[name] as string;
  }

  themed(): void {
    this.colours = {};
    this.ask();
  }

  private fitted(width: number, height: number): View {
    const places = [...this.places.values()];
    if (!places.length) return { x: width / 2, y: height / 2, zoom: 1 };
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { x, y } of places) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
    const layers = this.drawn.layout === "layers";
    const aside = layers ? width / (new Set(places.map((place) => place.x)).size + 1) : places.length > 500 ? 20 : Math.min(200, width / 4);
    const zoom = Math.min(places.length < 20 ? 5 : 2, (width - 60 - aside) / Math.max(1, right - left), (height - (layers ? 90 : 70)) / Math.max(1, bottom - top));
    return { zoom, x: (width - aside + 20) / 2 - ((left + right) / 2) * zoom, y: height / 2 - ((top + bottom) / 2) * zoom };
  }

  private draw(): void {
    this.frame = 0;
    this.settle();
    const { canvas, context } = this;
    const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    if (this.fits) this.view = this.fitted(width, height);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const scene = this.prepared();
    context.translate(this.view.x, this.view.y);
    this.edges(scene);
    this.nodes(scene);
    context.translate(-this.view.x, -this.view.y);
    const moving = performance.now() - this.moved < 200;
    if (!(moving && this.places.size > 300) && this.left <= 0) {
      const at = new Map([...scene.at].map(([key, { x, y }]) => [key, { x: x + this.view.x, y: y + this.view.y }]));
      this.labels(at, width, height);
    }
    this.frames++;
    canvas.dataset.frames = String(this.frames);
    canvas.dataset.settled = String(this.left <= 0);
    if (this.left > 0) this.ask();
    else if (moving) window.setTimeout(() => this.frame >= 0 && this.ask(), 220);
  }

  /** What is drawn at this zoom, wherever it is panned to: made anew only where something else has changed. */
  private prepared(): Scene {
    const { drawn, places } = this;
    const known = this.scene;
    if (known && known.drawn === drawn && known.places === places && known.zoom === this.view.zoom) return known;
    const at = new Map([...places].map(([key, { x, y }]) => [key, { x: x * this.view.zoom, y: y * this.view.zoom }]));
    const boxes = drawn.layout === "layers" ? boxesOf(at) : undefined;
    const scene: Scene = { boxes, drawn, places, zoom: this.view.zoom, at, plain: new Path2D(), marked: new Path2D(), strong: new Path2D(), nodes: new Map() };
    const few = drawn.edges.length <= FEW;
    for (const [turn, edge] of drawn.edges.entries()) {
      const [from, to] = [at.get(edge.from), at.get(edge.to)];
      if (!from || !to) continue;
      const touches = edge.from === drawn.selected || edge.to === drawn.selected;
      const path = drawn.strong.has(edge.id) ? scene.strong : touches ? scene.marked : scene.plain;
      const [begun, ended] = [boxes?.of.get(edge.from), boxes?.of.get(edge.to)];
      if (boxes && begun && ended) {
        const [before, end] = thread(path, boxes, begun, ended, turn);
        if (few || path !== scene.plain) this.head(path, before, end, 0);
        continue;
      }
      // Within a column a line would run through what stands between.
      const bend = drawn.layout === "layers" && Math.abs(from.x - to.x) < 1 ? { x: from.x - 36, y: (from.y + to.y) / 2 } : undefined;
      path.moveTo(from.x, from.y);
      if (bend) path.quadraticCurveTo(bend.x, bend.y, to.x, to.y);
      else path.lineTo(to.x, to.y);
      if (few || path !== scene.plain) this.head(path, bend ?? from, to, this.size(edge.to));
    }
    for (const item of drawn.items) {
      const place = at.get(item.key);
      if (!place) continue;
      const mark = this.marks.get(item.type) ?? 0;
      let path = scene.nodes.get(mark);
      if (!path) scene.nodes.set(mark, (path = new Path2D()));
      const size = this.size(item.key);
      if (size < 3) path.rect(place.x - size, place.y - size, 2 * size, 2 * size);
      else trace(path, shapeOf(mark), place.x, place.y, size);
    }
    return (this.scene = scene);
  }

  private edges(scene: Scene): void {
    const { context } = this;
    const count = scene.drawn.edges.length;
    context.lineWidth = 1;
    context.globalAlpha = count <= FEW ? 1 : count > 2_000 ? 0.3 : 0.5;
    context.strokeStyle = this.colour("line-strong");
    context.stroke(scene.plain);
    context.globalAlpha = 1;
    context.lineWidth = 1.6;
    context.strokeStyle = this.colour("ink-soft");
    context.stroke(scene.marked);
    context.lineWidth = 3;
    context.strokeStyle = this.colour("accent");
    context.stroke(scene.strong);
  }

  private head(path: Path2D, from: Place, to: Place, size: number): void {
    const angle = Math.atan2(to.y - from.y, to.x - from.x);
    const [x, y] = [to.x - (size + 2) * Math.cos(angle), to.y - (size + 2) * Math.sin(angle)];
    for (const turn of [-0.45, 0.45]) {
      path.moveTo(x, y);
      path.lineTo(x - 8 * Math.cos(angle + turn), y - 8 * Math.sin(angle + turn));
    }
  }

  private boxes({ high, of }: Boxes): void {
    const { context, drawn } = this;
    context.fillStyle = this.colour("raised");
    for (const [key, { left, right, y }] of of) {
      const marked = key === drawn.selected || drawn.strong.has(key);
      context.lineWidth = marked ? 2.5 : 1;
      context.strokeStyle = this.colour(key === drawn.selected ? "ink" : marked ? "accent" : "line");
      context.beginPath();
      context.roundRect(left, y - high / 2, right - left, high, 6);
      context.fill();
      context.stroke();
    }
  }

  private nodes(scene: Scene): void {
    const { context, drawn } = this;
    if (scene.boxes) this.boxes(scene.boxes);
    for (const [mark, path] of scene.nodes) {
      context.fillStyle = this.colour(colourOf(mark));
      context.fill(path);
      if (drawn.items.length <= 500) {
        context.lineWidth = 1.5;
        context.strokeStyle = this.colour("surface");
        context.stroke(path);
      }
    }
    if (scene.boxes) return;
    context.lineWidth = 2.5;
    for (const key of [...drawn.strong, drawn.selected ?? ""]) {
      const place = scene.at.get(key);
      if (!place) continue;
      context.strokeStyle = this.colour(key === drawn.selected ? "ink" : "accent");
      context.beginPath();
      context.arc(place.x, place.y, this.size(key) + 4, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  /** Titles, those of the most joined nodes first, each where nothing else stands; then names of relationships. */
  private labels(at: Map<string, Place>, width: number, height: number): void {
    const { context, drawn } = this;
    const layers = drawn.layout === "layers";
    const taken: [number, number, number, number][] = [];
    const nodes: typeof taken = [];
    const hits = (boxes: typeof taken, x: number, y: number, wide: number, high: number) => boxes.some(([left, top, right, bottom]) => x < right && x + wide > left && y < bottom && y + high > top);
    const free = (x: number, y: number, wide: number, high: number, over = false) => x > 0 && y > 0 && x + wide < width && y + high < height && !hits(taken, x, y, wide, high) && (over || !hits(nodes, x, y, wide, high));
    const seen = drawn.items.filter(({ key }) => {
      const place = at.get(key);
      return place && place.x > 0 && place.y > 0 && place.x < width && place.y < height;
    });
    for (const { key } of seen.slice(0, 1_000)) {
      const [place, size] = [at.get(key) as Place, this.size(key)];
      nodes.push([place.x - size, place.y - size, place.x + size, place.y + size]);
    }
    const font = getComputedStyle(this.canvas).fontFamily;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.strokeStyle = this.colour("surface");
    const columns = [...new Set(seen.map(({ key }) => at.get(key)?.x ?? 0))].sort((one, other) => one - other);
    const boxes = this.scene?.boxes;
    const [box] = boxes?.of.values() ?? [];
    const room = box ? box.right - box.left - 34 : layers && columns.length > 1 ? Math.min(LINE, (columns[1] ?? 0) - (columns[0] ?? 0) - 34) : LINE;
    if (layers) {
      context.font = `600 12px ${font}`;
      for (const x of columns) {
        const group = seen.find(({ key }) => at.get(key)?.x === x)?.group ?? "";
        this.write(group && drawn.groupName(group), x - 6, 16, "ink-soft");
        taken.push([x - 6, 6, x + 90, 26]);
      }
    }
    const first = (key: string) => (key === drawn.selected ? 1e9 : drawn.strong.has(key) ? 1e6 : (this.degrees.get(key) ?? 0));
    const most = Math.min(seen.length, seen.length > 150 ? Math.round((width * height) / 12_000) : 150);
    let left = most;
    for (const item of [...seen].sort((one, other) => first(other.key) - first(one.key)).slice(0, 4 * most)) {
      if (!left) break;
      const place = at.get(item.key) as Place;
      const bold = item.key === drawn.selected || drawn.strong.has(item.key);
      context.font = `${bold ? 650 : 450} 12px ${font}`;
      const lines = this.lines(item.title, room, layers && (boxes?.high ?? TALLEST) > 32 ? 2 : 1);
      const [wide, high, off] = [Math.max(...lines.map((line) => context.measureText(line).width)), 15 * lines.length, boxes ? 14 : this.size(item.key) + 4];
      const beside: [number, number] = [place.x + off, place.y - high / 2];
      const spots: [number, number][] = layers ? [beside] : [beside, [place.x - off - wide, place.y - high / 2], [place.x - wide / 2, place.y + off], [place.x - wide / 2, place.y - off - high]];
      // The most joined ones are named over their neighbours rather than not at all.
      const spot = spots.find(([x, y]) => free(x, y, wide, high)) ?? (most - left < HUBS ? spots.find(([x, y]) => free(x, y, wide, high, true)) : undefined) ?? (bold ? beside : undefined);
      if (!spot) continue;
      taken.push([spot[0], spot[1], spot[0] + wide, spot[1] + high]);
      lines.forEach((line, row) => this.write(line, spot[0], spot[1] + 8 + 15 * row, "ink"));
      left--;
    }
    context.font = `450 11px ${font}`;
    // Between columns there is no room for the names of relationships; the lists have them.
    const named = boxes ? [] : drawn.edges.filter((edge) => (!layers && drawn.edges.length <= FEW) || edge.from === drawn.selected || edge.to === drawn.selected || drawn.strong.has(edge.id)).slice(0, FEW);
    for (const edge of named) {
      const [from, to] = [at.get(edge.from), at.get(edge.to)];
      if (!from || !to) continue;
      const text = drawn.relationName(edge.type).toLowerCase();
      const wide = context.measureText(text).width;
      for (const share of [0.5, 0.36, 0.64]) {
        const [x, y] = [from.x + (to.x - from.x) * share - wide / 2, from.y + (to.y - from.y) * share - 7];
        if (!free(x, y, wide, 14)) continue;
        taken.push([x, y, x + wide, y + 14]);
        this.write(text, x, y + 7, "ink-soft");
        break;
      }
    }
  }

  /** A title in lines that fit; what does not is cut. */
  private lines(title: string, room: number, most: number): string[] {
    const fits = (text: string) => this.context.measureText(text).width <= room;
    const lines = [""];
    for (const word of title.slice(0, 120).split(" ")) {
      const last = lines.at(-1) ?? "";
      const longer = last ? `${last} ${word}` : word;
      if (!last || fits(longer) || lines.length === most) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines.map((line) => {
      if (fits(line)) return line;
      let cut = line;
      while (cut.length > 1 && !fits(`${cut}…`)) cut = cut.slice(0, -1);
      return `${cut.trimEnd()}…`;
    });
  }

  private write(text: string, x: number, y: number, colour: string): void {
    this.context.lineWidth = 4;
    this.context.strokeText(text, x, y);
    this.context.fillStyle = this.colour(colour);
    this.context.fillText(text, x, y);
  }
}

const STEP = 60;

export default function GraphCanvas(props: Drawn & { label: string; select: (key: string | undefined) => void; open: (key: string) => void }) {
  const box = useRef<HTMLCanvasElement>(null);
  const drawing = useRef<Drawing>();
  const acts = useRef(props);
  acts.current = props;
  useEffect(() => {
    const canvas = box.current as HTMLCanvasElement;
    const made = (drawing.current = new Drawing(canvas));
    const size = new ResizeObserver(() => made.ask());
    const theme = new MutationObserver(() => made.themed());
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => made.themed();
    size.observe(canvas);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    dark.addEventListener("change", changed);
    const wheel = (event: WheelEvent) => {
      // The page scrolls until the drawing has the focus, so that nobody is caught in it.
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      made.zoom(Math.exp(-event.deltaY * 0.0015), { x: event.offsetX, y: event.offsetY });
    };
    canvas.addEventListener("wheel", wheel, { passive: false });
    return () => {
      made.close();
      size.disconnect();
      theme.disconnect();
      dark.removeEventListener("change", changed);
      canvas.removeEventListener("wheel", wheel);
    };
  }, []);
  useEffect(() => drawing.current?.show(props), [props.items, props.edges, props.layout, props.selected, props.strong]);

  const fingers = useRef(new Map<number, Place>());
  const travelled = useRef(0);
  const key = (event: KeyboardEvent) => {
    const moves: Record<string, () => void> = {
      ArrowLeft: () => drawing.current?.pan(STEP, 0),
      ArrowRight: () => drawing.current?.pan(-STEP, 0),
      ArrowUp: () => drawing.current?.pan(0, STEP),
      ArrowDown: () => drawing.current?.pan(0, -STEP),
      "+": () => drawing.current?.zoom(1.25),
      "-": () => drawing.current?.zoom(0.8),
      "0": () => drawing.current?.fit(),
      Escape: () => props.select(undefined),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  };
  return (
    <div class="drawing">
      <canvas
        ref={box}
        tabIndex={0}
        role="img"
        aria-label={props.label}
        onKeyDown={key}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          fingers.current.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
          travelled.current = 0;
        }}
        onPointerMove={(event) => {
          const now = { x: event.offsetX, y: event.offsetY };
          const before = fingers.current.get(event.pointerId);
          if (!before) {
            event.currentTarget.style.cursor = drawing.current?.at(now.x, now.y) ? "pointer" : "grab";
            return;
          }
          const other = [...fingers.current].find(([id]) => id !== event.pointerId)?.[1];
          travelled.current += Math.hypot(now.x - before.x, now.y - before.y);
          if (other) {
            const far = (place: Place) => Math.max(1, Math.hypot(place.x - other.x, place.y - other.y));
            drawing.current?.zoom(far(now) / far(before), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
          } else drawing.current?.pan(now.x - before.x, now.y - before.y);
          fingers.current.set(event.pointerId, now);
        }}
        onPointerUp={(event) => {
          fingers.current.delete(event.pointerId);
          if (travelled.current < 5) props.select(drawing.current?.at(event.offsetX, event.offsetY));
        }}
        onPointerCancel={(event) => fingers.current.delete(event.pointerId)}
        onDblClick={(event) => {
          const found = drawing.current?.at(event.offsetX, event.offsetY);
          if (found) props.open(found);
        }}
      />
      <div class="drawing-tools">
        <IconButton label={t("graph.zoom_in")} icon={<Plus aria-hidden="true" />} onClick={() => drawing.current?.zoom(1.25)} />
        <IconButton label={t("graph.zoom_out")} icon={<Minus aria-hidden="true" />} onClick={() => drawing.current?.zoom(0.8)} />
        <IconButton label={t("graph.fit")} icon={<Maximize aria-hidden="true" />} onClick={() => drawing.current?.fit()} />
      </div>
    </div>
  );
}
