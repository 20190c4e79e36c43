/**
 * Baselines: the memory that a command used, as text that a person reviews and edits like code.
 *
 *     # Tidemark baseline 1: the memory that the command used. A check against it fails above a range; edit a range to allow more.
 *     # command: python -m pytest -x
 *     peak      412.0 MiB    from 399.6 MiB to 424.4 MiB
 *     live      380.2 MiB    from 361.0 MiB to 399.9 MiB
 *     growth      1.2 MiB/h  from -0.4 MiB/h to 2.9 MiB/h
 *     site      301.0 MiB    from 285.9 MiB to 316.3 MiB    load app.py
 *
 * `peak` is RSS, `live` the sampled live bytes at that moment, and `site` the part of them that one function allocated.
 * Sites are not gates; they name the code behind a finding. Line numbers are left out, because they change with every
 * edit.
 */

import { basename } from "node:path";
import type { SiteGroup } from "../inspect/index.js";
import type { Interval } from "../model/base/interval.js";
import { shellWord } from "../model/base/shell_word.js";
import type { Bytes } from "../model/base/units.js";
import { badUsage, oneLine } from "../model/errors/errors.js";
import { atPeakOf, type Figure, type Measured, SETTLED_MS } from "./measured.js";

const MARK = "# Tidemark baseline 1:";
const COMMAND_MARK = "# command: ";
const MEBIBYTE: Bytes = 2 ** 20;
/**
 * Difference between two runs of the same program: the larger of a share and a size (page cache, allocator, import
 * order). Growth needs no margin, because its interval already covers the noise of one run.
 */
const RUN_SHARE = 0.03;
const RUN_BYTES: Bytes = 2 * MEBIBYTE;
const MOST_SITES = 10;
/** Smaller sites do not explain a finding. */
const SMALLEST_SITE: Bytes = MEBIBYTE;

export interface Baseline {
  /** The command that was measured, shortened; absent if the comment is missing. */
  readonly command?: string;
  readonly peak?: Interval;
  readonly live?: Interval;
  readonly growth?: Interval;
  readonly sites: ReadonlyMap<string, Interval>;
}

/** The name that identifies a site even after an edit: "load app.py". */
export function siteName({ headline }: SiteGroup): string {
  return oneLine(`${headline.function || "?"} ${basename(headline.file) || "?"}`, 120).trim();
}

/** The command as a baseline shows it. */
export function commandText(command: readonly string[]): string {
  return oneLine(command.join(" "), 200).trim();
}

export function isBaseline(text: string): boolean {
  return text.startsWith("# Tidemark baseline ");
}

export function formatBaseline(measured: Measured): string {
  const { summary, peak, live, growth, durationMs } = measured;
  const lines = [
    `${MARK} the memory that the command used. A check against it fails above a range; edit a range to allow more.`,
    `${COMMAND_MARK}${commandText(summary.target.command)}`,
  ];
  const put = (name: string, figure: Figure | null, unit: string, site = "") => {
    if (figure !== null) {
      const [value = "", low = "", high = ""] = [figure.value, figure.low, figure.high].map(
        (bytes) => `${(bytes / MEBIBYTE).toFixed(1)} ${unit}`,
      );
      lines.push(
        `${name.padEnd(8)}${value.padStart(14)}  from ${low} to ${high}${site === "" ? "" : `    ${site}`}`,
      );
    }
  };
  put("peak", withRunMargin(peak), "MiB");
  put("live", withRunMargin(live), "MiB");
  put("growth", durationMs < SETTLED_MS ? null : growth, "MiB/h");
  for (const [name, figure] of sitesOf(measured)) {
    put("site", withRunMargin(figure), "MiB", name);
  }
  return `${lines.join("\n")}\n`;
}

function withRunMargin(figure: Figure | null): Figure | null {
  if (figure === null) {
    return null;
  }
  const margin = Math.max(RUN_SHARE * figure.value, RUN_BYTES);
  const { value, low, high } = figure;
  return { value, low: Math.max(0, low - margin), high: high + margin };
}

/** The largest sites at the peak; the lines of one function are one site. */
function sitesOf({ groups }: Measured): [string, Figure][] {
  const byName = new Map<string, SiteGroup[]>();
  for (const group of groups) {
    const name = siteName(group);
    byName.set(name, [...(byName.get(name) ?? []), group]);
  }
  return [...byName]
    .map(([name, members]): [string, Figure] => [name, atPeakOf(members)])
    .filter(([, { value }]) => value >= SMALLEST_SITE)
    .sort(([, a], [, b]) => b.value - a.value)
    .slice(0, MOST_SITES);
}

const NUMBER = String.raw`(-?\d+(?:\.\d+)?)`;
const ROW = new RegExp(
  String.raw`^(peak|live|growth|site)\s+${NUMBER} (MiB(?:\/h)?)\s+from ${NUMBER} \3 to ${NUMBER} \3(?:\s+(\S.*))?$`,
);

/** Throws TidemarkError (TM-E002) with the line that is not a figure. `path` is for the message. */
export function parseBaseline(text: string, path: string): Baseline {
  const lines = text.split(/\r?\n/);
  if (!(lines[0] ?? "").startsWith(MARK)) {
    throw badUsage(
      isBaseline(text)
        ? `${path} is a baseline of another version of Tidemark`
        : `${path} is not a baseline: its first line does not begin with '${MARK}'`,
      `write a new one: tidemark check --save-baseline ${shellWord(path)} -- COMMAND`,
    );
  }
  const figures = new Map<string, Interval>();
  const sites = new Map<string, Interval>();
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "" || line.startsWith("#")) {
      continue;
    }
    const { name, site, interval } = parseRow(line, `${path}, line ${index + 1}`);
    if (name === "site") {
      sites.set(site, interval);
    } else if (figures.has(name)) {
      throw badUsage(`${path}, line ${index + 1}: '${name}' occurs twice`, "remove one");
    } else {
      figures.set(name, interval);
    }
  }
  if (figures.size === 0) {
    throw badUsage(
      `${path} holds no figure to compare with`,
      `write a new one: tidemark check --save-baseline ${shellWord(path)} -- COMMAND`,
    );
  }
  const command = lines.find((line) => line.startsWith(COMMAND_MARK))?.slice(COMMAND_MARK.length);
  return {
    ...(command === undefined ? {} : { command: command.trim() }),
    ...Object.fromEntries(figures),
    sites,
  };
}

function parseRow(
  line: string,
  place: string,
): { readonly name: string; readonly site: string; readonly interval: Interval } {
  const [, name = "", , unit = "", low = "", high = "", site = ""] = ROW.exec(line) ?? [];
  const interval = { low: Number(low) * MEBIBYTE, high: Number(high) * MEBIBYTE };
  const fits =
    name !== "" &&
    (unit === "MiB/h") === (name === "growth") &&
    (site !== "") === (name === "site");
  if (!fits || interval.low > interval.high) {
    throw badUsage(
      `${place}: ${fits ? `the range of '${name}' ends below its start` : `'${oneLine(line, 60)}' is not a figure`}`,
      "a line reads: peak 412.0 MiB from 399.6 MiB to 424.4 MiB",
    );
  }
  return { name, site, interval };
}
