/**
 * Files of Valgrind's massif (`massif.out.PID`): snapshots of the heap, some with the stacks that hold it.
 *
 *     snapshot=7 / time=285317 / mem_heap_B=210000 / heap_tree=peak
 *     n1: 210000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 *      n2: 210000 0x109170: keep (small.c:3)
 *       n0: 10000 in 3 places, all below massif's threshold (1.00%)
 */
import type { Bytes, StackId } from "../../../model/base/units.js";
import { Domain, FrameKind, type ProfileSnapshot } from "../../../model/profile/profile.js";
import { type ForeignFrame, ImportedSites } from "../imported_sites.js";
import {
  DEEPEST_STACK,
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  type ProfileImporter,
  requireRoom,
} from "../importer.js";
import { linesOf, requireLastLine } from "../text.js";
import { placeOf } from "./native_place.js";

export const massif: ProfileImporter = {
  name: "massif",
  description: "Valgrind massif: massif.out.PID",
  recognizes: ({ head }) => /^desc: [^\n]*\ncmd: [^\n]*\ntime_unit: /.test(head),
  read,
};

interface Snapshot {
  /** From 0, in the order of the file. */
  readonly number: number;
  time: number;
  heap: number;
  extra: number;
  /** null: not read yet. */
  tree: "empty" | "detailed" | "peak" | null;
}

/** Massif itself writes at most --max-snapshots, 100 unless it is given. */
const MOST_SNAPSHOTS = 100_000;

interface Node {
  /** Number of children that have not been read yet. */
  children: number;
  /** Bytes that the children so far do not account for. */
  rest: number;
  readonly frame: ForeignFrame | null;
}

function read(file: ForeignFile): ForeignRecording {
  requireLastLine(file.bytes);
  const reader = new MassifReader(file);
  for (const line of linesOf(file.bytes)) {
    reader.line(line);
  }
  return reader.recording();
}

class MassifReader {
  readonly #file: ForeignFile;
  #command: string[] = [];
  #unit = "";
  #sites: ImportedSites | null = null;
  readonly #snapshots: Snapshot[] = [];
  readonly #profiles: { readonly snapshot: Snapshot; readonly live: LiveByStack }[] = [];
  #live: LiveByStack = new Map();
  #nodes: Node[] = [];

  constructor(file: ForeignFile) {
    this.#file = file;
  }

  line(line: string): void {
    const [, key = "", value = ""] = /^([a-zA-Z_]+)[=:] ?(.*)$/.exec(line) ?? [];
    if (key === "cmd") {
      this.#command = value.split(" ");
    } else if (key === "time_unit") {
      this.#unit = value;
    } else if (key === "snapshot") {
      this.#endTree();
      const number = this.#snapshots.length;
      requireRoom(number, MOST_SNAPSHOTS, "snapshots");
      this.#snapshots.push({ number, time: 0, heap: 0, extra: 0, tree: null });
    } else if (key === "time" || key === "mem_heap_B" || key === "mem_heap_extra_B") {
      this.#figure(key, value);
    } else if (key === "heap_tree") {
      this.#current().tree = value === "peak" || value === "detailed" ? value : "empty";
    } else if (/^ *n\d+:/.test(line)) {
      this.#node(line);
    }
  }

