/** What the collector captures when a condition holds, and what it keeps after a program was killed for memory. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { ArtifactJson } from "../../src/model/documents/artifact_document.js";
import type { DiagnosisJson } from "../../src/model/documents/diagnosis_document.js";
import { makeMemoryGroup, removeMemoryGroup } from "../memory_group.js";
import { validate } from "../recorded_app.js";
import { execute, tidemark, until } from "../run.js";
import { IDLE, LEAK, stopped, type WatchTest, withWatchTest } from "./watched.js";

const MIB = 2 ** 20;
const watched = withWatchTest();

/** The newest artifact, once it is complete. */
function about(test: WatchTest): ArtifactJson | null {
  const path = test.artifacts().at(-1);
  if (path === undefined || !readdirSync(path).includes("about.json")) {
    return null;
  }
  const text = readFileSync(join(path, "about.json"), "utf8");
  validate(text, "artifact");
  const found: ArtifactJson = JSON.parse(text);
  return found.files.length === 0 ? null : found;
}

function fileOf(test: WatchTest, name: string): string {
  return readFileSync(join(present(test.artifacts().at(-1)), name), "utf8");
}

test("a program that passes a size is captured once, with what the policy asks for", async () => {
  const leak = watched().python(LEAK, "leak");
  const rule = `{match: {service: "${watched().name}-leak"}, triggers: [{when: {rss: 40MiB}, do: [ledger, census, snapshot, stacks, gpu]}]}`;
  const { child, said } = watched().watch(
    "--config",
    watched().policy("{warm_up: 1h, artifacts: {max_pause: 20s}}", [rule]),
  );
  await until(() => about(watched()) !== null);
  expect(about(watched())).toMatchObject({
    service: `${watched().name}-leak`,
    version: "7",
    pid: leak.pid,
    lastMoment: false,
    reason: expect.stringMatching(/^its RSS is \d+ MiB$/),
    problems: [],
  });
  validate(fileOf(watched(), `ledger-${leak.pid}.json`), "ledger");
  validate(fileOf(watched(), `census-${leak.pid}.json`), "heap");
  validate(fileOf(watched(), `heap-${leak.pid}.json`), "heap");
  validate(fileOf(watched(), `stacks-${leak.pid}.json`), "stacks");
  await until(() =>
    said().includes("Captured ledger, census of objects, heap snapshot, stacks to"),
  );
  expect(await stopped(child)).toBe(0);
  expect(watched().artifacts()).toHaveLength(1);
  expect(leak.exitCode).toBeNull();
});

test("growth and a verdict are conditions, and an hour's captures are limited", async () => {
  watched().python(LEAK, "leak");
  const triggers = `[{when: {verdict: "*leak"}, do: [diagnose]}, {when: {growth: 100MiB/h, for: 1min}, do: [stacks]}]`;
  const rule = `{match: {service: "${watched().name}-leak"}, triggers: ${triggers}}`;
  const defaults = "{warm_up: 1s, artifacts: {per_hour: 1}}";
  const { child, said } = watched().watch("--config", watched().policy(defaults, [rule]));
  await until(() => about(watched()) !== null);
  expect(about(watched())?.reason).toBe("the verdict is python-leak");
  const { verdict } = JSON.parse(fileOf(watched(), "diagnosis.json")) as DiagnosisJson;
  expect(verdict.summary).toContain("remember");
  await until(() => said().includes("nothing captured: its RSS grew by"));
  expect(said()).toContain("has reached its limit of captures in an hour (1)");
  expect(await stopped(child)).toBe(0);
});

const LIMIT = 120 * MIB;
const group = makeMemoryGroup(LIMIT);
afterAll(() => removeMemoryGroup(group));

