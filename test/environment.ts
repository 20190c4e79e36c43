/** The interpreters, packages and tools that the set-up found for the tests (scripts/environment.mjs). */
import { type Environment, type Interpreter, readEnvironment } from "../scripts/environment.mjs";

export type { Environment, Interpreter };

export const environment: Environment = readEnvironment();

/** The newest interpreter with a GIL on this machine (not in a chroot). */
export function anyInterpreter(): Interpreter {
  const own = environment.interpreters.filter(
    ({ chroot, freeThreaded }) => !chroot && !freeThreaded,
  );
  const newest = own.at(-1);
  if (newest === undefined) {
    throw new Error("no Python 3.9 or newer on this machine");
  }
  return newest;
}

export const isRoot = process.getuid?.() === 0;
