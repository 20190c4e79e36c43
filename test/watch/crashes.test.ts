/** The last moment of real programs that crash: by signals of their own errors, exceptions, in a worker, with and without events. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ArtifactJson } from "../../src/model/documents/artifact_document.js";
import { validate } from "../recorded_app.js";
import { execute, open, plainEnvironment, tidemark, until } from "../run.js";
import { stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();

/** Allocates for a while, then ends. */
const ENDING = (end: string) => `import os, signal, sys, time, ctypes
kept = []
def remember():
    kept.append(os.urandom(200_000))
begun = time.monotonic()
while not os.path.exists(os.environ["TIDEMARK_TEST_END"]):
    remember()
    time.sleep(0.02)
${end}
`;
/** A master whose second worker crashes. */
const MASTER = `import os, signal, time
for number in range(2):
    if os.fork() == 0:
        while not (number == 1 and os.path.exists(os.environ["TIDEMARK_TEST_END"])):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGSEGV)
while True: time.sleep(0.1)
`;
const ENDS = {
  segv: ["ctypes.string_at(8)", /crashed with SIGSEGV/],
  abort: ["os.abort()", /crashed with SIGABRT/],
  bus: ["os.kill(os.getpid(), signal.SIGBUS)", /crashed with SIGBUS/],
  raised: ["raise ValueError('an exception that nothing catches')", /exit code 1: as after an exc/],
} as const;

function about(path: string): ArtifactJson {
  const text = readFileSync(join(path, "about.json"), "utf8");
  validate(text, "artifact");
  return JSON.parse(text);
}

test("programs that crash leave their last profile, the diagnosis and the cause; an orderly end leaves none", async () => {
  const { folder, name } = watched();
  const end = join(folder, "end");
  const words = ["env", `TIDEMARK_TEST_END=${end}`];
  for (const [service, [code]] of Object.entries(ENDS)) {
    watched().python(ENDING(code), service, words);
  }
  watched().python(ENDING("sys.exit(0)"), "orderly", words);
  watched().python(MASTER, "master", words);
  const none = "triggers: []";
  const { child, said } = watched().watch(
    "--config",
    watched().policy("{warm_up: 1s, artifacts: {cpu: 100%}}", [
      `{match: {service: "${name}-*"}, ${none}}`,
    ]),
  );
  const services = [...Object.keys(ENDS), "orderly"];
  await until(() =>
    services.every((service) => watched().recordingOf(service, true) !== undefined),
  );
  await until(() => watched().recordingOf("master", true) !== undefined);
  await execute(["touch", end]);
  const wanted = Object.keys(ENDS).length + 1;
  await until(() => said().split("Captured its recording, its diagnosis").length > wanted);
  for (const [service, [, reason]] of Object.entries(ENDS)) {
    const path =
      watched()
        .artifacts()
        .find((each) => each.includes(`-${service}-`)) ?? "";
    expect(about(path)).toMatchObject({ lastMoment: true, problems: [] });
    expect(about(path).reason).toMatch(reason);
    const recording = open(join(path, "recording.tidemark"));
    expect(recording.complete).toBe(true);
    expect(recording.snapshots.length).toBeGreaterThan(0);
    const exported = await execute([
      ...[tidemark, "export", join(path, "recording.tidemark")],
      ...["--format", "folded", "-o", "-"],
    ]);
    expect(exported.stdout, exported.stderr).toContain("remember");
  }
  const master =
    watched()
      .artifacts()
      .find((each) => each.includes("-master-")) ?? "";
  expect(about(master).reason).toMatch(/^A worker crashed. Process \d+ crashed with SIGSEGV/);
  expect(open(join(master, "recording.tidemark")).complete).toBe(false);
  expect(
    watched()
      .artifacts()
      .some((each) => each.includes("-orderly-")),
  ).toBe(false);
  expect(await stopped(child)).toBe(0);
});

test.runIf(process.getuid?.() === 0)(
  "without events, no end is a crash: SIGTERM without a handler looks the same",
  async () => {
    const { folder, name, children, recordingsFolder } = watched();
    const words = ["env", `TIDEMARK_TEST_END=${join(folder, "end")}`];
    watched().python(ENDING("os.kill(os.getpid(), signal.SIGTERM)"), "stopped", words);
    watched().python(ENDING("os._exit(3)"), "abrupt", words);
    const policy = watched().policy("{warm_up: 1s}", [
      `{match: {service: "${name}-*"}, triggers: []}`,
    ]);
    const command = [tidemark, "watch", "--folder", recordingsFolder, "--config", policy];
    const child = spawn("unshare", ["-n", ...command], {
      env: plainEnvironment(folder),
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    children.push(child);
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    for (const service of ["stopped", "abrupt"]) {
      await until(() => watched().recordingOf(service, true) !== undefined);
    }
    expect(said).toContain(
      "how a program ended is not known: the kernel's process events are unavai",
    );
    await execute(["touch", join(folder, "end")]);
    for (const service of ["stopped", "abrupt"]) {
      await until(() => open(watched().recordingOf(service, true) ?? "").complete);
    }
    await sleep(5_000); // a capture would have begun at the next scan
    expect(watched().artifacts()).toEqual([]);
    expect(await stopped(child)).toBe(0);
  },
);
