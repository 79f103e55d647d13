/** A table of which the rows can be sorted, walked through with j and k, and opened with Enter. */
import type { ComponentChildren } from "preact";
import { choose, go, param } from "../router";
import { Scroll } from "./parts";

export interface Column<T> {
  key: string;
  title: string;
  unit?: string;
  number?: boolean;
  /** What rows are sorted by. */
  value?: (row: T) => number | string | null | undefined;
  cell: (row: T) => ComponentChildren;
  help?: string;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  id: (row: T) => string;
  open?: (row: T) => string;
  /** Where the order is kept in the address. */
  sortParam?: string;
  most?: number;
  chosen?: string;
}

export function SortedTable<T>({ label, columns, rows, id, open, sortParam = "sort", most = 200, chosen }: Props<T>) {
  const [key, down] = param(sortParam).split("-") as [string, string?];
  const column = columns.find((one) => one.key === key && one.value);
  const sorted = column ? [...rows].sort((a, b) => compared(column.value!(a), column.value!(b), down === "down")) : rows;
  const shown = sorted.slice(0, most);
  return (
    <Scroll label={label}>
      <table>
        <caption class="unseen">{label}</caption>
        <thead>
          <tr>
            {columns.map((one) => (
              <th scope="col" class={one.number ? "number" : ""} title={one.help} aria-sort={order(one, column, down)}>
                {one.value ? (
                  <button type="button" class="sort" onClick={() => choose({ [sortParam]: next(one.key, key, down) })}>
                    {one.title} <span aria-hidden="true">{one === column ? (down ? "▾" : "▴") : ""}</span>
                    {one.unit && <span class="unit">{one.unit}</span>}
                  </button>
                ) : (
                  <>
                    {one.title} {one.unit && <span class="unit">{one.unit}</span>}
                  </>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr
              key={id(row)}
              class={`${open ? "opens" : ""}${chosen === id(row) ? " chosen" : ""}`}
              data-row={open?.(row)}
              onClick={(event) => {
                if (open && !(event.target as Element).closest("a, button")) go(open(row));
              }}
            >
              {columns.map((one, index) =>
                index ? <td class={one.number ? "number" : ""}>{one.cell(row)}</td> : <th scope="row">{one.cell(row)}</th>,
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > shown.length && <p class="note">{sorted.length - shown.length} more; a filter finds them.</p>}
    </Scroll>
  );
}

function order<T>(one: Column<T>, column: Column<T> | undefined, down?: string) {
  return one === column ? (down ? "descending" : "ascending") : undefined;
}

function next(key: string, current: string, down?: string): string {
  if (key !== current) return `${key}-down`;
  return down ? key : "";
}

function compared(a: number | string | null | undefined, b: number | string | null | undefined, down: boolean): number {
  if (a == null || b == null) return (a == null ? 1 : 0) - (b == null ? 1 : 0);
  const ordered = typeof a === "string" ? a.localeCompare(String(b)) : a - Number(b);
  return down ? -ordered : ordered;
}
