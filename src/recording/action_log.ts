/**
 * Actions in a file, one line for each change of one: `actions.jsonl` in the folder of a collector or a server. Of several
 * lines with one id, the last counts. A line that was cut off is left out.
 */
import { appendFileSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bytes } from "../model/base/units.js";
import type { ActionJson } from "../model/documents/action_document.js";
import { reasonOf } from "../model/errors/reason.js";
import { ACTION_RECORD } from "../model/wire/action_record.js";

const NAME = "actions.jsonl";
/** When the file is larger, only the newest actions are kept. */
const MOST_BYTES: Bytes = 16 << 20;
/** Newest actions that were carried out, or tried: they are what limits and the choice of actions rest on. */
const MOST_DONE = 2_000;
/** Newest refusals and dry runs. */
const MOST_IDLE = 500;

export class ActionLog {
  readonly #path: string;
  readonly #byId = new Map<string, ActionJson>();
  readonly #warn: (text: string) => void;
  /** The last line of the file may be cut off. */
  #isTorn = false;

  constructor(folder: string, warn: (text: string) => void) {
    this.#path = join(folder, NAME);
    this.#warn = warn;
    const lines = this.#lines();
    this.#isTorn = lines.length > 0 && lines.at(-1) !== "";
    for (const line of lines) {
      const action = actionIn(line);
      if (action !== null) {
        this.#remember(action);
      }
    }
  }

  /** Oldest first. */
  get all(): readonly ActionJson[] {
    return [...this.#byId.values()];
  }

  find(id: string): ActionJson | undefined {
    return this.#byId.get(id);
  }

  /** A file that cannot be written is a warning; this process still knows the action. */
  put(action: ActionJson): void {
    this.#remember(action);
    try {
      const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
      if (size > MOST_BYTES) {
        const all = this.all.map((known) => `${JSON.stringify(known)}\n`).join("");
        writeFileSync(`${this.#path}.new`, all, { mode: 0o600, flush: true });
        renameSync(`${this.#path}.new`, this.#path);
      } else {
        const start = this.#isTorn ? "\n" : "";
        const line = `${start}${JSON.stringify(action)}\n`;
        appendFileSync(this.#path, line, { mode: 0o600, flush: true });
      }
      this.#isTorn = false;
    } catch (error) {
      this.#isTorn = true;
      this.#warn(`actions cannot be written to ${this.#path}: ${reasonOf(error).message}`);
    }
  }

  #remember(action: ActionJson): void {
    this.#byId.set(action.id, action);
    const isAlike = isIdle(action)
      ? isIdle
      : (one: ActionJson) => !isIdle(one) && one.state !== "running";
    const alike = this.all.filter(isAlike);
    const [oldest] = alike;
    if (oldest !== undefined && alike.length > (isIdle(action) ? MOST_IDLE : MOST_DONE)) {
      this.#byId.delete(oldest.id);
    }
  }

  #lines(): string[] {
    try {
      return readFileSync(this.#path, "utf8").split("\n");
    } catch (error) {
      const { code, message } = reasonOf(error);
      if (code !== "ENOENT") {
        this.#warn(`earlier actions cannot be read: ${this.#path}: ${message}`);
      }
      return [];
    }
  }
}

function isIdle({ state }: ActionJson): boolean {
  return state === "refused" || state === "would-act";
}

function actionIn(line: string): ActionJson | null {
  try {
    const parsed = ACTION_RECORD.safeParse(JSON.parse(line));
    return parsed.success ? (parsed.data as ActionJson) : null;
  } catch {
    return null;
  }
}
