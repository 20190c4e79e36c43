/**
 * Reports of the OOM killer in the kernel log (mm/oom_kill.c). By kernel version:
 *
 *   4.x   Memory cgroup out of memory: Kill process 91 (python3) score 990 or sacrifice child
 *         Killed process 91 (python3) total-vm:75160kB, anon-rss:65152kB, file-rss:6664kB, shmem-rss:0kB
 *   5.x   oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),...,oom_memcg=/app,task_memcg=/app,task=python3,pid=91,uid=0
 *   6.x   Memory cgroup out of memory: Killed process 91 (python3) total-vm:...kB, anon-rss:...kB, ...
 *   all   memory: usage 65536kB, limit 65536kB, failcnt 293        (4.x: Task in /app killed as a result of limit of /app)
 *         Out of memory: Killed process 91 (python3) ...           where the machine has none left
 */
import { closeSync, constants, openSync, readlinkSync, readSync } from "node:fs";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import { reasonOf } from "../../model/errors/reason.js";

export interface KernelKill {
  readonly pid: Pid;
  /** Time on the kernel's clock since boot. */
  readonly atMs: Millis;
  readonly cause: "cgroup" | "machine";
  /**
   * The kernel's path of the group whose limit was reached; "" if unknown or if the whole machine was out of
   * memory.
   */
  readonly group: string;
  /** The limit of that group; 0 if the log does not contain it. */
  readonly limitBytes: Bytes;
  readonly usedBytes: Bytes;
  readonly rssBytes: Bytes;
}

const RECORD_BYTES = 8_192;
const MOST_RECORDS = 100_000;
/** Inode of the initial pid namespace (PROC_PID_INIT_INO), to which the pids in the log belong. */
const INITIAL_NAMESPACE = "pid:[4026531836]";
/** The log's clock and CLOCK_MONOTONIC differ slightly (printk uses local_clock()). */
const CLOCK_SLACK_MS: Millis = 2_000;

/** Kills since a time of CLOCK_MONOTONIC; null if the log cannot be read or its pids belong to another namespace. */
export function readKernelKills(sinceMs: Millis): KernelKill[] | null {
  try {
    if (readlinkSync("/proc/self/ns/pid") !== INITIAL_NAMESPACE) {
      return null;
    }
  } catch {
    return null;
  }
  const text = readKernelLog();
  return text === null
    ? null
    : kernelKillsOf(text).filter(({ atMs }) => atMs >= sinceMs - CLOCK_SLACK_MS);
}

/** One read returns one record. EPIPE means that records were overwritten; the next read continues after them. */
function readKernelLog(): string | null {
  let descriptor: number;
  try {
    descriptor = openSync("/dev/kmsg", constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  const records: string[] = [];
  const buffer = Buffer.alloc(RECORD_BYTES);
  try {
    for (let count = 0; count < MOST_RECORDS; count++) {
      try {
        const length = readSync(descriptor, buffer, 0, RECORD_BYTES, null);
        if (length === 0) {
          break;
        }
        records.push(buffer.toString("utf8", 0, length));
      } catch (error) {
        const { code } = reasonOf(error);
        if (code !== "EPIPE") {
          return code === "EAGAIN" || records.length > 0 ? records.join("") : null;
        }
      }
    }
  } finally {
    closeSync(descriptor);
  }
  return records.join("");
}

const MEMORY = /^memory: usage (\d+)kB, limit (\d+)kB/;
const GROUP = /(?:oom_memcg=([^,]*),|killed as a result of limit of (\S+))/;
const KILLED = /Killed process (\d+) \(.*?\)/;

/** Records of /dev/kmsg: "priority,sequence,microseconds,flags;text". */
export function kernelKillsOf(log: string): KernelKill[] {
  const kills: KernelKill[] = [];
  const none = { group: "", limitBytes: 0, usedBytes: 0, isGroup: false };
  let report = none;
  for (const line of log.split("\n")) {
    const [, microseconds, text] = /^\d+,\d+,(\d+),[^;]*;(.*)$/.exec(line) ?? [];
    if (text === undefined) {
      continue;
    }
    if (/invoked oom-killer:/.test(text)) {
      report = none;
    }
    const memory = MEMORY.exec(text);
    if (memory) {
      report = {
        ...report,
        usedBytes: Number(memory[1]) * 1024,
        limitBytes: Number(memory[2]) * 1024,
        isGroup: true,
      };
    }
    const group = GROUP.exec(text);
    if (group) {
      report = { ...report, group: group[1] ?? group[2] ?? "", isGroup: true };
    }
    report = /Memory cgroup out of memory|CONSTRAINT_MEMCG/.test(text)
      ? { ...report, isGroup: true }
      : report;
    const killed = KILLED.exec(text);
    if (killed) {
      const { isGroup, ...figures } = report;
      kills.push({
        pid: Number(killed[1]),
        atMs: Number(microseconds) / 1000,
        cause: isGroup ? "cgroup" : "machine",
        ...figures,
        rssBytes: residentOf(text),
      });
    }
  }
  return kills;
}

/** "anon-rss:65152kB, file-rss:6664kB, shmem-rss:0kB": RSS is their sum. */
function residentOf(text: string): Bytes {
  return [...text.matchAll(/(?:anon|file|shmem)-rss:(\d+)kB/g)].reduce(
    (sum, [, kilobytes]) => sum + Number(kilobytes) * 1024,
    0,
  );
}
