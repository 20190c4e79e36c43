/**
 * The names that a program gave its threads: before Python 3.14 the kernel does not know them, and since then
 * only the first 15 characters. They are read from outside while the program runs:
 *
 *   new threads in a snapshot --> threading._active of the process --> names by thread id
 *
 * Finding an interpreter takes a tenth of a second once, and each reading a millisecond, so names are read only
 * if there are threads to name, and for at most a small share of the time. If the program cannot be read
 * (ended, not permitted, unknown) or has no name for a thread, the kernel's name is used.
 */
import { locatePython, type PythonRuntime, threadNames } from "../../cpython/index.js";
import { openProcessMemory } from "../../linux/index.js";
import { monotonicMs, threadCpu } from "../../linux/this_process/clock.js";
import type { Millis, Pid, TimeMs } from "../../model/base/units.js";
import { orNull } from "../../model/errors/errors.js";

/** CPU time for names: this much at once, and this share of the time. */
const FREE_MS: Millis = 100;
const SHARE = 0.0003;
/** Number of interpreters that are kept open, each of which holds megabytes of pages. */
const MOST_OPEN = 4;

export class ThreadNames {
  readonly #open = new Map<string, PythonRuntime>();
  readonly #begunMs = monotonicMs();
  #spentMs: Millis = 0;

  /** By a thread's id in its own pid namespace; null: not available now, retry later. */
  names(pid: Pid, startedMs: TimeMs): ReadonlyMap<number, string> | null {
    if (this.#spentMs > FREE_MS + SHARE * (monotonicMs() - this.#begunMs)) {
      return null;
    }
    const cpu = threadCpu();
    const names = orNull(() => threadNames(this.#python(pid, startedMs)));
    this.#spentMs += cpu();
    return names ?? new Map();
  }

  close(): void {
    this.#keep(0);
  }

  #python(pid: Pid, startedMs: TimeMs): PythonRuntime {
    const key = `${pid} ${startedMs}`;
    let python = this.#open.get(key);
    this.#open.delete(key);
    if (python === undefined) {
      const memory = openProcessMemory(pid);
      try {
        python = locatePython(memory);
      } catch (error) {
        memory.close();
        throw error;
      }
    }
    python.reader.forget();
    this.#open.set(key, python);
    this.#keep(MOST_OPEN);
    return python;
  }

  /** The newest entries, up to the limit. */
  #keep(count: number): void {
    for (const [key, { memory }] of [...this.#open].slice(
      0,
      Math.max(0, this.#open.size - count),
    )) {
      memory.close();
      this.#open.delete(key);
    }
  }
}
