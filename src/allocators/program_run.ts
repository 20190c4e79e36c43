/** One run of a program: started in a process group of its own, its memory polled, its processes ended with it. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type GroupEnd, startGroup } from "../inspect/index.js";
import {
  descendantsOf,
  readEnvironment,
  readRollup,
  readSmaps,
  readStatus,
} from "../linux/index.js";
import type { Bytes, Millis, Pid } from "../model/base/units.js";

const POLL_MS = 50;
const MS_PER_TICK = 10;
/** A process that has not loaded its libraries by then never will. */
const POLLS_FOR_PROOF = 200;

export interface ProgramRun extends GroupEnd {
  /** Last lines of its stderr. */
  readonly lastWords: string;
  readonly wallMs: Millis;
  /** Of the program and the children that it waited for; precise to 10 ms. */
  readonly cpuMs: Millis;
  readonly peakRssBytes: Bytes;
  readonly steadyRssBytes: Bytes;
  /** Whether `proof` was found in the program's process or a child. */
  readonly proven: boolean;
}

export interface RunRequest {
  readonly command: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** Evidence in a process that the setting is in force; asked until it is found. */
  readonly proof: (pid: Pid) => boolean;
  readonly until: AbortSignal;
}

/** Whether a file of this path is mapped into the process, by /proc/PID/smaps. */
export function hasMapped(pid: Pid, path: string): boolean {
  return (readSmaps(pid) ?? []).some((mapping) => mapping.path === path);
}

/** Whether the process was started with these variables, and has glibc mapped. */
export function hasVariables(pid: Pid, variables: Readonly<Record<string, string>>): boolean {
  const environment = readEnvironment(pid);
  return Object.entries(variables).every(([name, value]) => environment[name] === value);
}

export async function runProgram(request: RunRequest): Promise<ProgramRun> {
  const { command, environment, until } = request;
  const cpuBefore = childrenCpuMs();
  const started = performance.now();
  const { child, end } = startGroup({
    command,
    environment,
    until,
    endsDaemons: true,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let lastWords = "";
  child.stderr?.on("data", (piece: Buffer) => {
    lastWords = (lastWords + piece.toString("utf8")).slice(-4_000);
  });
  let ended = false;
  void end.then(() => {
    ended = true;
  });
  const memory = new MemoryPolls(request.proof);
  while (!ended && child.pid !== undefined) {
    memory.poll(child.pid);
    await Promise.race([end, sleep(POLL_MS)]);
  }
  const result = await end;
  return {
    ...result,
    lastWords: lastWords.trim(),
    wallMs: performance.now() - started,
    cpuMs: childrenCpuMs() - cpuBefore,
    peakRssBytes: memory.peakBytes,
    steadyRssBytes: memory.steadyBytes,
    proven: memory.proven,
  };
}

class MemoryPolls {
  readonly #proof: RunRequest["proof"];
  readonly #bytes: Bytes[] = [];
  #polls = 0;
  #peakBytes = 0;
  proven = false;

  constructor(proof: RunRequest["proof"]) {
    this.#proof = proof;
  }

  poll(root: Pid): void {
    const pids = descendantsOf(root);
    const statuses = pids.flatMap((pid) => readStatus(pid) ?? []);
    const sum =
      pids.length > 1
        ? pids.reduce((bytes, pid) => bytes + (readRollup(pid)?.pssBytes ?? 0), 0)
        : (statuses[0]?.rssBytes ?? 0);
    if (sum > 0) {
      this.#bytes.push(sum);
      const highest = Math.max(...statuses.map(({ vmHwmBytes }) => vmHwmBytes), sum);
      this.#peakBytes = Math.max(this.#peakBytes, highest);
    }
    if (!this.proven && this.#polls < POLLS_FOR_PROOF) {
      this.#polls += 1;
      this.proven = pids.some((pid) => this.#proof(pid));
    }
  }

  get peakBytes(): Bytes {
    return this.#peakBytes;
  }

  /** Median of the last third. */
  get steadyBytes(): Bytes {
    const late = this.#bytes.slice(Math.floor((this.#bytes.length * 2) / 3)).sort((a, b) => a - b);
    return late[Math.floor(late.length / 2)] ?? 0;
  }
}

/** CPU time of all children that this process has waited for (proc_pid_stat(5): cutime, cstime). */
function childrenCpuMs(): Millis {
  const text = readFileSync("/proc/self/stat", "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * MS_PER_TICK;
}
