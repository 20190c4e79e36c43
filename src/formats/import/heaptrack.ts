/**
 * Files of heaptrack (heaptrack.PROGRAM.PID.gz or .zst), file format 1 to 3. Numbers are hexadecimal; strings,
 * instruction pointers, stacks and allocations are numbered as they appear.
 *
 *     v 10400 3            versions of heaptrack and of the format
 *     X ./app              the command           I 1000 5e298f     page size, pages
 *     s 6 malloc           a string (format 3: with its length)
 *     i IP MODULE [FUNCTION FILE LINE]...        an instruction with inlined functions, outermost last
 *     t IP PARENT          a stack               a SIZE STACK      a kind of allocation
 *     + A / - A            an allocation, a free c MS / R PAGES    the time, RSS
 */

import { shellWord } from "../../model/base/shell_word.js";
import type { StackId, TimeMs } from "../../model/base/units.js";
import { notOpened } from "../../model/errors/file_errors.js";
import { Domain } from "../../model/profile/profile.js";
import { type ForeignFrame, ImportedSites, nativeFrame } from "./imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  MOST_ROWS,
  type ProfileImporter,
  requireRoom,
} from "./importer.js";
import { linesOf, requireLastLine } from "./text.js";

const NEWEST = 3;

export const heaptrack: ProfileImporter = {
  name: "heaptrack",
  description: "heaptrack: heaptrack.PROGRAM.PID.gz or .zst, format 1 to 3",
  recognizes: ({ head }) => /^v [0-9a-f]+ [0-9a-f]+\n[XIAs] /.test(head) || RAW.test(head),
  read,
};

/** What `heaptrack --raw` records: the executable, then modules (m) instead of strings and instructions. */
const RAW = /^v [0-9a-f]+(?: [0-9a-f]+)?\n(?:[XIA] .*\n)*[xm] /;
/** Of a package, as heaptrack prints it. */
const INTERPRETER = "/usr/lib/heaptrack/libexec/heaptrack_interpret";

/** The command that heaptrack itself prints, for any name and compression of the file. */
function interpretCommand({ path, packings }: ForeignFile): string {
  const [first = "cat", ...others] = packings.map((packing) => `${packing} -dc`);
  const stages = [`${first} < ${shellWord(path)}`, ...others, INTERPRETER].join(" | ");
  const name = path.replace(/(?:\.(?:gz|zst|lz4))+$/, "").replace(/\.raw$/, "");
  const whole = shellWord(`${name}.interpreted.gz`);
  return `convert it on the machine that recorded it: ${stages} | gzip > ${whole}, then: tidemark import ${whole}`;
}

function read(file: ForeignFile): ForeignRecording {
  if (RAW.test(file.head)) {
    throw notOpened(file.path, "raw data of heaptrack, without symbols", interpretCommand(file));
  }
  requireLastLine(file.bytes);
  const reader = new HeaptrackReader(file);
  for (const line of linesOf(file.bytes)) {
    reader.line(line);
  }
  return reader.recording();
}

interface Kind {
  readonly size: number;
  readonly stack: number;
  live: number;
  allocated: number;
  atPeak: number;
  peaks: number;
}

class HeaptrackReader {
  readonly #file: ForeignFile;
  #version = 0;
  #command: string[] = [];
  #pageBytes = 4096;
  #attached = false;
  readonly #strings: string[] = [""];
  /** Leaf first: inlined functions before the one that contains them. */
  readonly #instructions: (readonly ForeignFrame[])[] = [[]];
  readonly #stacks: { instruction: number; parent: number }[] = [{ instruction: 0, parent: 0 }];
  readonly #kinds: Kind[] = [];
  #live = 0;
  #peak = 0;
  #peaks = 0;
  #peakAt = 0;
  #elapsed = 0;
  #hasEnd = false;
  readonly #readings: { metric: "rssBytes" | "liveBytes"; timeMs: TimeMs; value: number }[] = [];

  constructor(file: ForeignFile) {
    this.#file = file;
  }

