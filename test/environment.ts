/** The interpreters, packages and tools that the set-up found for the tests (scripts/environment.mjs). */
import { type Environment, type Interpreter, readEnvironment } from "../scripts/environment.mjs";

export type { Environment, Interpreter };

export const environment: Environment = readEnvironment();

/** The interpreters with a GIL on this machine (not in a chroot), by version. */
const own = environment.interpreters.filter(({ chroot, freeThreaded }) => !chroot && !freeThreaded);

/** So many of them: the oldest, the newest, and then from the newest to the oldest. */
export function someInterpreters(count: number): Interpreter[] {
  return [...own.slice(0, 1), ...own.slice(1).reverse()].slice(0, count);
}

/** The newest of them. */
export function anyInterpreter(): Interpreter {
  const newest = own.at(-1);
  if (newest === undefined) {
    throw new Error("no Python 3.9 or newer on this machine");
  }
  return newest;
}

export const isRoot = process.getuid?.() === 0;
