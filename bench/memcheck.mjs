/**
 * What Tidemark's hook costs under Valgrind: `npm run bench -- memcheck [--rounds 10]`. Each program runs in one process
 * with the options of `tidemark memcheck`, and repeats its work in an order that rotates: without the hook, with the
 * function that watches calls, and with Python's free lists stopped as well (agent/calls/free_lists.c). The figures are CPU time of the work, without starting and ending the interpreter.
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

const { values: options } = parseArgs({ options: { rounds: { type: "string", default: "10" } } });
const { packagesPython, tools } = readEnvironment();
if (tools.valgrind === null || packagesPython === null) {
  throw new SetupError("this benchmark needs Valgrind and the packages of the tests");
}
const python = packagesPython;

/** Name, code to run once, work. @type {[string, string, string][]} */
const programs = [
  [
    "calls of short functions, and of len()",
    "def short(number): return number + 1",
    "for number in range(2_000): short(number); len('abc')",
  ],
  [
    "tokenizing Python source, in Python",
    "import io, tokenize; source = 'def f(a, b):\\n    return [a, b, 1.5, \"text\"]\\n' * 20",
    "list(tokenize.generate_tokens(io.StringIO(source).readline))",
  ],
  [
    "JSON, sorting, strings",
    "import json; rows = [{'key': str(n), 'values': [n] * 20} for n in range(60)]",
    "for _ in range(3): sorted(json.loads(json.dumps(rows)), key=lambda row: row['key'])",
  ],
  [
    "NumPy on arrays of 10,000 numbers",
    "import numpy; numbers = numpy.arange(10_000.0)",
    "for _ in range(30): (numbers * 2 + 1).sum()",
  ],
];

/** The first round is not counted. Prints the CPU seconds of a round: alone, watched, and without free lists. */
const REPEAT = `
import os, sys, time
from importlib.machinery import ExtensionFileLoader, ModuleSpec
note = sys.getprofile()
loader = ExtensionFileLoader("_tidemark_calls", os.environ["TIDEMARK_CALLS"])
calls = loader.create_module(ModuleSpec("_tidemark_calls", loader, origin=loader.path))
loader.exec_module(calls)
folder = os.environ["TIDEMARK_FRAMES"].partition(":")[2]
def timed(way):
    calls.watch(note) if way > 0 else sys.setprofile(None)
    calls.begin(os.path.join(folder, "valgrind.%d.xml" % os.getpid())) if way == 2 else calls.end()
    begun = time.process_time()
    work()
    return time.process_time() - begun
for number in range(int(sys.argv[1]) + 1):
    order = [(number + place) % 3 for place in range(3)]
    seconds = {way: timed(way) for way in order}
    if number: print(seconds[0], seconds[1], seconds[2], flush=True)
`;

/** CPU seconds of each round: alone, watched, and without free lists. @param {string} once @param {string} work */
function measure(once, work) {
  const code = `${once}\ndef work():\n    ${work}\n${REPEAT}`;
  return withReportFolder(async (folder) => {
    const [valgrind = "", ...words] = valgrindWords(folder);
    const output = execFileSync(valgrind, [...words, python, "-c", code, options.rounds], {
      env: watchedEnvironment("memcheck", folder, {}),
      encoding: "utf8",
    });
    return output
      .trim()
      .split("\n")
      .map((line) => line.split(" ").map(Number));
  });
}

const rows = [];
for (const [name, once, work] of programs) {
  const rounds = await measure(once, work);
  const ratio = (/** @type {number} */ way) =>
    formatRatio(
      ratioWithInterval(rounds.map((seconds) => (seconds[way] ?? 0) / (seconds[0] ?? 0))),
    );
  const plain = median(rounds.map(([seconds = 0]) => seconds));
  rows.push([name, `${Math.round(plain * 1000)} ms`, ratio(1), ratio(2)]);
  console.log(rows.at(-1)?.join("  "));
}
writeResults(
  "memcheck",
  `## \`tidemark memcheck\`

\`npm run bench -- memcheck --rounds ${options.rounds}\` on ${describeMachine(python)}. CPU time of a program's work under
\`tidemark memcheck\`, which watches its calls to record Python stacks and has Python free each list, dict and tuple,
relative to Valgrind alone with the same options: geometric means of interleaved rounds, with 95 % intervals.

${markdownTable(["work", "Valgrind alone", "calls watched", "and nothing reused"], rows)}`,
);
