/**
 * `serve --watch`: the collector of this host beside the server, in a process of its own. The channel between the two
 * carries nothing: it breaks when the server dies, however that happens, and the collector takes that as an interrupt.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** How long detaching from the programs may take. */
const LEAVE_MS = 20_000;

/** Throws TidemarkError for a policy that the collector, which starts once the server listens, would refuse. */
export async function checkPolicy(path: string): Promise<void> {
  const { readPolicy } = await import("../../collect/index.js");
  readPolicy(path);
}

export class WatcherBeside {
  #child: ChildProcess | null = null;

  /** `ended` is called if it ends without being stopped. */
  start(url: string, policy: string | undefined, ended: (code: number | null) => void): void {
    const main = process.argv[1] ?? "";
    const words = ["watch", "--to", url, ...(policy === undefined ? [] : ["--config", policy])];
    const child = spawn(process.execPath, [...process.execArgv, main, ...words], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#child = child;
    child.once("exit", (code) => {
      if (this.#child === child) {
        this.#child = null;
        ended(code);
      }
    });
  }

  /** Resolves once it has detached from every program, or when the time is over. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) {
      return;
    }
    const exit = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), LEAVE_MS);
    await exit;
    clearTimeout(timer);
  }
}
