/**
 * Device memory of each process as the driver counts it, with the context, for all recordings of this Node process.
 *
 *     every 30 s ── nvidia-smi ──> bytes by process ──> the next poll of each recording
 *
 * A host without the driver is never asked. One without a recorded process on a device, and one whose driver does not
 * answer, is asked more and more rarely.
 */
import { existsSync } from "node:fs";
import { readDeviceUse } from "../../gpu/devices/device_totals.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import type { TreePoll } from "../process/tree_poll.js";

const EVERY_MS: Millis = 30_000;
const RAREST_MS: Millis = 600_000;
/** The driver's control device. */
const DRIVER = "/dev/nvidiactl";

type Use = ReadonlyMap<Pid, Bytes>;

interface DeviceUseOptions {
  readonly clock: () => Millis;
  readonly hasDriver: () => boolean;
  /** null: the driver does not answer. */
  readonly read: () => Promise<Use | null>;
}

export class DeviceUse {
  readonly #options: DeviceUseOptions;
  #use: Use = new Map();
  #readings = 0;
  #dueMs: Millis = 0;
  #distanceMs = EVERY_MS;
  #isAsking = false;
  /** Whether a recording had a process of the last reading. */
  #isWanted = true;

  constructor(options: Partial<DeviceUseOptions> = {}) {
    this.#options = {
      clock: monotonicMs,
      hasDriver: () => existsSync(DRIVER),
      read: readDeviceUse,
      ...options,
    };
  }

  /** What adds the bytes of each reading once to one recording's polls. */
  reader(): (poll: TreePoll) => void {
    let added = 0;
    const had = new Set<Pid>();
    return (poll) => {
      this.#askIfDue();
      if (added === this.#readings) {
        return;
      }
      added = this.#readings;
      for (const [pid, series] of poll.tree.livingSeries) {
        const bytes = this.#use.get(pid) ?? 0;
        // A process that has left its device holds 0 B; of one that never had any, nothing is known.
        if (bytes > 0 || had.delete(pid)) {
          poll.measure({ series }, "deviceBytes", bytes);
        }
        if (bytes > 0) {
          had.add(pid);
          this.#isWanted = true;
        }
      }
    };
  }

  #askIfDue(): void {
    const { clock, hasDriver, read } = this.#options;
    if (this.#isAsking || clock() < this.#dueMs) {
      return;
    }
    if (!hasDriver()) {
      this.#wait(false);
      return;
    }
    this.#isAsking = true;
    const wasWanted = this.#isWanted;
    this.#isWanted = false;
    const answer = read().catch(() => null); // whatever a driver answers, the recordings go on
    void answer.then((use) => {
      this.#isAsking = false;
      if (use !== null) {
        this.#use = use;
        this.#readings += 1;
      }
      this.#wait(use !== null && wasWanted);
    });
  }

  #wait(isUseful: boolean): void {
    this.#distanceMs = isUseful ? EVERY_MS : Math.min(RAREST_MS, this.#distanceMs * 2);
    this.#dueMs = this.#options.clock() + this.#distanceMs;
  }
}
