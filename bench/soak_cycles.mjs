/**
 * Attach and detach cycles on a service under load, next to a twin that is never attached to. In every tenth
 * cycle the recorder is killed. Used by `npm run bench -- soak` and, with few cycles, by the tests.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../dist/model/base/free_port.fixture.js";
import { attachAndRecord, detachAgent } from "../dist/record/index.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "../dist");
/** Caches fill until this cycle; after it, memory must not grow. */
const WARM_UP = 5;
const ATTACHED_MS = 60;

/** @param {string[]} command @param {Record<string, string>} env */
async function serve(command, env) {
  const port = await freePort();
  const server = spawn(command[0] ?? "", [...command.slice(1), String(port)], {
    stdio: "ignore",
    env: { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1", ...env },
  });
  const load = spawn("python3", [join(here, "load_until.py"), String(port)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let said = "";
  load.stdout.setEncoding("utf8").on("data", (text) => (said += text));
  while (!said.includes("up")) {
    if (server.exitCode !== null || load.exitCode !== null) {
      throw new Error("the service did not start");
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    pid: /** @type {number} */ (server.pid),
    alive: () => server.exitCode === null && server.signalCode === null,
    /** @returns {Promise<{requests: number, failed: number, p50Ms: number, p99Ms: number, maxMs: number}>} */
    async finish() {
      load.stdin.end();
      if (load.exitCode === null) {
        await once(load, "close");
      }
      server.kill("SIGTERM");
      return JSON.parse(said.split("\n")[1] ?? "");
    },
    kill() {
      load.kill("SIGKILL");
      server.kill("SIGKILL");
    },
  };
}

/** @param {number} pid */
function belongings(pid) {
  const maps = readFileSync(`/proc/${pid}/maps`, "utf8");
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    mappings: maps.split("\n").length,
    agentMappings: maps.split("\n").filter((line) => /tidemark[^/]*\.so/.test(line)).length,
    rssBytes: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024,
  };
}

/** @param {number} pid @param {string} path */
async function killRecorder(pid, path) {
  const recorder = spawn(
    process.execPath,
    [join(dist, "program/main.js"), "attach", String(pid), "--for", "10min", "-f", "-o", path],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  recorder.stderr.setEncoding("utf8").on("data", (text) => (said += text));
  while (!said.includes("recording process")) {
    if (recorder.exitCode !== null) {
      throw new Error(said);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  recorder.kill("SIGKILL");
  await once(recorder, "close");
  await detachAgent(pid, { waitMs: 60_000 });
}

/**
 * @param {{command: string[], env?: Record<string, string>, cycles: number, tell?: (cycle: number) => void}} options
 *   `command` serves at the port that follows it
 */
export async function soak({ command, env = {}, cycles, tell }) {
  const scratch = mkdtempSync(join(tmpdir(), "tidemark-soak-"));
  const path = join(scratch, "soak.tidemark");
  const watched = await serve(command, env);
  const twin = await serve(command, env);
  /** @type {number[]} */
  const attachMs = [];
  /** @type {number[]} */
  const pauses = [];
  let before = belongings(watched.pid);
  const twinBefore = belongings(twin.pid);
  let killed = 0;
  try {
    for (let cycle = 0; cycle < cycles; cycle++) {
      if (cycle === Math.min(WARM_UP, cycles - 1)) {
        before = belongings(watched.pid);
      }
      if (cycle % 10 === 9) {
        await killRecorder(watched.pid, path);
        killed++;
      } else {
        const begun = performance.now();
        const result = await attachAndRecord({
          pid: watched.pid,
          recordingPath: path,
          libraryPath: join(dist, "native/libtidemark.so"),
          waitMs: 60_000,
          enough: (/** @type {number} */ elapsed) => elapsed > ATTACHED_MS,
          onRecording: () => attachMs.push(performance.now() - begun),
        });
        pauses.push(result.attachPauseMs, result.detachPauseMs);
      }
      if (!watched.alive()) {
        throw new Error(`the service died in cycle ${cycle}`);
      }
      tell?.(cycle + 1);
    }
    const after = belongings(watched.pid);
    const twinAfter = belongings(twin.pid);
    const [loaded, alone] = await Promise.all([watched.finish(), twin.finish()]);
    return {
      ...{ cycles, killed, before, after, attachMs, pauses, loaded, alone },
      /** How much more the attached service grew than its twin, which handles the same load. */
      rssGainBytes: after.rssBytes - before.rssBytes - (twinAfter.rssBytes - twinBefore.rssBytes),
    };
  } finally {
    watched.kill();
    twin.kill();
    rmSync(scratch, { recursive: true, force: true });
  }
}
