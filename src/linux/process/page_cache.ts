import type { Bytes } from "../../model/base/units.js";
import { readText } from "./proc_files.js";

/** File pages that count against a control group: its directory as {@link CgroupMemory} has it. null where
 * the kernel does not tell. Source: memory.stat of version 2 ("file") and 1 ("total_cache"). */
export function readPageCache(directory: string): Bytes | null {
  const text = readText(`${directory}/memory.stat`) ?? "";
  const found = /^(?:file|total_cache) (\d+)$/m.exec(text);
  return found ? Number(found[1]) : null;
}
