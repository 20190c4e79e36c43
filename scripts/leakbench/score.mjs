/** Compares a diagnosis with its label. */
import { basename } from "node:path";

/**
 * @typedef {object} CaseResult
 * @property {string} case
 * @property {boolean} negative
 * @property {string} verdict "" where there is none
 * @property {number} confidence
 * @property {boolean} verdictRight
 * @property {boolean} open it asks for a longer window, although the label names a kind
 * @property {number | null} culpritRank 1 is the first suspect, 0 none of them; null: the label names none
 * @property {boolean | null} holderRight null: the label names none
 * @property {number} seconds how long it was watched
 * @property {string} [skipped] why it could not be scored
 */

/**
 * @param {import("./cases.mjs").LabelledCase} labelled
 * @param {number} seconds how long it was watched
 * @param {{diagnosis?: any, skipped?: string}} outcome
 * @returns {CaseResult}
 */
export function score({ name, expect }, seconds, { diagnosis, skipped }) {
  const kind = diagnosis?.verdict?.kind ?? "";
  return {
    case: name,
    negative: expect.negative,
    verdict: kind,
    confidence: diagnosis?.verdict?.confidence ?? 0,
    verdictRight: expect.verdict.includes(kind),
    open: kind === "insufficient-evidence" && !expect.verdict.includes(kind),
    culpritRank: expect.culprit ? rankOf(expect.culprit, diagnosis?.suspects ?? []) : null,
    holderRight: expect.holder ? names(expect.holder, diagnosis?.suspects ?? []) : null,
    seconds,
    ...(skipped ? { skipped } : {}),
  };
}

/** @param {CaseResult} result the verdict, the culprit and the holder, where the label names them */
export function isRight({ verdictRight, culpritRank, holderRight }) {
  return verdictRight && culpritRank !== 0 && holderRight !== false;
}

/**
 * The first suspect whose stack contains the culprit: compares the function's last name, and the file.
 * @param {{file: string, functions: string[]}} culprit
 * @param {{stack: {function: string, file: string}[]}[]} suspects
 */
function rankOf(culprit, suspects) {
  const guilty = suspects.findIndex(({ stack }) =>
    stack.some(
      (frame) =>
        basename(frame.file) === culprit.file &&
        culprit.functions.includes(frame.function.split(".").at(-1) ?? ""),
    ),
  );
  return guilty + 1;
}

/**
 * Whether one of the first three suspects has the holder that the label names.
 * @param {string} holder
 * @param {{holder?: {path: string[]}}[]} suspects
 */
function names(holder, suspects) {
  const word = new RegExp(`(?<![\\w])${holder.replace(/[^\w]/g, "\\$&")}(?![\\w])`);
  return suspects
    .slice(0, 3)
    .some((suspect) => suspect.holder?.path.some((step) => word.test(step)));
}

/** @param {CaseResult[]} results */
export function total(results) {
  const scored = results.filter(({ skipped }) => !skipped);
  const leaks = scored.filter(({ negative }) => !negative);
  const lookAlikes = scored.filter(({ negative }) => negative);
  const withCulprit = leaks.filter(({ culpritRank }) => culpritRank !== null);
  const withHolder = leaks.filter(({ holderRight }) => holderRight !== null);
  const rank = (/** @type {CaseResult} */ { culpritRank }) => culpritRank ?? 0;
  return {
    cases: scored.length,
    skipped: results.length - scored.length,
    leaks: leaks.length,
    leaksRight: leaks.filter(({ verdictRight }) => verdictRight).length,
    leaksOpen: leaks.filter(({ open }) => open).length,
    falseAlarms: lookAlikes.filter(({ verdictRight, open }) => !verdictRight && !open).length,
    lookAlikes: lookAlikes.length,
    lookAlikesRight: lookAlikes.filter(({ verdictRight }) => verdictRight).length,
    culprits: withCulprit.length,
    culpritsFirst: withCulprit.filter((result) => rank(result) === 1).length,
    culpritsInThree: withCulprit.filter((result) => rank(result) >= 1 && rank(result) <= 3).length,
    holders: withHolder.length,
    holdersRight: withHolder.filter(({ holderRight }) => holderRight).length,
  };
}
