/**
 * The cost of reading, from the agents' segments to a report on the screen, by number of live samples:
 * `npm run bench -- reading [--samples 10000,100000,1000000]`
 *
 * A pool is laid out as the agent does it (at most 32,000 live samples and 4,000 sites per process, stacks
 * about 20 deep), then read, recorded, opened again and drawn in Chromium. Also measures the flame graph of a million
 * stack nodes: the time of each animation frame while the pointer moves over it and while it is zoomed.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runnerImport } from "vite";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { median } from "./statistics.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({
  options: { samples: { type: "string", default: "10000,100000,1000000" } },
});
const { PoolFixture } = await import("../dist/segment/pool.fixture.js");
const { PoolReader, ProfileAssembler, SegmentReader } = await import("../dist/segment/index.js");
const { FileSink } = await import("../dist/recording/frames/file_sink.js");
const { RecordingWriter } = await import("../dist/recording/writer.js");
const { buildReport, openRecordingAt } = await import("../dist/inspect/index.js");
const { writeReport } = await import("../dist/cli/files/report_page.js");

/** The agent keeps 48,000; the fixture's sections all have the same size, and together must fit into a slot. */
const samplesAProcess = 32_000;
const sectionBytes = 48 * 2 ** 15;
const sitesAProcess = 4_000;
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

/** Runs `work` a few times; returns the median in ms. @param {() => unknown} work @param {number} times */
async function timed(work, times = 5) {
  const costs = [];
  for (let run = 0; run < times; run++) {
    const started = performance.now();
    await work();
    costs.push(performance.now() - started);
  }
  return median(costs);
}

/** A pool whose segments hold `samples` live allocations in all. @param {number} samples */
function layOut(samples) {
  const processes = Math.ceil(samples / samplesAProcess);
  const pool = new PoolFixture(processes, sectionBytes);
  for (let p = 0; p < processes; p++) {
    const segment = pool.segment(p, 1000 + p);
    segment.thread(1000 + p, "python");
    const live = Math.min(samplesAProcess, samples - p * samplesAProcess);
    const sites = Math.min(sitesAProcess, Math.ceil(live / 8));
    for (let n = 0; n < sites; n++) {
      const path = Array.from(
        { length: 8 + (n % 25) },
        (_, depth) => `call_${depth}_${depth < 6 ? n % 7 : n % (30 + depth * 40)}`,
      );
      segment.site(path.join(";"), {
        live: 65536 * (1 + (n % 9)),
        allocated: 1e6 + n,
        peak: 70000,
        liveSamples: 8,
      });
    }
    for (let n = 0; n < live; n++) {
      segment.live(n, n % sites, 1024 + n, (n * 37) % 60_000);
    }
    segment.setCount(6, live);
  }
  return { pool, processes };
}

/** The browser that the tests choose; that code is TypeScript. */
const { module: browsers } = await runnerImport(join(root, "test/browser.ts"), {
  root,
  logLevel: "warn",
});

