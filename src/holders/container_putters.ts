/**
 * Who puts things into a container that grows: functions of the program's own code with a line that names it and stores
 * under keys or calls a method that adds; where there is none, those that do so somewhere. What they put was often made
 * elsewhere, and no sample tells the way it took:
 *
 *     parse() makes ──> handle() passes on ──> observe():  self.by_route[key] = record
 *     sampled                                              read from its code
 */

import type { CodeUses, LineUses } from "../cpython/heap/objects/code_uses.js";
import { itemAt } from "../model/base/columns.js";
import { present } from "../model/base/present.js";
import { isOwn } from "../model/documents/own_code.js";
import type { Putter } from "../recording/types.js";

/** More may be any of them. */
const MOST_PUTTERS = 3;
/** Methods of lists, deques, sets, dicts and queues, and what registries are wont to call theirs. */
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

/** Of those, what may put an empty container there. */
const MAKING_ROOM: ReadonlySet<string> = new Set(["setdefault", "update"]);

/** Functions that are given what they add to. */
const ADDING_TO: ReadonlySet<string> = new Set([
  "heappush",
  "insort",
  "insort_left",
  "insort_right",
]);

/** By their first lines; empty where the path ends in no name, or more than a few may be meant. `isNested`: what grows
 * is not the container, but those in it: a line must name it and add, for one that stores may put an empty one there. */
export function puttersInto(
  path: readonly string[],
  uses: readonly CodeUses[],
  isNested = false,
): Putter[] {
  const name = containerName(path);
  if (name === null) {
    return [];
  }
  const adds = ({ names, storesItems }: LineUses) => {
    const at = names.indexOf(name);
    const adding = (one: string, place: number) =>
      ADDING_TO.has(one) || (ADDING.has(one) && place > at && !(isNested && MAKING_ROOM.has(one)));
    return at >= 0 && ((storesItems && !isNested) || names.some(adding));
  };
  const ofLine = uses.filter(({ lines }) => lines.some(adds));
  // It may have another name on the way.
  const putters =
    ofLine.length > 0 || isNested ? ofLine : uses.filter(({ lines }) => adds(together(lines)));
  return putters.length > MOST_PUTTERS ? [] : putters.map((putter) => putterOf(putter, uses));
}

function putterOf(
  { function: name, file, firstLine }: CodeUses,
  uses: readonly CodeUses[],
): Putter {
  const bare = present(name.split(".").at(-1));
  const callers = uses.filter(({ lines }) => lines.some(({ names }) => names.includes(bare)));
  return {
    function: name,
    file,
    line: firstLine,
    callers: callers.map((caller) => caller.function),
  };
}

function together(lines: readonly LineUses[]): LineUses {
  return {
    names: lines.flatMap(({ names }) => names),
    storesItems: lines.some(({ storesItems }) => storesItems),
  };
}

/** Code of whose file is the program's own. */
export function isOwnFile(file: string): boolean {
  return isOwn({ function: "", file, line: 0, kind: "python" });
}

const NAMED = /^(?:\.|local |closure variable |default of )([A-Za-z_]\w*)$/;

/** "dict[...]": of many alike, each is an item of what is named before. */
const ITEM = /\[.*\]$/;

/** The last variable or attribute on the way: ".by_route", "local seen"; of a module its global. */
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
