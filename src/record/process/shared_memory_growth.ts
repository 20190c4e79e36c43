import { ForeignSharedMemory, sharedMemoryUsed } from "../../linux/index.js";
import type { Bytes, Pid } from "../../model/base/units.js";

const WORTH_ASKING: Bytes = 2 ** 20;

/** What a program uses of /dev/shm. Whose the memory is costs much to find out, so it is asked only once /dev/shm has grown. */
export class SharedMemoryGrowth {
  #used: Bytes | null = null;
  #first: Bytes | null = null;
  #asksWho = false;
  readonly #foreign = new ForeignSharedMemory();
  #foreignBytes: Bytes = 0;

  constructor(readonly root: Pid) {}

  /** Whether it has grown so much that written bytes are needed. */
  get asksWho(): boolean {
    return this.#asksWho;
  }

  read(): void {
    this.#used = sharedMemoryUsed(this.root);
    this.#first ??= this.#used;
    this.#asksWho ||= (this.#used ?? 0) - (this.#first ?? 0) > WORTH_ASKING;
  }

  /**
   * At the last reading, without what belongs to other programs; null if it cannot be read. `members`: the program's
   * processes, to look again for what belongs to others; null: as it was known before.
   */
  usedBytes(members: readonly Pid[] | null): Bytes | null {
    if (this.#asksWho && members !== null) {
      this.#foreignBytes = this.#foreign.bytesOf(members);
    }
    return this.#used === null ? null : Math.max(0, this.#used - this.#foreignBytes);
  }
}
