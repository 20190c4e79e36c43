/**
 * The memory events in a trace of TensorFlow's profiler (`tf.profiler.experimental.start`, `*.xplane.pb`; JAX's profiler
 * writes the same format): every allocation and deallocation of its device allocators, with the operation.
 */

import { nothingThere, oneLine } from "../../../model/errors/errors.js";
import { Domain } from "../../../model/profile/profile.js";
import { ImportedSites, nativeFrame } from "../imported_sites.js";
import type { ForeignFile, ForeignRecording, ProfileImporter } from "../importer.js";
import { ForeignFault, NO_SERIES } from "../importer.js";
import { LiveBlocks } from "../live_blocks.js";
import { isXSpace, type MemoryEvent, readXSpace, scopesOf } from "./xspace.js";

/** Allocators have address spaces of their own; an address takes 47 bits. */
const ADDRESS_SPACE = 2 ** 47;
const MOST_ALLOCATORS = 63;
const BEFORE = "(allocated before the trace)";

export const tensorflowTrace: ProfileImporter = {
  name: "TensorFlow trace",
  description: "TensorFlow: a trace of its profiler (*.xplane.pb), also JAX's",
  recognizes: ({ bytes }) => isXSpace(bytes),
  read,
};

function read(file: ForeignFile): ForeignRecording {
  const { events, startedNs } = readXSpace(file.bytes);
  const [first, last] = [events[0], events.at(-1)];
  if (first === undefined || last === undefined) {
    throw nothingThere(
      `${oneLine(file.path)} is a trace without memory events`,
      "trace a program whose device allocators report them: on a GPU, or with TF_CPU_ALLOCATOR_USE_BFC=1 on a CPU",
    );
  }
  const durationMs = last.ns / 1e6;
  const startedMs = startedNs > 0 ? startedNs / 1e6 : file.writtenMs - durationMs;
  const sites = new ImportedSites({ pid: 0, command: [], python: "", startedMs });
  const replay = new Replay(file.path);
  for (const event of events) {
    replay.add(event, startedMs);
  }
  replay.addTo(sites);
  const endedMs = startedMs + durationMs;
  return {
    tool: "TensorFlow profiler",
    precision: "exact",
    known: ["live", "peak", "allocated", "objects", "time"],
    snapshots: [sites.snapshot(endedMs, durationMs, replay.peakMs)],
    tables: sites.tables(),
    startedMs,
    endedMs,
    ...NO_SERIES,
    limits: [
      "The trace contains the blocks of TensorFlow's device allocators, not the memory of the process. What was allocated before it began is one sum for each allocator.",
    ],
  };
}

/** One site for each allocator, operation and region. */
class Replay {
  readonly #blocks: LiveBlocks;
  readonly #allocators = new Map<string, number>();
  readonly #sites = new Map<string, { id: number; event: MemoryEvent | null; allocator: string }>();
  /** Of each allocator: what was allocated before the trace and is still live. */
  readonly #before: number[] = [];
  readonly #known = new Set<number>();

  constructor(path: string) {
    this.#blocks = new LiveBlocks(path);
  }

  get peakMs(): number {
    return this.#blocks.peakMs;
  }

  add(event: MemoryEvent, startedMs: number): void {
    const blocks = this.#blocks;
    blocks.timeMs = startedMs + event.ns / 1e6;
    const allocator = this.#allocator(event);
    const address = allocator * ADDRESS_SPACE + (event.address % ADDRESS_SPACE);
    if (event.isAllocation) {
      blocks.allocate(address, event.bytes, this.#site(event.allocator, event));
      this.#known.add(address);
    } else if (this.#known.delete(address)) {
      blocks.free(address);
    } else {
      const rest = this.#before[allocator] ?? 0;
      const freed = Math.min(rest, event.bytes);
      this.#before[allocator] = rest - freed;
      blocks.unmap(allocator * ADDRESS_SPACE + rest - freed, freed);
    }
  }

  addTo(sites: ImportedSites): void {
    for (const { id, event, allocator } of this.#sites.values()) {
      const figures = this.#blocks.figures(id) ?? {};
      const operation = event?.operation || "(outside operations)";
      const names = event === null ? [BEFORE] : scopesOf(operation);
      const region = event?.region ? sites.label("region", event.region) : 0;
      sites.add(
        {
          stack: sites.stack(names.map((name) => nativeFrame(name, ""))),
          domain: Domain.native,
          label: sites.label("device", allocator, region),
        },
        event === null ? { ...figures, allocated: 0, allocatedObjects: 0 } : figures,
      );
    }
  }

  /** At the first event of an allocator, what it held before is known. */
  #allocator({ allocator, isAllocation, bytes, allocated }: MemoryEvent): number {
    let number = this.#allocators.get(allocator);
    if (number === undefined) {
      number = this.#allocators.size;
      if (number >= MOST_ALLOCATORS) {
        throw new ForeignFault(`it has more than ${MOST_ALLOCATORS} allocators`);
      }
      this.#allocators.set(allocator, number);
      const before = Math.max(0, allocated + (isAllocation ? -bytes : bytes));
      this.#before[number] = before;
      if (before > 0) {
        this.#blocks.map(number * ADDRESS_SPACE, before, this.#site(allocator, null));
      }
    }
    return number;
  }

  #site(allocator: string, event: MemoryEvent | null): number {
    const key = JSON.stringify([allocator, event?.operation, event?.region]);
    let site = this.#sites.get(key);
    if (site === undefined) {
      site = { id: this.#sites.size, event, allocator };
      this.#sites.set(key, site);
    }
    return site.id;
  }
}
