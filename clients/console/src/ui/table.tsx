/** Tables that can be sorted; on a narrow screen each row becomes a card, so that nothing is cut off, and a field has the orders. */

import type { ComponentChildren } from "preact";
import { ArrowDown, ArrowUp } from "lucide-preact";

import { t } from "../text";
import { Button, Select } from "./controls";
import { useParameters } from "./parameters";

export interface Column<T> {
  id: string;
  label: string;
  show: (row: T) => ComponentChildren;
  /** What rows are sorted by; without it the column cannot be sorted. */
  by?: (row: T) => string | number;
  number?: boolean;
}

/** A table of rows.
 *
 * Its order stands in the page's address (`?sort=COLUMN` or `-COLUMN`), so that a link shows the same.
 *
 * @param more loads further rows; absent at the end.
 * @param most rows at most that are shown, once they are sorted.
 */
export function Table<T>(props: { label: string; columns: Column<T>[]; rows: T[]; id: (row: T) => string; more?: (() => void) | undefined; sort?: string; most?: number }) {
  const [{ sort = props.sort ?? "" }, change] = useParameters();
  const down = sort.startsWith("-");
  const column = props.columns.find((each) => each.id === sort.replace("-", ""));
  const sortable = props.columns.filter((each) => each.by);
  const by = column?.by;
  const rows = by
    ? [...props.rows].sort((one, other) => {
        const [left, right] = [by(one), by(other)];
        return (left < right ? -1 : left > right ? 1 : 0) * (down ? -1 : 1);
      })
    : props.rows;
  return (
    <div class="table-box">
      {sortable.length > 0 && props.rows.length > 1 && (
        <div class="table-sort">
          <Select
            label={t("shell.sort_by")}
            value={column?.by ? sort : ""}
            options={[
              { value: "", label: t("shell.sort_none") },
              ...sortable.flatMap(({ id, label }) => [
                { value: id, label: t("shell.sort_up", { column: label }) },
                { value: `-${id}`, label: t("shell.sort_down", { column: label }) },
              ]),
            ]}
            onChange={(event) => change({ sort: event.currentTarget.value })}
          />
        </div>
      )}
      <table class="table" aria-label={props.label}>
        <thead>
          <tr>
            {props.columns.map((each) => {
              const sorted = each === column ? (down ? "descending" : "ascending") : undefined;
              return (
                <th key={each.id} scope="col" class={each.number ? "number" : undefined} aria-sort={sorted}>
                  {each.by ? (
                    <button type="button" class="sorter" onClick={() => change({ sort: each === column && !down ? `-${each.id}` : each.id })}>
                      {each.label}
                      {sorted && (down ? <ArrowDown aria-label={t("shell.sorted_down")} /> : <ArrowUp aria-label={t("shell.sorted_up")} />)}
                    </button>
                  ) : (
                    each.label
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, props.most).map((row) => (
            <tr key={props.id(row)}>
              {props.columns.map((each) => (
                <td key={each.id} data-label={each.label} class={each.number ? "number" : undefined}>
                  {each.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {props.more && (
        <Button class="more" onClick={props.more}>
          {t("shell.more")}
        </Button>
      )}
    </div>
  );
}
