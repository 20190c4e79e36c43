/** What the bench prints, and its page. */
import { total } from "./score.mjs";

/** @typedef {import("./score.mjs").CaseResult} CaseResult */

/** Lines of fixed width. @param {CaseResult[]} results @returns {string} */
export function table(results) {
  const width = Math.max(...results.map((result) => result.case.length), 28);
  const lines = results.map((result) =>
    [
      result.skipped ? "skip" : result.verdictRight ? "ok  " : "NO  ",
      result.case.padEnd(width),
      (result.skipped ?? result.verdict).padEnd(22),
      result.culpritRank === null ? "      " : `rank ${result.culpritRank || "-"}`,
      result.holderRight === null ? "" : result.holderRight ? "holder" : "no holder",
    ]
      .join("  ")
      .trimEnd(),
  );
  return results.length === 1 ? lines.join("\n") : [...lines, "", ...sums(results)].join("\n");
}

/** @param {CaseResult[]} results */
function sums(results) {
  const t = total(results);
  return [
    `leaks: verdict right       ${of(t.leaksRight, t.leaks)}`,
    `look-alikes: verdict right ${of(t.lookAlikesRight, t.lookAlikes)}`,
    `culprit first              ${of(t.culpritsFirst, t.culprits)}`,
    `culprit in the first three ${of(t.culpritsInThree, t.culprits)}`,
    `holder named               ${of(t.holdersRight, t.holders)}`,
    ...(t.skipped > 0 ? [`skipped                    ${t.skipped}`] : []),
  ];
}

/** @param {number} part @param {number} whole */
function of(part, whole) {
  return `${part} of ${whole}${whole > 0 ? ` (${Math.round((100 * part) / whole)} %)` : ""}`;
}

/** What stands above the sums of a whole run, and makes them known in a page again. */
const madeOn = "A whole run of";

/** @param {string} page @returns {string} the latest whole run that it tells of, with its day; "" where it has none */
export function latestRun(page) {
  const at = page.indexOf(madeOn);
  const end = page.indexOf("```\n", page.indexOf("```\n", at) + 1);
  return at < 0 || end < 0 ? "" : page.slice(at, end + 4);
}

/**
 * @param {{cases: CaseResult[], totals: ReturnType<typeof total>}} document
 * @param {string} before the page as it was: the run before stands below this one
 * @returns {string}
 */
export function page({ cases }, before) {
  const row = (/** @type {CaseResult} */ result) =>
    `| ${[
      `[${result.case}](../leakbench/cases/${result.case}/case.py)`,
      result.negative ? "look-alike" : "leak",
      result.skipped ? `skipped: ${result.skipped}` : result.verdict,
      result.skipped ? "" : result.verdictRight ? "yes" : "**no**",
      result.culpritRank === null ? "" : result.culpritRank || "none",
      result.holderRight === null ? "" : result.holderRight ? "yes" : "no",
    ].join(" | ")} |`;
  return `# Leak bench

Made by \`npm run leakbench\`. Each case is a small program that leaks in one way, or a look-alike that
does not; it runs under \`tidemark run\` for its 30 to 50 seconds, and \`tidemark diagnose --json\` of the
recording is held against the label beside it (\`expect.json\`).

\`\`\`
npm run leakbench                              # all; writes this page
npm run leakbench -- stats_dict module_list    # some
npm run leakbench -- --cases DIR --python PATH # other cases, another interpreter
npm run leakbench -- --jobs 2                  # two at a time: samples get coarser on a busy machine
npm run leakbench -- --way attach              # watched as they run: \`tidemark diagnose PID\`
\`\`\`

${madeOn} ${new Date().toISOString().slice(0, 10)}, that of the table:

\`\`\`
${sums(cases).join("\n")}
\`\`\`

${latestRun(before).replace(/, that of the table:/, ", the one before:")}
"Culprit" is the place of the first suspect whose stack holds the function that the label names. "Holder" is
right where the path of one of the first three suspects' holders holds the name of the label.

| case | is | verdict | right | culprit | holder |
|---|---|---|---|---|---|
${cases.map(row).join("\n")}
`;
}
