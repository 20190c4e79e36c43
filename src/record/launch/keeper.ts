/** The pool of an attached process, kept by `tidemark-guard keep` (agent/guard/keep.c). */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Bytes, Pid } from "../../model/base/units.js";
import { fileUnusable, internalError, notInstalled } from "../../model/errors/errors.js";
import { PoolReader } from "../../segment/pool.js";

export class PoolKeeper {
  readonly #guard: ChildProcess;

  private constructor(
    guard: ChildProcess,
    readonly pid: Pid,
    /** Its descriptor of the pool. */
    readonly fd: number,
    readonly pool: PoolReader,
    /** Ours. */
    readonly descriptor: number,
  ) {
    this.#guard = guard;
  }

  /** Throws TidemarkError if the pool cannot be created. `folder`: the folder of tidemark-guard. */
  static async open(
    folder: string,
    slots: number,
    periodBytes: Bytes,
    options: number,
  ): Promise<PoolKeeper> {
    const path = join(folder, "tidemark-guard");
    // In its own session, so that a terminal's Ctrl-C reaches only the recorder, which then ends in order.
    const guard = spawn(path, ["keep"], { stdio: ["pipe", "pipe", "ignore"], detached: true });
    const answer = await new Promise<string>((resolve, reject) => {
      guard.on("error", () => reject(notInstalled(`${path} is missing`)));
      guard.on("close", () => reject(internalError(new Error("the pool's keeper has ended"))));
      guard.stdin?.on("error", () => {});
      guard.stdout?.setEncoding("utf8").once("data", resolve);
      guard.stdin?.write(`pool\t${slots}\t${periodBytes}\t${options}\n`);
    });
    const [verb, first, second] = answer.trimEnd().split("\t");
    if (verb !== "pool") {
      throw fileUnusable("the agent's memory", "write", second ?? "it cannot be made");
    }
    const descriptor = openSync(`/proc/${first}/fd/${second}`, "r+");
    guard.unref();
    return new PoolKeeper(
      guard,
      Number(first),
      Number(second),
      new PoolReader(descriptor),
      descriptor,
    );
  }

  /** Path for a process of the same pid namespace and user. */
  get path(): string {
    return `/proc/${this.pid}/fd/${this.fd}`;
  }

  /** Where the used slots are written if this process dies; the next reader of the recording merges them. */
  setOrphan(path: string): void {
    const escaped = path.replace(/[\\\t\n]/g, (c) =>
      c === "\t" ? "\\t" : c === "\n" ? "\\n" : "\\\\",
    );
    this.#guard.stdin?.write(`orphan\t${escaped}\n`);
  }

  close(): void {
    this.#guard.stdin?.end("leave\n");
    closeSync(this.descriptor);
  }
}
