/** The order in which a step allocates and frees, so that a model of the caching allocator can replay it. */
import type { Bytes } from "../../model/base/units.js";

export class AllocationTrace {
  /** `id + 1` for an allocation, `-(id + 1)` for a free. */
  readonly events: number[] = [];
  /** Bytes of each allocation, by id. */
  readonly bytes: Bytes[] = [];
  /** The stream of each allocation, by id: memory that one stream has freed is not given to another. */
  readonly streams: number[] = [];

  /** @returns the id of the allocation */
  allocate(bytes: Bytes, stream = 0): number {
    this.bytes.push(bytes);
    this.streams.push(stream);
    this.events.push(this.bytes.length);
    return this.bytes.length - 1;
  }

  free(id: number): void {
    this.events.push(-(id + 1));
  }

  /** Allocations that live only while one operation runs. */
  pass(first: Bytes, second: Bytes = 0, third: Bytes = 0): void {
    const from = this.bytes.length;
    if (first > 0) {
      this.allocate(first);
    }
    if (second > 0) {
      this.allocate(second);
    }
    if (third > 0) {
      this.allocate(third);
    }
    for (let id = from, end = this.bytes.length; id < end; id++) {
      this.free(id);
    }
  }
}
