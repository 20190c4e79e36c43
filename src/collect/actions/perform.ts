/** Carries out one action on one program. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readStat } from "../../linux/index.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type { ActionJson, PodJson } from "../../model/documents/action_document.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import {
  collectGarbage,
  emptyDeviceCache,
  type Relief,
  runPressureHooks,
  trimAllocator,
} from "../../record/index.js";
import { postJson } from "../../recording/sender/post_json.js";
import { rssOfProcess } from "../captures/triggers.js";
import type { AllowedAction } from "../policy/action_form.js";
import type { Program } from "../policy/programs.js";
import { ActionFailed, ActionRefused } from "./action_failed.js";
import type { Leases } from "./leases.js";
import { endProcess, hasEndedAfter, recycleWorker } from "./server_workers.js";

/** How long a program may take to run Python code. */
const WAIT_MS: Millis = 20_000;
/** Processes of a program in which code is run: the largest. */
const MOST_ENTERED = 16;
/** A process below this size has nothing to release. */
const LEAST_BYTES: Bytes = 8 << 20;
const LONGEST_OUTPUT = 2_000;

export interface Performance {
  readonly program: Program;
  readonly action: AllowedAction;
  /** What is known of it so far, for a command or a webhook. */
  readonly record: ActionJson;
  readonly graceMs: Millis;
  readonly until: AbortSignal;
  /** null: there is no server. */
  readonly leases: Leases | null;
  /** Called with what is certain already, in case that the collector ends before the action does. */
  readonly did: (outcome: string) => void;
}

/** @returns what was done, in words. Throws ActionFailed, and ActionRefused if nothing was done. */
export async function perform(performance: Performance): Promise<string> {
  const { program, action, graceMs, until } = performance;
  switch (action.name) {
    case "gc_collect":
      return await inProcesses(performance, async (pid) => ({
        outcome: `${await collectGarbage(pid, { waitMs: WAIT_MS, signal: until })} objects collected`,
      }));
    case "malloc_trim":
      return await inProcesses(performance, async (pid) => {
        await trimAllocator(pid, { waitMs: WAIT_MS, signal: until });
        return { outcome: "malloc_trim(0) called" };
      });
    case "empty_cache":
      return await inProcesses(performance, (pid) =>
        emptyDeviceCache(pid, { waitMs: WAIT_MS, signal: until }),
      );
    case "on_pressure":
      return await inProcesses(performance, (pid) =>
        runPressureHooks(pid, { waitMs: WAIT_MS, signal: until }),
      );
    case "recycle_worker":
      return await recycleWorker(program.processes, graceMs, until);
    case "restart":
      return await endProcess(program.root, graceMs, until);
    case "evict_pod":
      return await evictPod(performance);
    case "command":
      return await runCommand(action.command, performance);
    case "webhook":
      return await callWebhook(action, performance);
  }
}

/** "" if nothing is missing to have the pod evicted; otherwise the reason. */
export function lackedForEviction(pod: PodJson | undefined, hasServer: boolean): string {
  if (pod === undefined) {
    return "its pod is unknown: that needs names from the API server (podMetadata of the chart), or TIDEMARK_POD_NAME, TIDEMARK_POD_NAMESPACE and TIDEMARK_POD_UID in a sidecar";
  }
  return hasServer ? "" : "pods are evicted by a server: name it with --to or in the policy";
}

async function evictPod({ program, record, ...rest }: Performance): Promise<string> {
  const { leases, graceMs, until, did } = rest;
  const { id, pod } = record;
  if (leases === null || pod === undefined) {
    throw new ActionRefused(lackedForEviction(pod, leases !== null));
  }
  await leases.evict(id, pod);
  did("the pod was evicted");
  return await hasEndedAfter("the eviction of its pod", program.root, graceMs, until);
}

/** In each of the program's processes, one after the other. Throws ActionFailed if it was possible in none. */
async function inProcesses(
  { program, until }: Performance,
  work: (pid: number) => Promise<Relief>,
): Promise<string> {
  const sized = program.processes
    .map(({ pid, startTicks }) => ({ pid, startTicks, bytes: rssOfProcess(pid) }))
    .filter(({ bytes }) => bytes >= LEAST_BYTES)
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, MOST_ENTERED);
  const done: string[] = [];
  const refused: string[] = [];
  let isFinal = true;
  for (const { pid, startTicks } of sized) {
    if (until.aborted) {
      break;
    }
    if (readStat(pid)?.startTicks !== startTicks) {
      continue; // it has ended, and another process may have its pid
    }
    try {
      const relief = await work(pid);
      if ("outcome" in relief) {
        done.push(`process ${pid}: ${relief.outcome}`);
      } else {
        refused.push(relief.refused);
      }
    } catch (error) {
      isFinal = false;
      refused.push(error instanceof TidemarkError ? error.what : reasonOf(error).message);
    }
  }
  if (done.length === 0) {
    throw new ActionFailed(
      refused[0] ?? "no process of the program could be entered",
      isFinal && refused.length > 0,
    );
  }
  return done.join("; ");
}

/** The program's own texts are in the environment only, where no shell reads them. */
async function runCommand(
  command: readonly string[],
  { record, graceMs, until }: Performance,
): Promise<string> {
  const [file = "", ...args] = command;
  const child = spawn(file, args, {
    cwd: "/",
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    env: {
      ...process.env,
      TIDEMARK_ACTION_ID: record.id,
      TIDEMARK_PID: String(record.pid),
      TIDEMARK_SERVICE: textOf(record.service),
      TIDEMARK_VERSION: textOf(record.version),
      TIDEMARK_REASON: textOf(record.reason),
      TIDEMARK_EVIDENCE: record.evidence,
    },
  });
  const exit = once(child, "close");
  exit.catch(() => {}); // it is awaited below
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-LONGEST_OUTPUT);
    });
  }
  const kill = () => {
    try {
      if (child.pid !== undefined) {
        process.kill(-child.pid, "SIGKILL"); // what it started, too
      }
    } catch {
      // All have ended.
    }
  };
  const timer = setTimeout(kill, graceMs);
  until.addEventListener("abort", kill, { once: true });
  try {
    const [code, signal] = (await exit) as [number | null, string | null];
    const last = output.trim().split("\n").at(-1)?.slice(0, 200) ?? "";
    const said = last === "" ? "" : `: ${last}`;
    if (code !== 0) {
      throw new ActionFailed(
        `${file} ${code === null ? `was ended by ${signal}` : `exited with ${code}`}${said}`,
        false,
      );
    }
    return `${file} exited with 0${said}`;
  } catch (error) {
    if (error instanceof ActionFailed) {
      throw error;
    }
    throw new ActionFailed(`${file}: ${reasonOf(error).message}`, true);
  } finally {
    clearTimeout(timer);
    until.removeEventListener("abort", kill);
  }
}

/** Without NUL, which no environment can hold. */
function textOf(text: string): string {
  return text.replaceAll("\0", "").slice(0, 1000);
}

async function callWebhook(
  { url, allowsLocal }: Extract<AllowedAction, { name: "webhook" }>,
  { record, until }: Performance,
): Promise<string> {
  try {
    await postJson(url, record, { secret: "", isBearer: false, allowsLocal, signal: until });
    return "the webhook accepted it";
  } catch (error) {
    throw new ActionFailed(reasonOf(error).message, false);
  }
}
