/**
 * The process sizes of the last `ps`, in the user's cache folder, so that the next call can show growth. Losing
 * them does no harm, so nothing here ever fails.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import type { Bytes, Pid, TimeMs } from "../../model/base/units.js";

interface PreviousSizes {
  readonly timeMs: TimeMs;
  /** Key: pid and start ticks, which no two processes of a boot share. */
  readonly sizes: ReadonlyMap<string, Bytes>;
  /** The smallest size in any reading so far, by the same keys. */
  readonly least?: ReadonlyMap<string, Bytes>;
}

/** @internal */
export function processKey(pid: Pid, startTicks: number): string {
  return `${pid}:${startTicks}`;
}

/** null if there is none, or it cannot be read. @internal */
export function readPreviousSizes(path = defaultPath()): PreviousSizes | null {
  try {
    const { timeMs, sizes, least } = JSON.parse(readFileSync(path, "utf8")) as Record<
      string,
      unknown
    >;
    if (typeof timeMs !== "number" || typeof sizes !== "object" || sizes === null) {
      return null;
    }
    return {
      timeMs,
      sizes: sizesIn(sizes),
      ...(typeof least === "object" && least !== null ? { least: sizesIn(least) } : {}),
    };
  } catch {
    return null;
  }
}

function sizesIn(table: object): Map<string, Bytes> {
  return new Map(
    Object.entries(table).filter(
      (entry): entry is [string, number] => typeof entry[1] === "number",
    ),
  );
}

/** @internal */
export function writePreviousSizes(snapshot: PreviousSizes, path = defaultPath()): void {
  try {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    const { timeMs, sizes, least } = snapshot;
    const text = JSON.stringify({
      timeMs,
      sizes: Object.fromEntries(sizes),
      ...(least === undefined ? {} : { least: Object.fromEntries(least) }),
    });
    const neighbour = `${path}.${process.pid}`;
    writeFileSync(neighbour, text, { mode: 0o600 });
    renameSync(neighbour, path);
  } catch {
    // The home directory is read-only: the next call shows no growth.
  }
}

/** Per host, because home directories may be shared but pids are not. */
function defaultPath(): string {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(cache, "tidemark", `ps-${hostname().replace(/[^\w.-]/g, "_")}.json`);
}
