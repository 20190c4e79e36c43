import { createHash } from "node:crypto";
import { closeSync, mkdirSync, mkdtempSync, openSync, statSync, symlinkSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { inspectProgram, type ProgramAnswer } from "../../linux/index.js";
import { LIBRARY_PATH } from "../../linux/installation.js";
import type { Pid } from "../../model/base/units.js";
import { oneLine, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { CONSTANTS } from "../../segment/layout.js";
import { PoolReader } from "../../segment/pool.js";
import type { GuardClient } from "./guard.js";
import type { RunOptions } from "./run_options.js";

/** errno, include/uapi/asm-generic/errno-base.h. */
const EFBIG = 27;

/** The pool of a run whose program gets the agent. */
export interface Preload {
  readonly pool: PoolReader;
  /** Our descriptor, open for reading and writing. */
  readonly descriptor: number;
  readonly guardPid: Pid;
  readonly guardDescriptor: number;
  close(): void;
}

/**
 * Creates the pool and sends the guard the variables to add to the program's environment; null, with a note about the
 * reason, if no agent can run in the program.
 */
export async function preparePreload(
  guard: GuardClient,
  options: RunOptions,
  notes: string[],
): Promise<Preload | null> {
  const reason = obstacle(options);
  if (reason !== null) {
    notes.push(reason);
    return null;
  }
  const library = preloadablePath(LIBRARY_PATH);
  if (library === null) {
    notes.push(
      `No agent: ${oneLine(LIBRARY_PATH)} has a space or a colon in it and could not be linked elsewhere.`,
    );
    return null;
  }
  const period = Math.round(options.periodBytes ?? CONSTANTS.TM_DEFAULT_PERIOD);
  const answer = await guard.makePool(CONSTANTS.TM_DEFAULT_SLOT_COUNT, period, optionBits(options));
  if (!answer.made) {
    const reason =
      answer.errno === EFBIG
        ? `${answer.reason}: the hard limit of ulimit -f is too low for it`
        : answer.reason;
    notes.push(
      `No agent: its memory could not be created (${reason}); only metrics from /proc are recorded.`,
    );
    return null;
  }
  const path = `/proc/${answer.guardPid}/fd/${answer.descriptor}`;
  let descriptor: number | null = null;
  try {
    descriptor = openSync(path, "r+");
    const opened = descriptor;
    const pool = new PoolReader(opened);
    const before = options.environment?.LD_PRELOAD ?? process.env.LD_PRELOAD;
    guard.setEnvironment("LD_PRELOAD", before ? `${library}:${before}` : library);
    guard.setEnvironment("TIDEMARK", `pool=${path}`);
    return {
      pool,
      descriptor: opened,
      guardPid: answer.guardPid,
      guardDescriptor: answer.descriptor,
      close: () => closeSync(opened),
    };
  } catch (error) {
    if (descriptor !== null) {
      closeSync(descriptor);
    }
    const why = error instanceof TidemarkError ? error.what : reasonOf(error).message;
    notes.push(
      `No agent: its memory could not be opened (${oneLine(why)}); only metrics from /proc are recorded.`,
    );
    return null;
  }
}

function optionBits(options: RunOptions): number {
  const native = options.native ? CONSTANTS.TM_OPTION_NATIVE : 0;
  const copies = options.copies ? CONSTANTS.TM_OPTION_COPIES : 0;
  return native | copies | (options.follow === false ? CONSTANTS.TM_OPTION_NO_FOLLOW : 0);
}

/** Why no agent can run in the program: one sentence, or null. */
function obstacle(options: RunOptions): string | null {
  if (process.env.TIDEMARK === "off") {
    return "No agent: TIDEMARK=off is set; only metrics from /proc are recorded.";
  }
  if (!isFile(LIBRARY_PATH)) {
    return `No agent: ${oneLine(LIBRARY_PATH)} is missing (install Tidemark again, or build it in a clone: npm run build); only metrics from /proc are recorded.`;
  }
  return preloadObstacle(inspectProgram(options.command));
}

/** The sentence for a program into which a library cannot be preloaded, or which it would break. */
function preloadObstacle({ kind, path }: ProgramAnswer): string | null {
  const name = oneLine(path);
  const only = "only metrics from /proc are recorded.";
  switch (kind) {
    case "static":
      return `No agent: ${name} is statically linked, so no library can be preloaded; ${only}`;
    case "musl":
      return `No agent: ${name} is built for musl, but the agent needs glibc; ${only}`;
    case "foreign-loader":
      return `No agent: ${name} uses another loader than glibc's; ${only}`;
    case "32-bit":
      return `No agent: ${name} is a 32-bit program, but the agent is 64-bit; ${only}`;
    case "other-machine":
      return `No agent: ${name} is built for another processor; ${only}`;
    case "setuid":
      return `No agent: ${name} runs as another user or group (set-user-id), so the loader ignores preloaded libraries; ${only}`;
    default:
      return null; // glibc; otherwise exec itself reports the error
  }
}

/**
 * ld.so treats spaces and colons in LD_PRELOAD as separators, so such a path gets a link elsewhere. The link is
 * kept, because children of the program that outlive the run may still be started with it.
 */
function preloadablePath(path: string): string | null {
  if (!/[\s:]/.test(path)) {
    return path;
  }
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tidemark");
  const name = createHash("sha256").update(path).digest("hex").slice(0, 16);
  const makers = [
    () => {
      const directory = join(cache, "libraries", name);
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      return directory;
    },
    () => mkdtempSync(join(tmpdir(), "tidemark-")),
  ];
  for (const make of makers) {
    try {
      const link = join(make(), basename(path).replace(/[\s:]/g, "_"));
      if (!/[\s:]/.test(link)) {
        if (!isFile(link)) {
          symlinkSync(path, link);
        }
        return link;
      }
    } catch {
      // The next folder may be writable.
    }
  }
  return null;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
