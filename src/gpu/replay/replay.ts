/**
 * Replays a device's trace backwards from the snapshot's segments, which are exact. The ring may have lost its
 * oldest entries. Backwards, nothing is missing; only older allocations have no beginning. Replaying forwards
 * would miss the allocations of the lost entries.
 *
 *   event            seen backwards
 *   free_completed   a block appears; it was waiting for other streams until the program's own free
 *   free_requested   the block was in use before it
 *   alloc            the block is gone
 *   segment_free     a range appears       segment_unmap   a part of an expandable one appears
 *   segment_alloc    the range is gone     segment_map     the part is gone
 *
 * If an event contradicts the held state, the state is kept and the event is reported.
 */

import { addAt, float64At, uint8At, uint16At, uint32At } from "../../model/base/columns.js";
import type { Address } from "../../model/base/units.js";
import type { Disagreement, GpuReplay } from "../../model/gpu/gpu_replay.js";
import {
  BlockState,
  GpuAction,
  type GpuSnapshot,
  HOST_MEMORY,
  traceOf,
} from "../../model/gpu/gpu_snapshot.js";
import { OpenAllocations } from "./open_allocations.js";
import { OpenRanges } from "./open_ranges.js";

const MOST_REPORTED = 100;

/** The devices in a snapshot, with segments or with a trace. Pinned host memory comes last. */
export function devicesOf({ traces, hostTrace, segments }: GpuSnapshot): number[] {
  const devices = new Set<number>(segments.device);
  traces.forEach(({ count }, device) => {
    if (count > 0) {
      devices.add(device);
    }
  });
  const host = devices.delete(HOST_MEMORY) || hostTrace.count > 0;
  return [...[...devices].sort((a, b) => a - b), ...(host ? [HOST_MEMORY] : [])];
}

export function replayDevice(snapshot: GpuSnapshot, device: number): GpuReplay {
  return new BackwardReplay(snapshot, device).run();
}

class BackwardReplay {
  readonly #first: number;
  readonly #count: number;
  readonly #requested: Float64Array;
  readonly #reserved: Float64Array;
  readonly #ranges = new OpenRanges();
  readonly #allocations: OpenAllocations;
  readonly #disagreements: Disagreement[] = [];
  #disagreementCount = 0;

  constructor(
    readonly snapshot: GpuSnapshot,
    readonly device: number,
  ) {
    const { first, count } = traceOf(snapshot, device);
    this.#first = first;
    this.#count = count;
    this.#requested = new Float64Array(count + 1);
    this.#reserved = new Float64Array(count + 1);
    this.#allocations = new OpenAllocations(snapshot, { first, count });
  }

  run(): GpuReplay {
    this.#startAtEnd();
    for (let event = this.#count - 1; event >= 0; event--) {
      this.#requested[event] = float64At(this.#requested, event + 1);
      this.#reserved[event] = float64At(this.#reserved, event + 1);
      this.#undo(event);
    }
    return {
      device: this.device,
      firstEvent: this.#first,
      events: this.#count,
      requested: this.#requested,
      reserved: this.#reserved,
      allocations: this.#allocations.finish(),
      ranges: this.#ranges.finish(),
      disagreements: this.#disagreements,
      disagreementCount: this.#disagreementCount,
      complete:
        this.#count > 0 &&
        this.#disagreementCount === 0 &&
        this.#requested[0] === 0 &&
        this.#reserved[0] === 0,
    };
  }