  recording(): ForeignRecording {
    this.#endTree();
    const file = this.#file;
    const last = this.#snapshots.at(-1);
    if (last === undefined) {
      throw new ForeignFault("it has no snapshot");
    }
    // Instructions and allocated bytes are not time: the snapshots follow each other by 1 ms each.
    const isTime = this.#unit === "ms";
    const timeOf = (snapshot: Snapshot) => (isTime ? snapshot.time : snapshot.number);
    const startedMs = file.writtenMs - timeOf(last);
    const sites = this.#opened();
    let peak = { timeMs: 0, total: 0, live: NOTHING };
    const snapshots = this.#profiles.map(({ snapshot, live }) => {
      const timeMs = startedMs + timeOf(snapshot);
      const total = [...live.values()].reduce((sum, bytes) => sum + bytes, 0);
      peak = total > peak.total ? { timeMs, total, live } : peak;
      addAll(sites, live, "live");
      addAll(sites, peak.live, "peak");
      return sites.snapshot(timeMs, timeMs - startedMs, peak.timeMs);
    });
    const lastHasTree = this.#profiles.at(-1)?.snapshot === last;
    const highest = this.#snapshots.reduce(
      (best, row) => (row.heap > best.heap ? row : best),
      last,
    );
    return {
      tool: "Valgrind massif",
      precision: "exact",
      known: [
        ...(lastHasTree ? (["live"] as const) : []),
        ...(snapshots.length > 0 ? (["peak"] as const) : []),
        ...(isTime ? (["time"] as const) : []),
      ],
      tables: sites.tables(),
      snapshots: lastHasTree || snapshots.length === 0 ? snapshots : onlyPeak(snapshots),
      startedMs,
      endedMs: file.writtenMs,
      metrics: this.#snapshots.map((snapshot) => ({
        metric: "liveBytes" as const,
        timeMs: startedMs + timeOf(snapshot),
        value: snapshot.heap,
      })),
      events: [],
      lines: [],
      limits: [
        ...(isTime
          ? []
          : [
              `Times are massif's (${this.#unit}), not seconds: snapshots are drawn in their order.`,
            ]),
        ...(this.#profiles.some(({ snapshot }) => snapshot.heap === highest.heap)
          ? []
          : ["The highest snapshot has no stacks: the peak shown is the highest one with stacks."]),
        "Stacks with less than massif's threshold are counted at their callers.",
      ],
    };
  }

  #current(): Snapshot {
    const snapshot = this.#snapshots.at(-1);
    if (snapshot === undefined) {
      throw new ForeignFault("a figure comes before the first snapshot");
    }
    return snapshot;
  }

  #figure(key: string, text: string): void {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value <= Number.MAX_SAFE_INTEGER)) {
      throw new ForeignFault(`${key}=${text.slice(0, 40)} is not a number`);
    }
    const snapshot = this.#current();
    if (key === "time") {
      snapshot.time = value;
    } else if (key === "mem_heap_B") {
      snapshot.heap = value;
    } else {
      snapshot.extra = value;
    }
  }

  #opened(): ImportedSites {
    this.#sites ??= new ImportedSites({
      pid: 0,
      command: this.#command,
      python: "",
      startedMs: this.#file.writtenMs,
    });
    return this.#sites;
  }

  /** Massif's tree has the leaf at its top: a child is a caller. */
  #node(line: string): void {
    const [, indent = "", children = "0", size = "0", text = ""] =
      /^( *)n(\d{1,9}): (\d{1,16}) (.*)$/.exec(line) ?? [];
    if (text === "" || indent.length > this.#nodes.length) {
      throw new ForeignFault(`the line '${line.slice(0, 40).trim()}' is not a node of its tree`);
    }
    this.#closeDownTo(indent.length);
    const bytes = Number(size);
    const parent = this.#nodes.at(-1);
    if (parent !== undefined) {
      parent.rest -= bytes;
      parent.children -= 1;
    }
    if (this.#nodes.length >= DEEPEST_STACK) {
      throw new ForeignFault(`a stack is deeper than ${DEEPEST_STACK} frames`);
    }
    const isPlace = /^0x[0-9A-Fa-f]+: /.test(text);
    this.#nodes.push({
      children: Number(children),
      rest: bytes,
      frame: isPlace ? placeOf(text) : null,
    });
  }

  #endTree(): void {
    const snapshot = this.#snapshots.at(-1);
    if (snapshot?.tree === null) {
      throw new ForeignFault("a snapshot has no heap_tree: it is cut off");
    }
    if (snapshot !== undefined && snapshot.tree !== "empty") {
      if (this.#nodes.length === 0) {
        throw new ForeignFault("a snapshot's stacks are missing: it is cut off");
      }
      this.#closeDownTo(0);
      this.#profiles.push({ snapshot, live: this.#live });
      this.#live = new Map();
    }
    this.#nodes = [];
  }

  #closeDownTo(depth: number): void {
    while (this.#nodes.length > depth) {
      const stack = this.#nodes.flatMap(({ frame }) => (frame === null ? [] : [frame])).reverse();
      const node = this.#nodes.pop();
      if (node !== undefined && (node.children !== 0 || node.rest < 0)) {
        throw new ForeignFault("the stacks of a snapshot do not add up: it is cut off");
      }
      if (node !== undefined && node.rest > 0) {
        const frames = stack.length > 0 ? stack : [UNKNOWN];
        const id = this.#opened().stack(frames);
        this.#live.set(id, (this.#live.get(id) ?? 0) + node.rest);
      }
    }
  }
}

type LiveByStack = Map<StackId, Bytes>;
const NOTHING: LiveByStack = new Map();

function addAll(sites: ImportedSites, live: LiveByStack, figure: "live" | "peak"): void {
  for (const [stack, bytes] of live) {
    sites.add({ stack, domain: Domain.native }, { [figure]: bytes });
  }
}

const UNKNOWN: ForeignFrame = {
  function: "below massif's threshold",
  file: "",
  line: 0,
  kind: FrameKind.mark,
};

/** If the end is unknown, only the highest snapshot is kept, as the peak. */
function onlyPeak(snapshots: readonly ProfileSnapshot[]): ProfileSnapshot[] {
  const total = ({ sites }: ProfileSnapshot) =>
    sites.liveBytes.reduce((sum, bytes) => sum + bytes, 0);
  return snapshots.reduce<ProfileSnapshot[]>(
    (best, snapshot) =>
      best[0] === undefined || total(snapshot) > total(best[0]) ? [snapshot] : best,
    [],
  );
}
