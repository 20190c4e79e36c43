/** Keys of every live list: leave, move, sort. */
import type { Key } from "ink";

const PAGE = 10;

interface ListChoice<Sort extends string> {
  readonly sort: Sort;
  readonly firstRow: number;
}

/** The choice after a key; null leaves the view. An unknown key changes nothing. */
export function pressInList<Sort extends string, Choice extends ListChoice<Sort>>(
  choice: Choice,
  input: string,
  key: Key,
  sorts: Readonly<Record<Sort, { readonly key: string }>>,
): Choice | null {
  if (input === "q" || key.escape) {
    return null;
  }
  const step = key.downArrow ? 1 : key.upArrow ? -1 : key.pageDown ? PAGE : key.pageUp ? -PAGE : 0;
  if (step !== 0) {
    return { ...choice, firstRow: Math.max(0, choice.firstRow + step) };
  }
  const sort = (Object.keys(sorts) as Sort[]).find((name) => sorts[name].key === input);
  return sort === undefined ? choice : { ...choice, sort };
}
