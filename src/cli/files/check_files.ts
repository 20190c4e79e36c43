/** The files of `tidemark check`: baselines, and where a workflow collects what its steps report. */
import { appendFileSync, closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { type Baseline, isBaseline, parseBaseline } from "../../gates/index.js";
import { fileNotFound, fileUnusable } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { printNote } from "../text/output.js";

/** A baseline is a page of text. */
const LARGEST_BASELINE = 1 << 20;

/** Throws TidemarkError if the file is not a baseline. */
export function readBaseline(path: string): Baseline {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > LARGEST_BASELINE) {
      throw fileUnusable(path, "read", "it is too large for a baseline");
    }
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = reasonOf(error);
    if (code === "ENOENT") {
      throw fileNotFound(path, "baseline");
    }
    throw /^E[A-Z]+$/.test(code) ? fileUnusable(path, "read", message) : error;
  }
  return parseBaseline(text, path);
}

export function isOwnBaseline(path: string): boolean {
  return isBaseline(headOf(path));
}

export function isOwnJunit(path: string): boolean {
  return headOf(path).includes('<testsuite name="tidemark check"');
}

function headOf(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    const head = Buffer.alloc(200);
    return head.toString("utf8", 0, readSync(descriptor, head));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Appends to the summary that GitHub shows for the step; does nothing elsewhere. The check does not fail if the
 * summary cannot be written.
 */
export function appendToStepSummary(markdown: string): void {
  const path = process.env.GITHUB_STEP_SUMMARY ?? "";
  if (path === "") {
    return;
  }
  try {
    appendFileSync(path, `${markdown}\n`);
  } catch (error) {
    printNote(`GITHUB_STEP_SUMMARY cannot be written: ${reasonOf(error).message}`);
  }
}
