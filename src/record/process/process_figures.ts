/** What a poll reads of one process from /proc. */
import {
  countOpenFiles,
  countSockets,
  readRollup,
  readStatus,
  readWrittenBytes,
} from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";
import type { Metric } from "../../model/profile/series.js";

interface WantedFigures {
  /** PSS and USS, for which the kernel walks all pages, and sockets, which need one system call per descriptor. */
  readonly expensive: boolean;
  /** Bytes written so far; read if /dev/shm grows. */
  readonly written: boolean;
}

/** Unavailable metrics are missing; a process that has ended has none. */
export function readFigures(
  pid: Pid,
  { expensive, written }: WantedFigures,
): ReadonlyMap<Metric, number> {
  const status = readStatus(pid);
  if (!status) {
    return new Map();
  }
  const rollup = expensive ? readRollup(pid) : null;
  const figures: [Metric, number | null][] = [
    ["rssBytes", status.rssBytes],
    ["anonRssBytes", status.anonRssBytes],
    ["fileRssBytes", status.fileRssBytes],
    ["shmemRssBytes", status.shmemRssBytes],
    ["swapBytes", status.swapBytes],
    ["vmsBytes", status.vmsBytes],
    ["vmPeakBytes", status.vmPeakBytes],
    ["vmHwmBytes", status.vmHwmBytes],
    ["vmDataBytes", status.vmDataBytes],
    ["threads", status.threads],
    ["openFiles", countOpenFiles(pid)],
    ["writtenBytes", written ? readWrittenBytes(pid) : null],
    ["pssBytes", rollup?.pssBytes ?? null],
    ["ussBytes", rollup?.ussBytes ?? null],
    ["openSockets", expensive ? countSockets(pid) : null],
  ];
  return new Map(figures.filter((figure): figure is [Metric, number] => figure[1] !== null));
}
