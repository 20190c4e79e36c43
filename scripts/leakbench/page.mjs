/** The leak bench's output, and its page. */
import { isRight, total } from "./score.mjs";
import { ways } from "./ways.mjs";

/** @typedef {import("./score.mjs").CaseResult} CaseResult */

/**
 * The newest complete run of each way; the page is made from these.
 * @typedef {Record<string, {date: string, results: CaseResult[]}>} Measured
 */

/** Formats one result as a line of fixed width. @param {CaseResult} result @param {number} [width] */
export function row(result, width = 28) {
  const mark = result.verdictRight ? "ok  " : result.open ? "open" : "NO  ";
  return [
    result.skipped ? "skip" : mark,
    result.case.padEnd(width),
    `${result.seconds} s`.padStart(5),
    (result.skipped ?? result.verdict).padEnd(22),
    result.culpritRank === null ? "      " : `rank ${result.culpritRank || "-"}`,
    result.holderRight === null ? "" : result.holderRight ? "holder" : "no holder",
  ]
    .join("  ")
    .trimEnd();
}

/** @param {CaseResult[]} results @returns {string} */
export function table(results) {
  const width = Math.max(...results.map((result) => result.case.length), 28);
  const parts = windowsOf(results).flatMap((seconds) => [
    "",
    ...(windowsOf(results).length > 1 ? [`after ${seconds} s`] : []),
    ...sums(results.filter((result) => result.seconds === seconds)),
  ]);
  const own = new Set(results.map((result) => result.case)).size === results.length;
  return [
    ...results.map((result) => row(result, width)),
    ...(own ? ["", ...sums(results)] : parts),
  ].join("\n");
}

/** @param {CaseResult[]} results @returns {number[]} ascending */
function windowsOf(results) {
  return [...new Set(results.map(({ seconds }) => seconds))].sort((a, b) => a - b);
}

/** @param {CaseResult[]} results */
function sums(results) {
  const t = total(results);
  return [
    `leaks: verdict right       ${of(t.leaksRight, t.leaks)}`,
    ...(t.leaksOpen > 0 ? [`leaks: more time asked     ${of(t.leaksOpen, t.leaks)}`] : []),
    `look-alikes: verdict right ${of(t.lookAlikesRight, t.lookAlikes)}`,
    `look-alikes: false alarms  ${of(t.falseAlarms, t.lookAlikes)}`,
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

/**
 * @param {Measured} measured
 * @param {string} way
 * @param {CaseResult[]} results
 * @returns {Measured}
 */
export function withRun(measured, way, results) {
  return { ...measured, [way]: { date: new Date().toISOString().slice(0, 10), results } };
}

/**
 * The columns of the page: one for each way and each window that all cases were watched for; cases that ran for their
 * own time share one column.
 * @param {Measured} measured
 */
function columnsOf(measured) {
  return [...ways.keys()].flatMap((way) => {
    const run = measured[way];
    if (run === undefined) {
      return [];
    }
    const { date, results } = run;
    const cases = new Set(results.map((result) => result.case)).size;
    // Each case has its own window, unless all windows are the same.
    const isOwn = cases === results.length && windowsOf(results).length > 1;
    const windows = isOwn ? [null] : windowsOf(results);
    return windows.map((seconds) => ({
      way,
      date,
      window: seconds === null ? "own" : `${seconds} s`,
      results: results.filter((result) => seconds === null || result.seconds === seconds),
    }));
  });
}

/** @param {Measured} measured @returns {string} */
export function page(measured) {
  const columns = columnsOf(measured);
  const cases = [
    ...new Map(
      columns.flatMap(({ results }) =>
        results.map((one) => /** @type {const} */ ([one.case, one])),
      ),
    ).values(),
  ].sort((a, b) => (a.case < b.case ? -1 : 1));
  return `# Leak bench

This page shows how often the verdict is right, for each case and in total. Each case is a small program that leaks in one
way, or a look-alike: a program that seems to leak but does not. Its label (\`expect.json\`) gives the expected verdict.
\`npm run leakbench\` runs the cases, compares each verdict with its label, and writes this page.

\`\`\`
npm run leakbench                              # all cases, under tidemark run
npm run leakbench -- stats_dict module_list    # only these cases
npm run leakbench -- --cases DIR --python PATH # your own cases, another interpreter
npm run leakbench -- --jobs 2                  # two at a time; on a busy machine samples are coarser
npm run leakbench -- --way attach --windows 20,60,200
\`\`\`

| way | commands |
|---|---|
${[...ways].map(([way, { is }]) => `| ${way} | \`${is}\` |`).join("\n")}

## Totals

| column | counts |
|---|---|
| leaks right, look-alikes right | verdicts of the kind that the label names |
| open | leaks for which the verdict asks for a longer window |
| false alarms | look-alikes that the verdict calls a leak |
| culprit first | leaks for which the first suspect's stack contains the labelled function |
| holder | leaks for which the holder's path of one of the first three suspects contains the labelled name |

| way | window | measured | leaks right | open | look-alikes right | false alarms | culprit first | holder |
|---|---|---|---|---|---|---|---|---|
${columns.map(totalRow).join("\n")}

## Cases

"yes": verdict, culprit and holder match the label. "verdict": only the verdict matches. "open": the verdict asks for a
longer window. A name in bold is a wrong verdict.

| case | is | ${columns.map(({ way, window }) => `${way} ${window}`).join(" | ")} |
|---|---|${columns.map(() => "---|").join("")}
${cases.map((one) => caseRow(one, columns)).join("\n")}
`;
}

/** @param {ReturnType<typeof columnsOf>[number]} column */
function totalRow({ way, window, date, results }) {
  const t = total(results);
  return `| ${[
    way,
    window,
    date,
    of(t.leaksRight, t.leaks),
    String(t.leaksOpen),
    of(t.lookAlikesRight, t.lookAlikes),
    String(t.falseAlarms),
    of(t.culpritsFirst, t.culprits),
    of(t.holdersRight, t.holders),
  ].join(" | ")} |`;
}

/** @param {CaseResult} one @param {ReturnType<typeof columnsOf>} columns */
function caseRow(one, columns) {
  const marks = columns.map(({ results }) => {
    const result = results.find((candidate) => candidate.case === one.case);
    return result === undefined ? "" : markOf(result);
  });
  return `| [${one.case}](../leakbench/cases/${one.case}/case.py) | ${one.negative ? "look-alike" : "leak"} | ${marks.join(" | ")} |`;
}

/** @param {CaseResult} result */
function markOf(result) {
  if (result.skipped) {
    return "skipped";
  }
  if (result.open) {
    return "open";
  }
  return result.verdictRight ? (isRight(result) ? "yes" : "verdict") : `**${result.verdict}**`;
}
