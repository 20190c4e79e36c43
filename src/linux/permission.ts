/** Whether this process may look into another: the kernel's own answer, and why. */
import { closeSync, openSync, statSync } from "node:fs";
import type { Pid } from "../model/units.js";
import { readText } from "./files.js";
import { readStatus } from "./process.js";
import { userName } from "./users.js";

export interface AttachAnswer {
  readonly ok: boolean;
  /** Why not; "" where it may. */
  readonly reason: string;
  /** What would help; "" where nothing is needed or nothing helps. */
  readonly remedy: string;
}

const CAP_SYS_PTRACE = 1n << 19n;
const ALLOWED: AttachAnswer = { ok: true, reason: "", remedy: "" };
const AS_ROOT = "run as root (sudo), or give CAP_SYS_PTRACE";

/**
 * Asks the kernel by opening /proc/PID/mem, which makes the check that ptrace makes (uid,
 * dumpable, capabilities, Yama and other security modules; ptrace(2)) and touches nothing.
 */
export function readAttachPermission(pid: Pid): AttachAnswer {
  try {
    closeSync(openSync(`/proc/${pid}/mem`, "r"));
    return ALLOWED;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (code === "ENOENT" || code === "ESRCH") {
      return { ok: false, reason: "the process has ended", remedy: "" };
    }
    return explain(pid, code);
  }
}

function explain(pid: Pid, code: string): AttachAnswer {
  const uid = readStatus(pid)?.uid;
  const capable = hasPtraceCapability();
  if (uid !== undefined && uid !== process.getuid?.() && !capable) {
    return { ok: false, reason: `it belongs to ${userName(uid)}`, remedy: AS_ROOT };
  }
  if (uid !== undefined && ownerOf(pid) !== uid && !capable) {
    return {
      ok: false,
      reason: "it is not dumpable (it changed its uid or asked for it)",
      remedy: AS_ROOT,
    };
  }
  const scope = Number(readText("/proc/sys/kernel/yama/ptrace_scope") ?? "0");
  if (scope === 3) {
    return {
      ok: false,
      reason: "kernel.yama.ptrace_scope is 3: nobody may, until the next boot",
      remedy: "",
    };
  }
  if (scope === 2 && !capable) {
    return { ok: false, reason: "kernel.yama.ptrace_scope is 2", remedy: AS_ROOT };
  }
  if (scope === 1 && !capable) {
    return {
      ok: false,
      reason: "kernel.yama.ptrace_scope is 1: only parents may",
      remedy: `${AS_ROOT}, or: sudo sysctl kernel.yama.ptrace_scope=0`,
    };
  }
  return {
    ok: false,
    reason: `the kernel refuses (${code})`,
    remedy: "a container or security module may hold it back: allow SYS_PTRACE there",
  };
}

/** Files under /proc/PID belong to root where the process is not dumpable (proc(5)). */
function ownerOf(pid: Pid): number | undefined {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return undefined; // gone, or hidden by the mount option hidepid
  }
}

function hasPtraceCapability(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readText("/proc/self/status") ?? "")?.[1];
  return effective !== undefined && (BigInt(`0x${effective}`) & CAP_SYS_PTRACE) !== 0n;
}
