/**
 * Finds the Python interpreter in a program's memory, and the layout that fits it.
 *
 *   const python = locatePython(openProcessMemory(pid));   // throws TM-E022, TM-E023, TM-E025
 *   python.layout.thread.frame                              // offsets of exactly this interpreter
 *   python.reader.pointer(python.mainInterpreter + python.layout.interpreter.gc)
 *   for (const thread of listThreads(python)) ...           // threads.ts, frames.ts
 *
 *   where _PyRuntime may be (runtime_places.ts)  x  the layouts of layouts/  ->  the first that fits
 *
 * A layout fits (fingerprint.ts) if: each interpreter leads to its threads and they back to it, the threads' ids are
 * threads of this process, `type(type) is type`, and sys.hexversion names the layout's minor version. From
 * 3.13 on the interpreter publishes most offsets itself, and they win over the table. Nothing is guessed: an
 * interpreter that does not fit is refused, with the failed check.
 *
 * | failure | outcome |
 * |---|---|
 * | no Python in the process | TM-E022 |
 * | it ended while it was read, or called exec | TM-E020 |
 * | free-threaded, older than 3.9, newer than 3.15 | TM-E023 by name |
 * | still starting, already finalizing, a build whose structures differ | TM-E025 with what did not fit |
 * | several interpreters loaded | the first whose runtime is initialized |
 */
import { type Memory, MemoryReader, readInterpreter } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import {
  layoutMismatch,
  noInterpreter,
  processGone,
  unknownInterpreter,
} from "../../model/errors/errors.js";
import { LAYOUTS, type PythonLayout } from "../layouts/index.js";
import { checkFingerprint, Mismatch, type Proof } from "./fingerprint.js";
import type { PythonMemory } from "./objects.js";
import { applyPublished, readPublished } from "./published_offsets.js";
import { runtimePlaces } from "./runtime_places.js";
import { minorOf } from "./version_facts.js";

export interface PythonRuntime extends PythonMemory {
  readonly memory: Memory;
  /** Version of the interpreter itself: "3.11.7", "3.14.0rc2". `layout.version` is that of the table's headers. */
  readonly version: string;
  /** &_PyRuntime. */
  readonly address: Address;
  /** PyInterpreterState of all interpreters, the main one first. */
  readonly interpreters: readonly Address[];
  readonly mainInterpreter: Address;
  /** &PyType_Type. */
  readonly typeType: Address;
  /**
   * False if the sizes of the structures (published from 3.13 on) differ from those in the table. Then only
   * published offsets, and what was checked separately, may be relied on.
   */
  readonly sizesAgree: boolean;
}

/** @param layouts the tables to try; tests pass fewer */
export function locatePython(
  memory: Memory,
  layouts: readonly PythonLayout[] = LAYOUTS,
): PythonRuntime {
  const doubts: Doubt[] = [];
  const tried = new Set<Address>();
  const reader = new MemoryReader(memory);
  let sawPlace = false;
  for (const { address, certain } of runtimePlaces(memory, layouts)) {
    if (!tried.has(address)) {
      tried.add(address);
      sawPlace ||= certain;
      const runtime = tryPlace(memory, reader, address, layouts, doubts);
      if (runtime !== null) {
        return runtime;
      }
    }
  }
  throw refusal(memory, layouts, sawPlace, doubts);
}

interface Doubt {
  readonly version: string;
  readonly detail: string;
  /** Number of passed checks: the error is about the table of the named version that got furthest. */
  readonly passed: number;
}

