/** What a profile cannot show: the agent's bits and counts, as sentences for people. */
import type { Pid } from "../model/base/units.js";
import type { SegmentHeader } from "./header.js";
import { CONSTANTS } from "./layout.js";

const SENTENCES: readonly (readonly [bit: number, sentence: (header: SegmentHeader) => string])[] =
  [
    [
      CONSTANTS.TM_LIMIT_DEBUG_ALLOCATOR,
      () => "a debug allocator is on: small Python objects show as its arenas only",
    ],
    [
      CONSTANTS.TM_LIMIT_UNKNOWN_PYTHON,
      ({ python }) =>
        `Python ${python || "of unknown version"} is not known to the agent: native memory only`,
    ],
    [CONSTANTS.TM_LIMIT_FREE_THREADED, () => "free-threaded Python: native memory only"],
    [
      CONSTANTS.TM_LIMIT_LAYOUT_MISMATCH,
      ({ python }) =>
        `this build of Python ${python} is laid out unlike others: native memory only`,
    ],
    [CONSTANTS.TM_LIMIT_SITES_FULL, () => "the table of sites was full: later ones count as one"],
    [CONSTANTS.TM_LIMIT_STACKS_FULL, () => "the table of stacks was full: later stacks are cut"],
    [CONSTANTS.TM_LIMIT_STRINGS_FULL, () => "the table of names was full: later names are missing"],
    [
      CONSTANTS.TM_LIMIT_NO_MEMORY,
      () => "no memory was left for the profile: recording stopped there",
    ],
    [
      CONSTANTS.TM_LIMIT_FOREIGN_ALLOCATOR,
      () =>
        "malloc is another allocator's: memory from that allocator's own operator new is not seen",
    ],
    [
      CONSTANTS.TM_LIMIT_MALLOC_UNSEEN,
      () =>
        "an allocator that stands before the agent serves malloc: only memory mapped from the system is seen",
    ],
    [
      CONSTANTS.TM_LIMIT_COVERED,
      () =>
        "another tool (memray, or the like) wrapped the allocators: nothing was sampled while it did, and what lived before counts as freed then",
    ],
    [CONSTANTS.TM_LIMIT_TURNED_OFF, () => "the agent turned itself off"],
    [
      CONSTANTS.TM_LIMIT_HOOKS_REPLACED,
      () =>
        "the program replaced Python's allocator hooks: small Python objects are not seen after that",
    ],
  ];

/** One sentence a limit of this process. */
export function limitsOf(header: SegmentHeader, torn: number, missing: number): string[] {
  const found = SENTENCES.filter(([bit]) => (header.limits & bit) !== 0).map(([, sentence]) =>
    sentence(header),
  );
  const known = SENTENCES.reduce((bits, [bit]) => bits | bit, 0);
  if ((header.limits & ~known) !== 0) {
    found.push("the agent names a limit that this Tidemark does not know");
  }
  if (header.samplesLost > 0) {
    found.push(`${header.samplesLost} of ${header.samples} samples were lost: a table was full`);
  }
  if (torn > 0) {
    found.push(`${torn} ${torn === 1 ? "record was" : "records were"} half written and left out`);
  }
  if (missing > 0) {
    found.push(
      `${missing} ${missing === 1 ? "record is" : "records are"} missing: the memory file is cut off`,
    );
  }
  return [...found, ...header.log];
}

/** The sentences of many processes, each once, with whom it is of in front. */
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

/** The pool's own word: processes that found no room. */
export function poolLimits(unserved: number, reason: number): string[] {
  if (unserved === 0) {
    return [];
  }
  const why = reason === 0 ? "every slot was taken" : errnoText(reason);
  return [`${unserved} ${unserved === 1 ? "process ran" : "processes ran"} unprofiled: ${why}`];
}

/** Those that a claim can end with. Source: asm-generic/errno-base.h. */
function errnoText(number: number): string {
  switch (number) {
    case 1:
    case 13:
      return "not permitted to open the pool";
    case 2:
      return "the pool was gone";
    case 11:
    case 28:
      return "no room was left in the pool";
    case 12:
      return "no memory was left";
    default:
      return `error ${number}`;
  }
}
