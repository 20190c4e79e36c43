/** After a recorder is killed, the next command does not name it, but names a command to run, which works. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { expectSpeaksClearly } from "../behaviour.js";
import { anyInterpreter } from "../environment.js";
import { execute, tidemark, until } from "../run.js";
import { killAll, removeScratch, scratch, start, startCommand } from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);

const python = anyInterpreter();
const SERVICE = `
import os, time
kept = []
print("up", os.getpid(), flush=True)
while True:
    kept.append(bytearray(50_000))
    if len(kept) > 300: del kept[:]
    time.sleep(0.001)`;

const cli = (...words: string[]) => execute([tidemark, ...words], { cwd: scratch });

/** Runs the command that the error line advises, then the original command again. */
async function expectRecovers(pid: number, dead: number): Promise<void> {
  const refused = await cli("attach", String(pid), "--for", "1s");
  expect(refused.status, refused.stderr).toBe(4);
  expect(refused.stderr, refused.stderr).toMatch(
    /^tidemark: TM-E037 the recorder of process \d+ has ended.*\n$/,
  );
  expect(refused.stderr).not.toContain(String(dead));
  const doctor = await cli("doctor", "--pid", String(pid));
  expect(doctor.stdout).toMatch(/missing +recorder +its recorder has ended/);
  const live = await cli("live", String(pid), "--json");
  expect(live.stderr).toMatch(/the recorder of process \d+ has ended/);
  const [, advised = ""] = /: tidemark (detach \d+)\n$/.exec(refused.stderr) ?? [];
  const detached = await cli(...advised.split(" "));
  expect(detached.status, detached.stderr).toBe(0);
  expect(detached.stdout).toContain("its agent has stopped");
  const second = await cli("detach", String(pid));
  expect(second.stdout).toContain("nothing was left to remove");
  const again = await cli("attach", String(pid), "--for", "1s");
  expect(again.status, again.stderr).toBe(0);
  expectSpeaksClearly(again.stdout + again.stderr);
}

test("of 'attach', whose recording another program reads", async () => {
  const target = await start(python, SERVICE);
  const path = join(scratch, "attach.tidemark");
  const recorder = await startCommand(
    ["sh", "-c", `echo up; exec "${tidemark}" attach ${target.pid} --for 10min -o "${path}"`],
    {},
  );
  await recorder.said("recording process");
  const alive = await cli("attach", String(target.pid), "--for", "1s");
  expect(alive.stderr).toContain(`already being recorded by process ${recorder.pid}, to ${path}`);
  const early = await cli("detach", String(target.pid));
  expect([early.status, early.stdout]).toEqual([4, ""]);
  expect(early.stderr).toMatch(
    new RegExp(`is being recorded by process ${recorder.pid}, .* kill -INT ${recorder.pid}\n$`),
  );
  const reader = spawn("tail", ["-f", path], { stdio: "ignore" });
  recorder.child.kill("SIGKILL");
  await recorder.ended();
  await expectRecovers(target.pid, recorder.pid);
  reader.kill();
});

test("of 'run', whose guard keeps running", async () => {
  const path = join(scratch, "run.tidemark");
  const target = await startCommand([
    tidemark,
    "run",
    "-o",
    path,
    "--",
    python.path,
    "-u",
    "-c",
    SERVICE,
  ]);
  await until(() => /up \d+/.test(target.output()));
  const pid = Number(/up (\d+)/.exec(target.output())?.[1]);
  await until(() => existsSync(path) && readFileSync(path).length > 2_000);
  const recorder = recorderBelow(target.pid);
  const early = await cli("detach", String(pid));
  expect(early.stderr).toMatch(/by process \d+, .*tidemark run records until the program ends\n$/);
  process.kill(recorder, "SIGKILL");
  await until(() => !existsSync(`/proc/${recorder}/exe`));
  await expectRecovers(pid, recorder);
});

/** The guard's child that runs Node. */
function recorderBelow(guard: number): number {
  const children = readFileSync(`/proc/${guard}/task/${guard}/children`, "utf8").trim().split(" ");
  const recorder = children.find((child) =>
    readFileSync(`/proc/${child}/cmdline`, "utf8").split("\0")[0]?.endsWith("/node"),
  );
  return Number(recorder);
}
