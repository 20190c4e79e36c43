/** How much memory an analysis may take here. */
import { freemem } from "node:os";
import { findCgroup, readLimiting, readPageCache } from "../../linux/index.js";
import type { Bytes } from "../../model/base/units.js";

/** Of the memory that is free. */
const FREE_SHARE = 0.7;

/** What this machine, and the control group that this command runs in, have to spare: a tool that looks for
 * lost memory must not be what the OOM killer is called for. @internal */
export function spareMemory(): Bytes {
  const place = findCgroup(process.pid);
  const group = place === null ? null : readLimiting(place);
  const free = freemem();
  if (group === null || group.limitBytes === null) {
    return free * FREE_SHARE;
  }
  const { limitBytes, usageBytes, directory } = group;
  // The kernel gives up clean pages of files before it kills.
  const used = Math.max(0, usageBytes - (readPageCache(directory) ?? 0));
  return Math.min(free, Math.max(0, limitBytes - used)) * FREE_SHARE;
}
