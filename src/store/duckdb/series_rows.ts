import type { Pid, TimeMs } from "../../model/base/units.js";
import type { Recording } from "../../recording/types.js";
import { contentId } from "./content_ids.js";
import type { AddRow } from "./schema.js";

/** A segment begins after its process, by clocks that differ a little. */
const CLOCK_SLACK_MS = 1000;

/** One series a process. */
export class SeriesRows {
  readonly #recording: Recording;
  readonly #add: AddRow;
  readonly #ids = new Map<string, bigint>();

  constructor(recording: Recording, add: AddRow) {
    this.#recording = recording;
    this.#add = add;
    for (const process of recording.processes) {
      this.#addSeries(process.pid, process.startedMs, process.command, process.python);
    }
  }

  /** The series of the process that had `pid` at a moment. */
  of(pid: Pid, timeMs: TimeMs, command: readonly string[] = [], python = ""): bigint {
    const process = this.#recording.processes.findLast(
      (candidate) => candidate.pid === pid && candidate.startedMs <= timeMs + CLOCK_SLACK_MS,
    );
    return process === undefined
      ? this.#addSeries(pid, timeMs, command, python)
      : this.#addSeries(pid, process.startedMs, process.command, process.python);
  }

  #addSeries(pid: Pid, startedMs: TimeMs, command: readonly string[], python: string): bigint {
    const { meta } = this.#recording;
    const key = `${pid} ${startedMs}`;
    let id = this.#ids.get(key);
    if (id === undefined) {
      id = contentId("series", meta.host, meta.startedMs, pid, startedMs);
      this.#ids.set(key, id);
      const service = meta.command.join(" ");
      const labels = [
        ["command", command.join(" ")],
        ["python", python],
      ].filter(([, value]) => value !== "") as [string, string][];
      this.#add(
        "series",
        id,
        "",
        service,
        "",
        "",
        meta.host,
        "",
        "",
        pid,
        whole(startedMs),
        "",
        labels.map(([name]) => name),
        labels.map(([, value]) => value),
      );
    }
    return id;
  }
}

/** Times are stored as whole ms. */
export function whole(timeMs: TimeMs): number {
  return Math.round(timeMs);
}
