/** What a poll reads of one process, by /proc. */
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
  /** PSS and USS, for which the kernel walks all pages, and sockets, a system call a descriptor. */
  readonly dear: boolean;
  /** What it has written so far: asked where /dev/shm fills. */
  readonly written: boolean;
}

/** Figures that could not be had are not there; none of a process that is gone. */
export function readFigures(
  pid: Pid,
  { dear, written }: WantedFigures,
): ReadonlyMap<Metric, number> {
  const status = readStatus(pid);
  if (!status) {
    return new Map();
  }
  const rollup = dear ? readRollup(pid) : null;
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
    ["openSockets", dear ? countSockets(pid) : null],
  ];
  return new Map(figures.filter((figure): figure is [Metric, number] => figure[1] !== null));
}
