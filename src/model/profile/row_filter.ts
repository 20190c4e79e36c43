/**
 * Selection and grouping of a profile's rows: by thread, process, rank, allocator and label. The page and
 * the commands (`--where`, `--by`) use the same keys.
 *
 *     thread=worker-3    by name or tid               rank=1           of a distributed job
 *     process=4242       by pid, program or script    domain=native    python, native, mapped
 *     label=ingest       a value of any label key     endpoint=/chat   a label key that the program sets
 *
 * A condition accepts every group name that `--by` shows, `(none)` included.
 */

import { uint32At } from "../base/columns.js";
import { nearNames } from "../base/near_miss.js";
import type { ProfileTables, SiteTable } from "./profile.js";

/** A row passes if its value of `key` is `value`. */
export interface RowCondition {
  readonly key: string;
  readonly value: string;
}

/** No condition: all rows pass. */
export const EVERY_ROW: readonly RowCondition[] = [];

/** Keys of every profile, in addition to the keys of the program's labels. */
export const ROW_KEYS = ["thread", "process", "rank", "domain", "label"] as const;

/** The rows' values of one key. */
export interface RowColumn {
  /** The column of the site table on which the value depends. */
  readonly of: "thread" | "process" | "domain" | "label";
  /** By value of that column: the name of the group, "" if the row has no value for this key. */
  readonly names: readonly string[];
  /** By value of that column: the words that a condition may use for it. */
  readonly words: readonly (readonly string[])[];
}

/** The group of rows without a value of the key, as it is shown and as a condition names it. */
export const NO_VALUE = "(none)";

const DOMAIN_WORDS = ["python", "native", "mapped", "files"];

/** For any key; a key that is not in {@link ROW_KEYS} is a label key. */
export function rowColumn(tables: ProfileTables, key: string): RowColumn {
  switch (key) {
    case "thread": {
      const names = tables.threads.map(
        ({ tid, name }) => name || (tid === 0 ? "other threads" : `thread ${tid}`),
      );
      const words = tables.threads.map(({ tid, isMain }, at) => [
        names[at] as string,
        String(tid),
        ...(isMain ? ["main"] : []),
      ]);
      return { of: "thread", names, words };
    }
    case "process": {
      const names = tables.processes.map(({ pid, command }) => `${pid} ${commandName(command)}`);
      const words = tables.processes.map(({ pid, command }, at) => [
        names[at] as string,
        String(pid),
        ...command.slice(0, 3).map(baseName),
      ]);
      return { of: "process", names, words };
    }
    case "rank": {
      const names = tables.processes.map(({ rank }) => (rank === undefined ? "" : String(rank)));
      return { of: "process", names, words: names.map((name) => [wordOf(name)]) };
    }
    case "domain":
      return { of: "domain", names: DOMAIN_WORDS, words: DOMAIN_WORDS.map((name) => [name]) };
    case "label": {
      const sets = labelSets(tables);
      const names = sets.map((set) => pairsOf(set).sort().join(", "));
      return {
        of: "label",
        names,
        words: sets.map((set, at) => [...set.values(), ...pairsOf(set), wordOf(names[at])]),
      };
    }
    default: {
      const names = labelSets(tables).map((set) => set.get(key) ?? "");
      return { of: "label", names, words: names.map((name) => [wordOf(name)]) };
    }
  }
}

/** Rows of `sites` that meet every condition, ascending. */
export function selectSites(
  tables: ProfileTables,
  sites: SiteTable,
  where: readonly RowCondition[],
): Uint32Array {
  const tests = where.map(({ key, value }) => {
    const { of, words } = rowColumn(tables, key);
    return { column: sites[of], passes: Uint8Array.from(words, (each) => +each.includes(value)) };
  });
  const rows = new Uint32Array(sites.length);
  let count = 0;
  for (let site = 0; site < sites.length; site++) {
    if (tests.every(({ column, passes }) => passes[column[site] ?? 0] === 1)) {
      rows[count++] = site;
    }
  }
  return rows.subarray(0, count);
}

/** By group, the rows of `sites` with that value of the key; "" for those without one. */
export function groupRows({ of, names }: RowColumn, sites: SiteTable): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  const column = sites[of];
  for (let row = 0; row < sites.length; row++) {
    const name = names[column[row] ?? 0] ?? "";
    const group = groups.get(name);
    if (group) {
      group.push(row);
    } else {
      groups.set(name, [row]);
    }
  }
  return groups;
}

/** The value that a filter requires for this key; null if none. */
export function conditionOn(where: readonly RowCondition[], key: string): string | null {
  return where.find((condition) => condition.key === key)?.value ?? null;
}

/** The filter with another value of a key; null removes the condition. */
export function withCondition(
  where: readonly RowCondition[],
  key: string,
  value: string | null,
): RowCondition[] {
  const others = where.filter((condition) => condition.key !== key);
  return value === null ? others : [...others, { key, value }];
}

/** One for each different key and value, by name: "endpoint=/chat". */
export function labelChoices(tables: ProfileTables): string[] {
  const names = new Set(labelSets(tables).flatMap(pairsOf));
  return [...names].sort((a, b) => a.localeCompare(b));
}

/** Keys of the program's labels, by name. */
export function labelKeys({ labels, strings }: ProfileTables): string[] {
  const keys = new Set<string>();
  for (let row = 1; row < labels.length; row++) {
    keys.add(strings[uint32At(labels.key, row)] ?? "");
  }
  return [...keys].sort((a, b) => a.localeCompare(b));
}

/** Whether a row may have this value of the key. */
export function hasValue(tables: ProfileTables, { key, value }: RowCondition): boolean {
  return rowColumn(tables, key).words.some((words) => words.includes(value));
}

/** The values of a key, each once, those similar to `value` first. */
export function valueChoices(tables: ProfileTables, { key, value }: RowCondition): string[] {
  const { names, words } = rowColumn(tables, key);
  const near = nearNames(value, words.flat());
  const wordsOf = new Map(names.map((name, at) => [name, words[at] ?? []]));
  const all =
    key === "label"
      ? labelChoices(tables)
      : [...new Set(names)].filter(
          (name) => name !== "" && !(key === "domain" && name === "files"),
        );
  const distance = (name: string) => {
    const own = [name, ...name.split("=").slice(1), ...(wordsOf.get(name) ?? [])];
    const found = near.findIndex((word) => own.includes(word));
    return found < 0 ? near.length : found;
  };
  return all.sort((a, b) => distance(a) - distance(b));
}

/** The name of a group as it is shown, which a condition accepts. */
function wordOf(name = ""): string {
  return name === "" ? NO_VALUE : name;
}

/** For each row of the label table: its labels; an inner value of the same key wins. */
function labelSets({ labels, strings }: ProfileTables): ReadonlyMap<string, string>[] {
  const sets: ReadonlyMap<string, string>[] = [new Map()];
  for (let row = 1; row < labels.length; row++) {
    const set = new Map(sets[uint32At(labels.parent, row)]);
    set.set(strings[uint32At(labels.key, row)] ?? "", strings[uint32At(labels.value, row)] ?? "");
    sets.push(set);
  }
  return sets;
}

function pairsOf(set: ReadonlyMap<string, string>): string[] {
  return [...set].map(([key, value]) => `${key}=${value}`);
}

const LONGEST_COMMAND = 60;

/** "python app.py": the program without its folder, and its arguments. */
function commandName([program = "?", ...rest]: readonly string[]): string {
  return [baseName(program), ...rest].join(" ").slice(0, LONGEST_COMMAND);
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
