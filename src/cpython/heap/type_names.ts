/** A type's name as a person writes it: `module.qualname`, without `builtins.`. */
import type { Memory } from "../../linux/memory.js";
import type { Address } from "../../model/units.js";
import type { HeapLayout } from "./layout.js";
import { readCString, readDictEntries, readStr, readWords } from "./small_objects.js";

const TP_NAME = 24;
const TP_DICT = 264;

export function readTypeName(
  memory: Memory,
  layout: HeapLayout,
  type: Address,
  heapType: boolean,
): string {
  const pointer = readWords(memory, type + TP_NAME, 1)?.[0] ?? 0;
  const full = readCString(memory, pointer) ?? "";
  const name = heapType ? (readHeapTypeName(memory, layout, type, full) ?? full) : full;
  return name === "" ? `type at 0x${type.toString(16)}` : name.replace(/^builtins\./, "");
}

function readHeapTypeName(
  memory: Memory,
  layout: HeapLayout,
  type: Address,
  full: string,
): string | null {
  const qualname = readWords(memory, type + layout.heapTypeQualname, 1)?.[0] ?? 0;
  const text = readStr(memory, layout, qualname);
  if (text === null) {
    return null;
  }
  const dict = readWords(memory, type + TP_DICT, 1)?.[0] ?? 0;
  for (const { key, value } of readDictEntries(memory, layout, dict) ?? []) {
    if (readStr(memory, layout, key, 16) === "__module__") {
      const module = readStr(memory, layout, value);
      return module === null ? text : `${module}.${text}`;
    }
  }
  // A type made from a C specification is named with its module.
  return full.endsWith(text) && full.length > text.length ? full : text;
}