function tryPlace(
  memory: Memory,
  reader: MemoryReader,
  address: Address,
  layouts: readonly PythonLayout[],
  doubts: Doubt[],
): PythonRuntime | null {
  const published = readPublished(reader, address);
  if (published?.freeThreaded) {
    throw unknownInterpreter(memory.name, `Python ${published.version}, a free-threaded build`);
  }
  const candidates =
    published === null
      ? layouts.filter((layout) => layout.published === null)
      : applyPublished(reader, address, published, layouts);
  if (published !== null && candidates.length === 0) {
    throw unknownInterpreter(memory.name, `Python ${published.version}`);
  }
  const fitting: PythonRuntime[] = [];
  // The version in the names of its files comes first; if it fits, the others are skipped.
  const named = namedMinor(memory);
  const rank = (layout: PythonLayout) => (minorOf(layout.version) === named ? 0 : 1);
  let open = candidates.map(withSizes).sort((a, b) => rank(a.layout) - rank(b.layout));
  // Threads start and end while they are read, so a running interpreter that fits so far is checked again.
  // Tables of other versions are not tried again once the version is known.
  for (let tries = 1; open.length > 0 && tries <= MOST_TRIES; tries++) {
    if (tries > 1) {
      reader.forget();
      memory.refresh();
    }
    open = open.filter(({ layout, sizesAgree }) => {
      const [known] = fitting;
      if (known !== undefined && minorOf(known.version) !== minorOf(layout.version)) {
        return false;
      }
      const proof = checkFit({ reader, layout }, memory, address);
      if ("detail" in proof) {
        const last = memory.pid === null || tries === MOST_TRIES || proof.passed < PROMISING;
        if (last) {
          doubts.push(proof);
        }
        return !last;
      }
      fitting.push({ memory, reader, layout, address, sizesAgree, ...proof });
      return false;
    });
    const best = closest(fitting);
    if (best !== null) {
      const { version } = best;
      const isBetter = (candidate: Pick<PythonRuntime, "layout" | "sizesAgree">) =>
        minorOf(candidate.layout.version) === minorOf(version) &&
        distanceOf({ ...candidate, version }) < distanceOf(best);
      open = open.filter(isBetter);
    }
  }
  return closest(fitting);
}

/** From the name of a mapped file such as "libpython3.12.so.1.0" or "python3.12"; undefined if there is none. */
function namedMinor({ mappings }: Memory): ReturnType<typeof minorOf> | undefined {
  for (const { path, inode } of mappings) {
    const [, version] = inode === 0 ? [] : (/python(3\.\d+)[^/]*$/.exec(path) ?? []);
    if (version !== undefined) {
      return minorOf(version);
    }
  }
  return undefined;
}

function withSizes(candidate: PythonLayout | { layout: PythonLayout; sizesAgree: boolean }) {
  return "layout" in candidate ? candidate : { layout: candidate, sizesAgree: true };
}

function checkFit(python: PythonMemory, memory: Memory, address: Address): Proof | Doubt {
  try {
    return checkFingerprint(python, memory, address);
  } catch (error) {
    if (error instanceof Mismatch) {
      const { version, message, passed } = error;
      return { version: version || python.layout.version, detail: message, passed };
    }
    throw error;
  }
}

const MOST_TRIES = 20;
/** Checks that no other table passes by chance. */
const PROMISING = 3;

/** Among the tables that fit: one with the same sizes, of the same version or the nearest earlier one. */
function closest(fitting: readonly PythonRuntime[]): PythonRuntime | null {
  return [...fitting].sort((a, b) => distanceOf(a) - distanceOf(b))[0] ?? null;
}

function distanceOf({
  version,
  layout,
  sizesAgree,
}: Pick<PythonRuntime, "version" | "layout" | "sizesAgree">): number {
  const distance = patchOf(version) - patchOf(layout.version);
  return (sizesAgree ? 0 : 10_000) + (distance >= 0 ? distance : 1000 - distance);
}

function patchOf(version: string): number {
  return Number(/^\d+\.\d+\.(\d+)/.exec(version)?.[1] ?? 0);
}

function refusal(
  memory: Memory,
  layouts: readonly PythonLayout[],
  sawPlace: boolean,
  doubts: readonly Doubt[],
): Error {
  if (memory.pid !== null && !memory.refresh()) {
    return processGone(memory.pid); // it has ended, or has become another program (exec)
  }
  // A version that is too old for this search is recognized by its file.
  const version = memory.pid === null ? "" : (readInterpreter(memory.pid)?.version ?? "");
  if (version !== "" && layouts.every((layout) => minorOf(layout.version) !== minorOf(version))) {
    return unknownInterpreter(memory.name, `Python ${version}`);
  }
  if (!sawPlace) {
    return noInterpreter(memory.name);
  }
  const named = namedMinor(memory);
  const rank = (doubt: Doubt) => (minorOf(doubt.version) === named ? 0 : 1);
  const [best] = [...doubts].sort((a, b) => rank(a) - rank(b) || b.passed - a.passed);
  return layoutMismatch(memory.name, best?.version ?? "", best?.detail ?? "nothing fits");
}
