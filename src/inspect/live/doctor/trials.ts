/** Tests on real programs: one is recorded, and another is paused and read. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GUARD_PATH, PROGRAM_PATH } from "../../../linux/installation.js";
import { formatCount, formatMilliseconds } from "../../../model/base/numbers.js";
import type { Millis } from "../../../model/base/units.js";
import type { DoctorCheckJson } from "../../../model/documents/doctor_document.js";
import type { StacksJson } from "../../../model/documents/stacks_document.js";
import { openRecording } from "../../../record/index.js";
import { limited, missing, wordsOf, works } from "./check.js";

const PATIENCE_MS: Millis = 60_000;
const RECORDED = "import time; kept = [bytearray(1 << 16) for _ in range(400)]; time.sleep(0.2)";
/** It ends when its input closes, so it also ends if its parent is killed. */
const WAITING = "import sys; sys.stdout.write('ready'); sys.stdout.flush(); sys.stdin.read()";

/** @param python the command that starts Python */
export async function trialChecks(python: string): Promise<DoctorCheckJson[]> {
  return [await recordProgram(python), await readProcess(python)];
}

async function recordProgram(python: string): Promise<DoctorCheckJson> {
  const area = "installation";
  const shortfall = (remedy: string) => ({ effect: "run cannot record a program", remedy });
  const folder = mkdtempSync(join(tmpdir(), "tidemark-doctor-"));
  const path = join(folder, "trial.tidemark");
  try {
    const words = ["run", "--quiet", "-o", path, "--", python, "-c", RECORDED];
    const { status, stderr } = await outcomeOf(
      spawn(GUARD_PATH, ["host", "--", process.execPath, PROGRAM_PATH, ...words], {
        stdio: ["ignore", "ignore", "pipe"],
      }),
    );
    if (status !== 0) {
      return missing(area, "recording", firstLine(stderr) || `ended with ${status}`, shortfall(""));
    }
    const { snapshots, processes } = openRecording(path);
    const samples = snapshots.at(-1)?.agent.samples ?? 0;
    const version = processes[0]?.python ?? "";
    return samples > 0
      ? works(area, "recording", `Python ${version} was recorded, ${formatCount(samples)} samples`)
      : missing(
          area,
          "recording",
          firstLine(stderr) || "the program ran, but its agent took no sample",
          shortfall("see the notes of: tidemark run --quiet ..."),
        );
  } catch (error) {
    const { found, remedy } = wordsOf(error);
    return missing(area, "recording", found, shortfall(remedy));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The reader is not an ancestor of the program, so its permissions apply to any process of this user. */
async function readProcess(python: string): Promise<DoctorCheckJson> {
  const area = "permissions";
  const target = spawn(python, ["-c", WAITING], { stdio: ["pipe", "pipe", "ignore"] });
  const ended = new Promise((resolve) => target.once("close", resolve).once("error", resolve));
  try {
    await Promise.race([once(target.stdout, "data"), ended]);
    const words = [PROGRAM_PATH, "stacks", String(target.pid), "--json"];
    const { status, stdout, stderr } = await outcomeOf(
      spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] }),
    );
    if (status === 0) {
      const { pauseMs } = JSON.parse(stdout) as StacksJson;
      return works(
        area,
        "this user's processes",
        `another process was read, paused for ${formatMilliseconds(pauseMs)}`,
      );
    }
    const [found = "", ...next] = firstLine(stderr).split("; ");
    const shortfall = {
      effect: "attach, heap, ledger and stacks of a running program",
      remedy: next.join("; "),
    };
    return status === 3
      ? missing(area, "this user's processes", found, shortfall)
      : limited(area, "this user's processes", found, shortfall);
  } finally {
    target.kill("SIGKILL");
    await ended;
  }
}

interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A trial that hangs is killed and reported. */
function outcomeOf(child: ChildProcess): Promise<Outcome> {
  return new Promise((resolve) => {
    let [stdout, stderr] = ["", ""];
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const timer = setTimeout(() => {
      stderr = `no answer within ${PATIENCE_MS / 1000} s`;
      child.kill("SIGKILL");
    }, PATIENCE_MS);
    const end = (status: number | null) => {
      clearTimeout(timer);
      resolve({ status, stdout, stderr });
    };
    child.once("error", (error) => {
      stderr = error.message;
      end(null);
    });
    child.once("close", end);
  });
}

/** Without "tidemark:" and the error's id. */
function firstLine(stderr: string): string {
  const line = stderr.trim().split("\n")[0] ?? "";
  return line.replace(/^tidemark(?:-guard)?: /, "").replace(/^TM-E\d+ /, "");
}
