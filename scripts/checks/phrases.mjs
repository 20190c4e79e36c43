/**
 * Phrases to avoid in this repository's text: code comments, messages, test names and docs.
 * CONTRIBUTING.md shows this list (`npm run generate` writes it there). A phrase belongs here only if every use is
 * wrong: words that also have good uses, such as "look", "way" or "tell", are for review.
 *
 * Why not a prose linter from npm: textlint and its rules read Markdown, but not comments in C, Python and
 * TypeScript; vale is a binary that its npm package downloads; write-good and alex check for other things.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";
import { say, verdicts } from "./stream.mjs";

/**
 * `phrase`: words; `(a|b)` are alternatives, and `(a|)` a word that may be missing. Case, line breaks and the marks
 * of comments and strings between the words do not matter.
 * @type {{phrase: string, instead: string}[]}
 */
export const PHRASES = [
  { phrase: "anew", instead: "again; allocated repeatedly; replaced by a larger one" },
  { phrase: "(dear|dearer|dearest)", instead: "expensive" },
  { phrase: "worth a word", instead: "significant; or name the limit" },
  { phrase: "(can|cannot|could|to|not) be had", instead: "available, unavailable" },
  { phrase: "told (as|by|of)", instead: "reported as; named after; attributed to" },
  { phrase: "(tell|tells|say|says) of", instead: "report; say about" },
  { phrase: "(stand|stands|stood|standing) still", instead: "is paused; is idle; does not change" },
  { phrase: "(mend|mends|mended|mending)", instead: "fix, repair" },
  { phrase: "(acquit|acquits|acquitted)", instead: "clears; shows that it is no leak" },
  { phrase: "(die|dies|died) of", instead: "is ended by; crashes because of" },
  { phrase: "in vain", instead: "without a result" },
  { phrase: "for want of", instead: "because there is no" },
  { phrase: "whose it is", instead: "name the owner" },
  { phrase: "what hangs on", instead: "what it holds; what is reachable from it" },
  { phrase: "(way|ways) from (a|) (root|roots)", instead: "path from a root" },
  { phrase: "(take|takes|took) itself down", instead: "shuts down" },
  { phrase: "nothing but its end", instead: "process exit" },
  { phrase: "(go|goes) by what", instead: "uses; relies on" },
  { phrase: "(in|in its|in the) midst", instead: "in the middle; truncated" },
  {
    phrase: "some (milliseconds|seconds|minutes|hours|days|times)",
    instead: "a few, several; or the number",
  },
  { phrase: "(look-up|look-ups)", instead: "lookup" },
  { phrase: "(told|tell|tells|telling) apart", instead: "distinguish, distinguished" },
  { phrase: "held against", instead: "compared with" },
  { phrase: "(stand|stands|stood) (there|beside|around)", instead: "is there; is next to; occurs" },
  { phrase: "some (hundred|thousand|kib|mib)", instead: "a few, several; about; or the number" },
  { phrase: "over and over", instead: "repeatedly" },
  { phrase: "by the (hundred|thousand)", instead: "hundreds of, thousands of" },
  { phrase: "not ours to (read|see|change|open)", instead: "may not be read, changed" },
  { phrase: "unhurt", instead: "unaffected" },
  { phrase: "an advice", instead: "advice; a piece of advice" },
  { phrase: "(speak|speaks) (for|against)", instead: "is evidence of, is evidence against" },
  { phrase: "with little beside it", instead: "on a nearly idle machine" },
  { phrase: "what (is|are) kept of", instead: "the data that stays of; what remains of" },
  { phrase: "(say|says) (so|nothing|why)", instead: "reports it; shows nothing; gives the reason" },
  { phrase: "at its own moment", instead: "at whatever time" },
  { phrase: "of the window (lives|live)", instead: "made during the window is still live" },
  { phrase: "(tell|tells|say|says) (stand|stands)", instead: "is reliable; is valid" },
  { phrase: "(recorder|guard|server) that died", instead: "a recorder that crashed" },
  { phrase: "(again and again|time and again)", instead: "repeatedly" },
  { phrase: "(exclude|excludes) each other", instead: "cannot be combined" },
  { phrase: "what (become|becomes|became) of", instead: "the fate of; name the outcome" },
  { phrase: "at the begin", instead: "at the start; when attaching" },
  { phrase: "as (a|the) policy says", instead: "according to a policy" },
  {
    phrase:
      "(it|that|this|which) is no (leak|error|list|number|text|file|pool|policy|sample|memory)",
    instead: "is not a",
  },
];

/** Files whose text was written elsewhere, or that only quote text. */
const NOT_OURS =
  /^(?:package-lock\.json|LICENSE|bench\/results\/|docs\/json\/|test\/data\/|scripts\/checks\/phrases)/;
/** Files that are checked: text and source code. */
const TEXT = /(?:\.(?:md|[cm]?[jt]sx?|[ch]|py|sh|ya?ml|json)|\/tidemark)$/;
/** The list and the examples in CONTRIBUTING.md, and benchmark results, which the next run replaces. */
const QUOTED =
  /<!-- before and after -->.*?<!-- end before and after -->|<!-- phrases -->.*?<!-- end phrases -->|<!-- bench [\w-]+ -->.*?<!-- end [\w-]+ -->/gs;

/** Each use of a phrase is a failure, reported with its place and what to write instead. */
export async function checkPhrases() {
  const listed = await capture("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root });
  const files = listed.output.split("\n").filter((file) => TEXT.test(file) && !NOT_OURS.test(file));
  const found = files.flatMap((file) =>
    findPhrases(textOf(file)).map(({ line, text, instead }) => {
      return `${file}:${line}: "${text}": ${instead}`;
    }),
  );
  for (const line of found) {
    say(line);
  }
  if (found.length > 0) {
    say("to fix it: say it as the line suggests; CONTRIBUTING.md has the list (Words)");
  }
  return verdicts([files.length > 0 && found.length === 0]);
}

/** @param {string} file from the root @returns {string} "" if it was deleted */
function textOf(file) {
  try {
    return readFileSync(join(root, file), "utf8").replace(QUOTED, (text) =>
      text.replace(/[^\n]/g, ""),
    );
  } catch {
    return "";
  }
}

/**
 * @param {string} text
 * @returns {{line: number, text: string, instead: string}[]} `line` counts from 1
 */
export function findPhrases(text) {
  return PHRASES.flatMap(({ phrase, instead }) =>
    [...text.matchAll(patternOf(phrase))].map((match) => ({
      line: text.slice(0, match.index).split("\n").length,
      text: match[0].replace(BETWEEN_WORDS, " "),
      instead,
    })),
  );
}

/** White space, including the marks at the start of a comment line or of the next piece of a string. */
const BETWEEN_WORDS = /["'`+]*\s[\s"'`+*/#>|]*/g;

/** @param {string} phrase @returns {RegExp} */
function patternOf(phrase) {
  const words = phrase.split(/ (?![^(]*\))/).map((word) => {
    const optional = word.endsWith("|)");
    const alternatives = (optional ? word.replace("|)", ")") : word)
      .replaceAll(" ", BETWEEN_WORDS.source)
      .replace("(", "(?:");
    return { optional, alternatives };
  });
  const source = words
    .map(({ optional, alternatives }, at) => {
      const between = at === 0 ? "" : BETWEEN_WORDS.source;
      return optional ? `(?:${between}${alternatives})?` : `${between}${alternatives}`;
    })
    .join("");
  return new RegExp(`(?<![\\w-])${source}(?![\\w-])`, "gi");
}
