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
