/**
 * What attaching costs the process, by Python version: how long it is paused, how long attaching takes, and the longest
 * stall that a loop in the process sees: `npm run bench -- attach [--rounds 20]`. For comparison: `tidemark stacks`,
 * `py-spy dump` and `memray attach`.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { attachAndRecord } from "../dist/record/index.js";
import { readEnvironment } from "../scripts/environment.mjs";
import { benchPySpy, benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { quantile } from "./statistics.mjs";

const libraryPath = fileURLToPath(new URL("../dist/native/libtidemark.so", import.meta.url));
const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "20" }, peers: { type: "string", default: "10" } },
});
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

/** Ticks every 0.2 ms, and prints its longest gap whenever it reads a line. */
const BEATING = `
import sys, threading, time
longest = 0.0
def answer():
    global longest
    for line in sys.stdin:
        print(longest * 1000, flush=True)
        longest = 0.0
threading.Thread(target=answer, daemon=True).start()
before = time.perf_counter()
while True:
    kept = [bytearray(2000) for _ in range(5)]
    time.sleep(0.0002)
    now = time.perf_counter()
    longest = max(longest, now - before)
    before = now
`;

/** @param {string[]} command */
function start(command) {
  const child = spawn(command[0] ?? "", [...command.slice(1), "-c", BEATING], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  child.stdin.on("error", () => {}); // a peer tool may have ended it
  child.on("close", () => child.stdout.emit("data", "NaN"));
  return {
    pid: /** @type {number} */ (child.pid),
    alive: () => child.exitCode === null && child.signalCode === null,
    kill: () => child.kill("SIGKILL"),
    /** @returns {Promise<number>} longest gap since the previous call, in ms */
    async longestGap() {
      const said = new Promise((resolve) => {
        child.stdout.once("data", (text) => resolve(Number(text)));
        if (child.exitCode !== null || child.signalCode !== null) {
          resolve(Number.NaN);
        }
      });
      child.stdin.write("\n");
      return said;
    },
  };
}

/** @param {number[]} values */
const spread = (values) =>
  values.length === 0
    ? "-"
    : `${quantile(values, 0.5).toFixed(1)}, ${quantile(values, 0.99).toFixed(1)}, ${Math.max(...values).toFixed(1)}`;

/** @type {string[][]} */
const rows = [];
for (const { version, path, chroot, sharedLibrary, freeThreaded } of readEnvironment()
  .interpreters) {
  if (freeThreaded) {
    continue;
  }
  const target = start(chroot ? ["chroot", chroot, path] : [path]);
  await target.longestGap();
  /** @type {{attach: number[], left: number[], wall: number[], gap: number[], idle: number[]}} */
  const seen = { attach: [], left: [], wall: [], gap: [], idle: [] };
  for (let round = 0; round < Number(options.rounds); round++) {
    await target.longestGap();
    await new Promise((resolve) => setTimeout(resolve, 100));
    seen.idle.push(await target.longestGap());
    const begun = performance.now();
    const result = await attachAndRecord({
      pid: target.pid,
      recordingPath: join(scratch, "a.tidemark"),
      libraryPath,
      waitMs: 60_000,
      enough: (/** @type {number} */ elapsed) => elapsed > 50,
      onRecording: () => seen.wall.push(performance.now() - begun),
    });
    seen.gap.push(await target.longestGap());
    seen.attach.push(result.attachPauseMs);
    seen.left.push(result.detachPauseMs);
  }
  rows.push([
    `${version} ${sharedLibrary ? "shared" : "static"}`,
    ...[seen.wall, seen.attach, seen.left, seen.gap, seen.idle].map(spread),
  ]);
  target.kill();
}

/** @type {string[][]} */
const peers = [];
const python = await benchPython();
const tidemark = fileURLToPath(new URL("../bin/tidemark", import.meta.url));
const pySpy = await benchPySpy();
const memray = join(dirname(python), "memray");
/** @type {[string, (pid: string) => string[]][]} */
const tools = [
  ["tidemark stacks", (pid) => [tidemark, "stacks", pid]],
  ["py-spy dump", (pid) => [pySpy, "dump", "--pid", pid]],
  ["tidemark stacks --native", (pid) => [tidemark, "stacks", pid, "--native"]],
  ["py-spy dump --native", (pid) => [pySpy, "dump", "--native", "--pid", pid]],
  [
    "memray attach",
    (pid) => [memray, "attach", "-o", join(scratch, "m.bin"), "-f", "--duration", "1", pid],
  ],
];
for (const [name, command] of tools) {
  if (!existsSync(/** @type {string} */ (command("")[0]))) {
    peers.push([name, "not installed", "", "", "", ""]);
    continue;
  }
  /** @type {{gap: number[], idle: number[], wall: number[]}} */
  const seen = { gap: [], idle: [], wall: [] };
  let failed = 0;
  let died = 0;
  for (let round = 0; round < Number(options.peers); round++) {
    const target = start([python]);
    await target.longestGap();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    seen.idle.push(await target.longestGap());
    const begun = performance.now();
    const [program, ...words] = command(String(target.pid));
    if ((await ended(program ?? "", words)) !== 0) {
      failed++;
    }
    seen.wall.push(performance.now() - begun);
    const gap = target.alive() ? await target.longestGap() : Number.NaN;
    if (Number.isNaN(gap)) {
      died++;
    } else {
      seen.gap.push(gap);
    }
    target.kill();
  }
  const [gap, idle, wall] = [seen.gap, seen.idle, seen.wall].map(spread);
  const of = (/** @type {number} */ count) => `${count} of ${options.peers}`;
  peers.push([name, gap ?? "", idle ?? "", wall ?? "", of(failed), of(died)]);
}

/** @param {string} program @param {string[]} words @returns {Promise<number | null>} its exit code */
async function ended(program, words) {
  const child = spawn(program, words, { stdio: "ignore", timeout: 60_000 });
  return new Promise((resolve) => child.on("close", resolve));
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## Attach

\`npm run bench -- attach --rounds ${options.rounds}\` on ${describeMachine(python)}. In ms: p50, p99, maximum. The program
does a short piece of work every 0.2 ms. The last two columns are its longest gap while Tidemark attaches and detaches,
and during 100 ms without.

${markdownTable(["Python", "command to recording", "pause at attach", "pause at detach", "longest gap", "gap without"], rows)}

${markdownTable(["tool", "longest gap", "in 1 s without", "wall time", "failed", "the program ended"], peers)}
`;
console.log(markdown);
writeResults("attach", markdown);