  line(line: string): void {
    const [kind, ...words] = line.split(" ");
    const number = (index: number) => this.#number(words[index], line);
    switch (kind) {
      case "v":
        this.#version = words[1] === undefined ? 1 : number(1);
        if (this.#version > NEWEST) {
          throw new ForeignFault(
            `its format version is ${this.#version}, and 1 to ${NEWEST} are known`,
          );
        }
        break;
      case "X":
        this.#command = words;
        break;
      case "A":
        this.#attached = true;
        break;
      case "I":
        this.#pageBytes = number(0);
        if (this.#pageBytes === 0) {
          throw new ForeignFault("its pages have 0 bytes");
        }
        break;
      case "s":
        requireRoom(this.#strings.length, MOST_ROWS, "strings");
        this.#strings.push(this.#version >= 3 ? words.slice(1).join(" ") : words.join(" "));
        break;
      case "i":
        this.#instruction(words.map((_word, index) => number(index)));
        break;
      case "t":
        requireRoom(this.#stacks.length, MOST_ROWS, "stacks");
        this.#stacks.push({ instruction: number(0), parent: number(1) });
        break;
      case "a":
        requireRoom(this.#kinds.length, MOST_ROWS, "allocations");
        this.#kinds.push({
          size: number(0),
          stack: number(1),
          live: 0,
          allocated: 0,
          atPeak: 0,
          peaks: -1,
        });
        break;
      case "+":
        this.#change(number(0), 1);
        break;
      case "-":
        this.#change(number(0), -1);
        break;
      case "c":
        this.#elapsed = number(0);
        this.#reading("liveBytes", this.#live);
        break;
      case "R":
        this.#reading("rssBytes", number(0) * this.#pageBytes);
        break;
      case "#":
        this.#hasEnd ||= words[0] === "strings:";
        break;
      default: // comments, suppressions, embedded debug information
    }
  }

  recording(): ForeignRecording {
    if (this.#kinds.length === 0) {
      throw new ForeignFault(
        "it has no allocation: it is cut off, or its program ended before the first",
      );
    }
    const endedMs = this.#file.writtenMs;
    const startedMs = endedMs - this.#elapsed;
    const sites = new ImportedSites({ pid: 0, command: this.#command, python: "", startedMs });
    const known = new Map<number, StackId>([[0, 0]]);
    for (const kind of this.#kinds) {
      const { size, live, allocated } = kind;
      const peakObjects = kind.peaks === this.#peaks ? kind.atPeak : live;
      sites.add(
        { stack: this.#stack(kind.stack, sites, known), domain: Domain.native },
        {
          live: live * size,
          liveObjects: live,
          peak: peakObjects * size,
          peakObjects,
          allocated: allocated * size,
          allocatedObjects: allocated,
        },
      );
    }
    const metrics = this.#readings.map((row) => ({ ...row, timeMs: startedMs + row.timeMs }));
    const peakMs = startedMs + this.#peakAt;
    return {
      tool: `heaptrack (format ${this.#version})`,
      precision: "exact",
      known: [
        "live",
        "peak",
        "allocated",
        "objects",
        "time",
        ...(this.#hasRss() ? (["rss"] as const) : []),
      ],
      snapshots: [sites.snapshot(endedMs, this.#elapsed, peakMs)],
      tables: sites.tables(),
      startedMs,
      endedMs,
      metrics,
      events: [],
      lines: [],
      limits: [
        ...(this.#attached
          ? ["Heaptrack was attached to a running program: memory allocated before is missing."]
          : []),
        ...(this.#hasEnd
          ? []
          : [
              "The file has no end: heaptrack was stopped, or the file was cut off. Its last allocations are missing.",
            ]),
      ],
    };
  }

  #hasRss(): boolean {
    return this.#readings.some(({ metric }) => metric === "rssBytes");
  }

  #number(word: string | undefined, line: string): number {
    const value = /^[0-9a-f]{1,16}$/.test(word ?? "")
      ? Number.parseInt(word ?? "", 16)
      : Number.NaN;
    if (Number.isNaN(value)) {
      throw new ForeignFault(`the line '${line.slice(0, 40)}' is incomplete`);
    }
    return value;
  }

  /** An address, a module, then function, file and line, inlined functions first; or a function without a file. */
  #instruction([_pointer = 0, module = 0, ...places]: readonly number[]): void {
    if (places.length % 3 === 2) {
      throw new ForeignFault("an instruction is incomplete");
    }
    requireRoom(this.#instructions.length, MOST_ROWS, "instructions");
    const frames: ForeignFrame[] = [];
    for (let at = 0; at < places.length; at += 3) {
      const name = this.#text(places[at] ?? 0);
      frames.push(
        nativeFrame(
          name,
          this.#text(places[at + 1] ?? 0) || this.#text(module),
          places[at + 2] ?? 0,
        ),
      );
    }
    this.#instructions.push(frames.length > 0 ? frames : [nativeFrame("", this.#text(module))]);
  }

  #text(index: number): string {
    const text = this.#strings[index];
    if (text === undefined) {
      throw new ForeignFault(`the string ${index} is missing`);
    }
    return text;
  }

  #change(index: number, count: 1 | -1): void {
    const kind = this.#kinds[index];
    if (kind === undefined) {
      throw new ForeignFault(`the allocation ${index} is missing`);
    }
    if (kind.peaks !== this.#peaks) {
      kind.peaks = this.#peaks;
      kind.atPeak = kind.live;
    }
    kind.live += count;
    kind.allocated += count > 0 ? 1 : 0;
    this.#live += count * kind.size;
    if (this.#live > this.#peak) {
      this.#peak = this.#live;
      this.#peaks += 1;
      this.#peakAt = this.#elapsed;
    }
  }

  #reading(metric: "rssBytes" | "liveBytes", value: number): void {
    requireRoom(this.#readings.length, MOST_ROWS, "readings");
    this.#readings.push({ metric, timeMs: this.#elapsed, value });
  }

  /** Parents have lower numbers, so that the chain ends. */
  #stack(index: number, sites: ImportedSites, known: Map<number, StackId>): StackId {
    const pending: number[] = [];
    let at = index;
    while (!known.has(at)) {
      const parent = this.#stacks[at]?.parent ?? at;
      if (parent >= at) {
        throw new ForeignFault(`the stack ${at} is missing or names itself`);
      }
      pending.push(at);
      at = parent;
    }
    let stack = known.get(at) ?? 0;
    for (const node of pending.reverse()) {
      const frames = this.#instructions[this.#stacks[node]?.instruction ?? 0];
      if (frames === undefined) {
        throw new ForeignFault(`the instruction of stack ${node} is missing`);
      }
      for (const frame of frames.toReversed()) {
        stack = sites.push(stack, frame);
      }
      known.set(node, stack);
    }
    return stack;
  }
}
