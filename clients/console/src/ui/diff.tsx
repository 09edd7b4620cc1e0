/** What differs between two texts: side by side on a wide screen, one below the other on a narrow one. */

import { diffWordsWithSpace, parsePatch } from "diff";
import type { ComponentChildren } from "preact";

import { t } from "../text";

interface Line {
  /** Line of the text before; absent where it was added. */
  before?: string;
  /** Line of the text after; absent where it was removed. */
  after?: string;
}

/** Lines of a hunk, those that were removed beside those that came in their place. */
function paired(lines: string[]): Line[] {
  const found: Line[] = [];
  let removed: string[] = [];
  let added: string[] = [];
  const close = () => {
    for (let place = 0; place < Math.max(removed.length, added.length); place++) {
      const [before, after] = [removed[place], added[place]];
      found.push({ ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) });
    }
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    const [sign, text] = [line[0], line.slice(1)];
    if (sign === "-") removed.push(text);
    else if (sign === "+") added.push(text);
    else if (sign !== "\\") {
      close();
      found.push({ before: text, after: text });
    }
  }
  close();
  return found;
}

/** The words of one side of a line that differ from the other side's are marked. */
function words(line: Line, side: "before" | "after"): ComponentChildren {
  if (line.before === undefined || line.after === undefined) return line[side];
  return diffWordsWithSpace(line.before, line.after)
    .filter((part) => (side === "before" ? !part.added : !part.removed))
    .map((part, place) => (part.added || part.removed ? <mark key={place}>{part.value}</mark> : part.value));
}

/** A difference in the unified form, as a table of lines; as it is where it was cut off and cannot be read as one. */
export function Diff(props: { label: string; patch: string; before?: string; after?: string }) {
  let hunks: { oldStart: number; newStart: number; lines: string[] }[];
  try {
    hunks = parsePatch(props.patch)[0]?.hunks ?? [];
  } catch {
    hunks = [];
  }
  if (!hunks.length) return <pre>{props.patch}</pre>;
  return (
    <div class="diff" role="table" aria-label={props.label}>
      <div role="row" class="diff-head">
        <span role="columnheader">{props.before ?? t("shell.before")}</span>
        <span role="columnheader">{props.after ?? t("shell.after")}</span>
      </div>
      {hunks.map((hunk, place) => (
        <div key={place} role="rowgroup" class="diff-hunk">
          {paired(hunk.lines).map((line, row) => {
            const same = line.before === line.after;
            return (
              <div key={row} role="row" class={same ? "diff-line same" : "diff-line"}>
                <span role="cell" class={same ? "" : line.before === undefined ? "none" : "removed"}>
                  {same ? line.before : words(line, "before")}
                </span>
                <span role="cell" class={same ? "twin" : line.after === undefined ? "none" : "added"}>
                  {same ? line.after : words(line, "after")}
                </span>
              </div>
            );
          })}
        </div>
      ))}
    </div>
  );
}
