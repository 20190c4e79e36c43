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
const MOST_BYTES: Bytes = 4 << 20;
const MOST_ACTIONS = 1_000;

export class ActionLog {
  readonly #path: string;
  readonly #byId = new Map<string, ActionJson>();
  readonly #warn: (text: string) => void;

  constructor(folder: string, warn: (text: string) => void) {
    this.#path = join(folder, NAME);
    this.#warn = warn;
    for (const line of this.#lines()) {
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
        appendFileSync(this.#path, `${JSON.stringify(action)}\n`, { mode: 0o600, flush: true });
      }
    } catch (error) {
      this.#warn(`actions cannot be written to ${this.#path}: ${reasonOf(error).message}`);
    }
  }

  #remember(action: ActionJson): void {
    this.#byId.set(action.id, action);
    if (this.#byId.size > MOST_ACTIONS) {
      const [oldest = ""] = this.#byId.keys();
      this.#byId.delete(oldest);
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

function actionIn(line: string): ActionJson | null {
  try {
    const parsed = ACTION_RECORD.safeParse(JSON.parse(line));
    return parsed.success ? (parsed.data as ActionJson) : null;
  } catch {
    return null;
  }
}
