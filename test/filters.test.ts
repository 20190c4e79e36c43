/** `--where` and `--by` on a program with threads, labels, steps and two ranks, recorded and attached to. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { DiagnosisJson } from "../src/model/documents/diagnosis_document.js";
import type { DiffJson, LinesJson } from "../src/model/documents/documents.js";
import type { SummaryJson } from "../src/model/documents/summary_document.js";
import { commandHere } from "./command_here.js";
import { errorLine, python, validate } from "./recorded_app.js";
import { execute, repository, scratch, tidemark } from "./run.js";

const program = join(repository, "test/programs/labelled_service.py");
const environment = { ...process.env, PYTHONPATH: join(repository, "python"), RANK: "0" };
const MIB = 2 ** 20;
let folder: string;
let recording: string;
/** How many steps the program made. */
let made: number;

beforeAll(async () => {
  folder = scratch();
  process.chdir(folder);
  recording = join(folder, "service.tidemark");
  const { status, stderr, stdout } = await execute(
    [tidemark, "run", "-o", recording, "--quiet", "--", python, program, "28"],
    { cwd: folder, env: environment },
  );
  expect(status, stderr).toBe(0);
  made = Number(stdout);
});

async function document<Document>(...words: string[]): Promise<Document> {
  const { stdout } = await commandHere(...words, "--json");
  return validate(stdout, words[0] === "diagnose" ? "diagnosis" : (words[0] as string)) as Document;
}

const live = ({ sites }: SummaryJson) => sites.reduce((sum, site) => sum + site.liveBytes, 0);

test("--where accepts each group that --by shows, with the same figures", async () => {
  for (const key of ["thread", "process", "rank", "label", "endpoint", "domain"]) {
    const { groups = [] } = await document<SummaryJson>("summary", recording, "--by", key);
    expect(groups.length, key).toBeGreaterThan(1);
    for (const { group, liveBytes } of groups) {
      const value = group === "" ? "(none)" : group;
      const chosen = await document<SummaryJson>(
        "summary",
        recording,
        "--where",
        `${key}=${value}`,
      );
      // Labels are nested: a condition on the outer one includes the rows of the inner one.
      expect(live(chosen), `${key}=${value}`).toBeGreaterThanOrEqual(liveBytes - 1);
    }
  }
});

test("--by given twice is refused", async () => {
  const { status, stderr } = await commandHere(
    "summary",
    recording,
    "--by",
    "thread",
    "--by",
    "rank",
  );
  expect(status).toBe(2);
  expect(stderr).toContain("--by takes one key, not both thread and rank");
});

describe("summary --where", () => {
  const of = (...where: string[]) =>
    document<SummaryJson>(
      "summary",
      recording,
      ...where.flatMap((condition) => ["--where", condition]),
    );

  test("counts allocations of a thread, under a label, in a process of a rank", async () => {
    const all = await of();
    const ingest = await of("thread=ingest");
    expect(ingest.where).toBe("thread=ingest");
    expect(live(ingest)).toBeGreaterThan(50 * MIB);
    expect(live(ingest)).toBeLessThan(live(all) - 15 * MIB);
    expect(ingest.rss).toEqual(all.rss);
    expect(new Set(ingest.sites.flatMap((site) => site.stack.map((f) => f.function)))).toContain(
      "ingest",
    );
    const labelled = await of("endpoint=/ingest");
    expect(live(labelled)).toBeCloseTo(live(await of("label=/ingest")), 0);
    expect(Math.abs(live(labelled) - live(ingest))).toBeLessThan(MIB);
    expect(live(await of("thread=ingest", "endpoint=/search"))).toBe(0);
    const ofWorker = all.processes.find(({ rank }) => rank === 1);
    const byRank = await of("rank=1");
    expect(Math.abs(live(byRank) - live(await of(`process=${ofWorker?.pid}`)))).toBeLessThan(1);
  });

  test("refuses values that do not occur, and lists those that do, most similar first", async () => {
    const thread = await commandHere("summary", recording, "--where", "thread=serch");
    expect(thread.status).toBe(2);
    expect(errorLine(thread)).toMatch(
      /TM-E014 .*thread=serch; values that occur: search, .*ingest/,
    );
    const key = await commandHere("lines", recording, "--where", "enpoint=/search");
    expect(errorLine(key)).toMatch(/TM-E014 .*'enpoint'; did you mean endpoint\? keys are thread/);
    const rank = await commandHere("diagnose", recording, "--where", "rank=7");
    expect(errorLine(rank)).toMatch(/rank=7; values that occur: 0, 1/);
    const none = await commandHere("diff", `${recording}@2s`, recording, "--where", "thread");
    expect(errorLine(none)).toContain(
      "--where takes a condition KEY=VALUE such as thread=worker or endpoint=/chat, not 'thread'",
    );
  });

  test("the screen shows which figures cover the whole program", async () => {
    const { stdout } = await commandHere("summary", recording, "--where", "thread=search");
    expect(stdout).toMatch(/Only +thread=search: live and allocated bytes, sites and verdict/);
  });
});

