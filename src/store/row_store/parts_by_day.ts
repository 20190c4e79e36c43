import type { StreamItem } from "../../recording/stream_reader.js";
import type { Day } from "../duckdb/row_database.js";
import { daysOf } from "../duckdb/stream_rows.js";
import type { StreamPart } from "../interface/store.js";

/** By day, in order: each stream's items that have rows for it. */
export function partsByDay(parts: readonly StreamPart[]): [Day, StreamPart[]][] {
  const byDay = new Map<Day, StreamPart[]>();
  for (const { stream, items, endOffset } of parts) {
    const itemsByDay = new Map<Day, StreamItem[]>();
    for (const item of items) {
      for (const day of daysOf(item)) {
        addTo(itemsByDay, day, item);
      }
    }
    for (const [day, itemsOfDay] of itemsByDay) {
      addTo(byDay, day, { stream, items: itemsOfDay, endOffset });
    }
  }
  return [...byDay].sort(([a], [b]) => (a < b ? -1 : 1));
}

function addTo<Value>(lists: Map<Day, Value[]>, day: Day, value: Value): void {
  const list = lists.get(day);
  if (list === undefined) {
    lists.set(day, [value]);
  } else {
    list.push(value);
  }
}
