/** Processes that ran out of memory, each with a sentence about what used it. */
import { float64At, uint8At, uint16At } from "../../model/base/columns.js";
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import type { MemoryEndJson } from "../../model/documents/summary_document.js";
import { type MemoryEnd, memoryEndSentence } from "../../model/profile/memory_end.js";
import { Domain, type Profile } from "../../model/profile/profile.js";
import type { Recording } from "../../recording/types.js";

/** Empty if none did. @internal */
export function memoryEndsOf(recording: Recording): MemoryEndJson[] {
  return recording.memoryEnds.map((end) => {
    const live = liveAtEnd(recording, end);
    const parts = live === null ? [] : partsOf(live);
    const sentence = memoryEndSentence(end, recording.meta.pid);
    return {
      ...end,
      evidence: [...end.evidence],
      ...(live === null ? {} : live),
      sentence: `${sentence}${parts.length === 0 ? "" : `${isPart(live, end) ? ", of which" : "; live:"} ${parts.join(", ")}`}.`,
    };
  });
}

/** Blocks may be live and not resident, and the last reading of RSS may be older than the profile. */
function isPart(live: LiveBytes | null, { rssBytes, usedBytes }: MemoryEnd): boolean {
  return live !== null && live.pythonBytes + live.nativeBytes <= (rssBytes || usedBytes);
}

interface LiveBytes {
  pythonBytes: Bytes;
  nativeBytes: Bytes;
}

function partsOf({ pythonBytes, nativeBytes }: LiveBytes): string[] {
  return [
    pythonBytes > 0 ? `Python objects ${formatBytesBriefly(pythonBytes)}` : "",
    nativeBytes > 0 ? `native ${formatBytesBriefly(nativeBytes)}` : "",
  ].filter((part) => part !== "");
}

/**
 * The last snapshot of a killed process shows its full heap. A process that ended by an exception has freed
 * most of it, and a child's heap is gone with the child; for these the peak shows what used the memory.
 */
function liveAtEnd(recording: Recording, { pid, cause }: MemoryEnd): LiveBytes | null {
  if (recording.snapshots.length === 0) {
    return null;
  }
  const last = liveOf(recording.profileAt("end"), pid);
  const isWhole = cause !== "rlimit" && last.pythonBytes + last.nativeBytes > 0;
  const live = isWhole ? last : liveOf(recording.profileAt("peak"), pid);
  return live.pythonBytes + live.nativeBytes > 0 ? live : null;
}

function liveOf({ processes, sites }: Profile, pid: Pid): LiveBytes {
  const live = { pythonBytes: 0, nativeBytes: 0 };
  for (let row = 0; row < sites.length; row++) {
    if (processes[uint16At(sites.process, row)]?.pid === pid) {
      const name = uint8At(sites.domain, row) === Domain.python ? "pythonBytes" : "nativeBytes";
      live[name] += float64At(sites.liveBytes, row);
    }
  }
  return { pythonBytes: Math.round(live.pythonBytes), nativeBytes: Math.round(live.nativeBytes) };
}