describe("--by", () => {
  test("summary: live bytes and growth by thread, label and rank; shares add up", async () => {
    const { groups = [], by } = await document<SummaryJson>("summary", recording, "--by", "thread");
    expect(by).toBe("thread");
    expect(groups[0]?.group).toBe("ingest");
    expect(groups[0]?.sites).toBeGreaterThanOrEqual(1); // one of its small blocks may be sampled, too
    expect(groups[0]?.growthBytesPerHour).toBeGreaterThan(10_000 * MIB);
    expect(groups.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 6);
    const search = groups.find(({ group }) => group === "search");
    expect(search?.growthHighBytesPerHour ?? 0).toBeLessThan(2_000 * MIB);
    const labels = await document<SummaryJson>("summary", recording, "--by", "label");
    expect(labels.groups?.map(({ group }) => group)).toEqual(
      expect.arrayContaining(["endpoint=/ingest, tenant=acme", "endpoint=/search", ""]),
    );
    const ranks = await document<SummaryJson>("summary", recording, "--by", "rank");
    expect(ranks.groups?.map(({ group }) => group)).toEqual(expect.arrayContaining(["0", "1"]));
    const { stdout } = await commandHere("summary", recording, "--by", "endpoint");
    expect(stdout).toMatch(/Live bytes by endpoint at the end\n +LIVE +± +SHARE/);
    expect(stdout).toContain("(none)");
  });

  test("summary: what each step of a loop leaves, up to its last step", async () => {
    const { steps, groups } = await document<SummaryJson>("summary", recording, "--by", "step");
    expect(groups).toBeUndefined();
    const [left] = steps?.left ?? [];
    expect(left).toMatchObject({ name: "train", isNoise: false });
    const error = left?.standardErrorBytes ?? 0;
    expect(Math.abs((left?.bytesPerStep ?? 0) - 150_000)).toBeLessThan(4 * error + 1000);
    const last = steps?.ranges.at(-1);
    expect(last?.lastStep).toBe(made);
    expect(last?.bytesPerStep).toBeLessThan(300_000);
    const { stdout } = await commandHere("summary", recording, "--by", "step");
    expect(stdout).toMatch(/Each step of train leaves 1\d\d KiB ±[\d.]+ KiB \(steps \d+-\d+\)/);
  });

  test("lines: each line of each group, the largest first; --top keeps the largest", async () => {
    const { lines } = await document<LinesJson>("lines", recording, "--by", "endpoint");
    expect(lines[0]).toMatchObject({ group: "/ingest", function: "ingest" });
    expect(lines.some(({ group }) => group === "")).toBe(true);
    const sizes = lines.map(({ liveBytes }) => liveBytes);
    expect(sizes).toEqual([...sizes].sort((a, b) => b - a));
    const groups = lines.slice(0, 3).map(({ group }) => group);
    expect(new Set(groups).size).toBeGreaterThan(1);
    const [file] = lines.map((line) => line.file);
    const few = await document<LinesJson>("lines", recording, file as string, "--top", "2");
    const all = await document<LinesJson>("lines", recording, file as string);
    const largest = all.lines.toSorted((a, b) => b.liveBytes - a.liveBytes).slice(0, 2);
    expect(few.lines).toEqual(all.lines.filter((line) => largest.includes(line)));
  });

  test("steps: --top keeps the largest ranges, in the order of the steps", async () => {
    const { stdout } = await commandHere("summary", recording, "--by", "step", "--top", "2");
    const { steps } = await document<SummaryJson>("summary", recording, "--by", "step");
    const largest = (steps?.ranges ?? [])
      .toSorted((a, b) => b.liveBytes - a.liveBytes)
      .slice(0, 2)
      .sort((a, b) => a.firstStep - b.firstStep)
      .map(({ firstStep, lastStep }) => `${firstStep}-${lastStep}`);
    const shown = [...stdout.matchAll(/ (\d+-\d+) +train$/gm)].map(([, range]) => range);
    expect(shown).toEqual(largest);
  });

  test("the help lists step if it can be grouped by", async () => {
    for (const command of ["summary", "lines"]) {
      expect((await commandHere(command, "--help")).stdout.replace(/\s+/g, " ")).toContain(
        "domain, step,",
      );
    }
  });

  test("diff: growth of each group, as noise if it is within its error", async () => {
    const { groups = [], totals } = await document<DiffJson>(
      "diff",
      `${recording}@12s`,
      `${recording}@24s`,
      "--by",
      "endpoint",
    );
    const of = (name: string) => groups.find(({ group }) => group === name);
    expect(of("/ingest")?.isNoise).toBe(false);
    expect(of("/ingest")?.growthBytes).toBeGreaterThan(20 * MIB);
    expect(of("/search")?.isNoise).toBe(true);
    const sum = groups.reduce((total, { growthBytes }) => total + growthBytes, 0);
    expect(Math.abs(sum - totals.growthBytes)).toBeLessThan(1);
  });
});

