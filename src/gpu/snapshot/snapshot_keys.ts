/** The names that dictionaries of a snapshot use (torch/csrc/cuda/Module.cpp, memory_snapshot.cpp). */
export const KEYS = [
  "action",
  "addr",
  "device_free",
  "size",
  "stream",
  "time_us",
  "frames",
  "forward_frames",
  "user_metadata",
  "pool_id",
  "category",
  "name",
  "filename",
  "line",
  "device",
  "address",
  "total_size",
  "allocated_size",
  "active_size",
  "requested_size",
  "segment_type",
  "segment_pool_id",
  "is_expandable",
  "blocks",
  "state",
  "history",
  "real_size",
  "stage",
  "segments",
  "device_traces",
  "host_segments",
  "host_traces",
  "allocator_settings",
  "external_annotations",
] as const;
type Key = (typeof KEYS)[number];

const numbers: ReadonlyMap<string, number> = new Map(KEYS.map((key, index) => [key, index]));
/** The number of each name. */
export const KEY = Object.fromEntries(numbers) as Readonly<Record<Key, number>>;
export const NO_KEY = 255;

/** The number of a name; NO_KEY for any other text. */
export function keyOf(text: string): number {
  return numbers.get(text) ?? NO_KEY;
}

/** What a dictionary describes. */
export const Form = {
  event: 0,
  frame: 1,
  segment: 2,
  block: 3,
  history: 4,
  annotation: 5,
  snapshot: 6,
  other: 7,
} as const;
export type Form = (typeof Form)[keyof typeof Form];

/** Keys that every version writes into a trace entry, whatever its action. */
const OF_EVENTS: readonly Key[] = ["frames", "size", "time_us", "stream"];

/** What a dictionary with these keys describes. */
export function formOf(has: (key: Key) => boolean): Form {
  if (has("action") && OF_EVENTS.some(has)) {
    return Form.event;
  }
  if (has("filename") && has("name")) {
    return Form.frame;
  }
  if (has("total_size") && has("address")) {
    return Form.segment;
  }
  if (has("state") && has("size")) {
    return Form.block;
  }
  if (has("real_size") && has("addr")) {
    return Form.history;
  }
  if (has("stage") && has("name") && has("time_us")) {
    return Form.annotation;
  }
  return has("segments") || has("device_traces") ? Form.snapshot : Form.other;
}
