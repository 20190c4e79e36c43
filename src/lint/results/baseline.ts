/**
 * A baseline is a text file of the findings that a project accepts, one a line:
 *
 *     TM-L001 src/app/cache.py 5f0c81d2a9e4
 *
 * The last word is a hash of the line's text without spaces around it, so that a finding stays known when lines above it
 * change. Findings on equal lines of a file are counted: two lines of the baseline cover two findings. Paths are
 * relative to the folder of the baseline, so it is valid whatever folder `tidemark lint` runs in.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { badUsage } from "../../model/errors/errors.js";

interface Known {
  readonly file: string;
  readonly rule: string;
  /** The text of its first line. */
  readonly text: string;
}

const HEAD = "# Findings of `tidemark lint` that are accepted; written by --save-baseline.\n";

/** The text of the baseline at `path` that accepts these findings. */
export function baselineText(findings: readonly Known[], path: string): string {
  return (
    HEAD +
    findings
      .map((finding) => `${keyOf(finding, path)}\n`)
      .sort()
      .join("")
  );
}

/** The findings that a baseline does not cover. Throws TM-E002 for a file that is not a baseline. */
export function beyondBaseline<Finding extends Known>(
  findings: readonly Finding[],
  path: string,
): Finding[] {
  const accepted = new Map<string, number>();
  for (const key of readBaseline(path)) {
    accepted.set(key, (accepted.get(key) ?? 0) + 1);
  }
  return findings.filter((finding) => {
    const key = keyOf(finding, path);
    const left = accepted.get(key) ?? 0;
    accepted.set(key, left - 1);
    return left <= 0;
  });
}

function readBaseline(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    throw badUsage(`the baseline ${path} cannot be read`, `write it with --save-baseline ${path}`);
  }
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const wrong = lines.find((line) => !/^TM-L\d+ .+ [0-9a-f]{12}$/.test(line));
  if (wrong !== undefined) {
    throw badUsage(
      `${path} is not a baseline of tidemark lint`,
      `write it again with --save-baseline ${path}`,
    );
  }
  return lines;
}

function keyOf({ file, rule, text }: Known, baseline: string): string {
  const from = relative(dirname(resolve(baseline)), resolve(file));
  const hash = createHash("sha256").update(text.trim()).digest("hex").slice(0, 12);
  return `${rule} ${from} ${hash}`;
}
