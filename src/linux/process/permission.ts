/** Whether this process may read another one, according to the kernel. permission_reason.ts finds the reason. */
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import type { Pid } from "../../model/base/units.js";
import { notPermitted, processGone, type TidemarkError } from "../../model/errors/errors.js";
import {
  explainByRules,
  explainRefusal,
  type Place,
  type PtraceFacts,
  SYS_PTRACE,
} from "./permission_reason.js";
import { readLink, readText } from "./proc_files.js";
import { readStat, readStatus } from "./process.js";
import { userName } from "./users.js";

export interface AttachAnswer {
  readonly ok: boolean;
  /** The reason if it may not; "" if it may. */
  readonly reason: string;
  /**
   * The remedy for the environment of this process (a shell, Docker, Kubernetes); "" if nothing is needed or
   * nothing helps.
   */
  readonly remedy: string;
}

const ALLOWED: AttachAnswer = { ok: true, reason: "", remedy: "" };
const KERNEL_THREAD: AttachAnswer = {
  ok: false,
  reason: "it is a kernel thread, which has no memory of its own",
  remedy: "",
};

/** It runs no program. A process that is ending also has no memory; only the kernel's flag distinguishes them. */
export function isKernelThread(pid: Pid): boolean {
  return readStat(pid)?.kernelThread === true;
}

/**
 * Asks the kernel by opening /proc/PID/mem. The kernel then makes the same check as for ptrace (uid, dumpable,
 * capabilities, Yama and other security modules; ptrace(2)), and nothing is touched.
 */
export function readAttachPermission(pid: Pid): AttachAnswer {
  try {
    closeSync(openSync(`/proc/${pid}/mem`, "r"));
    return ALLOWED;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (isKernelThread(pid)) {
      return KERNEL_THREAD;
    }
    if (code === "ENOENT" || code === "ESRCH") {
      return { ok: false, reason: "the process has ended", remedy: "" };
    }
    return { ok: false, ...explainRefusal(readFacts(pid, code)) };
  }
}

/** TM-E021 with the reason; TM-E020 if the process has just ended. */
export function refusalOf(pid: Pid, { reason, remedy }: AttachAnswer): TidemarkError {
  return readStat(pid) === null ? processGone(pid) : notPermitted(pid, reason, remedy);
}

/** Valgrind's tools, as /proc/PID/exe names them: /usr/libexec/valgrind/memcheck-amd64-linux. */
const VALGRIND = /\/[a-z]+-(?:amd64|x86)-linux$/;

/** Under Valgrind, each malloc is Valgrind's own, also one that another library replaces later. */
export function runsUnderValgrind(pid: Pid): boolean {
  return VALGRIND.test(readLink(`/proc/${pid}/exe`) ?? "");
}

/** Whether this process may load the agent into another one, and the agent would see allocations there. */
export function readArmPermission(pid: Pid): AttachAnswer {
  return runsUnderValgrind(pid)
    ? {
        ok: false,
        reason: "it runs under Valgrind, which replaces malloc: no allocation would be recorded",
        remedy: "record the program without Valgrind",
      }
    : readAttachPermission(pid);
}

/** Why ptrace(2) is refused although the process's memory is readable: a seccomp filter of this container. */
export function explainPtraceBarred(pid: Pid): AttachAnswer {
  const facts = readFacts(pid, "EPERM");
  return { ok: false, ...explainRefusal({ ...facts, memoryReadable: true }) };
}

/** The kernel's rules for a process that was not started by this one, of the same or another user. */
export function expectPermission(user: "same" | "other"): AttachAnswer {
  const facts = readFacts(process.pid, "EPERM");
  const uid = user === "same" ? facts.ownUid : facts.ownUid + 1;
  const refusal = explainByRules({
    ...facts,
    uid,
    owner: uid,
    userName: "USER",
    capabilities: 0n,
    sameUserNamespace: true,
  });
  return refusal === null ? ALLOWED : { ok: false, ...refusal };
}

/** The permissions of this process, according to the kernel. */
export interface Privileges {
  readonly uid: number;
  /** Whether it has CAP_SYS_PTRACE. */
  readonly mayTrace: boolean;
  /** kernel.yama.ptrace_scope; null without Yama. */
  readonly ptraceScope: number | null;
  /** Whether system calls of this process pass a seccomp filter, as in a container. */
  readonly seccompFiltered: boolean;
  /** Label of the security module ("docker-default (enforce)"); "" if there is none or it is unconfined. */
  readonly profile: string;
  /** Whether /proc is mounted with hidepid, which hides processes of other users. */
  readonly hidesOthers: boolean;
}

export function readPrivileges(): Privileges {
  const facts = readFacts(process.pid, "");
  const scope = readText("/proc/sys/kernel/yama/ptrace_scope");
  return {
    uid: facts.ownUid,
    mayTrace: (facts.ownCapabilities & SYS_PTRACE) !== 0n,
    ptraceScope: scope === null ? null : Number(scope),
    seccompFiltered: facts.seccompFiltered,
    profile: facts.profile === "unconfined" ? "" : facts.profile,
    hidesOthers: /^\S+ \S+ \S+ \S+ \/proc .* - proc \S+ \S*hidepid=(?!0|off)/m.test(
      readText("/proc/self/mountinfo") ?? "",
    ),
  };
}

function readFacts(pid: Pid, code: string): PtraceFacts {
  const own = readText("/proc/self/status") ?? "";
  const theirs = readText(`/proc/${pid}/status`) ?? "";
  const status = readStatus(pid);
  const namespace = readLink(`/proc/${pid}/ns/user`);
  return {
    code,
    memoryReadable: false,
    ownUid: process.getuid?.() ?? -1,
    ownCapabilities: capabilities(own, "CapEff"),
    ownNamespaceIsInitial: /^\s*0\s+0\s+4294967295\s*$/.test(readText("/proc/self/uid_map") ?? ""),
    seccompFiltered: /^Seccomp:\s*2$/m.test(own),
    profile: (readText("/proc/self/attr/current") ?? "").split("\0")[0]?.trim() ?? "",
    uid: status?.uid ?? null,
    userName: status === null ? "" : userName(status.uid),
    owner: ownerOf(pid),
    capabilities: capabilities(theirs, "CapPrm"),
    sameUserNamespace: namespace === null ? null : namespace === readLink("/proc/self/ns/user"),
    yamaScope: Number(readText("/proc/sys/kernel/yama/ptrace_scope") ?? "0"),
    place: placeOf(),
  };
}

/** Files in /proc/PID belong to root if the process is not dumpable; the folder itself never does (proc(5)). */
function ownerOf(pid: Pid): number | null {
  try {
    return statSync(`/proc/${pid}/mem`).uid;
  } catch {
    return null; // ended, or hidden by the mount option hidepid
  }
}

function capabilities(status: string, field: string): bigint {
  const hex = new RegExp(`^${field}:\\s*([0-9a-f]+)$`, "m").exec(status)?.[1];
  return hex === undefined ? 0n : BigInt(`0x${hex}`);
}

function placeOf(): Place {
  if (process.env.KUBERNETES_SERVICE_HOST || existsSync("/var/run/secrets/kubernetes.io")) {
    return "kubernetes";
  }
  return existsSync("/.dockerenv") || existsSync("/run/.containerenv") ? "docker" : "shell";
}
