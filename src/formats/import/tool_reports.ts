/**
 * Text and pages that other tools print for people. No importer reads them: they are rounded, cut and without stacks.
 * The message names what the file is, and which file of the tool to import instead.
 */
import type { ForeignFile } from "./importer.js";

export interface ToolReport {
  /** "a table that memory_profiler printed" */
  readonly what: string;
  /** Which file to import instead, or where the figures are. */
  readonly next: string;
}

interface KnownReport extends ToolReport {
  readonly mark: RegExp;
}

const MEMRAY = "import the file that memray run wrote: tidemark import memray-PROGRAM.PID.bin";
const MASSIF = "import massif.out.PID, which valgrind --tool=massif wrote";
const HEAPTRACK = "import heaptrack.PROGRAM.PID.gz or .zst, which heaptrack wrote";
const TRACEMALLOC =
  'dump the snapshot: tracemalloc.take_snapshot().dump("app.pickle"), then: tidemark import app.pickle';
const DHAT = "import dhat.out.PID, which valgrind --tool=dhat wrote";
const NOT_MEMORY = "it counts time or instructions, not memory";
const OBJECTS = "list the objects of the live process instead: tidemark heap PID";

/** In the order in which they are tried; the program's own output may come before the mark. */
const REPORTS: readonly KnownReport[] = [
  {
    mark: /^Line #\s+Mem usage\s+Increment/m,
    what: "a table that memory_profiler printed",
    next: "record with mprof run app.py and import its mprofile_*.dat, or measure by line: tidemark run app.py",
  },
  {
    mark: /<title>\s*memray\b/i,
    what: "a page that memray wrote",
    next: MEMRAY,
  },
  {
    mark: /Total memory allocated:\s[\s\S]{0,2000}Peak memory usage:\s|"total_bytes_allocated"|^allocator,num_allocations,size,tid|^\{"version": \d, "costs": \[/m,
    what: "a report that memray wrote",
    next: MEMRAY,
  },
  {
    // The headings of memray summary are cut at the width of the terminal.
    mark: /\bLocation\b[^\n]{0,2000}\bMemo|\([\d.]+ ?%\) <ROOT>/,
    what: "a table that memray summary or memray tree printed",
    next: MEMRAY,
  },
  {
    mark: /Memory usage:[^\n]{0,200}\(max: [\d.]+ ?.?[KMGT]?B, growth rate:/,
    what: "a table that scalene printed",
    next: "import the JSON that scalene run wrote: tidemark import scalene-profile.json",
  },
  {
    mark: /: size=[+-]?[\d.]+ [KMGT]?i?B(?: \([+-][^)]*\))?, count=\d+/,
    what: "statistics that tracemalloc printed",
    next: TRACEMALLOC,
  },
  {
    mark: /^ms_print arguments:|^==\d+== Massif, a heap profiler/m,
    what: "text that massif or ms_print printed",
    next: MASSIF,
  },
  {
    mark: /^==\d+== DHAT, a dynamic heap/m,
    what: "text that Valgrind DHAT printed",
    next: DHAT,
  },
  {
    mark: /^(?:==|--)\d+(?:==|--) Memcheck, a memory error detector/m,
    what: "the log of Valgrind memcheck",
    next: "record XML: valgrind --leak-check=full --xml=yes --xml-file=memcheck.xml CMD, or: tidemark memcheck -- CMD",
  },
  {
    mark: /\(creator: callgrind|^# callgrind format|^==\d+== (?:Callgrind|Cachegrind),|^desc: I1 cache:/m,
    what: "a profile of callgrind or cachegrind",
    next: `${NOT_MEMORY}; for memory: valgrind --tool=massif, or tidemark run`,
  },
  {
    mark: /^heaptrack stats:|^MOST CALLS TO ALLOCATION FUNCTIONS|^reading file "[^"\n]*heaptrack/m,
    what: "text that heaptrack or heaptrack_print printed",
    next: HEAPTRACK,
  },
  {
    mark: /^Partition of a set of \d+ objects?\. Total size/m,
    what: "a table that guppy printed",
    next: OBJECTS,
  },
  {
    mark: /^\s*types \|\s+# objects \|\s+total size/m,
    what: "a table that pympler printed",
    next: OBJECTS,
  },
  {
    mark: /^(?=(?:.*\n)*?(?:function|dict|tuple|list) +\d)(?:[\w.]+ +\d+\n)+$/,
    what: "a list of types that objgraph printed",
    next: OBJECTS,
  },
  {
    mark: /^# Elapsed time\s+CPU \(%\)\s+Real \(MB\)/m,
    what: "a log of psrecord",
    next: "record the program instead: tidemark run app.py, or tidemark attach PID",
  },
  {
    mark: /^Timer unit: [\de.+-]+ s|^\s*ncalls\s+tottime\s+percall/m,
    what: "a table of a CPU profiler",
    next: `${NOT_MEMORY}; for memory: tidemark run app.py`,
  },
  {
    mark: /^\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE[^>]*>\s*)?<svg\b[\s\S]*(?:py-spy|flamegraph|inferno)/i,
    what: "a picture of a flame graph",
    next: "import the stacks behind it: py-spy record --format raw, memray run, or another tool's folded stacks",
  },
];

/** undefined if no known tool prints such text. */
export function toolReport({ head }: ForeignFile): ToolReport | undefined {
  // Colours of terminals are within the words.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character begins a colour
  const text = head.replace(/\x1b\[[\d;]*m/g, "");
  const found = REPORTS.find(({ mark }) => mark.test(text));
  return found && { what: found.what, next: found.next };
}
