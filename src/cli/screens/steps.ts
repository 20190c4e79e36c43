/** Live bytes by the step that allocated them: `summary --by step`. */
import { formatBytes, formatCount } from "../../model/base/numbers.js";
import type { StepsJson } from "../../model/documents/documents.js";
import { oneLine } from "../../model/errors/errors.js";
import { inOrderOf, type ListOptions, selectRows } from "../options/options.js";
import { formatTable, type Screen } from "../text/output.js";

/** Ranges of steps, oldest first, and the bytes that each step leaves behind. */
export function printSteps(
  screen: Screen,
  { ranges, left }: StepsJson,
  when: string,
  options: ListOptions,
): void {
  const { paint } = screen;
  const several = new Set(ranges.map(({ pid }) => pid)).size > 1;
  const loop = ({ name, pid }: { name: string; pid: number }) =>
    `${oneLine(name)}${several ? ` in process ${pid}` : ""}`;
  const largestFirst = ranges.toSorted((a, b) => b.liveBytes - a.liveBytes);
  const chosen = selectRows(largestFirst, options, 0, (range) => range.liveBytes, loop);
  const { leftOut, unmatched } = chosen;
  const table = formatTable(
    screen,
    [
      { title: "LIVE", align: "right", paint: paint.bold },
      { title: "±", align: "right", paint: paint.dim },
      { title: "A STEP", align: "right" },
      { title: "±", align: "right", paint: paint.dim },
      { title: "SITES", align: "right" },
      { title: "STEPS", align: "right" },
      { title: "OF", flexible: "cutMiddle" },
    ],
    inOrderOf(ranges, chosen.rows).map((range) => [
      formatBytes(range.liveBytes),
      formatBytes(range.standardErrorBytes),
      formatBytes(range.bytesPerStep),
      formatBytes(range.standardErrorPerStep),
      formatCount(range.sites),
      stepsText(range),
      loop(range),
    ]),
  );
  screen.line();
  screen.line(paint.bold(`Live bytes by the step that allocated them, ${when}`));
  for (const line of chosen.rows.length > 0 ? table : [paint.dim(`  ${unmatched ?? "none"}`)]) {
    screen.line(line);
  }
  if (leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(leftOut)} more`));
  }
  for (const one of left) {
    const figures = `${formatBytes(one.bytesPerStep)} ±${formatBytes(one.standardErrorBytes)}`;
    const what = one.isNoise
      ? `Steps of ${loop(one)} leave nothing measurable (${figures} a step, steps ${stepsText(one)})`
      : `Each step of ${loop(one)} leaves ${figures} (steps ${stepsText(one)})`;
    screen.line(one.isNoise ? `  ${what}` : `  ${paint.bold(what)}`);
  }
}

function stepsText({ firstStep, lastStep }: { firstStep: number; lastStep: number }): string {
  return firstStep === lastStep
    ? formatCount(firstStep)
    : `${formatCount(firstStep)}-${formatCount(lastStep)}`;
}
