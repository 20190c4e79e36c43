/**
 * Programs that end while their recorder is stopped: the recording ends with the program, whenever its recorder
 * notices, and a leak stays a leak.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { DiagnosisJson } from "../../src/model/documents/diagnosis_document.js";
import type { Recording } from "../../src/recording/types.js";
import { startCommand } from "../attach/targets.js";
import { execute, open, plainEnvironment, tidemark, until } from "../run.js";
import { type WatchTest, withWatchTest } from "./watched.js";

const watched = withWatchTest();

/** Keeps more and more until the file appears, then ends as `end` says. */
const LEAK = (end: string) => `import os, signal, time
kept = []
def remember():
    kept.append(bytes(30_000))
while not os.path.exists(os.environ["TIDEMARK_TEST_END"]):
    remember()
    time.sleep(0.02)
${end}
`;
const ENDS = {
  segv: "os.kill(os.getpid(), signal.SIGSEGV)",
  kill: "os.kill(os.getpid(), signal.SIGKILL)",
  exit: "os._exit(3)",
} as const;
/** Enough for a verdict. */
const LEAKED_MS = 60_000;
/** In this time LEAK has many samples. */
const SAMPLED_MS = 5_000;
const UNSEEN_MS = 15_000;

interface Unseen {
  /** Since this moment the recorders were stopped. */
  readonly stoppedMs: number;
  /** All programs ended between these two moments. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** Stops the recorders, lets the programs end after a few samples more, and continues the recorders a while later. */
async function endUnseen(
  { folder }: WatchTest,
  programs: readonly number[],
  recorders: readonly number[],
): Promise<Unseen> {
  for (const pid of recorders) {
    process.kill(pid, "SIGSTOP");
  }
  await until(() => recorders.every((pid) => stateOf(pid) === "T"));
  const stoppedMs = Date.now();
  await sleep(SAMPLED_MS);
  const fromMs = Date.now();
  await execute(["touch", join(folder, "end")]);
  await until(() => programs.every((pid) => ["Z", ""].includes(stateOf(pid))));
  const toMs = Date.now();
  await sleep(UNSEEN_MS);
  for (const pid of recorders) {
    process.kill(pid, "SIGCONT");
  }
  return { stoppedMs, fromMs, toMs };
}

/** "" if there is no such process. */
function stateOf(pid: number): string {
  try {
    return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "";
  } catch {
    return "";
  }
}

/** The recording ends with the programs: in this time, which begins after the recorder's last poll. */
function expectEndsIn(
  recording: Recording,
  { fromMs, toMs }: Pick<Unseen, "fromMs" | "toMs">,
): void {
  const ended = recording.end?.timeMs ?? 0;
  // Two clocks may differ by a few milliseconds.
  const last = toMs + 50;
  expect(recording.complete).toBe(true);
  expect(ended).toBeGreaterThanOrEqual(fromMs - 50);
  expect(ended).toBeLessThanOrEqual(last);
  expect(recording.endMs).toBeLessThanOrEqual(last);
  expect(Math.max(...recording.snapshotTimes)).toBeLessThanOrEqual(last);
  for (const { timesMs } of recording.series) {
    expect(timesMs.at(-1) ?? 0).toBeLessThanOrEqual(last);
  }
  for (const { endedMs } of recording.processes) {
    expect(endedMs ?? 0).toBeGreaterThanOrEqual(fromMs - 50);
    expect(endedMs ?? 0).toBeLessThanOrEqual(last);
  }
}

async function verdictOf(path: string): Promise<DiagnosisJson["verdict"]> {
  const { stdout, stderr } = await execute([tidemark, "diagnose", path, "--json"]);
  expect(stdout, stderr).not.toBe("");
  return (JSON.parse(stdout) as DiagnosisJson).verdict;
}

test("watch: with the agent and from outside, the last moment is the program's, and a leak is one", {
  timeout: 300_000,
}, async () => {
  const { folder, name } = watched();
  const words = ["env", `TIDEMARK_TEST_END=${join(folder, "end")}`];
  const all: [service: string, pid: number][] = [];
  for (const [service, end] of Object.entries(ENDS)) {
    all.push([service, present(watched().python(LEAK(end), service, words).pid)]);
  }
  all.push(["outside", present(watched().python(LEAK(ENDS.segv), "outside", words).pid)]);
  const { child, said } = watched().watch(
    "--config",
    watched().policy("{warm_up: 1s, poll: 2s, artifacts: {cpu: 100%}}", [
      `{match: {service: "${name}-outside"}, watch: outside, triggers: []}`,
      `{match: {service: "${name}-*"}, triggers: []}`,
    ]),
  );
  const path = (service: string) => watched().recordingOf(service, service !== "outside");
  await until(() => all.every(([service]) => path(service) !== undefined));
  await sleep(LEAKED_MS);
  const before = said();
  const unseen = await endUnseen(
    watched(),
    all.map(([, pid]) => pid),
    [present(child.pid)],
  );
  for (const [service] of all) {
    await until(() => open(path(service) ?? "").complete);
    expectEndsIn(open(path(service) ?? ""), unseen);
  }
  for (const service of Object.keys(ENDS)) {
    const verdict = await verdictOf(path(service) ?? "");
    expect(verdict.kind, verdict.summary).toBe("python-leak");
  }
  await until(() => said().slice(before.length).includes("Captured"));
  expect(said()).not.toMatch(/no longer grows|more and more slowly/);
});

/** Ends by itself between two polls from outside, and writes the time at which it still ran. */
const BRIEF = `import os, time
time.sleep(20)
with open(os.environ["TIDEMARK_TEST_END"], "w") as file:
    file.write(str(time.time()))
time.sleep(20)
`;

test.runIf(process.getuid?.() === 0)(
  "watch without the kernel's events: a program that ended between two polls lived until a scan last saw it",
  async () => {
    const { folder, name, children, recordingsFolder } = watched();
    const words = ["env", `TIDEMARK_TEST_END=${join(folder, "end")}`];
    const pid = present(watched().python(BRIEF, "brief", words).pid);
    const policy = watched().policy("{poll: 10min}", [
      `{match: {service: "${name}-*"}, watch: outside, triggers: []}`,
    ]);
    const child = spawn(
      "unshare",
      ["-n", tidemark, "watch", "--folder", recordingsFolder, "--config", policy],
      { env: plainEnvironment(folder), stdio: "ignore", detached: true },
    );
    children.push(child);
    await until(() => stateOf(pid) === "Z" || stateOf(pid) === "");
    const endedMs = Date.now();
    await until(() => open(watched().recordingOf("brief", false) ?? "").complete);
    const ranMs = Number(readFileSync(join(folder, "end"), "utf8")) * 1_000;
    const { end } = open(watched().recordingOf("brief", false) ?? "");
    expect(end?.timeMs).toBeGreaterThan(ranMs);
    expect(end?.timeMs).toBeLessThanOrEqual(endedMs);
  },
);

test("attach: the recording ends with the program", async () => {
  const { folder } = watched();
  const words = ["env", `TIDEMARK_TEST_END=${join(folder, "end")}`];
  const pid = present(watched().python(LEAK(ENDS.kill), "attached", words).pid);
  const path = join(folder, "attach.tidemark");
  const recorder = await startCommand(
    [tidemark, "attach", String(pid), "--for", "10min", "-o", path],
    {},
    "recording process",
  );
  await until(() => open(path).snapshots.length > 2);
  const unseen = await endUnseen(watched(), [pid], [open(path).meta.recorder.pid]);
  await recorder.ended();
  // Nothing reported the end: the last sample of the agent is the last that is known.
  expectEndsIn(open(path), { ...unseen, fromMs: unseen.stoppedMs });
});
