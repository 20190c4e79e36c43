/**
 * What other tools rank first on the same cases: tracemalloc's difference of two snapshots, memray's leak
 * view and scalene's leak list, each used as its manual recommends, by complete stacks where it has them.
 *
 *     case ──> watch.py (tracemalloc, memray)      rows of stacks, largest first ──┐
 *          └─> scalene run --outfile               leaks by line, fastest first  ──┴──> rank of the culprit,
 *                                                                                       growth on look-alikes
 *
 * Failures: a tool under which a case ends differently than alone, or that prints nothing, is counted as
 * not run, with the reason. Cases without a culprit (copy-on-write, an allocator that keeps memory) are left
 * out: none of the three tools reports such causes.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { capture } from "../command.mjs";

const folder = fileURLToPath(new URL("peers", import.meta.url));

export const peerNames = /** @type {const} */ (["tracemalloc", "memray", "scalene"]);
/** The size of a look-alike's site that a reader would investigate. */
export const falseGrowthBytes = 5e6;
/** Scalene may take more than a minute to write its profile on a busy machine. */
const SLACK_SECONDS = 240;

/**
 * @typedef {{bytes: number, stack: [string, number, string][]}} PeerRow
 * @typedef {object} PeerResult
 * @property {string} case
 * @property {(typeof peerNames)[number]} peer
 * @property {boolean} negative
 * @property {number | null} culpritRank 1 is its first row, 0 none of its first 20; null: a look-alike
 * @property {number} topBytes of its first row; 0: it lists nothing
 * @property {boolean | null} falseGrowth a look-alike in which it lists a growing site; null: a leak
 * @property {string} [skipped] why it could not be run
 */

/**
 * @param {import("./cases.mjs").LabelledCase} labelled
 * @param {(typeof peerNames)[number]} peer
 * @param {string} python of the environment that holds the peers
 * @param {number} seconds
 * @returns {Promise<PeerResult>}
 */
export async function runPeer(labelled, peer, python, seconds) {
  const scratch = mkdtempSync(join(tmpdir(), "tidemark-peers-"));
  try {
    return score(labelled, peer, await rowsOf(labelled, peer, python, seconds, scratch));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { ...score(labelled, peer, []), skipped: why };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * @param {import("./cases.mjs").LabelledCase} labelled
 * @param {string} peer
 * @param {string} python
 * @param {number} seconds
 * @param {string} scratch
 * @returns {Promise<PeerRow[]>} in the tool's order
 */
async function rowsOf(labelled, peer, python, seconds, scratch) {
  const script = join(labelled.folder, "case.py");
  const [file, words] =
    peer === "scalene"
      ? [join(scratch, "scalene.json"), ["-m", "scalene", "run", "--outfile"]]
      : [join(scratch, "rows.json"), [join(folder, "watch.py"), peer, String(seconds)]];
  const last = peer === "scalene" ? [file, script] : [scratch, script];
  const limit = String(4 * seconds + SLACK_SECONDS);
  // timeout(1) ends the whole group: a surviving child would hold the pipe open forever.
  const { output } = await capture("timeout", ["-k", "10", limit, python, ...words, ...last], {
    cwd: labelled.folder,
    env: { ...process.env, LEAKBENCH_SECONDS: String(seconds) },
  });
  if (!existsSync(file)) {
    throw new Error(output.trimEnd().split("\n").at(-1)?.slice(0, 120) || "it said nothing");
  }
  const said = JSON.parse(readFileSync(file, "utf8"));
  return withFunctions(peer === "scalene" ? scaleneLeaks(said, seconds) : said, script, python);
}

/**
 * Scalene's leak list, by file and line. The profile sorts it by likelihood; here the fastest growth comes first.
 * @param {any} profile
 * @param {number} seconds
 * @returns {PeerRow[]}
 */
function scaleneLeaks(profile, seconds) {
  /** @type {PeerRow[]} */
  const rows = [];
  for (const [file, { leaks }] of Object.entries(profile.files ?? {})) {
    for (const [line, { velocity_mb_s: rate }] of Object.entries(leaks ?? {})) {
      rows.push({ bytes: rate * seconds * 2 ** 20, stack: [[file, Number(line), ""]] });
    }
  }
  return rows.sort((a, b) => b.bytes - a.bytes);
}

/**
 * Names the functions of the case's own lines, for tools that only know lines.
 * @param {PeerRow[]} rows
 * @param {string} script
 * @param {string} python
 */
async function withFunctions(rows, script, python) {
  const { output } = await capture(python, [join(folder, "functions.py"), script]);
  /** @type {[string, number, number][]} */
  const functions = JSON.parse(output);
  const at = (/** @type {number} */ line) =>
    functions.findLast(([, first, last]) => first <= line && line <= last)?.[0] ?? "<module>";
  for (const { stack } of rows) {
    for (const frame of stack) {
      if (frame[2] === "" && isOf(frame[0], script)) {
        frame[2] = at(frame[1]);
      }
    }
  }
  return rows;
}

/** @param {string} file @param {string} script as a tool names it: whole, or its last parts */
function isOf(file, script) {
  return basename(file) === basename(script) && (dirname(file) === "." || file === script);
}

/**
 * @param {import("./cases.mjs").LabelledCase} labelled
 * @param {(typeof peerNames)[number]} peer
 * @param {PeerRow[]} rows
 * @returns {PeerResult}
 */
function score({ name, expect }, peer, rows) {
  const { culprit, negative } = expect;
  const guilty = rows.findIndex(({ stack }) =>
    stack.some(
      ([file, , called]) =>
        culprit !== undefined &&
        basename(file) === culprit.file &&
        culprit.functions.includes(called.split(".").at(-1) ?? ""),
    ),
  );
  const topBytes = Math.round(rows[0]?.bytes ?? 0);
  // Scalene lists only suspected leaks; the others list all live memory.
  const accuses = peer === "scalene" ? rows.length > 0 : topBytes >= falseGrowthBytes;
  return {
    case: name,
    peer,
    negative,
    culpritRank: negative ? null : guilty + 1,
    topBytes,
    falseGrowth: negative ? accuses : null,
  };
}

/** The cases that the peers can be judged by. @param {import("./cases.mjs").LabelledCase[]} cases */
export function askable(cases) {
  return cases.filter(({ expect }) => expect.negative || expect.culprit !== undefined);
}

/** @param {PeerResult[]} results */
export function peerTotals(results) {
  return peerNames.map((peer) => {
    const own = results.filter((result) => result.peer === peer && !result.skipped);
    const leaks = own.flatMap(({ culpritRank }) => (culpritRank === null ? [] : [culpritRank]));
    const calm = own.filter(({ negative }) => negative);
    return {
      peer,
      leaks: leaks.length,
      first: leaks.filter((rank) => rank === 1).length,
      inThree: leaks.filter((rank) => rank >= 1 && rank <= 3).length,
      lookAlikes: calm.length,
      falseGrowth: calm.filter(({ falseGrowth }) => falseGrowth).length,
      skipped: results.filter((result) => result.peer === peer && result.skipped).length,
    };
  });
}
