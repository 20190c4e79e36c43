/** Two snapshots: what appeared, grew, shrank and disappeared. */

import { formatBytes, formatCount, formatSignedBytes } from "../../../model/base/numbers.js";
import type { GpuDiffJson } from "../../../model/documents/gpu/gpu_document.js";
import { oneLine } from "../../../model/errors/errors.js";
import { type ListOptions, selectRows } from "../../options/options.js";
import { formatTable, type Screen } from "../../text/output.js";
import { gpuSiteName, siteText } from "./site.js";
import { DEFAULT_GPU_SITES, printLimits } from "./snapshot.js";

export function printGpuDiff(
  screen: Screen,
  document: GpuDiffJson,
  options: ListOptions & { readonly quiet?: boolean },
): void {
  const { paint } = screen;
  screen.line(`${paint.dim("A")}  ${paint.bold(oneLine(document.a.file))}`);
  screen.line(`${paint.dim("B")}  ${paint.bold(oneLine(document.b.file))}`);
  screen.line();
  const changed = document.sites.filter(({ change }) => change !== "same");
  const chosen = selectRows(
    [...changed].sort((x, y) => Math.abs(y.growthBytes) - Math.abs(x.growthBytes)),
    options,
    2 * DEFAULT_GPU_SITES,
    (site) => site.growthBytes,
    siteText,
  );
  const table = formatTable(
    screen,
    [
      { title: "CHANGE", align: "right", paint: paint.bold },
      { title: "A", align: "right" },
      { title: "B", align: "right" },
      { title: "" },
      { title: "CATEGORY" },
      { title: "SITE", flexible: "cutEnd" },
    ],
    chosen.rows
      .sort((x, y) => y.growthBytes - x.growthBytes)
      .map((site) => [
        formatSignedBytes(site.growthBytes),
        formatBytes(site.bytesA),
        formatBytes(site.bytesB),
        site.change,
        site.category === "unknown" ? "" : site.category,
        gpuSiteName(site.stack),
      ]),
  );
  if (changed.length === 0) {
    screen.line("  nothing changed");
  } else {
    for (const line of table) {
      screen.line(line);
    }
  }
  if (chosen.unmatched !== undefined) {
    screen.line(paint.dim(`  ${chosen.unmatched}`));
  }
  if (chosen.leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(chosen.leftOut)} more`));
  }
  screen.line();
  const { a, b } = document;
  for (const [name, x, y] of [
    ["Requested", a.end.requestedBytes, b.end.requestedBytes],
    ["Reserved", a.end.reservedBytes, b.end.reservedBytes],
    ["Peak", a.peakRequestedBytes, b.peakRequestedBytes],
  ] as const) {
    screen.line(
      `${paint.bold(name.padEnd(10))} ${paint.bold(formatSignedBytes(y - x))}  (${formatBytes(x)} → ${formatBytes(y)})`,
    );
  }
  printLimits(screen, document.limits, options);
}
