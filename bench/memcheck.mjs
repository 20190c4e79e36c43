/**
 * What recording Python stacks costs under Valgrind: `npm run bench -- memcheck [--pairs 5]`. Each pair runs a program
 * under Valgrind with the options of `tidemark memcheck`, once with the hook that records stacks and once without it,
 * in alternating order. The figures are CPU time of the program's work, without starting and ending the interpreter.
 */
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { valgrindWords } from "../dist/sanitizers/memcheck_run.js";
import { watchedEnvironment, withReportFolder } from "../dist/sanitizers/tool_run.js";
import { SetupError } from "../scripts/command.mjs";
import { readEnvironment } from "../scripts/environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, median, ratioWithInterval } from "./statistics.mjs";

const { values: options } = parseArgs({ options: { pairs: { type: "string", default: "5" } } });
const { packagesPython, tools } = readEnvironment();
if (tools.valgrind === null || packagesPython === null) {
  throw new SetupError("this benchmark needs Valgrind and the packages of the tests");
}
const python = packagesPython;

/** Name, code to run once, code to measure. @type {[string, string, string][]} */
const programs = [
  [
    "calls of short functions, and of len()",
    "def short(number): return number + 1",
    "for number in range(20_000): short(number); len('abc')",
  ],
  ["imports of 100 modules", "", "import asyncio, decimal, email.mime.text, http.client"],
  [
    "JSON, sorting, strings",
    "import json; rows = [{'key': str(n), 'values': [n] * 20} for n in range(60)]",
    "for _ in range(5): sorted(json.loads(json.dumps(rows)), key=lambda row: row['key'])",
  ],
  [
    "NumPy on arrays of 10,000 numbers",
    "import numpy; numbers = numpy.arange(10_000.0)",
    "for _ in range(100): (numbers * 2 + 1).sum()",
  ],
];

/** CPU seconds of the work. @param {string} once @param {string} work @param {boolean} isWatched */
function measure(once, work, isWatched) {
  const code = `${once}\nimport time\nbegun = time.process_time()\n${work}\nprint(time.process_time() - begun)`;
  return withReportFolder(async (folder) => {
    const env = watchedEnvironment("memcheck", folder, isWatched ? {} : { TIDEMARK_FRAMES: "" });
    const [valgrind = "", ...words] = valgrindWords(folder);
    const output = execFileSync(valgrind, [...words, python, "-c", code], {
      env,
      encoding: "utf8",
      maxBuffer: 1 << 20,
    });
    return Number(output);
  });
}

const rows = [];
for (const [name, once, work] of programs) {
  const ratios = [];
  const plainSeconds = [];
  for (let pair = 0; pair < Number(options.pairs); pair++) {
    const order = pair % 2 === 0 ? [false, true] : [true, false];
    /** @type {Map<boolean, number>} */
    const seconds = new Map();
    for (const isWatched of order) {
      seconds.set(isWatched, await measure(once, work, isWatched));
    }
    ratios.push((seconds.get(true) ?? 0) / (seconds.get(false) ?? 0));
    plainSeconds.push(seconds.get(false) ?? 0);
  }
  rows.push([name, `${median(plainSeconds).toFixed(2)} s`, formatRatio(ratioWithInterval(ratios))]);
  console.log(rows.at(-1)?.join("  "));
}
writeResults(
  "memcheck",
  `## \`tidemark memcheck\`

\`npm run bench -- memcheck --pairs ${options.pairs}\` on ${describeMachine(python)}. CPU time of a program's work under
\`tidemark memcheck\`, which records Python stacks, relative to Valgrind alone with the same options: geometric means of
interleaved pairs, with 95 % intervals.

${markdownTable(["work", "Valgrind alone", "ratio"], rows)}`,
);