describe("diagnose --where", () => {
  const of = (condition: string) =>
    document<DiagnosisJson>("diagnose", recording, "--where", condition);

  test("makes the chosen sites suspects, with their share of the whole growth", async () => {
    const { verdict, suspects, selection } = await of("label=/ingest");
    expect(verdict.kind).toBe("python-leak");
    expect(suspects[0]?.stack[0]?.function).toBe("ingest");
    expect(selection?.share).toBeGreaterThan(0.5);
    expect(verdict.summary).toContain("This covers only label=/ingest.");
  });

  test("does not blame them for the growth of others", async () => {
    const { verdict, suspects, selection, growth } = await of("thread=search");
    expect(verdict.kind).toBe("steady");
    expect(suspects).toEqual([]);
    expect(growth.bytesPerHour).toBe(0);
    expect(selection).toMatchObject({ where: "thread=search", share: 0 });
    expect(verdict.summary).toMatch(/grows by .*GiB\/h, of which the selected sites explain 0 %/);
  });

  test("needs a recording", async () => {
    const outcome = await commandHere("diagnose", "4242", "--where", "thread=ingest");
    expect(errorLine(outcome)).toMatch(/TM-E002 --where .*tidemark attach 4242/);
  });
});

test("labels of an attached program are recorded", async () => {
  const target = spawn(python, [program, "100"], { env: environment, stdio: "ignore" });
  const path = join(folder, "attached.tidemark");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const attached = await execute(
    [tidemark, "attach", String(target.pid), "--for", "6s", "-o", path, "--quiet"],
    { cwd: folder },
  );
  target.kill("SIGKILL");
  expect(attached.status, attached.stderr).toBe(0);
  const summary = await document<SummaryJson>("summary", path, "--by", "endpoint");
  expect(summary.groups?.[0]?.group).toBe("/ingest");
  expect(summary.processes[0]?.rank).toBe(0);
});
