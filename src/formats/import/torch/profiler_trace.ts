/**
 * Traces of torch.profiler with `profile_memory=True` (`export_chrome_trace`). An allocation is an instant event
 * "[memory]"; the operators and, with `with_stack=True`, the Python calls around it on its thread are its stack.
 * The label `module` names the modules around it; a backward operator has the sequence number of a forward one.
 */
import type { StackId, TimeMs } from "../../../model/base/units.js";
import { nothingThere } from "../../../model/errors/errors.js";
import { Domain, FrameKind, type ProfileSnapshot } from "../../../model/profile/profile.js";
import { type ForeignFrame, ImportedSites, nativeFrame, pythonFrame } from "../imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  type ProfileImporter,
} from "../importer.js";
import {
  amountOf,
  type Json,
  type JsonObject,
  numberOf,
  objectOf,
  parseJson,
  requiredList,
  textOf,
} from "../json.js";
import { LiveBlocks } from "../live_blocks.js";

const CALLS = new Set(["python_function", "cpu_op", "user_annotation"]);
/** Addresses of up to 32 devices in one table. */
const DEVICES = 32;

export const torchTrace: ProfileImporter = {
  name: "torch profiler",
  description: "torch.profiler: export_chrome_trace with profile_memory=True",
  recognizes: ({ head, bytes }) => /^\s*\{/.test(head) && bytes.includes('"traceEvents"'),
  read,
};

interface Call {
  readonly end: number;
  /** The stack that called it. */
  readonly below: StackId;
  readonly frame: ForeignFrame;
  readonly stack: StackId;
  /** The modules whose forward pass runs, or whose backward operators run; "" if none does. */
  readonly module: string;
}

const BACKWARD = "autograd::engine::evaluate_function";
const MODULE = "nn.Module: ";
/** More snapshots would only enlarge the recording. */
const MOST_SNAPSHOTS = 50;

function read(file: ForeignFile): ForeignRecording {
  const content = objectOf(parseJson(file));
  const events = requiredList(content.traceEvents, "traceEvents").map(objectOf);
  const memory = events.filter(({ name }) => name === "[memory]");
  if (memory.length === 0) {
    throw nothingThere(
      `${file.path} is a trace without memory events`,
      "record it with torch.profiler.profile(profile_memory=True)",
    );
  }
  const baseMs = numberOf(content.baseTimeNanoseconds) / 1e6;
  const times = memory.map(timeOf);
  const startedMs = baseMs + times.reduce((least, time) => Math.min(least, time)) / 1e3;
  const endedMs = baseMs + times.reduce((most, time) => Math.max(most, time)) / 1e3;
  const pid = numberOf(memory[0]?.pid);
  const sites = new ImportedSites({ pid, command: [], python: "", startedMs });
  const replay = new TraceReplay(file.path, sites, { baseMs, startedMs });
  replay.run(events);
  const withStacks = events.some(({ cat }) => cat === "python_function");
  return {
    tool: "torch.profiler",
    precision: "exact",
    known: ["live", "peak", "allocated", "objects", "time"],
    snapshots: [...replay.snapshots, sites.snapshot(endedMs, endedMs - startedMs, replay.fill())],
    tables: sites.tables(),
    startedMs,
    endedMs,
    metrics: replay.metrics,
    events: [],
    lines: [],
    limits: [
      ...(replay.snapshots.length === 0
        ? []
        : [
            `${replay.snapshots.length === 1 ? "The first snapshot is" : `The first ${replay.snapshots.length} snapshots are`} of the beginning of a backward pass, when the tensors that the forward pass saved are live. --by module groups them.`,
          ]),
      "Only tensors of PyTorch's allocators are counted, from the start of the trace: what was allocated before is missing. --by device separates devices.",
      ...(withStacks
        ? []
        : ["The trace has operators but no Python lines: record it with with_stack=True."]),
    ],
  };
}

class TraceReplay {
  readonly metrics: { metric: "liveBytes"; timeMs: number; value: number }[] = [];
  readonly #blocks: LiveBlocks;
  readonly #sites: ImportedSites;
  readonly #baseMs: number;
  readonly #startedMs: TimeMs;
  /** At the beginning of each backward pass. */
  readonly snapshots: ProfileSnapshot[] = [];
  readonly #moduleOf = new Map<number, string>();
  #isBackward = false;
  readonly #open = new Map<string, Call[]>();
  readonly #siteIds = new Map<string, number>();
  readonly #places: { stack: StackId; device: string; module: string }[] = [];

  constructor(path: string, sites: ImportedSites, times: { baseMs: number; startedMs: TimeMs }) {
    this.#blocks = new LiveBlocks(path);
    this.#sites = sites;
    this.#baseMs = times.baseMs;
    this.#startedMs = times.startedMs;
  }

  /** In order of time; a call that begins with another one and ends later contains it. */
  run(events: readonly JsonObject[]): void {
    const ordered = events
      .filter((event) => event.name === "[memory]" || CALLS.has(textOf(event.cat)))
      .sort((a, b) => timeOf(a) - timeOf(b) || numberOf(b.dur) - numberOf(a.dur));
    for (const event of ordered) {
      const calls = this.#callsAt(event);
      if (event.name === "[memory]") {
        this.#memory(event, calls.at(-1));
      } else {
        this.#notePass(event);
        const below = this.#callerOf(event, calls.at(-1));
        const frame = frameOf(event);
        const stack = this.#sites.push(below, frame);
        const module = this.#moduleAt(event, calls.at(-1)?.module ?? "");
        calls.push({ end: timeOf(event) + numberOf(event.dur), below, frame, stack, module });
      }
    }
  }

  /** @returns the time of the peak, ms since 1970 */
  fill(): number {
    this.#places.forEach(({ stack, device, module }, site) => {
      const figures = this.#blocks.figures(site);
      if (figures !== undefined) {
        const ofDevice = this.#sites.label("device", device);
        const label = module === "" ? ofDevice : this.#sites.label("module", module, ofDevice);
        this.#sites.add({ stack, domain: Domain.native, label }, figures);
      }
    });
    return this.#blocks.peakMs;
  }

  /** Takes a snapshot when a backward pass begins. */
  #notePass(event: JsonObject): void {
    const isBackward = textOf(event.name).startsWith(BACKWARD);
    if (isBackward && !this.#isBackward && this.snapshots.length < MOST_SNAPSHOTS) {
      const timeMs = this.#baseMs + timeOf(event) / 1e3;
      if (timeMs > this.#startedMs && timeMs > (this.snapshots.at(-1)?.timeMs ?? 0)) {
        const peakMs = this.fill();
        this.snapshots.push(this.#sites.snapshot(timeMs, timeMs - this.#startedMs, peakMs));
      }
    }
    if (isBackward || textOf(event.name).startsWith(MODULE)) {
      this.#isBackward = isBackward;
    }
  }

  #moduleAt(event: JsonObject, around: string): string {
    const name = textOf(event.name);
    if (name.startsWith(MODULE)) {
      return `${around === "" ? "" : `${around} › `}${name.slice(MODULE.length)}`;
    }
    const number = objectOf(event.args)["Sequence number"];
    if (typeof number !== "number") {
      return around;
    }
    if (around !== "" && !this.#moduleOf.has(number)) {
      this.#moduleOf.set(number, around);
    }
    return around === "" && name.startsWith(BACKWARD) ? (this.#moduleOf.get(number) ?? "") : around;
  }

  /** A call's own line is where its function begins; the calls that it makes have the line that made them. */
  #callerOf(event: JsonObject, caller: Call | undefined): StackId {
    if (caller === undefined) {
      return 0;
    }
    const from = textOf(objectOf(event.args).CallFrom);
    const { file } = caller.frame;
    const line =
      file !== "" && from.startsWith(`${file}:`) ? Number(from.slice(file.length + 1)) : 0;
    return line > 0 ? this.#sites.push(caller.below, { ...caller.frame, line }) : caller.stack;
  }

  #callsAt(event: JsonObject): Call[] {
    const thread = JSON.stringify([nameOf(event.pid), nameOf(event.tid)]);
    let calls = this.#open.get(thread);
    if (calls === undefined) {
      calls = [];
      this.#open.set(thread, calls);
    }
    const time = timeOf(event);
    while ((calls.at(-1)?.end ?? Number.POSITIVE_INFINITY) <= time) {
      calls.pop();
    }
    return calls;
  }

  #memory(event: JsonObject, call: Call | undefined): void {
    const details = objectOf(event.args);
    const { Bytes: bytes, Addr: address } = details;
    if (
      typeof bytes !== "number" ||
      typeof address !== "number" ||
      !(Math.abs(bytes) <= Number.MAX_SAFE_INTEGER)
    ) {
      throw new ForeignFault("a memory event has no possible size or address");
    }
    const id = numberOf(details["Device Id"]);
    const type = numberOf(details["Device Type"]);
    if (
      address < 0 ||
      address >= 2 ** 48 ||
      !Number.isInteger(id) ||
      id < -1 ||
      id >= DEVICES - 1
    ) {
      throw new ForeignFault("a memory event has an impossible address or device");
    }
    const key = address * DEVICES + id + 1;
    this.#blocks.timeMs = this.#baseMs + timeOf(event) / 1e3;
    if (bytes > 0) {
      const device =
        type === 0 ? "cpu" : type === 1 ? `cuda:${Math.max(0, id)}` : `type ${type}:${id}`;
      this.#blocks.allocate(key, bytes, this.#site(call, device));
    } else {
      this.#blocks.free(key);
    }
    this.metrics.push({
      metric: "liveBytes",
      timeMs: this.#blocks.timeMs,
      value: this.#blocks.live,
    });
  }

  #site(call: Call | undefined, device: string): number {
    const { stack = 0, module = "" } = call ?? {};
    const key = `${stack} ${device} ${module}`;
    let site = this.#siteIds.get(key);
    if (site === undefined) {
      site = this.#places.push({ stack, device, module }) - 1;
      this.#siteIds.set(key, site);
    }
    return site;
  }
}

/** Processes and threads have a number or a name. */
function nameOf(value: Json | undefined): number | string {
  return typeof value === "number" ? value : textOf(value);
}

/** Microseconds. */
function timeOf(event: JsonObject): number {
  return amountOf(event.ts, "the time of an event (ts)");
}

/** "app.py(12): forward", "nn.Module: Linear_0", "<built-in method ...>", "aten::linear" */
function frameOf(event: JsonObject): ForeignFrame {
  const name = textOf(event.name);
  const [, file, line = "0", python = ""] = /^(.+)\((\d+)\): (.*)$/.exec(name) ?? [];
  if (file !== undefined) {
    return pythonFrame(python, file, Number(line));
  }
  return /^nn\.Module: /.test(name)
    ? { function: name, file: "", line: 0, kind: FrameKind.mark }
    : nativeFrame(name, "");
}
