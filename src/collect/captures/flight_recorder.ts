/**
 * Dumps of NCCL's Flight Recorder: files that torch itself writes when a collective operation hangs or fails, one for each
 * rank. They are copied beside the snapshots of the allocator.
 *
 * The environment of the program names the file, so it may name any: only a regular file of the program's own user, below
 * the program's root, is read.
 */
import { closeSync, fstatSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { openFileBelow, readEnvironment, readRank, readStatus } from "../../linux/index.js";
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { Bytes, Pid } from "../../model/base/units.js";

/** The newer name first. torch appends the rank. */
const VARIABLES = ["TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"];
/** Where torch writes without them. */
const USUAL_START = "/tmp/nccl_trace_rank_";
/** A dump of the usual 2,000 entries has a few MiB. */
const MOST_BYTES: Bytes = 64 << 20;
const PIECE_BYTES: Bytes = 1 << 20;

/** `name`: of the copy in the folder; `why`: the reason why there is none. Throws an Error of the disk. */
export function copyFlightRecorder(
  pid: Pid,
  folder: string,
): { readonly name: string } | { readonly why: string } {
  const environment = readEnvironment(pid);
  const start = VARIABLES.map((name) => environment[name] ?? "").find((text) => text !== "");
  const rank = readRank(pid);
  const uid = readStatus(pid)?.uid;
  if (rank === null || uid === undefined) {
    return { why: "it has no rank, so it has no dump" };
  }
  const path = `${start ?? USUAL_START}${rank}`;
  const source = path.startsWith("/") ? openFileBelow(`/proc/${pid}/root`, path) : null;
  if (source === null) {
    return { why: "there is no dump, because no collective operation failed" };
  }
  try {
    const { uid: owner, nlink, size } = fstatSync(source);
    if (owner !== uid || nlink !== 1) {
      return { why: "its dump belongs to another user or has several names, so it is not read" };
    }
    if (size > MOST_BYTES) {
      return {
        why: `its dump has ${formatBytesBriefly(size)}, more than ${formatBytesBriefly(MOST_BYTES)}`,
      };
    }
    const name = `flight-recorder-${pid}.dump`;
    copy(source, join(folder, name));
    return { name };
  } finally {
    closeSync(source);
  }
}

/** At most the limit, also of a file that grows meanwhile. */
function copy(source: number, path: string): void {
  const target = openSync(path, "wx", 0o600);
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    for (let left = MOST_BYTES; left > 0; ) {
      const got = readSync(source, piece, 0, Math.min(left, piece.length), null);
      if (got === 0) {
        break;
      }
      for (let sent = 0; sent < got; ) {
        sent += writeSync(target, piece, sent, got - sent);
      }
      left -= got;
    }
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(target);
  }
}
