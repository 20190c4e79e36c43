/** One line about a recording in progress. */
import type { AttachProgress } from "../../inspect/index.js";
import { formatBytes, formatDurationBriefly, formatSignedBytes } from "../../model/base/numbers.js";
import type { Pid } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";
import { functionOf, placeOf } from "./sites.js";

/** The recording is read more and more rarely; older figures are marked. */
const LONG_AGO_MS = 5_000;

/**
 * "process 4242: 12 s, 48 s left; RSS 121 MiB (+3.2 MiB); 2.9 MiB live by record app.py:27", or with children:
 * "process 4242: 12 s, 48 s left; PSS of 5 processes 121 MiB (+3.2 MiB); ..."
 */
export function attachProgressText(pid: Pid, progress: AttachProgress): string {
  const { elapsedMs, leftMs, rssBytes, rssGrowthBytes, tree, most, verdict, readAgoMs } = progress;
  const ago = readAgoMs < LONG_AGO_MS ? "" : ` (read ${formatDurationBriefly(readAgoMs)} ago)`;
  const until =
    leftMs === null
      ? verdict === ""
        ? "until the verdict is settled"
        : `so far ${verdict}`
      : `${formatDurationBriefly(leftMs)} left`;
  const site =
    most === null
      ? []
      : [
          `${formatBytes(most.bytes)} live by ${functionOf(most.frame)} ${placeOf(most.frame)}`.trim() +
            ago,
        ];
  const parts = [
    `process ${pid}: ${formatDurationBriefly(elapsedMs)}, ${until}`,
    tree === null
      ? `RSS ${formatBytes(rssBytes)} (${formatSignedBytes(rssGrowthBytes)})`
      : `PSS of ${tree.processes} processes ${formatBytes(tree.pssBytes)} (${formatSignedBytes(tree.growthBytes)})${ago}`,
    ...site,
  ];
  return oneLine(parts.join("; "));
}
