/** Text about what is missing from a core file. */

import type { CoreGaps, Memory } from "../../linux/index.js";
import { formatBytes } from "../../model/base/numbers.js";

const NAMED = 3;

/** Nothing for a live process. @internal */
export function gapTexts(memory: Memory | { readonly gaps: CoreGaps }): string[] {
  if (!("gaps" in memory)) {
    return [];
  }
  const { truncatedBytes, missingFiles } = memory.gaps;
  const limits: string[] = [];
  if (truncatedBytes > 0) {
    limits.push(`the core file is cut off: ${formatBytes(truncatedBytes)} of memory are missing`);
  }
  if (missingFiles.length > 0) {
    limits.push(
      `not here, or not with the core's build id, so their code and constants are missing: ${names(missingFiles)}`,
    );
  }
  return limits;
}

function names(files: readonly string[]): string {
  const more = files.length - NAMED;
  return files.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
