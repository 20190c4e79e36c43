/**
 * A caching allocator like PyTorch's (c10/cuda/CUDACachingAllocator.cpp) with a second account: what
 * it holds is counted at every event, independently of the trace that it writes.
 *
 *   small requests (<= 1 MiB)      segments of 2 MiB
 *   below 10 MiB                   segments of 20 MiB
 *   larger                         segments of their size, rounded up to 2 MiB
 *   expandable                     one address range per stream and pool, mapped in pages of 2 or 20 MiB
 *
 * Best fit; a block is split where 512 bytes (small) or more than 1 MiB (large) are left; freed
 * neighbours merge; a block used on another stream is pending until `finishStreams`.
 */
const MIB = 2 ** 20;

/** @typedef {{filename: string, name: string, line: number}} Frame */
/** @typedef {{address: number, size: number, requested: number, state: "free" | "used" | "pending" | "unmapped",
 *   stream: number, frames: readonly Frame[], others: Set<number>, segment: Segment}} Block */
/** @typedef {{address: number, size: number, stream: number, pool: string, small: boolean,
 *   expandable: boolean, blocks: Block[]}} Segment */
/** @typedef {{requested: number, reserved: number, active: number, allocated: number}} Totals */
/** @typedef {{action: string, addr: number, size: number, stream: number, time_us: number, pool: string,
 *   frames: readonly Frame[]}} Entry */

export class OutOfMemory extends Error {}

export class CachingAllocator {
  /** @type {Segment[]} */
  segments = [];
  /** The trace; the oldest entries are dropped when the ring is full. @type {Entry[]} */
  trace = [];
  /** After each entry of `trace`, counted by the allocator itself. @type {Totals[]} */
  history = [];
  /** @type {Totals} */
  totals = { requested: 0, reserved: 0, active: 0, allocated: 0 };
  /** @type {Totals} */
  highest = { requested: 0, reserved: 0, active: 0, allocated: 0 };
  retries = 0;
  outOfMemory = 0;
  events = 0;
  #address;
  #timeUs = 1_700_000_000_000_000;

  /**
   * @param {{limit?: number, ring?: number, expandable?: boolean, device?: number,
   *   onEntry?: (entry: Entry) => void}} [settings] `limit`: bytes of the device
   */
  constructor({ limit = Infinity, ring = Infinity, expandable = false, device = 0, onEntry } = {}) {
    this.limit = limit;
    this.ring = ring;
    this.expandable = expandable;
    this.device = device;
    this.onEntry = onEntry;
    this.#address = 0x7f0000000000 + device * 2 ** 42;
  }

  /** @param {number} requested @param {{stream?: number, pool?: string, frames?: readonly Frame[]}} [how]
   * @returns {Block} */
  allocate(requested, { stream = 0, pool = "0,0", frames = [] } = {}) {
    const size = Math.max(512, Math.ceil(requested / 512) * 512);
    const small = size <= MIB;
    const block =
      this.#bestFit(size, stream, pool, small) ?? this.#newBlock(size, stream, pool, small, frames);
    this.#split(block, size, small);
    Object.assign(block, { state: "used", requested, stream, frames });
    this.totals.requested += requested;
    this.totals.active += block.size;
    this.totals.allocated += block.size;
    this.#record("alloc", block.address, requested, stream, pool, frames);
    return block;
  }

  /** The tensor is also used on another stream, so its free waits for that stream. @param {Block} block
   * @param {number} stream */
  recordStream(block, stream) {
    if (stream !== block.stream) {
      block.others.add(stream);
    }
  }

