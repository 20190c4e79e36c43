/** The ranks of a job as a table; outliers are named. */

import { formatBytes, formatCount } from "../../../model/base/numbers.js";
import type { GpuRanksJson } from "../../../model/documents/gpu/gpu_document.js";
import { oneLine } from "../../../model/errors/errors.js";
import { type ListOptions, selectRows } from "../../options/options.js";
import { formatTable, type Screen } from "../../text/output.js";
import { printLimits } from "./snapshot.js";

export function printGpuRanks(
  screen: Screen,
  document: GpuRanksJson,
  options: ListOptions & { readonly quiet?: boolean },
): void {
  const { paint } = screen;
  const chosen = selectRows(
    document.ranks,
    options,
    0,
    (rank) => rank.highestReservedBytes,
    (rank) => rank.file,
  );
  const table = formatTable(
    screen,
    [
      { title: "" },
      { title: "DEVICE", align: "right" },
      { title: "PEAK", align: "right", paint: paint.bold },
      { title: "RESERVED", align: "right" },
      { title: "AT END", align: "right" },
      { title: "OOM", align: "right" },
      { title: "FILE", flexible: "cutMiddle" },
    ],
    chosen.rows.map((rank) => [
      rank.odd ? "!" : "",
      String(rank.device),
      formatBytes(rank.peakRequestedBytes),
      formatBytes(rank.highestReservedBytes),
      formatBytes(rank.end.requestedBytes),
      rank.outOfMemory === 0 ? "" : formatCount(rank.outOfMemory),
      rank.file,
    ]),
  );
  for (const line of table) {
    screen.line(line);
  }
  const odd = document.ranks.filter((rank) => rank.odd);
  screen.line();
  if (odd.length === 0) {
    screen.line("No rank is an outlier.");
  }
  for (const rank of odd) {
    const text = `${oneLine(rank.file)}, device ${rank.device}: ${oneLine(rank.why)}`;
    screen.wrap(text, 2).forEach((line, row) => {
      screen.line(row === 0 ? paint.red(line) : `  ${line}`);
    });
  }
  printLimits(screen, document.limits, options);
}
