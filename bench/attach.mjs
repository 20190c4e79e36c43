/**
 * What attaching costs the process: its pause and how long it takes, by version of Python, and the longest stall
 * that a loop in the process itself sees: `npm run bench -- attach [--rounds 20]`. Beside it `py-spy dump` and
 * `memray attach` where they are installed with the interpreter of the benchmarks.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { attachAndRecord } from "../dist/record/index.js";
import { readEnvironment } from "../scripts/environment.mjs";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { quantile } from "./statistics.mjs";

const libraryPath = fileURLToPath(new URL("../dist/native/libtidemark.so", import.meta.url));
const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "20" }, peers: { type: "string", default: "3" } },
});
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

/** Beats every 0.2 ms, and prints its longest gap whenever a line comes. */
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
  child.stdin.on("error", () => {}); // a peer may end it
  child.on("close", () => child.stdout.emit("data", "NaN"));
  return {
    pid: /** @type {number} */ (child.pid),
    alive: () => child.exitCode === null && child.signalCode === null,
    kill: () => child.kill("SIGKILL"),
    /** @returns {Promise<number>} ms since it was asked before */
    async longestGap() {
      const said = new Promise((resolve) => {
        child.stdout.once("data", (text) => resolve(Number(text)));
        if (child.exitCode !== null || child.signalCode !== null) resolve(Number.NaN);
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
  if (freeThreaded) continue;
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
const tools = [
  ["py-spy dump", "py-spy", (/** @type {number} */ pid) => ["dump", "--pid", String(pid)]],
  [
    "memray attach",
    "memray",
    (/** @type {number} */ pid) => [
      "attach",
      "-o",
      join(scratch, "m.bin"),
      "-f",
      "--duration",
      "1",
      String(pid),
    ],
  ],
];
for (const [name, program, words] of /** @type {[string, string, (pid: number) => string[]][]} */ (
  tools
)) {
  const tool = join(dirname(python), program);
  if (!existsSync(tool)) {
    peers.push([name, "not installed", "", ""]);
    continue;
  }
  /** @type {number[]} */
  const gaps = [];
  let failed = 0;
  let died = 0;
  for (let round = 0; round < Number(options.peers); round++) {
    const target = start([python]);
    await target.longestGap();
    const { status } = spawnSync(tool, words(target.pid), { timeout: 60_000 });
    if (status !== 0) failed++;
    const gap = target.alive() ? await target.longestGap() : Number.NaN;
    if (Number.isNaN(gap)) died++;
    else gaps.push(gap);
    target.kill();
  }
  peers.push([name, spread(gaps), `${failed} of ${options.peers}`, `${died} of ${options.peers}`]);
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## Attach

\`npm run bench -- attach --rounds ${options.rounds}\` on ${describeMachine(python)}. In ms: p50, p99, maximum. The program
beats every 0.2 ms; its longest gap with an attach and a detach in it, and in 100 ms without.

${markdownTable(["Python", "command to recording", "stands at attach", "stands at detach", "longest gap", "gap without"], rows)}

${markdownTable(["beside it", "longest gap", "failed", "the program ended"], peers)}
`;
console.log(markdown);
writeResults("attach", markdown);
