/**
 * The number of requests that a program counts with the middleware of the Python package (python/tidemark/_request_count.py),
 * in a private mapping with a name:
 *
 *   7f31c0a00000-7f31c0a01000 rw-p 00000000 00:01 2053    /memfd:tidemark-requests (deleted)
 *     0   "TMREQ" 0 0 1
 *     8   u64  pid of the process that counts, in its own namespace
 *    16   u64  requests since that process started
 *
 * A child that was forked without Python's hooks still has its parent's pid there.
 */
import { closeSync, openSync, readSync } from "node:fs";
import type { Address, Pid } from "../../model/base/units.js";
import { orNull, readText } from "../process/proc_files.js";
import { parseMaps } from "./maps.js";

const NAME = "/memfd:tidemark-requests";
const MAGIC = Buffer.from("TMREQ\0\0\u0001", "latin1");
const SIZE = 24;

export interface RequestCount {
  readonly requests: number;
  /** The process that counts, by the number it has in its own namespace. */
  readonly countingPid: Pid;
}

/** null: the program counts none, or its memory is not readable. */
export function findRequestCount(pid: Pid): Address | null {
  const maps = readText(`/proc/${pid}/maps`);
  if (maps === null || !maps.includes(NAME)) {
    return null;
  }
  return parseMaps(maps).find(({ path }) => path === NAME)?.start ?? null;
}

/** null: there is none at this address (any more), or the memory is not readable. */
export function readRequestCount(pid: Pid, address: Address): RequestCount | null {
  const bytes = Buffer.alloc(SIZE);
  const got = orNull(() => {
    const memory = openSync(`/proc/${pid}/mem`, "r");
    try {
      return readSync(memory, bytes, 0, SIZE, address);
    } finally {
      closeSync(memory);
    }
  });
  if (got !== SIZE || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    return null;
  }
  return {
    requests: Number(bytes.readBigUInt64LE(16)),
    countingPid: Number(bytes.readBigUInt64LE(8)),
  };
}
