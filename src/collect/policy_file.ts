import { statSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Millis } from "../model/base/units.js";
import { DEFAULT_POLICY, type Policy, readPolicy } from "./policy/policy.js";
import { whyOf } from "./recordings/recorders.js";
import type { WatchEvent } from "./recordings/watch_event.js";

/** The policy of this host: of a file that is read again when it changes, or the default. */
export class PolicyFile {
  readonly #path: string | null;
  readonly #onEvent: (event: WatchEvent) => void;
  #changedMs: Millis;
  policy: Policy;

  /** Throws TidemarkError if the file cannot be used. */
  constructor(path: string | null, onEvent: (event: WatchEvent) => void) {
    this.#path = path;
    this.#onEvent = onEvent;
    this.policy = path === null ? DEFAULT_POLICY : readPolicy(path);
    this.#changedMs = path === null ? 0 : changedMs(path);
  }

  /** A file that became invalid is reported, and the policy stays. */
  readAgain(): void {
    const changed = this.#path === null ? 0 : changedMs(this.#path);
    if (this.#path === null || changed === this.#changedMs) {
      return;
    }
    this.#changedMs = changed;
    try {
      const { server } = this.policy;
      this.policy = readPolicy(this.#path);
      this.#onEvent({ kind: "policy", why: "" });
      if (!isDeepStrictEqual(server, this.policy.server)) {
        this.#onEvent({ kind: "server-changed" });
      }
    } catch (error) {
      this.#onEvent({ kind: "policy", why: whyOf(error) });
    }
  }
}

/** 0 if it cannot be read. */
function changedMs(path: string): Millis {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
