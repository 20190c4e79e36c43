/** A simulated allocator's snapshot in each schema that PyTorch has had. */
import { PythonFloat, PythonList, PythonTuple } from "./pickle_writer.mjs";

/** @typedef {import("./simulator.mjs").CachingAllocator} CachingAllocator */
/** @typedef {import("./simulator.mjs").Block} Block */
/** @typedef {import("./simulator.mjs").Segment} Segment */
/** @typedef {import("./simulator.mjs").Entry} Entry */

/** `legacy`: up to 2.0, blocks without address, their history. `plain`: 2.1 to 2.8. `pooled`: entries name
 * their pool and category. @typedef {"legacy" | "plain" | "pooled"} Schema */

/** @param {readonly CachingAllocator[]} devices @param {Schema} schema
 * @param {{annotations?: object[], settings?: object}} [more] */
export function snapshotOf(devices, schema, { annotations = [], settings = {} } = {}) {
  const count = Math.max(...devices.map(({ device }) => device)) + 1;
  const traces = Array.from({ length: count }, (_, device) => {
    const allocator = devices.find((one) => one.device === device);
    return (allocator?.trace ?? []).map((entry) => entryOf(entry, schema));
  });
  const segments = devices.flatMap((allocator) => segmentsOf(allocator, schema));
  if (schema === "legacy") {
    return { segments, device_traces: traces };
  }
  return {
    segments,
    device_traces: traces,
    allocator_settings: allocatorSettings(settings),
    external_annotations: annotations,
  };
}

/** The same with a trace that is created while it is written. @param {Iterable<Entry>} entries
 * @param {() => CachingAllocator} allocator called after the last entry */
export function streamedSnapshot(entries, allocator) {
  const trace = function* () {
    // PyTorch creates a separate list for each entry, of frames that all entries share.
    for (const entry of entries) {
      yield entryOf({ ...entry, frames: [...entry.frames] }, "plain");
    }
  };
  const segments = function* () {
    yield* segmentsOf(allocator(), "plain");
  };
  return {
    device_traces: [new PythonList(trace())],
    segments: new PythonList(segments()),
    allocator_settings: allocatorSettings({}),
    external_annotations: [],
  };
}

/** @param {object} settings */
function allocatorSettings(settings) {
  return {
    PYTORCH_CUDA_ALLOC_CONF: "",
    max_split_size: -1,
    garbage_collection_threshold: new PythonFloat(0),
    expandable_segments: false,
    roundup_power2_divisions: { 1: 0, 2: 0, 4: 0 },
    ...settings,
  };
}

/** @param {Entry} entry @param {Schema} schema */
export function entryOf({ action, addr, size, stream, time_us, pool, frames }, schema) {
  const place = action === "oom" ? { device_free: addr } : { addr };
  const base = { action, ...place, size, stream };
  if (schema === "legacy") {
    return { ...base, frames };
  }
  const timed = { ...base, time_us, compile_context: "N/A", user_metadata: "", frames };
  return schema === "plain"
    ? timed
    : { ...timed, pool_id: poolOf(pool), forward_frames: [], category: "" };
}

/** @param {string} pool */
function poolOf(pool) {
  return new PythonTuple(pool.split(",").map(Number));
}

/** @param {CachingAllocator} allocator @param {Schema} schema @returns {object[]} */
function segmentsOf(allocator, schema) {
  return allocator.segments.flatMap((segment) =>
    mappedRuns(segment).map((blocks) => segmentOf(allocator, segment, blocks, schema)),
  );
}

/** An expandable segment is written as one segment for each mapped range. @param {Segment} segment */
function mappedRuns(segment) {
  /** @type {Block[][]} */
  const runs = [];
  let open = false;
  for (const block of segment.blocks) {
    const mapped = block.state !== "unmapped";
    if (mapped && !open) {
      runs.push([]);
    }
    if (mapped) {
      runs.at(-1)?.push(block);
    }
    open = mapped;
  }
  return runs;
}

/** @param {CachingAllocator} allocator @param {Segment} segment @param {Block[]} blocks
 * @param {Schema} schema */
function segmentOf(allocator, segment, blocks, schema) {
  /** @param {(block: Block) => number} figure */
  const sum = (figure) => blocks.reduce((total, block) => total + figure(block), 0);
  const active = (/** @type {Block} */ block) =>
    block.state === "used" || block.state === "pending";
  const base = {
    device: allocator.device,
    address: /** @type {Block} */ (blocks[0]).address,
    total_size: sum(({ size }) => size),
    allocated_size: sum((block) => (block.state === "used" ? block.size : 0)),
    active_size: sum((block) => (active(block) ? block.size : 0)),
    requested_size: sum((block) => (active(block) ? block.requested : 0)),
    stream: segment.stream,
    segment_type: segment.small ? "small" : "large",
    blocks: blocks.map((block) => blockOf(block, schema)),
  };
  if (schema === "legacy") {
    return base;
  }
  return {
    ...base,
    segment_pool_id: poolOf(segment.pool),
    is_expandable: segment.expandable,
    frames: [],
  };
}

/** @param {Block} block @param {Schema} schema */
function blockOf({ address, size, requested, state, frames }, schema) {
  const name = {
    free: "inactive",
    used: "active_allocated",
    pending: "active_pending_free",
    unmapped: "",
  }[state];
  const base = { size, requested_size: requested, state: name };
  if (schema === "legacy") {
    const history = state === "free" ? [] : [{ addr: address, real_size: requested, frames }];
    return history.length === 0 ? base : { ...base, history };
  }
  return { address, ...base, state: state === "pending" ? "active_awaiting_free" : name, frames };
}
