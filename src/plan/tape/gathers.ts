/** Buffers of communication in the order in which units need them. */
import type { Bytes } from "../../model/base/units.js";
import type { AllocationTrace } from "./trace.js";

const GATHER_STREAM = 1;

interface Block {
  readonly bytes: Bytes;
  readonly id: number;
}

/**
 * A unit that needs more than the previous one gets another block for the difference. Version 2 of FSDP gathers into a
 * buffer of another stream and copies from it; version 1 keeps the gathered weights in that stream.
 */
export class Gathers {
  readonly #blocks: Block[] = [];
  /** The buffer of the last gather: it lives until the next one. */
  #buffer: number | null = null;

  constructor(
    readonly fsdpVersion: 1 | 2 | null,
    readonly trace: AllocationTrace,
  ) {}

  /** @param wanted gathered weights and buckets of the unit that runs from now on */
  change(wanted: Bytes): void {
    const { trace, fsdpVersion } = this;
    let held = this.#blocks.reduce((sum, { bytes }) => sum + bytes, 0);
    while (held > wanted) {
      const last = this.#blocks.pop() as Block;
      held -= last.bytes;
      trace.free(last.id);
    }
    if (held < wanted) {
      const bytes = wanted - held;
      const id = trace.allocate(bytes, fsdpVersion === 1 ? GATHER_STREAM : 0);
      this.#blocks.push({ bytes, id });
      if (fsdpVersion === 2) {
        const buffer = trace.allocate(bytes, GATHER_STREAM);
        if (this.#buffer !== null) {
          trace.free(this.#buffer);
        }
        this.#buffer = buffer;
      }
    }
  }
}
