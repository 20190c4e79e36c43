/**
 * `gpu PID`, `run --gpu` and `attach --gpu` on this machine, which has no device: with torch itself, which
 * then uses none, and with a stand-in for torch (stand_in_torch.py lists what is real and what is not).
 */

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { itemAt } from "../../src/model/base/columns.js";
import { present } from "../../src/model/base/present.js";
import type { GpuProcessJson } from "../../src/model/documents/gpu/gpu_process_document.js";
import { openRecording } from "../../src/record/index.js";
import { anyInterpreter, environment } from "../environment.js";
import { startPython, type Waiting } from "../python_program.js";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, repository, scratch, tidemark } from "../run.js";
import { pickle } from "./pickle_writer.mjs";
import { snapshotOf } from "./snapshot_file.mjs";
import { runOut } from "./workload.mjs";

afterAll(removeScratch);

const MIB = 2 ** 20;
const python = anyInterpreter();

/** A program on the stand-in, which it knows as `torch`. */
function standIn(folder: string, program: string): Promise<Waiting> {
  return startPython(python, `${PRELUDE}${program}`, environmentOf(folder));
}

const PRELUDE = `
import os, sys
from stand_in_torch import *
device = Device(0, 10_000 * MIB, [
    [(1000 * MIB, "active_allocated"), (200 * MIB, "inactive"), (800 * MIB, "active_allocated")],
    [(500 * MIB, "inactive")],
])
torch = StandIn([device], os.environ["STAND_IN_SNAPSHOT"])
`;

function environmentOf(folder: string): Record<string, string> {
  const snapshot = join(folder, "simulated.pickle");
  const allocator = runOut();
  writeFileSync(snapshot, pickle(snapshotOf([allocator], "plain")));
  return {
    PYTHONPATH: join(repository, "test/gpu"),
    PYTHONDONTWRITEBYTECODE: "1",
    STAND_IN_FOLDER: folder,
    STAND_IN_SNAPSHOT: snapshot,
  };
}

async function gpuOf(pid: number): Promise<GpuProcessJson> {
  const { status, stdout, stderr } = await execute([tidemark, "gpu", String(pid), "--json"]);
  expect([status, stderr]).toEqual([0, ""]);
  return validate(stdout, "gpu_process") as unknown as GpuProcessJson;
}

test.skipIf(environment.torchPython === null)(
  "torch itself without a device: loaded, unused, and left so",
  async () => {
    const path = present(environment.torchPython);
    const program = await startPython(
      { path },
      "import torch, threading\nsay({})\nsay([torch.cuda.is_initialized(), threading.active_count(), [m for m in sys.modules if 'tidemark' in m]])\n",
    );
    try {
      const document = await gpuOf(program.pid);
      expect(document.devices).toEqual([]);
      expect(document.frameworks).toMatchObject([{ name: "torch", state: "unused" }]);
      expect(document.limits.join()).toContain("has not used a device yet");
      await refusesPage(program.pid, /torch 2\S+ is loaded but has not used a device yet; try/);
      expect(await program.go()).toEqual([false, 1, []]);
    } finally {
      await program.stop();
    }
  },
);

test("a program without any of the three, and an invalid target", async () => {
  const program = await startPython(python, "say({})");
  try {
    const document = await gpuOf(program.pid);
    expect([document.frameworks, document.limits]).toEqual([
      [],
      ["the program has not loaded torch, JAX or TensorFlow"],
    ]);
    expect((await execute([tidemark, "gpu", String(program.pid), "-o", "x.pb.gz"])).status).toBe(2);
    await refusesPage(program.pid, /it has not loaded torch; try/);
  } finally {
    await program.stop();
  }
  const gone = await execute([tidemark, "gpu", String(program.pid)]);
  expect([gone.status, /TM-E020/.test(gone.stderr)], gone.stderr).toEqual([4, true]);
});

/** One line gives the reason for the missing page; nothing is left behind, here or in the program's folder. */
async function refusesPage(pid: number, why: RegExp): Promise<void> {
  const page = join(scratch(), "now.html");
  const { status, stderr } = await execute([tidemark, "gpu", String(pid), "-o", page, "--quiet"]);
  expect([status, stderr.split("\n").length, existsSync(page)], stderr).toEqual([4, 2, false]);
  expect(stderr).toMatch(/TM-E077/);
  expect(stderr).toMatch(why);
  expect(filesOf(pid)).toEqual([]);
}

const filesOf = (pid: number) =>
  readdirSync("/tmp").filter((name) => name.startsWith(`.tidemark-${pid}-`));

