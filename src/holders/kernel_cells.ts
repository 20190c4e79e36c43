/**
 * Numbers of notebook cells. A kernel compiles each cell under a file name made from a hash of its text, and
 * keeps the number of the last execution for its tracebacks:
 *
 *     CachingCompiler ── _filename_map ──> {"/tmp/ipykernel_71/2750.py": 5, ...}
 *
 * Source: IPython/core/compilerop.py, ipykernel/compiler.py.
 */

import { nodesOfType, type ObjectGraph } from "../cpython/heap/index.js";
import { addressAt } from "../cpython/heap/names/attributes.js";
import { readIntAt } from "../cpython/heap/names/values.js";
import { readDictEntries, readStr } from "../cpython/heap/objects/small_objects.js";
import { isKernelCell } from "../model/profile/frame_text.js";
import type { NotebookCell } from "../recording/types.js";

const COMPILER = /(?:^|\.)X?CachingCompiler$/;
const LONGEST_FILE = 4096;
const MOST_CELLS = 10_000;

/** Empty if the program is not a notebook kernel. */
export function kernelCells(objects: ObjectGraph): NotebookCell[] {
  const { copy, layout, graph } = objects;
  return graph.typeNames
    .filter((name) => COMPILER.test(name))
    .flatMap((type) => nodesOfType(objects, type))
    .flatMap((compiler) => {
      const names = addressAt(objects, compiler, "_filename_map");
      return (names === null ? null : readDictEntries(copy, layout, names, MOST_CELLS)) ?? [];
    })
    .flatMap(({ key, value }) => {
      const file = readStr(copy, layout, key, LONGEST_FILE) ?? "";
      const number = Number(readIntAt(objects, value) ?? Number.NaN);
      return isKernelCell(file) && Number.isSafeInteger(number) ? [{ file, number }] : [];
    });
}