  /** @param {Block} block @param {readonly Frame[]} [frames] */
  free(block, frames = []) {
    if (block.state !== "used") {
      throw new Error("freed twice");
    }
    this.totals.allocated -= block.size;
    this.#record(
      "free_requested",
      block.address,
      block.requested,
      block.stream,
      block.segment.pool,
      frames,
    );
    block.state = "pending";
    if (block.others.size === 0) {
      this.#complete(block, frames);
    }
  }

  /** The work of all streams is done: pending blocks become free. */
  finishStreams() {
    for (const segment of this.segments) {
      for (const block of [...segment.blocks]) {
        if (block.state === "pending") {
          this.#complete(block, []);
        }
      }
    }
  }

  /** torch.cuda.empty_cache(). */
  emptyCache() {
    this.finishStreams();
    for (const segment of [...this.segments]) {
      if (segment.expandable) {
        this.#unmapFree(segment);
      } else if (segment.blocks.every((block) => block.state === "free")) {
        this.segments.splice(this.segments.indexOf(segment), 1);
        this.totals.reserved -= segment.size;
        this.#record(
          "segment_free",
          segment.address,
          segment.size,
          segment.stream,
          segment.pool,
          [],
        );
      }
    }
  }

  /** Adds the entry that taking a snapshot leaves in the trace. */
  markSnapshot() {
    this.#record("snapshot", 0, this.totals.active, 0, "0,0", []);
  }

  /** @param {number} size @param {number} stream @param {string} pool @param {boolean} small */
  #bestFit(size, stream, pool, small) {
    let best;
    for (const segment of this.segments) {
      if (segment.stream !== stream || segment.pool !== pool || segment.small !== small) {
        continue;
      }
      for (const block of segment.blocks) {
        if (block.state === "free" && block.size >= size && (!best || block.size < best.size)) {
          best = block;
        }
      }
    }
    return best;
  }

  /** @param {number} size @param {number} stream @param {string} pool @param {boolean} small
   * @param {readonly Frame[]} frames @returns {Block} */
  #newBlock(size, stream, pool, small, frames) {
    const segmentSize = small
      ? 2 * MIB
      : size < 10 * MIB
        ? 20 * MIB
        : Math.ceil(size / (2 * MIB)) * 2 * MIB;
    const page = small ? 2 * MIB : 20 * MIB;
    const needed = this.expandable ? Math.ceil(size / page) * page : segmentSize;
    if (this.totals.reserved + needed > this.limit) {
      this.retries += 1;
      this.emptyCache();
      const fits = this.#bestFit(size, stream, pool, small);
      if (fits) {
        return fits;
      }
    }
    if (this.totals.reserved + needed > this.limit) {
      this.outOfMemory += 1;
      this.#record("oom", this.limit - this.totals.reserved, needed, stream, pool, frames);
      throw new OutOfMemory();
    }
    if (this.expandable) {
      return this.#mapBlock(size, page, stream, pool, small, frames);
    }
    const address = this.#takeAddresses(segmentSize);
    const segment = this.#addSegment(address, segmentSize, stream, pool, small, false);
    this.totals.reserved += segmentSize;
    this.#record("segment_alloc", address, segmentSize, stream, pool, frames);
    return /** @type {Block} */ (segment.blocks[0]);
  }

  /** @param {number} size @param {number} page @param {number} stream @param {string} pool
   * @param {boolean} small @param {readonly Frame[]} frames @returns {Block} */
  #mapBlock(size, page, stream, pool, small, frames) {
    const segment =
      this.segments.find(
        (one) => one.stream === stream && one.pool === pool && one.small === small,
      ) ?? this.#addSegment(this.#takeAddresses(2 ** 38), 2 ** 38, stream, pool, small, true);
    const { blocks } = segment;
    const at = blocks.findIndex((block, row) => {
      const before = blocks[row - 1];
      const ahead = before?.state === "free" ? before.size : 0;
      return block.state === "unmapped" && block.size >= Math.ceil((size - ahead) / page) * page;
    });
    const hole = /** @type {Block} */ (blocks[at]);
    const before =
      blocks[at - 1]?.state === "free" ? /** @type {Block} */ (blocks[at - 1]) : undefined;
    const mapped = Math.ceil((size - (before?.size ?? 0)) / page) * page;
    const block = { ...emptyBlock(segment, hole.address, mapped) };
    hole.address += mapped;
    hole.size -= mapped;
    blocks.splice(at, hole.size === 0 ? 1 : 0, block);
    this.totals.reserved += mapped;
    this.#record("segment_map", block.address, mapped, stream, pool, frames);
    this.#merge(segment);
    return /** @type {Block} */ (
      blocks.find(
        (one) =>
          one.state === "free" &&
          one.address <= block.address &&
          one.address + one.size > block.address,
      )
    );
  }

  /** Returns completely free pages to the driver. @param {Segment} segment */
  #unmapFree(segment) {
    const page = segment.small ? 2 * MIB : 20 * MIB;
    for (const block of [...segment.blocks]) {
      if (block.state !== "free") {
        continue;
      }
      const from = segment.address + Math.ceil((block.address - segment.address) / page) * page;
      const to =
        segment.address + Math.floor((block.address + block.size - segment.address) / page) * page;
      if (to <= from) {
        continue;
      }
      const hole = {
        ...emptyBlock(segment, from, to - from),
        state: /** @type {const} */ ("unmapped"),
      };
      const parts = [
        emptyBlock(segment, block.address, from - block.address),
        hole,
        emptyBlock(segment, to, block.address + block.size - to),
      ].filter((part) => part.size > 0);
      segment.blocks.splice(segment.blocks.indexOf(block), 1, ...parts);
      this.totals.reserved -= hole.size;
      this.#record("segment_unmap", from, to - from, segment.stream, segment.pool, []);
    }
    this.#merge(segment);
  }

  /** @param {number} size */
  #takeAddresses(size) {
    const address = this.#address;
    this.#address += Math.ceil(size / (2 * MIB)) * 2 * MIB + 2 * MIB;
    return address;
  }

  /** @param {number} address @param {number} size @param {number} stream @param {string} pool
   * @param {boolean} small @param {boolean} expandable @returns {Segment} */
  #addSegment(address, size, stream, pool, small, expandable) {
    /** @type {Segment} */
    const segment = { address, size, stream, pool, small, expandable, blocks: [] };
    segment.blocks.push({
      ...emptyBlock(segment, address, size),
      state: expandable ? "unmapped" : "free",
    });
    this.segments.push(segment);
    return segment;
  }

  /** @param {Block} block @param {number} size @param {boolean} small */
  #split(block, size, small) {
    const left = block.size - size;
    if (left < 512 || (!small && !block.segment.expandable && left <= MIB)) {
      return;
    }
    const { blocks } = block.segment;
    blocks.splice(
      blocks.indexOf(block) + 1,
      0,
      emptyBlock(block.segment, block.address + size, left),
    );
    block.size = size;
  }

  /** @param {Block} block @param {readonly Frame[]} frames */
  #complete(block, frames) {
    this.totals.requested -= block.requested;
    this.totals.active -= block.size;
    this.#record(
      "free_completed",
      block.address,
      block.requested,
      block.stream,
      block.segment.pool,
      frames,
    );
    const { segment } = block;
    segment.blocks[segment.blocks.indexOf(block)] = emptyBlock(segment, block.address, block.size);
    this.#merge(segment);
  }

  /** Merges neighbouring free blocks, and neighbouring unmapped ones. @param {Segment} segment */
  #merge(segment) {
    /** @type {Block[]} */
    const merged = [];
    for (const block of segment.blocks) {
      const before = merged.at(-1);
      if (before?.state === block.state && (block.state === "free" || block.state === "unmapped")) {
        before.size += block.size;
      } else {
        merged.push(block);
      }
    }
    segment.blocks = merged;
  }

  /** @param {string} action @param {number} addr @param {number} size @param {number} stream
   * @param {string} pool @param {readonly Frame[]} frames */
  #record(action, addr, size, stream, pool, frames) {
    this.#timeUs += 7;
    this.events += 1;
    const entry = { action, addr, size, stream, time_us: this.#timeUs, pool, frames };
    for (const name of /** @type {const} */ (["requested", "reserved", "active", "allocated"])) {
      this.highest[name] = Math.max(this.highest[name], this.totals[name]);
    }
    if (this.onEntry !== undefined) {
      this.onEntry(entry);
      return;
    }
    this.trace.push(entry);
    this.history.push({ ...this.totals });
    if (this.trace.length > this.ring) {
      this.trace.shift();
      this.history.shift();
    }
  }

  /** Time passes without events. @param {number} us */
  wait(us) {
    this.#timeUs += us;
  }

  get timeUs() {
    return this.#timeUs;
  }
}

/** @param {Segment} segment @param {number} address @param {number} size @returns {Block} */
function emptyBlock(segment, address, size) {
  return {
    address,
    size,
    requested: 0,
    state: "free",
    stream: segment.stream,
    frames: [],
    others: new Set(),
    segment,
  };
}
