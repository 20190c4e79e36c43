/**
 * Lines whose memory is in a container that drops old items when it is full: functools.lru_cache(maxsize=...),
 * deque(maxlen=...). While such a cache fills, its line is as straight as a leak. The diagnosis of a single process reads the
 * bound in the object graph, and leaves it out if the container is full but still grows.
 */
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../model/documents/documents.js";
import { ownFrame } from "../../model/documents/own_code.js";
import type { FleetProcess, LineHolder } from "./fleet_evidence.js";

/** What the diagnosis of one process says about the holders of lines. */
export function lineHolders({
  suspects,
  filling = [],
}: Pick<DiagnosisJson, "suspects" | "filling">): LineHolder[] {
  const ofSuspects = suspects.flatMap(({ stack, holder }) =>
    holder === undefined ? [] : [{ stack, holder, bound: undefined }],
  );
  return [...ofSuspects, ...filling].flatMap(({ stack, holder: { path, type }, bound }) => {
    const line = ownFrame(stack);
    return line === undefined
      ? []
      : [{ line, path, type, ...(bound === undefined ? {} : { bound }) }];
  });
}

/** Whether most of the processes that know the holder of this line found a bound. */
export function isBounded(
  { file, function: name }: FrameJson,
  processes: readonly FleetProcess[],
): boolean {
  const held = processes.flatMap(({ holders }) =>
    holders.filter(({ line }) => line.file === file && line.function === name),
  );
  return 2 * held.filter(({ bound }) => bound !== undefined).length > held.length;
}