describe.skipIf(group === null)("in a control group with a limit", () => {
  const inGroup = ["sh", "-c", `echo $$ > ${group}/cgroup.procs; exec "$@"`, "sh"];

  test("the last moment of a program that the kernel killed is kept, with its cause", async () => {
    const go = join(watched().folder, "go");
    // Its limit is a few seconds away: it leaks once the agent is there.
    const waits = `import os, time\nwhile not os.path.exists("${go}"): time.sleep(0.05)\n`;
    const leak = watched().python(`${waits}${LEAK}`, "leak", inGroup);
    const { child, said } = watched().watch("--config", watched().policy());
    await until(() => said().includes("recording it with the agent"));
    writeFileSync(go, "");
    await until(() => about(watched())?.lastMoment === true);
    expect(about(watched())).toMatchObject({
      pid: leak.pid,
      reason: expect.stringMatching(/killed by the OOM killer of its control group: limit 120 MiB/),
      files: [
        { name: "recording.tidemark", capture: "recording" },
        { name: "diagnosis.json", capture: "diagnose" },
      ],
    });
    const { verdict } = JSON.parse(fileOf(watched(), "diagnosis.json")) as DiagnosisJson;
    expect(verdict.summary).toContain("remember");
    const recording = join(present(watched().artifacts().at(-1)), "recording.tidemark");
    const { stdout } = await execute([tidemark, "diagnose", recording]);
    expect(stdout).toContain("OOM killer");
    expect(await stopped(child)).toBe(0);
  });

  test("a worker that the kernel killed is a condition, and so is the share of the limit", async () => {
    const go = join(watched().folder, "go");
    // Stays at 93 % of its limit until the file is there.
    const master = `import glob, os, time
if os.fork() == 0:
    kept = []
    usage, = glob.glob("${group}/memory.current") or glob.glob("${group}/memory.usage_in_bytes")
    while True:
        if int(open(usage).read()) < ${Math.round(0.93 * LIMIT)} or os.path.exists("${go}"):
            kept.append(os.urandom(200_000))
        time.sleep(0.02)
while True: time.sleep(0.1)
`;
    watched().python(master, "shop", inGroup);
    watched().python(IDLE, "outside");
    const { child, said } = watched().watch("--config", watched().policy("{warm_up: 1h}"));
    await until(() => said().includes("of its memory limit of 120 MiB is in use. Captured"));
    writeFileSync(go, "");
    await until(() => said().includes("ended when the OOM killer ran"));
    expect(said()).not.toContain(`${watched().name}-outside 7 (process`);
    expect(await stopped(child)).toBe(0);
  });
});

test("a snapshot that would pause the program for too long names the limit and its setting", async () => {
  const { name } = watched();
  watched().python(`kept = [[n] for n in range(300_000)]\n${IDLE}`, "large");
  const { said } = watched().watch(
    "--config",
    watched().policy("{warm_up: 1h, artifacts: {max_pause: 1ms, cpu: 100%}}", [
      `{match: {service: "${name}-large"}, triggers: [{when: {rss: 16MiB}, do: [census, snapshot]}]}`,
    ]),
  );
  await until(() => said().includes("Captured"));
  expect(said()).toMatch(
    /Missing: snapshot: process \d+ .*would be paused for about \d+ ms, and max_pause is 1 ms: raise artifacts.max_pause in the policy/,
  );
});

test("--check reports what the policy means: once for all programs of a rule, and which rule never applies", async () => {
  watched().python(IDLE, "leak");
  watched().python(IDLE, "leak");
  watched().python(IDLE, "outside");
  const { name } = watched();
  const rules = [
    `{match: {service: "${name}-leak"}, agent: {share: 50%, most: 2}, triggers: [{when: {limit: 80%}, do: [ledger]}]}`,
    `{match: {service: "${name}-leak", version: "7"}, triggers: []}`,
  ];
  const path = watched().policy("{agents: 3, triggers: []}", rules);
  const check = () => execute([tidemark, "watch", "--check", "--config", path]);
  let { stdout, status } = await check();
  while (stdout.split(`${name}-leak`).length < 5 || !stdout.includes(`${name}-outside`)) {
    ({ stdout, status } = await check()); // Python is still starting
  }
  expect(status).toBe(0);
  expect(stdout).toContain(`${path} is valid.`);
  expect(stdout).toContain("At most 3 programs have the agent at a time");
  expect(stdout).toContain("the agent for 50 % of them, at most 2 of a service at a time");
  expect(stdout).toContain(
    "Warning: rule 2 never applies, because rule 1 matches all of its programs; put it before rule 1.",
  );
  expect(stdout.split("Warning: ")).toHaveLength(2);
  expect(stdout).toMatch(
    /-leak \(\d+\), \S+-leak \(\d+\): would be captured if 80 % of the memory limit is in use: ledger/,
  );
  expect(stdout.split("would be captured")).toHaveLength(2);
});

test.each([
  [["--to", "nowhere"], /nowhere/],
  [["--to", "http://127.0.0.1:1", "--token-file", "missing.token"], /missing\.token/],
  [["--token-file", "missing.token"], /--token-file has no effect without --to/],
])("--check refuses %j as a start does", async (words, expected) => {
  const { stdout, stderr, status } = await execute([tidemark, "watch", "--check", ...words]);
  expect([status, stdout, stderr]).toEqual([2, "", expect.stringMatching(expected)]);
});

test("a second collector does not use the folder of the first", async () => {
  const { child, said } = watched().watch("--config", watched().policy());
  await until(() => said().includes("watching"));
  const words = ["watch", "--folder", watched().recordingsFolder];
  const { stderr, status } = await execute([tidemark, ...words]);
  expect(status).toBe(2);
  expect(stderr).toContain(`process ${child.pid} already keeps its recordings in`);
  expect(await stopped(child)).toBe(0);
  expect(readdirSync(watched().recordingsFolder)).not.toContain("watch.lock");
  writeFileSync(join(watched().recordingsFolder, "watch.lock"), "1 2\n"); // left by a collector that was killed
  const next = watched().watch("--config", watched().policy());
  await until(() => next.said().includes("watching"));
  expect(await stopped(next.child)).toBe(0);
});