  /** The segments and blocks at the end, with a consistency check. */
  #startAtEnd(): void {
    const { segments, blocks } = this.snapshot;
    let requested = 0;
    let reserved = 0;
    for (let row = 0; row < segments.length; row++) {
      if (segments.device[row] !== this.device) {
        continue;
      }
      const address = float64At(segments.address, row);
      const size = float64At(segments.size, row);
      const range = {
        address,
        size,
        end: this.#count,
        stream: uint16At(segments.stream, row),
        pool: uint32At(segments.pool, row),
        expandable: segments.expandable[row] === 1,
      };
      if (size > 0 && !this.#ranges.add(range)) {
        this.#report(this.#count, address, "two segments overlap at the end");
        continue;
      }
      reserved += size;
      const first = uint32At(segments.firstBlock, row);
      let at = address;
      for (let block = first; block < first + uint32At(segments.blockCount, row); block++) {
        if (blocks.address[block] !== at) {
          this.#report(
            this.#count,
            float64At(blocks.address, block),
            "a segment's blocks leave a gap",
          );
        }
        at = float64At(blocks.address, block) + float64At(blocks.size, block);
        const state = uint8At(blocks.state, block);
        if (state !== BlockState.inactive) {
          requested += float64At(blocks.requested, block);
          this.#allocations.heldAtEnd(block, range, state);
        }
      }
      if (at !== address + size) {
        this.#report(this.#count, address, "a segment's blocks do not fill it");
      }
    }
    this.#requested[this.#count] = requested;
    this.#reserved[this.#count] = reserved;
  }

  #undo(event: number): void {
    const { events } = this.snapshot;
    const row = this.#first + event;
    switch (uint8At(events.action, row)) {
      case GpuAction.freeCompleted:
        this.#undoFreeCompleted(event, row);
        break;
      case GpuAction.freeRequested:
        this.#undoFreeRequested(event, row);
        break;
      case GpuAction.alloc:
        this.#undoAlloc(event, row);
        break;
      case GpuAction.segmentFree:
      case GpuAction.segmentUnmap:
        this.#undoGivenBack(event, row);
        break;
      case GpuAction.segmentAlloc:
      case GpuAction.segmentMap:
        this.#undoTaken(event, row);
        break;
      case GpuAction.snapshot:
        this.#checkSnapshot(event, float64At(events.size, row));
        break;
    }
  }

  #undoAlloc(event: number, row: number): void {
    const { address, size, stack } = this.snapshot.events;
    const held = this.#allocations.begin(float64At(address, row), event, uint32At(stack, row));
    if (held === undefined) {
      this.#report(
        event,
        float64At(address, row),
        "allocated, never freed, but missing at the end",
      );
      return;
    }
    this.#requested[event] = float64At(this.#requested, event) - held;
    if (held !== size[row]) {
      this.#report(
        event,
        float64At(address, row),
        `allocated with ${float64At(size, row)} bytes, later it has ${held}`,
      );
    }
  }

  #undoFreeCompleted(event: number, row: number): void {
    const address = float64At(this.snapshot.events.address, row);
    if (this.#allocations.holds(address)) {
      this.#beginUnseen(event, address, "freed, but held afterwards without a new allocation");
    }
    this.#appear(event, row, false);
  }

  #undoFreeRequested(event: number, row: number): void {
    const address = float64At(this.snapshot.events.address, row);
    if (this.#allocations.requestFree(address, event)) {
      return;
    }
    if (this.#allocations.holds(address)) {
      this.#beginUnseen(event, address, "freed, but in use afterwards without a new allocation");
    } else {
      this.#report(event, address, "freed, but neither completed nor pending at the end");
    }
    this.#appear(event, row, true);
  }

  /** The block held there began after this event; its entry is not in the trace. */
  #beginUnseen(event: number, address: Address, detail: string): void {
    this.#requested[event] =
      float64At(this.#requested, event) - (this.#allocations.begin(address, event, 0) ?? 0);
    this.#report(event, address, detail);
  }

  #appear(event: number, row: number, requestedFree: boolean): void {
    const { events } = this.snapshot;
    const address = float64At(events.address, row);
    const range = this.#ranges.holding(address);
    if (range === undefined) {
      this.#report(event, address, "freed in memory that no segment holds");
    }
    this.#allocations.add(event, requestedFree, uint32At(events.pool, row) || (range?.pool ?? 0));
    addAt(this.#requested, event, float64At(events.size, row));
  }

  #undoGivenBack(event: number, row: number): void {
    const { events } = this.snapshot;
    const added = this.#ranges.add({
      address: float64At(events.address, row),
      size: float64At(events.size, row),
      end: event,
      stream: uint16At(events.stream, row),
      pool: uint32At(events.pool, row),
      expandable: events.action[row] === GpuAction.segmentUnmap,
    });
    if (added) {
      addAt(this.#reserved, event, float64At(events.size, row));
    } else {
      this.#report(event, float64At(events.address, row), "released, but held afterwards");
    }
  }

  #undoTaken(event: number, row: number): void {
    const { action, address, size } = this.snapshot.events;
    const whole = action[row] === GpuAction.segmentAlloc;
    if (this.#ranges.close(float64At(address, row), float64At(size, row), event, whole)) {
      this.#reserved[event] = float64At(this.#reserved, event) - float64At(size, row);
    } else {
      this.#report(
        event,
        float64At(address, row),
        "reserved from the driver, but not held afterwards",
      );
    }
  }

  /** torch/c10 writes the bytes in active blocks into the entry, which are at least the requested bytes. */
  #checkSnapshot(event: number, active: number): void {
    const requested = float64At(this.#requested, event + 1);
    if (active < requested || active > float64At(this.#reserved, event + 1)) {
      this.#report(
        event,
        0,
        `the snapshot counts ${active} active bytes, but ${requested} were requested`,
      );
    }
  }

  #report(event: number, address: Address, detail: string): void {
    this.#disagreementCount += 1;
    if (this.#disagreements.length < MOST_REPORTED) {
      this.#disagreements.push({ event, address, detail });
    }
  }
}
