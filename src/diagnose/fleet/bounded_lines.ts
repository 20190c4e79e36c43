/**
 * Lines whose memory is in a container that drops old items when it is full: functools.lru_cache(maxsize=...),
 * deque(maxlen=...). While such a cache fills, its line is as straight as a leak. The diagnosis of a single process reads the
 * bound in the object graph, and leaves it out if the container is full but still grows.
 */
import type { FrameJson } from "../../model/documents/documents.js";
import type { FleetProcess } from "./fleet_evidence.js";

/** Whether most of the processes that know the holder of this line found a bound. */
export function isBounded({ file, function: name }: FrameJson, processes: readonly FleetProcess[]) {
  const held = processes.flatMap(({ holders }) =>
    holders.filter(({ line }) => line.file === file && line.function === name),
  );
  return 2 * held.filter(({ bound }) => bound !== undefined).length > held.length;
}
