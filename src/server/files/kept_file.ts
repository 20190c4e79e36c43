/** A file of the server's folder that one part of it reads at its start and replaces after each change. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { reasonOf } from "../../model/errors/reason.js";

/**
 * null: there is none. One that is damaged or of a newer version is put aside, with a warning. `what`: a plural, "earlier
 * alerts". `stateIn`: null or an exception for a text that it cannot read.
 */
export function readKept<State>(
  path: string,
  what: string,
  stateIn: (text: string) => State | null,
  warn: (text: string) => void,
): State | null {
  try {
    const text = readFileSync(path, "utf8");
    const state = attempt(() => stateIn(text));
    if (state !== null) {
      return state;
    }
    const aside = `${path}.unreadable`;
    renameSync(path, aside);
    warn(`${what} cannot be read; they are kept in ${aside}`);
  } catch (error) {
    const { code, message } = reasonOf(error);
    if (code !== "ENOENT") {
      warn(`${what} cannot be read: ${path}: ${message}`);
    }
  }
  return null;
}

function attempt<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Written beside and renamed, so a crash leaves the last or the new one. Throws an Error of node:fs. */
export function writeKept(path: string, state: object): void {
  writeFileSync(`${path}.part`, `${JSON.stringify(state)}\n`, { mode: 0o600, flush: true });
  renameSync(`${path}.part`, path);
}
