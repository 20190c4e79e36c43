/**
 * Traces of torch.profiler with `profile_memory=True` (`export_chrome_trace`). An allocation is an instant event
 * "[memory]"; the operators and, with `with_stack=True`, the Python calls around it on its thread are its stack.
 */
import type { StackId } from "../../../model/base/units.js";
import { nothingThere } from "../../../model/errors/errors.js";
import { Domain, FrameKind } from "../../../model/profile/profile.js";
import { type ForeignFrame, ImportedSites, nativeFrame, pythonFrame } from "../imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  type ProfileImporter,
} from "../importer.js";
import { type JsonObject, numberOf, objectOf, parseJson, requiredList, textOf } from "../json.js";
import { LiveBlocks } from "../live_blocks.js";

const CALLS = new Set(["python_function", "cpu_op", "user_annotation"]);
/** Addresses of up to 32 devices in one table. */
const DEVICES = 32;

export const torchTrace: ProfileImporter = {
  name: "torch profiler",
  description: "torch.profiler: export_chrome_trace with profile_memory=True",
  recognises: ({ head, bytes }) => /^\s*\{/.test(head) && bytes.includes('"traceEvents"'),
  read,
};

interface Call {
  readonly end: number;
  /** The stack that called it. */
  readonly below: StackId;
  readonly frame: ForeignFrame;
  readonly stack: StackId;
}

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
  const replay = new TraceReplay(file.path, sites, baseMs);
  replay.run(events);
  const withStacks = events.some(({ cat }) => cat === "python_function");
  return {
    tool: "torch.profiler",
    known: ["live", "peak", "allocated", "objects", "time"],
    looks: [sites.look(endedMs, endedMs - startedMs, replay.fill())],
    tables: sites.tables(),
    startedMs,
    endedMs,
    metrics: replay.metrics,
    events: [],
    lines: [],
    limits: [
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
  readonly #open = new Map<string, Call[]>();
  readonly #siteIds = new Map<string, number>();
  readonly #places: { stack: StackId; device: string }[] = [];

  constructor(path: string, sites: ImportedSites, baseMs: number) {
    this.#blocks = new LiveBlocks(path);
    this.#sites = sites;
    this.#baseMs = baseMs;
  }

  /** In order of time; a call that begins with another one and ends later contains it. */
  run(events: readonly JsonObject[]): void {
    const ordered = events
      .filter((event) => event.name === "[memory]" || CALLS.has(textOf(event.cat)))
      .sort((a, b) => timeOf(a) - timeOf(b) || numberOf(b.dur) - numberOf(a.dur));
    for (const event of ordered) {
      const calls = this.#callsAt(event);
      if (event.name === "[memory]") {
        this.#memory(event, calls.at(-1)?.stack ?? 0);
      } else {
        const below = this.#callerOf(event, calls.at(-1));
        const frame = frameOf(event);
        const stack = this.#sites.push(below, frame);
        calls.push({ end: timeOf(event) + numberOf(event.dur), below, frame, stack });
      }
    }
  }

  /** @returns the time of the peak, ms since 1970 */
  fill(): number {
    this.#places.forEach(({ stack, device }, site) => {
      const figures = this.#blocks.figures(site);
      if (figures !== undefined) {
        const label = this.#sites.label("device", device);
        this.#sites.add({ stack, domain: Domain.native, label }, figures);
      }
    });
    return this.#blocks.peakMs;
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
    const thread = `${String(event.pid)} ${String(event.tid)}`;
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

  #memory(event: JsonObject, stack: StackId): void {
    const details = objectOf(event.args);
    const [bytes, address] = [numberOf(details.Bytes), numberOf(details.Addr)];
    const id = numberOf(details["Device Id"]);
    const type = numberOf(details["Device Type"]);
    if (address < 0 || address >= 2 ** 48 || id < -1 || id >= DEVICES - 1) {
      throw new ForeignFault("a memory event has an impossible address or device");
    }
    const key = address * DEVICES + id + 1;
    this.#blocks.timeMs = this.#baseMs + timeOf(event) / 1e3;
    if (bytes > 0) {
      const device =
        type === 0 ? "cpu" : type === 1 ? `cuda:${Math.max(0, id)}` : `type ${type}:${id}`;
      this.#blocks.allocate(key, bytes, this.#site(stack, device));
    } else {
      this.#blocks.free(key);
    }
    this.metrics.push({
      metric: "liveBytes",
      timeMs: this.#blocks.timeMs,
      value: this.#blocks.live,
    });
  }

  #site(stack: StackId, device: string): number {
    const key = `${stack} ${device}`;
    let site = this.#siteIds.get(key);
    if (site === undefined) {
      site = this.#places.push({ stack, device }) - 1;
      this.#siteIds.set(key, site);
    }
    return site;
  }
}

/** Microseconds. */
function timeOf(event: JsonObject): number {
  return numberOf(event.ts);
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
