/**
 * Finds the functions that add items to a growing container: functions of the program's own code with a line
 * that names it and stores under keys or calls an adding method; otherwise functions that do so on different
 * lines. The items were often created elsewhere, and samples do not show how they got there:
 *
 *     parse() creates ──> handle() passes on ──> observe():  self.by_route[key] = record
 *     sampled                                              read from its code
 */

import type { CodeUses, LineUses, Uses } from "../cpython/heap/objects/code_uses.js";
import { itemAt } from "../model/base/columns.js";
import { present } from "../model/base/present.js";
import { isOwn } from "../model/documents/own_code.js";
import type { Putter } from "../recording/types.js";

/** With more candidates than this, any of them could be the one. */
const MOST_PUTTERS = 3;
/** Adding methods of lists, deques, sets, dicts and queues, and common names in registries. */
const ADDING: ReadonlySet<string> = new Set([
  "add",
  "append",
  "appendleft",
  "extend",
  "extendleft",
  "insert",
  "put",
  "put_nowait",
  "push",
  "setdefault",
  "update",
]);

/** Of these, the methods that may insert an empty container. */
const MAKING_ROOM: ReadonlySet<string> = new Set(["setdefault", "update"]);

/** Functions that take the container as an argument. */
const ADDING_TO: ReadonlySet<string> = new Set([
  "heappush",
  "insort",
  "insort_left",
  "insort_right",
]);

/**
 * Each with its line that adds; empty if the path does not end in a name, or if too many functions match. `isNested`: the
 * containers inside it grow, so a line must name it and add; a line that stores may only insert an empty one.
 */
export function puttersInto(
  path: readonly string[],
  uses: readonly CodeUses[],
  isNested = false,
): Putter[] {
  const name = containerName(path);
  if (name === null) {
    return [];
  }
  const adds = ({ names, storesItems }: Uses) => {
    const at = names.indexOf(name);
    const adding = (one: string, place: number) =>
      ADDING_TO.has(one) || (ADDING.has(one) && place > at && !(isNested && MAKING_ROOM.has(one)));
    return at >= 0 && ((storesItems && !isNested) || names.some(adding));
  };
  const using = uses.filter(({ names }) => names.has(name));
  const ofLine = using.filter(({ lines }) => lines.some(adds));
  // It may be passed on under another name.
  const putters =
    ofLine.length > 0 || isNested ? ofLine : using.filter(({ lines }) => adds(together(lines)));
  const lineIn = ({ lines, firstLine }: CodeUses) =>
    (lines.find(adds) ?? lines.find(({ names }) => names.includes(name)))?.line ?? firstLine;
  return putters.length > MOST_PUTTERS
    ? []
    : putters.map((putter) => putterOf(putter, lineIn(putter), uses));
}

function putterOf(
  { function: name, file }: CodeUses,
  line: number,
  uses: readonly CodeUses[],
): Putter {
  const bare = present(name.split(".").at(-1));
  const callers = uses.filter(
    (use) => use.names.has(bare) && use.lines.some(({ names }) => names.includes(bare)),
  );
  return {
    function: name,
    file,
    line,
    callers: callers.map((caller) => caller.function),
  };
}

function together(lines: readonly LineUses[]): Uses {
  return {
    names: lines.flatMap(({ names }) => names),
    storesItems: lines.some(({ storesItems }) => storesItems),
  };
}

/** Code objects of the program's own files. */
export function isOwnFile(file: string): boolean {
  return isOwn({ function: "", file, line: 0, kind: "python" });
}

const NAMED = /^(?:\.|local |closure variable |default of )([A-Za-z_]\w*)$/;

/** "dict[...]": one of many similar containers, each an item of the preceding name. */
const ITEM = /\[.*\]$/;

/** The last variable or attribute of the path: ".by_route", "local seen"; for a module, its global. */
function containerName(path: readonly string[]): string | null {
  for (let step = path.length - 1; step > 0; step--) {
    const word = itemAt(path, step);
    const named = NAMED.exec(word)?.[1];
    if (named !== undefined) {
      return named;
    }
    if (path[step - 1]?.startsWith("module ")) {
      return /^\w+$/.test(word) ? word : null;
    }
    if (!ITEM.test(word)) {
      return null;
    }
  }
  return null;
}
