/**
 * Census and graph of heaps of known size: `npm run bench -- heap [--gib 0.1,1,4] [--python PATH]`
 *
 * The program holds small records (each a dict of a str, an int and a float) and works through them. Tidemark
 * reads it from outside, each time in a separate process. For comparison, inside the program: objgraph, pympler
 * and guppy3; from outside, with gdb: gcore. Also measures what a stop and a fork cost the program: the longest
 * pause of its loop, and the work that it lost.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { availableParallelism, freemem, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { makeVenv } from "../scripts/environment/packages.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { median } from "./statistics.mjs";

const { values: options } = parseArgs({
  options: { gib: { type: "string", default: "0.1,1,4" }, python: { type: "string" } },
});
const python = options.python ?? (await findPackagesPython());
const run = promisify(execFile);
const folder = fileURLToPath(new URL(".", import.meta.url));

/** Memory that one record takes: a dict 64 and its table 184, str 60, int 32, float 24, its place in the list 8. */
const recordBytes = 343;
const objectsARecord = 4;
const LONGEST_PEER_MS = 60_000;
/** How long the program works while it is being read. */
const BEAT_SECONDS = 4;
/** Larger heaps are read only by Tidemark: the in-process tools would take minutes, and as much memory again. */
const LARGEST_PEER_GIB = 1;
/** Share of the free memory that a graph may use. */
const MOST_OF_FREE = 0.9;
const peers = {
  objgraph: "import objgraph; objgraph.typestats()",
  pympler: "from pympler import muppy, summary; summary.summarize(muppy.get_objects())",
  guppy3: "from guppy import hpy; hpy().heap()",
};

async function findPackagesPython() {
  const interpreters = await findInterpreters();
  try {
    return await makeVenv("bench-heap", "bench/requirements-heap.txt", interpreters);
  } catch (error) {
    console.error(`the tools from within are left out: ${/** @type {Error} */ (error).message}`);
    return interpreters.at(-1)?.path ?? "python3";
  }
}

/** What the program or a reading reports; each reports some of the keys. @typedef {{ [key: string]: any }} Answer */

/** @param {number} records */
async function startProgram(records) {
  const child = spawn(python, [join(folder, "heap_program.py"), String(records)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  return {
    pid: Number(child.pid),
    /** @param {string} line @returns {Promise<Answer>} */
    async tell(line) {
      child.stdin.write(`${line}\n`);
      const { value, done } = await lines.next();
      return done ? { missing: true } : JSON.parse(value);
    },
    async stop() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) {
        await once(child, "exit");
      }
    },
  };
}

/** @param {number} pid @param {string} kind @returns {Promise<Answer>} */
async function snapshot(pid, kind) {
  const words = ["--max-old-space-size=8192", join(folder, "heap_once.mjs"), String(pid), kind];
  const { stdout } = await run(process.execPath, words);
  return JSON.parse(stdout);
}

/** The reading with the median duration. @param {number} pid @param {string} kind @param {number} times */
async function snapshots(pid, kind, times) {
  const found = [];
  for (let n = 0; n < times; n++) {
    found.push(await snapshot(pid, kind));
    if (found[0]?.refused !== undefined) {
      break;
    }
  }
  const middle = median(found.map(({ ms }) => ms));
  return /** @type {Answer} */ (found.find(({ ms }) => ms >= middle));
}

const ms = (/** @type {number} */ value) => `${Math.round(value).toLocaleString("en")} ms`;
const seconds = (/** @type {number} */ value) => `${(value / 1000).toFixed(2)} s`;
const mib = (/** @type {number} */ bytes) =>
  `${Math.round(bytes / 2 ** 20).toLocaleString("en")} MiB`;
const rate = (/** @type {Answer} */ { objects, ms: took }) =>
  `${(objects / took / 1000).toFixed(1)} M/s`;

/** Bytes of memory, by the last graph. */
let takenAnObject = 0;
/** @type {string[][]} */
const censusRows = [];
/** @type {string[][]} */
const graphRows = [];
/** @type {string[][]} */
const pauseRows = [];
/** @type {string[][]} */
const peerRows = [];

/** @param {string} name @param {number} records @param {boolean} besides peers and pauses, too */
async function measure(name, records, besides) {
  const program = await startProgram(records);
  const large = records * recordBytes > 2 ** 31;
  const census = await snapshots(program.pid, "census", 3);
  const exact = await snapshots(program.pid, "exact", large ? 1 : 3);
  const read = await snapshots(program.pid, "read", 3);
  censusRows.push([
    name,
    census.objects.toLocaleString("en"),
    ms(census.ms),
    rate(census),
    `${(census.readBytes / census.ms / 1e6).toFixed(2)} GB/s`,
    mib(census.ownBytes),
    ms(exact.ms),
    ms(exact.pauseMs),
    mib(exact.ownBytes),
    ms(read.ms),
  ]);
  console.error(censusRows.at(-1)?.join("  "));
  const graph = graphFits(census.objects)
    ? await snapshots(program.pid, "graph", large ? 1 : 3)
    : { objects: census.objects, refused: "more memory than this machine has to spare" };
  if (graph.refused === undefined) {
    takenAnObject = graph.ownBytes / graph.objects;
  }
  graphRows.push(
    graph.refused === undefined
      ? [
          name,
          graph.objects.toLocaleString("en"),
          graph.edges.toLocaleString("en"),
          seconds(graph.ms),
          rate(graph),
          ms(graph.pauseMs),
          mib(graph.statedBytes),
          mib(graph.ownBytes),
        ]
      : [name, graph.objects.toLocaleString("en"), String(graph.refused), "", "", "", "", ""],
  );
  console.error(graphRows.at(-1)?.join("  "));
  if (besides) {
    await measurePauses(name, program, exact.ms);
    if (records * recordBytes <= LARGEST_PEER_GIB * 2 ** 30) {
      await measurePeers(name, program);
    }
  }
  await program.stop();
}