test("gpu PID -o with the stand-in: the page of a snapshot that the program writes", async () => {
  const folder = scratch();
  const program = await standIn(
    folder,
    "import threading\ntorch.begin()\nsay({})\nsay([threading.active_count(), torch.history])",
  );
  const page = join(folder, "now.html");
  const words = [tidemark, "gpu", String(program.pid), "-o", page];
  try {
    const { status, stdout, stderr } = await execute([...words, "--json"]);
    expect([status, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({ format: "html", files: [{ file: page }] });
    const written = join(folder, "file.html");
    const file = join(folder, "simulated.pickle");
    expect((await execute([tidemark, "gpu", file, "-o", written])).status).toBe(0);
    const documentOf = (path: string) =>
      /id="tidemark-document">([^<]+)/.exec(readFileSync(path, "utf8"))?.[1] ?? "";
    // The titles differ, and so do the bytes, but the columns are the same.
    expect(documentOf(page).length / documentOf(written).length).toBeCloseTo(1, 1);
    expect(readFileSync(page, "utf8")).toContain(
      `<title>process ${program.pid} - Tidemark</title>`,
    );
    expect(filesOf(program.pid)).toEqual([]);
    expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
    rmSync(file);
    await refusesPage(program.pid, /FileNotFoundError: .*simulated.pickle/);
    // No thread remains, and the program's own history setting is unchanged.
    expect(await program.go()).toEqual([1, []]);
  } finally {
    await program.stop();
  }
});

test("gpu PID -o of an allocator without history reports that", async () => {
  const folder = scratch();
  const program = await standIn(folder, "torch.begin()\nsay({})");
  writeFileSync(join(folder, "simulated.pickle"), pickle(withoutHistory()));
  try {
    const page = join(folder, "now.html");
    const { status, stderr } = await execute([tidemark, "gpu", String(program.pid), "-o", page]);
    expect([status, existsSync(page)], stderr).toEqual([0, true]);
    expect(stderr).toContain(
      `so the page shows only this moment; tidemark attach ${program.pid} --gpu`,
    );
  } finally {
    await program.stop();
  }
});

function withoutHistory() {
  const snapshot = snapshotOf([runOut()], "plain");
  return { ...snapshot, device_traces: [[]] };
}

test("gpu PID with the stand-in: totals, waste, fragmentation; cache is not fragmentation", async () => {
  const program = await standIn(scratch(), "torch.begin()\nsay({})");
  try {
    const document = await gpuOf(program.pid);
    const [device] = document.devices;
    expect(device).toMatchObject({
      framework: "torch",
      totalBytes: 10_000 * MIB,
      reservedBytes: 2500 * MIB,
      allocatedBytes: 1800 * MIB,
      splitBytes: 200 * MIB,
      cachedBytes: 500 * MIB,
      largestFreeBytes: 500 * MIB,
      inactiveSplitBlocks: 3,
      fragmentationRatio: 0.08,
    });
    expect(document.pinned).toEqual({ ownedBytes: 64 * MIB, activeBytes: 48 * MIB });
    expect(document.unheldBytes).toBe(1800 * MIB);
    // No CUDA runtime is loaded there, so no thread can be made safe to ask the driver.
    expect([device?.freeBytes, device?.othersBytes]).toEqual([null, null]);
    const { stdout } = await execute([tidemark, "gpu", String(program.pid)]);
    expect(stdout).toMatch(/Reserved +2\.44 GiB/);
    expect(stdout).toMatch(/split 8 % of the reserved memory, 0 allocation retries/);
  } finally {
    await program.stop();
  }
});

const RANK = `
import os, time
say = print
def rank(name, runs_out):
    torch.begin()
    assert wait_for(lambda: torch.recording), "the history was not switched on"
    # One runs out once the other can answer.
    folder = os.environ["STAND_IN_OUTPUT"]
    open(os.path.join(folder, "ready-" + name), "w").close()
    assert wait_for(lambda: sum(file.startswith("ready-") for file in os.listdir(folder)) == 2)
    for step in range(6):
        device.add(20 * MIB)
        time.sleep(0.5)
    if runs_out:
        torch.run_out()
    wait_for(lambda: any(f"-{os.getpid()}-" in file for file in os.listdir(folder)), 60)
    time.sleep(1.5)
`;

test("run --gpu with the stand-in: heartbeats, the snapshot before the error, and the other rank's", async () => {
  const folder = scratch();
  const recording = join(folder, "ranks.tidemark");
  const program = join(folder, "ranks.py");
  writeFileSync(
    program,
    `${PRELUDE}${RANK}
import subprocess
if len(sys.argv) == 1:
    other = subprocess.Popen([sys.executable, sys.argv[0], "second"])
    rank("first", True)
    sys.exit(other.wait())
rank("second", False)
`,
  );
  const { status, stderr } = await execute(
    [tidemark, "run", "--gpu", "-o", recording, "--", python.path, program],
    { env: { ...environmentOf(folder), STAND_IN_OUTPUT: folder } },
  );
  expect(status, stderr).toBe(0);
  const { processes, series, events } = openRecording(recording);
  const ranks = processes.filter(({ command }) => command.join().includes("ranks.py"));
  expect(ranks).toHaveLength(2);
  for (const { pid } of ranks) {
    const column = series
      .findLast((one) => one.pid === pid)
      ?.values.get("gpu.0.allocatedBytes")
      ?.filter((value) => !Number.isNaN(value));
    expect(column?.length, stderr).toBeGreaterThan(2);
    expect(column?.at(-1)).toBeGreaterThan(1850 * MIB);
  }
  const ratio = series.flatMap((one) => [...(one.values.get("gpu.0.fragmentationRatio") ?? [])]);
  expect(ratio.find((value) => value > 0)).toBeCloseTo(200 / 2500, 1);
  const written = events.filter(({ kind }) => kind === "gpu-snapshot");
  expect(written.map(({ detail }) => detail.split(":")[0]).sort()).toEqual(["oom", "peer"]);
  const files = readdirSync(folder).filter((name) =>
    /^tidemark-\d+-(oom|peer)-1\.pickle$/.test(name),
  );
  expect(files).toHaveLength(2);
  // The snapshot is next to the recording and determines its verdict.
  const verdict = await execute([tidemark, "diagnose", recording, "--json"]);
  expect(JSON.parse(verdict.stdout).verdict.kind, verdict.stderr).toBe("gpu-fragmentation");
  const shown = await execute([tidemark, "gpu", join(folder, itemAt(files, 0)), "--json"]);
  expect(JSON.parse(shown.stdout).schema).toBe("tidemark.gpu/1");
  expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
});

test("two run --gpu of one job, as on two hosts with a shared folder: one's snapshot is answered", async () => {
  const folder = scratch();
  const program = join(folder, "rank.py");
  writeFileSync(
    program,
    `${PRELUDE}${RANK}
rank(os.environ["RANK"], os.environ["RANK"] == "5")
`,
  );
  const run = (rank: string) => {
    const recording = join(folder, `rank${rank}.tidemark`);
    const job = { MASTER_ADDR: "node-1", MASTER_PORT: "29500", RANK: rank };
    return execute([tidemark, "run", "--gpu", "-o", recording, "--", python.path, program], {
      env: { ...environmentOf(folder), ...job, STAND_IN_OUTPUT: folder },
    });
  };
  const done = await Promise.all(["1", "5"].map(run));
  expect(
    done.map(({ status }) => status),
    done.map(({ stderr }) => stderr).join(),
  ).toEqual([0, 0]);
  const names = readdirSync(folder).filter((name) => name.endsWith("-1.pickle"));
  expect(
    names.map((name) => name.replace(/^tidemark-[0-9a-f]{6}-|\d+-(?=\w+-1)/g, "")).sort(),
  ).toEqual(["rank1-peer-1.pickle", "rank5-oom-1.pickle"]);
  const { events } = openRecording(join(folder, "rank1.tidemark"));
  const written = events.filter(({ kind }) => kind === "gpu-snapshot");
  expect(written.map(({ detail }) => detail.split(":")[0])).toEqual(["peer"]);
});

test("attach --gpu with the stand-in: everything that it switched on is switched off again", async () => {
  const folder = scratch();
  const program = await standIn(
    folder,
    `
torch.begin()
import threading
def work():
    while True:
        time.sleep(0.01)
threading.Thread(target=work, daemon=True).start()
say({})
wait_for(lambda: torch.recording)
say(torch.history)
wait_for(lambda: not torch.recording)
torch.run_out()
say([torch.history[-1], os.listdir(os.environ["STAND_IN_FOLDER"]), threading.active_count()])
`,
  );
  try {
    const recording = join(folder, "attached.tidemark");
    let interrupt = () => {};
    const attached = execute(
      [tidemark, "attach", String(program.pid), "--gpu", "--for", "10min", "-o", recording],
      {
        started: (child) => {
          interrupt = () => child.kill("SIGINT");
        },
      },
    );
    expect(await program.go()).toEqual([["all", "python", 100_000]]);
    // A heartbeat in the recording, and then the end.
    const isReported = () => {
      try {
        return openRecording(recording).series[0]?.values.has("gpu.0.reservedBytes") === true;
      } catch {
        return false; // nothing complete is written yet
      }
    };
    await expect.poll(isReported, { interval: 200 }).toBe(true);
    const left = program.go();
    interrupt();
    const { status, stderr } = await attached;
    expect(status, stderr).toBe(0);
    const [last, files, threads] = (await left) as unknown as [unknown[], string[], number];
    expect(last).toEqual([null, "", 0]);
    expect(files.filter((name) => name.startsWith("tidemark-"))).toEqual([]);
    expect(threads).toBe(2);
    const { series } = openRecording(recording);
    expect(
      series[0]?.values.get("gpu.0.reservedBytes")?.some((value) => value === 2500 * MIB),
    ).toBe(true);
  } finally {
    await program.stop();
  }
});

test("invalid shares and option combinations", async () => {
  for (const words of [
    ["--gpu-dump-at", "1.5"],
    ["--gpu-budget", "1GiB"],
  ]) {
    const { status, stderr } = await execute([tidemark, "run", ...words, "--", "true"]);
    expect([status, stderr.split("\n").length], stderr).toEqual([2, 2]);
  }
});
