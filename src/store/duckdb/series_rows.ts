import type { Pid, TimeMs } from "../../model/base/units.js";
import { isUnknown } from "../../model/profile/imported.js";
import { programName } from "../../model/profile/program_name.js";
import { identityOf, type ServiceIdentity } from "../../model/wire/identity.js";
import type { Recording } from "../../recording/types.js";
import { contentId } from "./content_ids.js";
import type { AddRow } from "./schema.js";

/** A segment begins after its process, and their clocks differ slightly. */
const CLOCK_SLACK_MS = 1000;

/** Label of a series that another profiler made and that has no RSS: its name. */
export const SOURCE_LABEL = "tidemark.source";

/** As stored in the column. */
const LARGEST_PID = 2 ** 31 - 1;

/** The part of a recording that is read; while the recording grows, `processes` grows, too. */
type RecordedSeries = Pick<Recording, "meta" | "processes">;

/** The value under which a label's value is stored (label_budget.ts). */
export type AcceptLabel = (service: string, label: string, value: string) => string;

export function identityIn({
  identity,
  command,
}: Pick<RecordedSeries["meta"], "identity" | "command">): ServiceIdentity {
  return identity ?? identityOf({}, programName(command));
}

/** One series per process. */
export class SeriesRows {
  readonly #recording: RecordedSeries;
  readonly #stream: string;
  readonly #add: AddRow;
  readonly #accepted: AcceptLabel;
  readonly #ids = new Map<string, bigint>();
  readonly rootId: bigint;

  /** `stream`: "" in an export. */
  constructor(
    recording: RecordedSeries,
    add: AddRow,
    stream = "",
    accepted: AcceptLabel = (_service, _label, value) => value,
  ) {
    this.#recording = recording;
    this.#add = add;
    this.#accepted = accepted;
    this.#stream = stream;
    const { pid, startedMs } = recording.processes[0] ?? recording.meta;
    this.rootId = this.#idOf(pid, startedMs);
    for (const process of recording.processes) {
      this.#addSeries(process.pid, process.startedMs, process);
    }
  }

  /** Whether another profiler made the profiles. */
  get isReceived(): boolean {
    return this.#recording.meta.sender !== undefined;
  }

  get service(): string {
    return this.#identity.service;
  }

  /** The value of one of its labels as it is stored. */
  label(name: string, value: string): string {
    return this.#accepted(this.#identity.service, name, value);
  }

  get #identity(): ServiceIdentity {
    return identityIn(this.#recording.meta);
  }

  /** When the recording began. */
  get recordedMs(): TimeMs {
    return this.#recording.meta.startedMs;
  }

  /** The series of the process that had `pid` at a moment. */
  of(pid: Pid, timeMs: TimeMs, command: readonly string[] = [], python = ""): bigint {
    const process = this.#recording.processes.findLast(
      (candidate) => candidate.pid === pid && candidate.startedMs <= timeMs + CLOCK_SLACK_MS,
    );
    return process === undefined
      ? this.#addSeries(pid, timeMs, { command, python, endedMs: null })
      : this.#addSeries(pid, process.startedMs, process);
  }

  /** Writes the row of a process again after a change. */
  changed(pid: Pid, startedMs: TimeMs, about: AboutSeries): void {
    this.#ids.delete(`${pid} ${startedMs}`);
    this.#addSeries(pid, startedMs, about);
  }

  #idOf(pid: Pid, startedMs: TimeMs): bigint {
    const { meta } = this.#recording;
    return contentId("series", meta.host, meta.runId, meta.startedMs, pid, startedMs);
  }

  #addSeries(pid: Pid, startedMs: TimeMs, { command, python, endedMs }: AboutSeries): bigint {
    const { meta } = this.#recording;
    const key = `${pid} ${startedMs}`;
    const known = this.#ids.get(key);
    if (known !== undefined) {
      return known;
    }
    const id = this.#idOf(pid, startedMs);
    this.#ids.set(key, id);
    const identity = this.#identity;
    const free = Object.entries(identity.labels).map(([name, value]) => [
      name,
      this.label(name, value),
    ]);
    const labels = Object.entries({
      ...(Object.fromEntries(free) as Record<string, string>),
      command: command.join(" "),
      python,
      [SOURCE_LABEL]: sourceOf(meta),
    }).filter(([, value]) => value !== "");
    this.#add(
      "series",
      id,
      "",
      identity.service,
      identity.version,
      identity.env,
      meta.host,
      identity.pod,
      identity.container,
      Math.min(pid, LARGEST_PID),
      whole(startedMs),
      "",
      labels.map(([name]) => name),
      labels.map(([, value]) => value),
      identity.namespace,
      identity.workload,
      endedMs === null ? 0 : whole(endedMs),
      this.rootId,
      whole(this.recordedMs),
      this.#stream,
    );
    return id;
  }
}

function sourceOf({ sender, imported }: RecordedSeries["meta"]): string {
  return sender?.source ?? (isUnknown(imported, "rss") ? (imported?.tool ?? "") : "");
}

interface AboutSeries {
  readonly command: readonly string[];
  readonly python: string;
  readonly endedMs: TimeMs | null;
}

/** Times are stored in whole ms. */
export function whole(timeMs: TimeMs): number {
  return Math.round(timeMs);
}
