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
 * "process 4242: 12 s, 48 s left; PSS of 5 processes 121 MiB (+3.2 MiB); ..." Figures that were read longer ago than
 * `shownMs`, the time since the previous line of a log, are in that line, and are left out.
 */
export function attachProgressText(
  pid: Pid,
  progress: AttachProgress,
  shownMs = Number.POSITIVE_INFINITY,
): string {
  const { elapsedMs, leftMs, rssBytes, rssGrowthBytes, tree, most, verdict, readAgoMs } = progress;
  const ago = readAgoMs < LONG_AGO_MS ? "" : ` (read ${formatDurationBriefly(readAgoMs)} ago)`;
  const isNew = readAgoMs < shownMs;
  const until =
    leftMs === null
      ? verdict === ""
        ? "until the verdict is settled"
        : `so far ${verdict}`
      : `${formatDurationBriefly(leftMs)} left`;
  const level =
    tree === null
      ? [`RSS ${formatBytes(rssBytes)} (${formatSignedBytes(rssGrowthBytes)})`]
      : isNew
        ? [
            `PSS of ${tree.processes} processes ${formatBytes(tree.pssBytes)} (${formatSignedBytes(tree.growthBytes)})${ago}`,
          ]
        : [];
  const site =
    most === null || !isNew
      ? []
      : [
          `${formatBytes(most.bytes)} live by ${functionOf(most.frame)} ${placeOf(most.frame)}`.trim() +
            ago,
        ];
  const begun = `process ${pid}: ${formatDurationBriefly(elapsedMs)}, ${until}`;
  return oneLine([begun, ...level, ...site].join("; "));
}
