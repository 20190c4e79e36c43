/** The devices of this host over time: `tidemark gpu top` on a terminal. */

import type { Bytes, TimeMs } from "../../../model/base/units.js";
import type { GpuTopJson } from "../../../model/documents/gpu/gpu_document.js";
import { gpuTopDocument, type KnownRecordings } from "./gpu_top.js";

export interface GpuTopHistory {
  readonly document: GpuTopJson;
  /** Times of the latest polls, oldest first. */
  readonly timesMs: readonly TimeMs[];
  /** For each device, the used bytes at each of these times. */
  readonly used: ReadonlyMap<number, readonly Bytes[]>;
}

/** Number of polls that a sparkline shows. */
const HISTORY = 60;
/** Finding recordings requires a scan of all open files of the host, so it is done only every this many polls. */
const POLLS_PER_SEARCH = 10;

/** Returns the function that polls the devices and adds to the history; it takes null at the first poll.
 * That function throws TidemarkError TM-E065 if no driver answers. */
export function gpuTopPoller(): (before: GpuTopHistory | null) => Promise<GpuTopHistory> {
  const recordings: KnownRecordings = new Map();
  let polls = 0;
  return async (before) => {
    if (polls++ % POLLS_PER_SEARCH === 0) {
      recordings.clear();
    }
    const document = await gpuTopDocument(recordings);
    return {
      document,
      timesMs: [...(before?.timesMs ?? []), document.atMs].slice(-HISTORY),
      used: new Map(
        document.devices.map(({ index, usedBytes }) => [
          index,
          [...(before?.used.get(index) ?? []), usedBytes].slice(-HISTORY),
        ]),
      ),
    };
  };
}
