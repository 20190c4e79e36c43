/** A type's name as written in source: `module.qualname`, without `builtins.`; and its module. */
import type { Memory } from "../../../linux/memory/memory.js";
import type { Address } from "../../../model/base/units.js";
import type { HeapLayout } from "../memory/layout.js";
import { readCString, readDictEntries, readStr, readWords } from "./small_objects.js";

const TP_NAME = 24;
const TP_DICT = 264;

export interface TypeName {
  readonly name: string;
  /** "builtins" for built-in types. */
  readonly module: string;
}

export function readTypeName(
  memory: Memory,
  layout: HeapLayout,
  type: Address,
  heapType: boolean,
): TypeName {
  const pointer = readWords(memory, type + TP_NAME, 1)?.[0] ?? 0;
  const full = readCString(memory, pointer) ?? "";
  const found = heapType ? readHeapTypeName(memory, layout, type, full) : null;
  if (found !== null) {
    return found;
  }
  return full === ""
    ? { name: `type at 0x${type.toString(16)}`, module: "" }
    : named(
        full.slice(0, Math.max(0, full.lastIndexOf("."))),
        full.slice(full.lastIndexOf(".") + 1),
      );
}

function named(module: string, qualname: string): TypeName {
  return module === "" || module === "builtins"
    ? { name: qualname, module: "builtins" }
    : { name: `${module}.${qualname}`, module };
}

function readHeapTypeName(
  memory: Memory,
  layout: HeapLayout,
  type: Address,
  full: string,
): TypeName | null {
  const qualname = readWords(memory, type + layout.heapTypeQualname, 1)?.[0] ?? 0;
  const text = readStr(memory, layout, qualname);
  if (text === null) {
    return null;
  }
  const dict = readWords(memory, type + TP_DICT, 1)?.[0] ?? 0;
  for (const { key, value } of readDictEntries(memory, layout, dict) ?? []) {
    if (readStr(memory, layout, key, 16) === "__module__") {
      const module = readStr(memory, layout, value);
      return named(module ?? "", text);
    }
  }
  // A type created from a C specification includes its module in its name.
  return named(full.endsWith(`.${text}`) ? full.slice(0, -text.length - 1) : "", text);
}
