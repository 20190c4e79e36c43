/**
 * Programs and a collector for tests. Every policy here ends with a rule for all others, because other tests
 * record programs on the same machine.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach } from "vitest";
import { present } from "../../src/model/base/present.js";
import { TidemarkError } from "../../src/model/errors/errors.js";
import { anyInterpreter } from "../environment.js";
import { open, plainEnvironment, removeScratch, scratch, tidemark } from "../run.js";

export const LEAK = `import os, time
kept = []
def remember():
    kept.append(os.urandom(200_000))
while True:
    remember()
    time.sleep(0.02)
`;
export const IDLE = "import time\nwhile True: time.sleep(0.1)\n";
/** A master that only waits for its workers, as gunicorn's does. */
export const MASTER = `import os, time
for _ in range(2):
    if os.fork() == 0:
        kept = []
        while True:
            kept.append(os.urandom(100_000))
            time.sleep(0.05)
while True: time.sleep(0.1)
`;

/** Created for each test, and killed after it. */
export class WatchTest {
  readonly folder = scratch();
  readonly children: ChildProcess[] = [];
  /** Variables of the collectors that are started from now on. */
  environment: Readonly<Record<string, string>> = {};
  /** Unique, so that the rules match the programs of this test alone. */
  readonly name = `watched-${process.pid}-${Math.trunc(performance.now())}`;

  /** `words` before the interpreter, such as a shell that enters a control group; `options` for the program, whose output is then piped. */
  python(
    program: string,
    service: string,
    words: readonly string[] = [],
    options: readonly string[] = [],
  ): ChildProcess {
    const [file = "", ...args] = [...words, anyInterpreter().path, "-c", program, ...options];
    const child = spawn(file, args, {
      env: {
        ...process.env,
        TIDEMARK_SERVICE: `${this.name}-${service}`,
        TIDEMARK_VERSION: "7",
      },
      stdio: ["ignore", options.length > 0 ? "pipe" : "ignore", "ignore"],
      detached: true,
    });
    this.children.push(child);
    return child;
  }

  /** `rules`: lines before those of every test. @returns its path */
  policy(defaults = "{warm_up: 1s}", rules: readonly string[] = []): string {
    const path = join(this.folder, "policy.yaml");
    const { name } = this;
    const all = [
      ...rules,
      `{match: {service: "${name}-outside"}, watch: outside}`,
      `{match: {service: "${name}-never"}, watch: never}`,
      `{match: {service: "${name}-*"}}`,
      "{match: {}, watch: never}",
    ];
    writeFileSync(
      path,
      `defaults: ${defaults}\nselect:\n${all.map((rule) => `  - ${rule}\n`).join("")}`,
    );
    return path;
  }

  watch(...options: string[]): { child: ChildProcess; said: () => string } {
    const words = ["watch", "--folder", this.recordingsFolder, ...options];
    const child = spawn(tidemark, words, {
      env: { ...plainEnvironment(this.folder), ...this.environment },
      cwd: this.folder,
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    this.children.push(child);
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    return { child, said: () => said };
  }

  get recordingsFolder(): string {
    return join(this.folder, "recordings");
  }

  recordings(): string[] {
    return existsSync(this.recordingsFolder)
      ? readdirSync(this.recordingsFolder)
          .filter((name) => name.endsWith(".tidemark"))
          .sort()
      : [];
  }

  /** Folders with captures of triggers. */
  artifacts(): string[] {
    const folder = join(this.recordingsFolder, "artifacts");
    return existsSync(folder)
      ? readdirSync(folder)
          .sort()
          .map((name) => join(folder, name))
      : [];
  }

  recordingOf(service: string, agent: boolean): string | undefined {
    return this.recordings()
      .filter((file) => file.startsWith(`${this.name}-${service}-`))
      .map((file) => join(this.recordingsFolder, file))
      .find((path) => this.#recordsAgent(path) === agent);
  }

  /** null while its first frame is being written. */
  #recordsAgent(path: string): boolean | null {
    try {
      return open(path).snapshots.length > 0;
    } catch (error) {
      if (
        error instanceof TidemarkError &&
        /before its first frame|it is empty/.test(error.message)
      ) {
        return null;
      }
      throw error;
    }
  }

  isOurs({ service }: { readonly service: string }): boolean {
    return service.startsWith(`${this.name}-`);
  }

  async end(): Promise<void> {
    await Promise.all(
      this.children.map(async (child) => {
        const exit =
          child.exitCode === null && child.signalCode === null ? once(child, "exit") : null;
        // The whole group, because a master's workers outlive it.
        killGroup(present(child.pid));
        child.kill("SIGKILL");
        await exit;
      }),
    );
  }
}

/** @returns the current test's, made before it and ended after it. */
export function withWatchTest(): () => WatchTest {
  let current: WatchTest | null = null;
  beforeEach(() => {
    current = new WatchTest();
  });
  afterEach(() => current?.end());
  afterAll(removeScratch);
  return () => present(current);
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All processes have ended.
  }
}

/** Ends a collector; resolves once its last words have been read, too. */
export async function stopped(child: ChildProcess): Promise<number | null> {
  const closed = once(child, "close");
  child.kill("SIGTERM");
  await closed;
  return child.exitCode;
}
