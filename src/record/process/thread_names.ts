/**
 * The names that a program gave its threads: before Python 3.14 the kernel does not know them, and from then
 * on the first 15 characters. They are read from outside, as the program runs:
 *
 *   threads that a look finds new --> threading._active of the process --> names by thread id
 *
 * To find an interpreter takes a tenth of a second once, and each reading a millisecond: so names are read
 * where there are threads to name, and never for more than a small share of the time. A program that cannot
 * be looked into (gone, not permitted, unknown), or that has no name for a thread, leaves it the kernel's.
 */
import { locatePython, type PythonRuntime, threadNames } from "../../cpython/index.js";
import { openProcessMemory } from "../../linux/index.js";
import { monotonicMs, threadCpu } from "../../linux/this_process/clock.js";
import type { Millis, Pid, TimeMs } from "../../model/base/units.js";
import { orNull } from "../../model/errors/errors.js";

/** CPU time that names may take: so much at once, and this share of the time. */
const FREE_MS: Millis = 100;
const SHARE = 0.0003;
/** Interpreters that are kept open: each has megabytes of pages at hand. */
const MOST_OPEN = 4;

export class ThreadNames {
  readonly #open = new Map<string, PythonRuntime>();
  readonly #begunMs = monotonicMs();
  #spentMs: Millis = 0;

  /** By the id that a thread has in its own pid namespace; null: not now, and asking again later may help. */
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

  /** The newest so many. */
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