/** Judges by the previous heap's memory per object: the stated requirement allows for more references than these have.
 * @param {number} objects */
function graphFits(objects) {
  return objects * takenAnObject < freemem() * MOST_OF_FREE;
}

/** @typedef {Awaited<ReturnType<typeof startProgram>>} Program */

/** The effect on the loop: not read, stopped for a copy, forked for as long as that copy took.
 * @param {string} name @param {Program} program @param {number} exactMs how long a reading takes */
async function measurePauses(name, program, exactMs) {
  const alone = await program.tell(`beat ${BEAT_SECONDS}`);
  // The stop comes once the plan is made: the loop works until the reading has ended.
  const beatSeconds = BEAT_SECONDS + (2 * exactMs) / 1000;
  const beating = program.tell(`beat ${beatSeconds}`);
  const { pauseMs } = await snapshot(program.pid, "exact");
  const stopped = await beating;
  const forked = await program.tell(`fork ${pauseMs / 1000} ${BEAT_SECONDS}`);
  const expected = alone.beats / alone.ms;
  const lost = (/** @type {Answer} */ { beats, ms: took }) =>
    ms(Math.max(0, took - beats / expected));
  pauseRows.push(
    [name, "not read", ms(alone.longestMs), "", ""],
    [name, `stop, ${ms(pauseMs)}`, ms(stopped.longestMs), lost(stopped), "0 MiB"],
    [
      name,
      `fork, ${ms(forked.forkMs)}, child kept ${ms(pauseMs)}`,
      ms(forked.longestMs),
      lost(forked),
      mib(forked.copiedBytes),
    ],
  );
  for (const row of pauseRows.slice(-3)) {
    console.error(row.join("  "));
  }
}

/** @param {string} name @param {Program} program */
async function measurePeers(name, program) {
  const core = join(tmpdir(), `tidemark-bench-${program.pid}`);
  const started = performance.now();
  const dumped = await run("gcore", ["-o", core, String(program.pid)], {
    timeout: LONGEST_PEER_MS,
  }).then(
    () => true,
    () => false,
  );
  if (dumped) {
    const took = performance.now() - started;
    peerRows.push([name, "gcore (gdb), the memory alone", seconds(took), "is paused"]);
  }
  rmSync(`${core}.${program.pid}`, { force: true });
  for (const [peer, statement] of Object.entries(peers)) {
    const timer = setTimeout(() => process.kill(program.pid, "SIGKILL"), LONGEST_PEER_MS);
    const { ms: took, missing } = await program.tell(statement);
    clearTimeout(timer);
    if (took !== undefined && missing !== true) {
      peerRows.push([name, peer, seconds(took), "is paused"]);
    } else if (took === undefined) {
      peerRows.push([name, peer, `more than ${seconds(LONGEST_PEER_MS)}: ended`, "is paused"]);
      return;
    }
    console.error(peer, missing ? "is not there" : took);
  }
}

for (const gib of (options.gib ?? "").split(",").map(Number)) {
  await measure(`${gib} GiB`, Math.floor((gib * 2 ** 30) / recordBytes), true);
}
await measure("10 M objects", 10_000_000 / objectsARecord, false);

const load = `load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores at the end`;
const markdown = `## Census and graph

\`npm run bench -- heap\` on ${describeMachine(python)}, ${load}. Medians of three runs (one above
2 GiB), each in a new process.

${markdownTable(
  [
    "heap",
    "objects",
    "census",
    "",
    "read",
    "own memory",
    "exact census",
    "its pause",
    "own memory",
    "plain reading",
  ],
  censusRows,
)}

"Plain reading" is the time that one thread needs to copy the same bytes through /proc/PID/mem without looking at them.
No census and no pause can be shorter than this time divided by the number of processors.

Graph with dominators and retained sizes, with the estimate of its memory ("stated") and the memory that it used:

${markdownTable(
  ["heap", "objects", "references", "graph", "", "pause", "stated", "own memory"],
  graphRows,
)}

The effect on a program whose loop changes random records, for ${BEAT_SECONDS} s or until the reading is over: its longest pause, and the
work that it lost. The child of a bare fork is kept for as long as the copy takes; pages that are written to in the
meantime exist twice.

${markdownTable(["heap", "method", "longest pause", "work lost", "copied on write"], pauseRows)}

Other tools that count types, without retained sizes (at most ${LONGEST_PEER_MS / 1000} s each):

${markdownTable(["heap", "tool", "takes", "the program"], peerRows)}
`;
console.log(markdown);
writeResults("heap", markdown);
