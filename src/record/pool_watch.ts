import type { ProfileLook, ProfileTables } from "../model/profile.js";
import type { Bytes, Millis, TimeMs } from "../model/units.js";
import type { PoolReader } from "../segment/pool.js";
import { monotonicMs } from "./clock.js";
import type { ProcessTree, TreePoll } from "./process_tree.js";
import type { AgentFigures } from "./types.js";

export interface TakenLook {
  readonly tables: ProfileTables;
  readonly look: ProfileLook;
  readonly agent: AgentFigures;
}

/** The pool of a run. */
export class PoolWatch {
  liveBytes: Bytes = 0;

  constructor(
    private readonly pool: PoolReader,
    private readonly descriptor: number,
  ) {}

  renewLease(forMs: Millis): void {
    this.pool.setLease(monotonicMs() + forMs);
  }

  poll(_tree: ProcessTree, _timeMs: TimeMs, _poll: TreePoll): void {}

  look(_timeMs: TimeMs, _last: boolean): TakenLook | null {
    return this.descriptor < 0 ? null : null;
  }
}
