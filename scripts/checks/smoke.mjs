/** One run of the built program from end to end: record a small Python program, then summarize it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";
import { say, stream, verdicts } from "./stream.mjs";

const KEPT_BYTES = 64 << 20;
/** Tolerance of the sampled estimate, as a share of the truth. */
const TOLERANCE = 0.2;
const EXIT_CODE = 3;
const program = `import os, time
kept = []
def keep():
    for _ in range(64):
        kept.append(bytearray(1 << 20)); time.sleep(0.01)
keep()
os._exit(${EXIT_CODE})`;

export async function checkSmoke() {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-smoke-"));
  const recording = join(folder, "run.tidemark");
  const tidemark = join(root, "bin/tidemark");
  try {
    const run = await stream(tidemark, ["run", "-o", recording, "--", "python3", "-c", program]);
    if (run.status !== EXIT_CODE) {
      say(`tidemark run ended with ${run.status}; the program ends with ${EXIT_CODE}`);
      return verdicts([false]);
    }
    const summary = await capture(tidemark, ["summary", recording, "--json", "--top", "0"]);
    return verdicts([true, summary.status === 0 && siteIsReported(summary.output)]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} json a summary document */
function siteIsReported(json) {
  /** @type {{sites: {liveBytes: number, stack: {function: string}[]}[]}} */
  const { sites } = JSON.parse(json);
  const site = sites.find(({ stack }) => stack[0]?.function === "keep");
  const error = Math.abs((site?.liveBytes ?? 0) - KEPT_BYTES) / KEPT_BYTES;
  if (error <= TOLERANCE) {
    return true;
  }
  say(`the summary reports ${site?.liveBytes ?? 0} live bytes of keep(), not ${KEPT_BYTES}`);
  return false;
}
