/**
 * Dumps of NCCL's Flight Recorder: files that torch itself writes when a collective operation hangs or fails, one for each
 * rank. They are copied beside the snapshots of the allocator.
 *
 * torch appends the rank to a name from the program's environment, or to its default:
 *
 *     TORCH_FR_DUMP_TEMP_FILE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE                named: torch writes only there
 *     $XDG_CACHE_HOME/torch/comm_lib_trace_rank_, $HOME/.cache/torch/...      versions that know the first variable
 *     /tmp/nccl_trace_rank_                                                   older versions
 *
 * The environment may name any file: only a regular file of the program's own user, below the program's root, that was
 * written since the process started, is read.
 */
import { closeSync, fstatSync, openSync, readSync, rmSync, type Stats, writeSync } from "node:fs";
import { join } from "node:path";
import {
  openFileBelow,
  readEnvironment,
  readRank,
  readStat,
  readStatus,
  startTimeMs,
} from "../../linux/index.js";
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";

/** The newer name first: torch prefers it. */
const VARIABLES = ["TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"];
const DEFAULT_NAME = "torch/comm_lib_trace_rank_";
const OLDER_DEFAULT = "/tmp/nccl_trace_rank_";
/** The start of a process is known in units of 10 ms, of two clocks. */
const START_ERROR_MS: Millis = 20;
/** A dump of the usual 2,000 entries has a few MiB. */
const MOST_BYTES: Bytes = 64 << 20;
const PIECE_BYTES: Bytes = 1 << 20;

/** `name`: of the copy in the folder; `why`: the reason why there is none. Throws an Error of the disk. */
export function copyFlightRecorder(
  pid: Pid,
  folder: string,
): { readonly name: string } | { readonly why: string } {
  const rank = readRank(pid);
  const uid = readStatus(pid)?.uid;
  const startTicks = readStat(pid)?.startTicks;
  if (rank === null || uid === undefined || startTicks === undefined) {
    return { why: "it has no rank, so it has no dump" };
  }
  const sinceMs = startTimeMs(startTicks) - START_ERROR_MS;
  const paths = dumpStarts(readEnvironment(pid)).map((start) => `${start}${rank}`);
  let refused: string | null = null;
  for (const path of paths) {
    const source = path.startsWith("/") ? openFileBelow(`/proc/${pid}/root`, path) : null;
    if (source === null) {
      continue;
    }
    try {
      const why = whyNot(fstatSync(source), uid, sinceMs);
      if (why === null) {
        const name = `flight-recorder-${pid}.dump`;
        copy(source, join(folder, name));
        return { name };
      }
      refused ??= why;
    } finally {
      closeSync(source);
    }
  }
  return { why: refused ?? `no dump can be read at ${paths.join(" or ")}` };
}

function dumpStarts(environment: Readonly<Record<string, string | undefined>>): string[] {
  const named = VARIABLES.map((name) => environment[name] ?? "").filter((text) => text !== "");
  if (named.length > 0) {
    return named;
  }
  const { XDG_CACHE_HOME: cache = "", HOME: home = "/tmp" } = environment;
  const caches = [cache, join(home, ".cache")].filter((folder) => folder !== "");
  return [...caches.map((folder) => join(folder, DEFAULT_NAME)), OLDER_DEFAULT];
}

/** null: the file is the program's own dump. */
function whyNot(
  { uid, nlink, size, mtimeMs }: Stats,
  owner: number,
  sinceMs: TimeMs,
): string | null {
  if (uid !== owner || nlink !== 1) {
    return "its dump belongs to another user or has several names, so it is not read";
  }
  if (mtimeMs < sinceMs) {
    return "its dump is older than the process";
  }
  return size > MOST_BYTES
    ? `its dump has ${formatBytesBriefly(size)}, more than ${formatBytesBriefly(MOST_BYTES)}`
    : null;
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
