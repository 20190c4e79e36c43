/**
 * What is known about the container that holds a line's memory. While a cache fills, its line is as straight as a leak. The
 * diagnosis of a single process reads bounds in the object graph, and leaves one out if the container is full but still grows.
 *
 *   bounded   functools.lru_cache(maxsize=...), deque(maxlen=...): drops old items when it is full
 *   fills     named after something that is bounded, by code that the object graph does not show: a TTL, a ring, a window
 *   open      a process found the container, without a bound
 *   unknown   no process found it
 */
import type { Millis } from "../../../model/base/units.js";
import type { DiagnosisJson } from "../../../model/documents/diagnosis_document.js";
import type { FrameJson } from "../../../model/documents/documents.js";
import { ownFrame } from "../../../model/documents/own_code.js";
import type { FleetProcess, LineHolder } from "../curves/fleet_evidence.js";

export type Boundedness = "bounded" | "fills" | "open" | "unknown";

/** What is named after something bounded fills within this time: a TTL of a day, and the half of it that shows the bend. */
export const LONGEST_FILL_MS: Millis = 36 * 3_600_000;
const FILLS = new Set(
  (
    "cache caches cached caching lru lfu ttl ttls memo memos memoize memoized ring rings fifo window windows " +
    "buffer buffers buffered recent recents expiring bounded limited"
  ).split(" "),
);
/** Parts of a name: `_rowCache`, `lru_cache`, `/srv/app/ttl.py`. */
const WORDS = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g;

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

/** By most of the processes that know the holder of this line, and by names. */
export function boundednessOf(
  { file, function: name }: FrameJson,
  processes: readonly FleetProcess[],
): Boundedness {
  const held = processes.flatMap(({ holders }) =>
    holders.filter(({ line }) => line.file === file && line.function === name),
  );
  const bounded = held.filter(({ bound }) => bound !== undefined);
  if (2 * bounded.length > held.length) {
    return "bounded";
  }
  const module = file.split(/[/\\]/).at(-1) ?? "";
  // A library's own field is ignored: its bound would have been found.
  const paths = held.flatMap(({ path }) => path.filter((step) => !step.startsWith("field of ")));
  const names = [name, module, ...paths];
  const isNamed = names.some((each) =>
    (each.match(WORDS) ?? []).some((word) => FILLS.has(word.toLowerCase())),
  );
  return isNamed ? "fills" : held.length > 0 ? "open" : "unknown";
}

/** Whether what rose in this time may be a container that is not yet full. */
export function mayFill(
  line: FrameJson,
  processes: readonly FleetProcess[],
  lengthMs: Millis,
): boolean {
  const known = boundednessOf(line, processes);
  return known === "bounded" || (known === "fills" && lengthMs < LONGEST_FILL_MS);
}
