/** What a profile cannot show: the agent's flags and counts as readable sentences. */
import type { Pid } from "../model/base/units.js";
import type { SegmentHeader } from "./header.js";
import { CONSTANTS } from "./layout.js";

const SENTENCES: readonly (readonly [bit: number, sentence: (header: SegmentHeader) => string])[] =
  [
    [
      CONSTANTS.TM_LIMIT_DEBUG_ALLOCATOR,
      () => "a debug allocator is enabled: small Python objects appear only as its arenas",
    ],
    [
      CONSTANTS.TM_LIMIT_UNKNOWN_PYTHON,
      ({ python }) =>
        `Python ${python || "of unknown version"} is not supported by the agent: only native memory is recorded`,
    ],
    [
      CONSTANTS.TM_LIMIT_FREE_THREADED,
      () => "free-threaded Python: only native memory is recorded",
    ],
    [
      CONSTANTS.TM_LIMIT_LAYOUT_MISMATCH,
      ({ python }) =>
        `this build of Python ${python} has different structures: only native memory is recorded`,
    ],
    [
      CONSTANTS.TM_LIMIT_SITES_FULL,
      () => "the table of sites was full: later sites are merged into one",
    ],
    [
      CONSTANTS.TM_LIMIT_STACKS_FULL,
      () => "the table of stacks was full: later stacks are truncated",
    ],
    [CONSTANTS.TM_LIMIT_STRINGS_FULL, () => "the table of names was full: later names are missing"],
    [
      CONSTANTS.TM_LIMIT_NO_MEMORY,
      () => "no memory was left for the profile: recording stopped at that point",
    ],
    [
      CONSTANTS.TM_LIMIT_FOREIGN_ALLOCATOR,
      () => "another allocator provides malloc: memory from its own operator new is not recorded",
    ],
    [
      CONSTANTS.TM_LIMIT_MALLOC_UNSEEN,
      () =>
        "an allocator loaded before the agent provides malloc: only memory mapped from the system is recorded",
    ],
    [
      CONSTANTS.TM_LIMIT_COVERED,
      () =>
        "another tool (such as memray) wrapped the allocators: nothing was sampled during that time, and earlier live memory counts as freed",
    ],
    [CONSTANTS.TM_LIMIT_TURNED_OFF, () => "the agent disabled itself"],
    [
      CONSTANTS.TM_LIMIT_HOOKS_REPLACED,
      () =>
        "the program replaced Python's allocator hooks: small Python objects are not recorded after that",
    ],
  ];

/** One sentence per limit of this process. */
export function limitsOf(header: SegmentHeader, torn: number, missing: number): string[] {
  const found = SENTENCES.filter(([bit]) => (header.limits & bit) !== 0).map(([, sentence]) =>
    sentence(header),
  );
  const known = SENTENCES.reduce((bits, [bit]) => bits | bit, 0);
  if ((header.limits & ~known) !== 0) {
    found.push("the agent reports a limit that this Tidemark does not know");
  }
  if (header.samplesLost > 0) {
    found.push(`${header.samplesLost} of ${header.samples} samples were lost: a table was full`);
  }
  if (torn > 0) {
    found.push(`${torn} ${torn === 1 ? "record was" : "records were"} incomplete and ignored`);
  }
  if (missing > 0) {
    found.push(
      `${missing} ${missing === 1 ? "record is" : "records are"} missing: the memory file is truncated`,
    );
  }
  return [...found, ...header.log];
}

/** The sentences of many processes, each once, prefixed by the processes. */
export function gatherLimits(limits: Iterable<readonly [Pid, readonly string[]]>): string[] {
  const pids = new Map<string, Pid[]>();
  for (const [pid, sentences] of limits) {
    for (const sentence of sentences) {
      pids.set(sentence, [...(pids.get(sentence) ?? []), pid]);
    }
  }
  return Array.from(pids, ([sentence, of]) =>
    of.length === 1 ? `process ${of[0]}: ${sentence}` : `${of.length} processes: ${sentence}`,
  );
}

/** The pool's own count of processes that found no room. */
export function poolLimits(unserved: number, reason: number): string[] {
  if (unserved === 0) {
    return [];
  }
  const why = reason === 0 ? "every slot was taken" : errnoText(reason);
  return [`${unserved} ${unserved === 1 ? "process ran" : "processes ran"} unprofiled: ${why}`];
}

/** The errors with which a claim can fail. Source: asm-generic/errno-base.h. */
function errnoText(number: number): string {
  switch (number) {
    case 1:
    case 13:
      return "not permitted to open the pool";
    case 2:
      return "the pool no longer existed";
    case 11:
    case 28:
      return "the pool was full";
    case 12:
      return "no memory was left";
    default:
      return `error ${number}`;
  }
}

/** Limits with which an agent misses allocations, whatever their size. */
const MISSES_LARGE =
  CONSTANTS.TM_LIMIT_MALLOC_UNSEEN |
  CONSTANTS.TM_LIMIT_COVERED |
  CONSTANTS.TM_LIMIT_TURNED_OFF |
  CONSTANTS.TM_LIMIT_NO_MEMORY;

/** Whether the agent notices if a large allocation fails. */
export function seesAllocations({ state, limits }: SegmentHeader): boolean {
  return state !== "disarmed" && (limits & MISSES_LARGE) === 0;
}
