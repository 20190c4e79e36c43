/** The part of docs/leakbench.md about other tools; it is kept when the rest is rewritten. */
import { falseGrowthBytes, peerNames, peerTotals } from "./peers.mjs";

/** @typedef {import("./peers.mjs").PeerResult} PeerResult */

const begin = "## Other tools on the same cases";

/** @param {PeerResult[]} results @returns {string} lines of fixed width */
export function peersTable(results) {
  const width = Math.max(...results.map((result) => result.case.length), 28);
  const lines = results.map((result) =>
    [result.case.padEnd(width), result.peer.padEnd(12), said(result)].join("  ").trimEnd(),
  );
  return results.length === 1
    ? lines.join("\n")
    : [...lines, "", ...peerTotals(results).map(sentence)].join("\n");
}

/** @param {PeerResult} result */
function said({ skipped, culpritRank, falseGrowth, topBytes }) {
  if (skipped) {
    return `not run: ${skipped}`;
  }
  if (culpritRank !== null) {
    return culpritRank > 0 ? `culprit at rank ${culpritRank}` : "culprit not listed";
  }
  return falseGrowth ? `false growth (${(topBytes / 1e6).toFixed(1)} MB)` : "silent";
}

/** @param {ReturnType<typeof peerTotals>[number]} t */
function sentence(t) {
  return (
    `${t.peer.padEnd(12)} culprit first ${t.first} of ${t.leaks}, in the first three ${t.inThree}; ` +
    `false growth on ${t.falseGrowth} of ${t.lookAlikes} look-alikes` +
    (t.skipped > 0 ? `; ${t.skipped} not run` : "")
  );
}

/**
 * @param {{seconds: number, measured: string, runs: PeerResult[]}} document `measured`: the date of the runs
 * @returns {string} the part, its heading first
 */
export function peersPart({ seconds, measured, runs }) {
  const cases = [...new Set(runs.map((run) => run.case))];
  const cell = (/** @type {string} */ name, /** @type {string} */ peer) => {
    const run = runs.find((result) => result.case === name && result.peer === peer);
    if (!run || run.skipped) {
      return "not run";
    }
    if (run.culpritRank !== null) {
      return run.culpritRank || "none";
    }
    return run.falseGrowth ? "**growth**" : "silent";
  };
  const total = (/** @type {ReturnType<typeof peerTotals>[number]} */ t) =>
    `| ${t.peer} | ${share(t.first, t.leaks)} | ${share(t.inThree, t.leaks)} | ${share(t.falseGrowth, t.lookAlikes)} | ${t.skipped} |`;
  return `${begin}

\`npm run leakbench -- --peers\` writes this section. It was last run on ${measured}, on the ${cases.length} cases below; cases that
were added later have not been run under the other tools, so these totals cannot be compared one to one with those above.
Each case with a labelled culprit, and each look-alike, runs for ${seconds} s under the tools pinned in \`bench/requirements.txt\`:

- tracemalloc: the difference between snapshots at a third and at 0.9 of the time, with 25 frames, grouped by stack;
- memray: its leak view at 0.9 of the time, with Python's allocators traced;
- scalene: its list of leaks at the end of the program.

The culprit is found if any frame of the row is in the labelled function. False growth is a first row of ${falseGrowthBytes / 1e6} MB
or more (tracemalloc, memray) or any row at all (scalene) in a program that does not leak. None of the three follows child
processes, names the holder of the memory, or distinguishes kinds of leaks. A tool without a result after four times the
case's time plus four minutes counts as not run.

| tool | culprit first | in the first three | false growth on look-alikes | not run |
|---|---|---|---|---|
${peerTotals(runs).map(total).join("\n")}

| case | ${peerNames.join(" | ")} |
|---|${peerNames.map(() => "---|").join("")}
${cases.map((name) => `| ${name} | ${peerNames.map((peer) => cell(name, peer)).join(" | ")} |`).join("\n")}
`;
}

/** @param {number} part @param {number} whole */
function share(part, whole) {
  return `${part} of ${whole}`;
}

/** @param {string} page @returns {string} its part about other tools; "" where it has none */
export function peersOf(page) {
  const at = page.indexOf(begin);
  return at < 0 ? "" : page.slice(at);
}

/** @param {string} page @param {string} part @returns {string} the page with that part at its end */
export function withPeers(page, part) {
  const at = page.indexOf(begin);
  const before = at < 0 ? page : page.slice(0, at);
  return part === "" ? before : `${before.trimEnd()}\n\n${part}`;
}