const rows = [];
for (const samples of (options.samples ?? "").split(",").map(Number)) {
  const { pool, processes } = layOut(samples);
  const fd = pool.open();
  const reader = new PoolReader(fd);
  const open = () =>
    Array.from({ length: processes }, (_, slot) => new SegmentReader(fd, reader.slotRange(slot)));
  const first = await timed(() => open().map((segment) => segment.snapshot()));
  const readers = open();
  const snapshots = readers.map((segment) => segment.snapshot());
  const again = await timed(() => readers.map((segment) => segment.snapshot()));
  const timeMs = 1_700_000_060_000;
  const assemble = () => {
    const assembler = new ProfileAssembler();
    for (const snapshot of snapshots) {
      assembler.renew(assembler.begin(snapshot.header), snapshot);
    }
    return assembler.take(timeMs);
  };
  const toProfile = await timed(assemble, 3);
  const { tables, snapshot } = assemble();

  const path = join(scratch, `${samples}.tidemark`);
  const write = () => {
    const writer = new RecordingWriter(FileSink.open(path));
    writer.begin({
      tidemarkVersion: "bench",
      command: ["bench"],
      pid: 1000,
      startedMs: timeMs - 60_000,
      host: "",
      kernel: "",
      runId: "",
      periodBytes: 65536,
      keeper: null,
      recorder: { pid: process.pid, startTicks: 0 },
    });
    writer.processes(timeMs, [
      {
        series: 0,
        pid: 1000,
        parentPid: 1,
        command: ["bench"],
        python: "3.11.7",
        profiled: true,
        startedMs: timeMs - 60_000,
        endedMs: null,
      },
    ]);
    writer.metrics(
      timeMs,
      [0, 1, 2, 3].map((n) => ({
        timeMs: timeMs - 60_000 + n * 20_000,
        series: 0,
        metric: "rssBytes",
        value: 1e8 + n * 1e7,
      })),
    );
    writer.snapshot(tables, snapshot, {
      kind: "end",
      agent: { samples, lost: 0, cpuMs: 0, periodBytes: 65536 },
    });
    writer.close();
  };
  const recorded = await timed(write, 3);
  const opened = await timed(() => openRecordingAt(path).profileAt("end"), 3);
  const page = join(scratch, `${samples}.html`);
  const reported = await timed(
    async () =>
      writeReport(await buildReport(openRecordingAt(path), async () => {}), page, async () => {}),
    3,
  );

  const browser = await browsers.launchBrowser();
  const paints = [];
  for (let run = 0; run < 3; run++) {
    const tab = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    const started = performance.now();
    await tab.goto(`file://${page}`);
    await tab.waitForSelector("canvas", { timeout: 120_000 });
    await tab.evaluate(
      "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))",
    );
    paints.push(performance.now() - started);
    await tab.close();
  }
  await browser.close();
  const ms = (/** @type {number} */ value) =>
    `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
  const size = (/** @type {string} */ file) => `${(statSync(file).size / 2 ** 20).toFixed(2)} MiB`;
  rows.push([
    samples.toLocaleString("en"),
    String(processes),
    snapshot.sites.length.toLocaleString("en"),
    tables.stacks.length.toLocaleString("en"),
    ms(first),
    ms(again),
    ms(toProfile),
    ms(recorded),
    size(path),
    ms(opened),
    ms(reported),
    size(page),
    ms(median(paints)),
  ]);
  console.error(rows.at(-1)?.join("  "));
  pool.close();
}
const frames = await drawWide(1_000_000);
rmSync(scratch, { recursive: true, force: true });

/** Opens a flame graph of `nodes` stack nodes; returns the ms of each animation frame. @param {number} nodes */
async function drawWide(nodes) {
  const { module: wide } = await runnerImport(join(root, "test/wide_report.ts"), {
    root,
    logLevel: "warn",
  });
  const page = join(scratch, "wide.html");
  await writeReport(wide.wideReport(nodes), page, async () => {});
  const browser = await browsers.launchBrowser();
  const tab = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await tab.goto(`file://${page}`);
  const flame = tab.getByTestId("flame");
  await flame.waitFor({ timeout: 120_000 });
  await tab.waitForFunction(
    "document.querySelector('[data-testid=flame]').dataset.rectangles > 100",
  );
  await tab.evaluate(`
    window.frameTimes = [];
    const flame = document.querySelector("[data-testid=flame]");
    new MutationObserver(() => frameTimes.push(Number(flame.dataset.drawMs)))
      .observe(flame, { attributeFilter: ["data-frames"] });
  `);
  const box = await flame.boundingBox();
  const { x, y, width, height } = /** @type {NonNullable<typeof box>} */ (box);
  const visible = Math.min(height, 900 - y);
  for (let move = 0; move < 300; move++) {
    await tab.mouse.move(x + (width * ((move * 37) % 300)) / 300, y + (visible * (move % 50)) / 50);
  }
  for (let zoom = 0; zoom < 20; zoom++) {
    await tab.mouse.dblclick(x + (width * ((zoom * 7) % 20)) / 20, y + visible / 3);
    await tab.waitForTimeout(400);
    await tab.keyboard.press("Escape");
    await tab.waitForTimeout(400);
  }
  const times = /** @type {number[]} */ (await tab.evaluate("frameTimes"));
  await browser.close();
  return times.sort((a, b) => a - b);
}

/** @param {number} share of the frames that take at most the returned time */
const frameMs = (share) => `${frames[Math.floor(share * (frames.length - 1))]?.toFixed(1)} ms`;
const python = (await findInterpreters()).at(-1)?.path ?? "python3";
const markdown = `## Cost of reading

\`npm run bench -- reading\` on ${describeMachine(python)}. Medians. "Read again" is for segments that did not change.

${markdownTable(
  [
    "live samples",
    "processes",
    "sites",
    "stack nodes",
    "first read",
    "read again",
    "to a profile",
    "recorded",
    "recording",
    "opened, decoded",
    "recording to report",
    "report",
    "first paint",
  ],
  rows,
)}

The flame graph of 1,000,000 stack nodes, ${frames.length} frames as the pointer moves and as it is zoomed: ${frameMs(0.5)} at the
median, ${frameMs(0.99)} at the 99th percentile, ${frameMs(1)} at most; sixty a second leave 16.7 ms each.
`;
console.log(markdown);
writeResults("reading", markdown);
