/** Which processes may be read, attached to and paused. */
import { expectPermission, readPrivileges } from "../../../linux/index.js";
import type { DoctorCheckJson } from "../../../model/documents/doctor_document.js";
import { limited, works } from "./check.js";

/** Permissions according to the kernel's settings; trials.ts tests them. */
export function permissionChecks(): DoctorCheckJson[] {
  return [traceScope(), others(), confinement()];
}

function traceScope(): DoctorCheckJson {
  const { ptraceScope } = readPrivileges();
  const found =
    ptraceScope === null ? "no Yama: ptrace_scope is not set" : `ptrace_scope is ${ptraceScope}`;
  const { ok, reason, remedy } = expectPermission("same");
  return ok
    ? works("permissions", "ptrace", found)
    : limited("permissions", "ptrace", found, {
        effect: `attach, heap, ledger and stacks of a running program: ${reason}`,
        remedy,
      });
}

function others(): DoctorCheckJson {
  const { mayTrace, hidesOthers, uid } = readPrivileges();
  const who = uid === 0 ? "root" : `user ${uid}`;
  const { ok, remedy } = expectPermission("other");
  if (hidesOthers && !mayTrace) {
    return limited("permissions", "other users", `${who}; /proc hides processes (hidepid)`, {
      effect: "ps and top list only this user's processes",
      remedy: "run it as root: sudo tidemark ...",
    });
  }
  return ok
    ? works("permissions", "other users", `${who} with CAP_SYS_PTRACE`)
    : limited("permissions", "other users", `${who} without CAP_SYS_PTRACE`, {
        effect: "processes of other users cannot be read",
        remedy,
      });
}

function confinement(): DoctorCheckJson {
  const { seccompFiltered, profile } = readPrivileges();
  const found = [
    seccompFiltered ? "a seccomp filter" : "no seccomp filter",
    profile === "" ? "no security profile" : `security profile ${profile}`,
  ];
  // The trials find out what they forbid.
  return works("permissions", "confinement", found.join(", "));
}
