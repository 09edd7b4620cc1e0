/** Colours and shapes by which types of nodes are told apart, in the drawing and in its legend. */

import type { Item } from "./model";

const COLOURS = 8;
const SHAPES = 4;

/** The place of a type among all that are drawn: its colour and its shape follow from it. */
export function marksOf(items: Item[]): Map<string, number> {
  return new Map([...new Set(items.map((item) => item.type))].sort().map((type, place) => [type, place]));
}

/** The token of a type's colour. */
export function colourOf(place: number): string {
  return `c${(place % COLOURS) + 1}`;
}

/** Circle, square, diamond or triangle; neighbours in colour differ in shape too. */
export function shapeOf(place: number): number {
  return (place + Math.floor(place / COLOURS)) % SHAPES;
}

/** The sign of a type, for the legend. */
export function Mark(props: { place: number }) {
  const shape = shapeOf(props.place);
  return (
    <svg class="mark" viewBox="-8 -8 16 16" aria-hidden="true" style={{ fill: `var(--${colourOf(props.place)})` }}>
      {shape === 0 ? <circle r="6" /> : shape === 1 ? <rect x="-5" y="-5" width="10" height="10" /> : <path d={shape === 2 ? "M0-7L7 0L0 7L-7 0z" : "M0-7L7 5L-7 5z"} />}
    </svg>
  );
}
